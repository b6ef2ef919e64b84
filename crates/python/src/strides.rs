//! The order of elements in strided memory of other libraries.

use nxla_runtime::host::Shape;

/// An axis: its length, and the distance of two adjacent elements in bytes.
#[derive(Clone, Copy, Debug)]
struct Axis {
    length: usize,
    stride: isize,
}

/// The offsets of the elements of a strided array, in row-major order.
#[derive(Debug)]
pub(crate) struct Strides {
    /// The axes outside the contiguous run.
    axes: Vec<Axis>,
    /// The number of adjacent bytes of a run of elements.
    run_bytes: usize,
    /// The offset of the first byte, at most 0.
    start: isize,
    /// The offset after the last byte.
    end: isize,
}

impl Strides {
    /// The order of elements of `size` bytes, from strides in elements. `shape` has at least one
    /// element. Returns `None` if the distance of two elements does not fit in the address space.
    pub(crate) fn new(shape: &Shape, strides: &[i64], size: usize) -> Option<Self> {
        let size = isize::try_from(size).ok()?;
        let mut read =
            Self { axes: Vec::new(), run_bytes: size.unsigned_abs(), start: 0, end: size };
        for (&length, &stride) in shape.iter().zip(strides) {
            // The stride of an axis of size 1 has no meaning.
            if length == 1 {
                continue;
            }
            let stride = isize::try_from(stride).ok()?.checked_mul(size)?;
            let last = isize::try_from(length - 1).ok()?.checked_mul(stride)?;
            let bound = if last < 0 { &mut read.start } else { &mut read.end };
            *bound = bound.checked_add(last)?;
            read.axes.push(Axis { length, stride });
        }
        while let Some(&Axis { length, stride }) = read.axes.last()
            && usize::try_from(stride) == Ok(read.run_bytes)
        {
            read.run_bytes *= length;
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
    pub(crate) fn run_bytes(&self) -> usize {
        self.run_bytes
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
