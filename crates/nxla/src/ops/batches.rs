//! Splitting the first axis of a tensor into batches.

use crate::tensor::Tensor;
use crate::{Error, Result};

/// The handling of a last batch that is shorter than the others.
///
/// ```
/// use nxla::{Leftover, Tensor};
///
/// let x = Tensor::from([1, 2, 3]);
/// assert_eq!(x.to_batched(2, Leftover::Repeat)?.count(), 2);
/// assert_eq!(x.to_batched(2, Leftover::Discard)?.count(), 1);
/// # Ok::<(), nxla::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Leftover {
    /// The batch is filled with elements from the start.
    #[default]
    Repeat,
    /// The batch is dropped.
    Discard,
}

impl Tensor {
    /// Returns an iterator over batches of the first axis, each computed on demand.
    ///
    /// ```
    /// use nxla::{Leftover, Tensor};
    ///
    /// let x = Tensor::from(vec![1, 2, 3, 4, 5]);
    /// let mut batches = x.to_batched(2, Leftover::Repeat)?;
    /// assert_eq!(batches.next().expect("there are three")?.to_vec::<i32>()?, [1, 2]);
    /// assert_eq!(batches.last().expect("there are three")?.to_vec::<i32>()?, [5, 1]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error for a scalar, or for a size that is zero or larger than the axis.
    pub fn to_batched(
        &self,
        size: usize,
        leftover: Leftover,
    ) -> Result<impl Iterator<Item = Result<Tensor>> + use<>> {
        let wrong = |why| Error::Arguments { function: "to_batched".into(), why };
        let Some(&length) = self.shape().first() else {
            return Err(wrong("x: must have at least one axis; got a scalar".into()));
        };
        if !(1..=length).contains(&size) {
            let why =
                format!("size: must be from 1 to {length}, the size of the first axis; got {size}");
            return Err(wrong(why));
        }
        let rest = length % size;
        let count = length / size + usize::from(rest > 0 && leftover == Leftover::Repeat);
        let x = self.clone();
        // A tensor instead of a constant of the program, so that one program serves all starts.
        let part =
            move |start: usize, size| x.slice_along_axis(Tensor::from(start as u64), size, 0);
        Ok((0..count).map(move |batch| {
            let start = batch * size;
            if start + size <= length {
                return part(start, size);
            }
            Tensor::concatenate(&[part(start, rest)?, part(0, size - rest)?], 0)
        }))
    }
}
