//! Safe values for the entries of a batch that do not take a branch.
//!
//! A region whose predicate differs between entries is computed for all entries, and a selection
//! drops unused results. A derivative still evaluates the region for the other entries, and `0 *
//! inf` there would make sums over the batch NaN. These entries are therefore computed with the
//! values of an entry that takes the branch.

use crate::graph::{ExprId, Graph, Result};
use nxla_tensor::{DType, Shape};

impl Graph {
    /// Replaces the entries of `x` for which `mask` is false by the first entry for which it is
    /// true. The axes of the mask are the leading axes of `x`. No gradient flows to the replacing
    /// values.
    ///
    /// If the mask is false for all entries, the first entry replaces all entries.
    ///
    /// # Errors
    /// Returns an error if the axes of the mask are not the leading axes of `x`.
    pub fn fill_entries(&mut self, mask: ExprId, x: ExprId) -> Result<ExprId> {
        let (sizes, ty) = (self.shape(mask).clone(), self.tensor_type(x).clone());
        let count = sizes.size();
        if count <= 1 || ty.shape.size() == 0 {
            return Ok(x);
        }
        let entry = &ty.shape[sizes.rank()..];
        let with = |sizes: &[usize]| Shape::from_iter(sizes.iter().chain(entry).copied());
        let flat_mask = self.reshape(mask, [count])?;
        let numbers = self.as_type(flat_mask, DType::U8)?;
        let first = self.argmax(numbers, Some(0), false, false, DType::S64)?;
        let plain = self.rename(x, None)?;
        let flat = self.reshape(plain, with(&[count]))?;
        let filler = self.slice_along_axis(flat, first, 1, 0, 1)?;
        let filler = self.reshape(filler, with(&vec![1; sizes.rank()]))?;
        let filler = self.stop_grad(filler)?;
        let ones = std::iter::repeat_n(1, entry.len());
        let mask = self.reshape(mask, sizes.iter().copied().chain(ones).collect::<Shape>())?;
        let filled = self.select(mask, plain, filler)?;
        self.rename(filled, ty.names)
    }
}
