//! Safe values for the entries of a batch that do not take a branch.
//!
//! A region whose condition differs between entries is computed for all entries of the batch, and
//! a selection drops the results of the entries that did not take it. A derivative still evaluates
//! the region there: `0 * inf` at such an entry would make NaN of every sum that it is part of.
//! So these entries are computed with the values of an entry that takes the region.

use crate::graph::{ExprId, Graph, Result};
use nxla_tensor::{DType, Shape};

impl Graph {
    /// `x` with the values of the first entry for which `mask` holds, in place of those of all
    /// entries for which it does not. The axes of the mask are the first axes of `x`. No gradient
    /// flows to what takes the place.
    ///
    /// Where the mask holds for no entry, the result is `x` with its first entry in place of all.
    ///
    /// # Errors
    /// A mask whose axes are not the first ones of `x`.
    pub fn fill_lanes(&mut self, mask: ExprId, x: ExprId) -> Result<ExprId> {
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
