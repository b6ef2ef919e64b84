//! The order of elements in strided memory of other libraries.

use nxla_runtime::host::Shape;

/// An axis of a walk over memory: the number of steps, and the distance of two steps in bytes.
#[derive(Clone, Copy, Debug)]
struct Walk {
    length: usize,
    stride: isize,
}

/// The offsets of the elements of a strided array, in row-major order.
#[derive(Debug)]
pub(crate) struct Strides {
    /// The axes of at least two runs.
    axes: Vec<Walk>,
    /// The number of adjacent bytes of a run of elements.
    run: usize,
    /// The offset of the first byte, at most 0.
    start: isize,
    /// The offset after the last byte.
    end: isize,
}

impl Strides {
    /// The order of elements of `size` bytes, from strides in elements. `shape` is not empty. Returns
    /// `None` if the distance of two elements does not fit in the address space.
    pub(crate) fn new(shape: &Shape, strides: &[i64], size: usize) -> Option<Self> {
        let size = isize::try_from(size).ok()?;
        let mut read = Self { axes: Vec::new(), run: size.unsigned_abs(), start: 0, end: size };
        for (&length, &stride) in shape.iter().zip(strides) {
            // The stride of an axis of size 1 has no meaning.
            if length == 1 {
                continue;
            }
            let stride = isize::try_from(stride).ok()?.checked_mul(size)?;
            let last = isize::try_from(length - 1).ok()?.checked_mul(stride)?;
            let bound = if last < 0 { &mut read.start } else { &mut read.end };
            *bound = bound.checked_add(last)?;
            read.axes.push(Walk { length, stride });
        }
        while let Some(&Walk { length, stride }) = read.axes.last()
            && usize::try_from(stride) == Ok(read.run)
        {
            read.run *= length;
            read.axes.pop();
        }
        Some(read)
    }

    /// Returns whether all bytes of an array at an address are in the address space.
    pub(crate) fn fit_at(&self, address: usize) -> bool {
        let end = isize::try_from(address).ok().and_then(|address| address.checked_add(self.end));
        end.is_some() && address > self.start.unsigned_abs()
    }

    /// Returns whether the elements are adjacent and in row-major order.
    pub(crate) fn are_contiguous(&self) -> bool {
        self.axes.is_empty()
    }

    /// The number of bytes of a run: adjacent elements that are in row-major order.
    pub(crate) fn run(&self) -> usize {
        self.run
    }

    /// The offset of each run, in row-major order.
    pub(crate) fn offsets(&self) -> impl Iterator<Item = isize> {
        let mut index = vec![0; self.axes.len()];
        let mut next = Some(0);
        std::iter::from_fn(move || {
            let offset = next?;
            let mut following = offset;
            next = None;
            for (at, axis) in index.iter_mut().zip(&self.axes).rev() {
                if *at + 1 < axis.length {
                    *at += 1;
                    next = Some(following + axis.stride);
                    break;
                }
                // The offset of the first element of the axis is in the array, too.
                following -= *at as isize * axis.stride;
                *at = 0;
            }
            Some(offset)
        })
    }
}
