//! Slices at static and dynamic starts, all clamped so that the slice fits.

use nxla_expr::{Slice, Start, TensorType};
use nxla_tensor::HostTensor;

use crate::args::Args;
use crate::elementwise::convert;
use crate::error::Fault;
use crate::layout::Strided;
use crate::value;

/// The start of each axis, of which the dynamic ones are operands from `first_dynamic` on.
fn starts(
    starts: &[Start],
    args: &Args<'_>,
    first_dynamic: usize,
    room: impl Fn(usize) -> usize,
) -> Vec<usize> {
    let mut dynamic = first_dynamic..;
    let start = |(axis, start): (usize, &Start)| {
        let start = match start {
            Start::Static(start) => *start,
            Start::Dynamic => {
                let index = dynamic.next().expect("the range has no end");
                value::integer(args.get(index))
            }
        };
        start.clamp(0, i64::try_from(room(axis)).unwrap_or(i64::MAX)) as usize
    };
    starts.iter().enumerate().map(start).collect()
}

pub(super) fn slice(
    attributes: &Slice,
    args: &Args<'_>,
    ty: &TensorType,
) -> Result<HostTensor, Fault> {
    let x = args.get(0);
    let room = |axis: usize| x.shape()[axis] - attributes.lengths[axis];
    let starts = starts(&attributes.starts, args, 1, room);
    let steps = Strided::row_major(x.shape());
    let offset = starts.iter().zip(&steps).map(|(&start, &step)| start * step as usize).sum();
    let axes = ty.shape.iter().enumerate();
    let axes = axes.map(|(axis, &size)| (size, steps[axis] * attributes.strides[axis] as isize));
    let rule = Strided::new(offset, axes);
    value::build_bytes(ty.dtype, &ty.shape, |out| {
        rule.read_all_bytes(ty.dtype.size(), x.bytes(), out);
    })
}

/// Writes into the operand itself where nobody else needs it.
pub(super) fn put_slice(
    put: &[Start],
    args: &mut Args<'_>,
    ty: &TensorType,
) -> Result<HostTensor, Fault> {
    let update = convert(args.get(1), ty.dtype)?;
    let room = |axis: usize| ty.shape[axis] - update.shape()[axis];
    let starts = starts(put, args, 2, room);
    let mut result = value::owned(args.take(0), ty.dtype)?;
    let steps = Strided::row_major(&ty.shape);
    let offset = starts.iter().zip(&steps).map(|(&start, &step)| start * step as usize).sum();
    let rule = Strided::new(offset, update.shape().iter().copied().zip(steps));
    rule.write_bytes(ty.dtype.size(), update.bytes(), value::bytes_mut(&mut result));
    Ok(result)
}
