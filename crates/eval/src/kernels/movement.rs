//! Ops that move elements. They depend only on the size of the dtype, except that operands are
//! promoted before they are concatenated.

use nxla_expr::{Broadcast, Op, Padding, TensorType};
use nxla_tensor::{HostTensor, Shape};
use smallvec::SmallVec;

use crate::context::{self, Args, Cx, Fault};
use crate::kernels::elementwise::convert;
use crate::kernels::strided::{Strided, match_size};

pub(crate) fn evaluate(
    cx: Cx<'_>,
    op: &Op,
    ty: &TensorType,
    args: &mut Args<'_>,
) -> Result<HostTensor, Fault> {
    match op {
        Op::Reshape(_) | Op::Squeeze(_) => Ok(context::reshape(args.take(0), &ty.shape)),
        Op::Transpose(permutation) => permute(cx, args.get(0), permutation),
        Op::Reverse(axes) => {
            let x = args.get(0);
            read(cx, x, &reverse_map(x.shape(), axes).rule(&ty.shape), ty)
        }
        Op::Broadcast(attributes) => {
            let x = args.get(0);
            read(cx, x, &broadcast_map(x.shape(), attributes).rule(&ty.shape), ty)
        }
        Op::Pad(config) => pad(cx, args.get(0), args.get(1), config, ty),
        Op::Concatenate(axis) => join(cx, args, *axis, ty),
        Op::Stack(attributes) => join(cx, args, attributes.axis, ty),
        op @ nxla_expr::outside!(movement) => unreachable!("{} is of another family", op.name()),
    }
}

/// The elements of `x` in the order of a rule.
pub(crate) fn read(
    cx: Cx<'_>,
    x: &HostTensor,
    rule: &Strided,
    ty: &TensorType,
) -> Result<HostTensor, Fault> {
    context::build_bytes(ty.dtype, &ty.shape, |out| {
        rule.read_all_bytes(cx, ty.dtype.size(), x.bytes(), out);
    })
}

/// The tensor whose axis `i` is the axis `permutation[i]` of `x`; another handle if the elements stay in order.
pub(crate) fn permute(
    cx: Cx<'_>,
    x: &HostTensor,
    permutation: &[usize],
) -> Result<HostTensor, Fault> {
    let shape = permutation.iter().map(|&axis| x.shape()[axis]).collect();
    let rule = transpose_map(x.shape(), permutation).rule(&shape);
    if rule.is_contiguous() {
        return Ok(context::reshape(x.clone(), &shape));
    }
    read(cx, x, &rule, &TensorType::new(x.dtype(), shape))
}

/// An index map into another tensor: an offset, and a stride for each axis.
pub(crate) struct IndexMap {
    pub(crate) offset: usize,
    pub(crate) steps: SmallVec<[isize; 6]>,
}

impl IndexMap {
    pub(crate) fn rule(self, shape: &Shape) -> Strided {
        Strided::new(self.offset, shape.iter().copied().zip(self.steps))
    }
}

pub(crate) fn broadcast_map(x: &Shape, attributes: &Broadcast) -> IndexMap {
    let mut steps = SmallVec::from_elem(0, attributes.shape.rank());
    for (axis, step) in Strided::row_major(x).into_iter().enumerate() {
        if x[axis] != 1 {
            steps[attributes.axes[axis]] = step;
        }
    }
    IndexMap { offset: 0, steps }
}

/// The index map of a transpose into its operand.
pub(crate) fn transpose_map(x: &Shape, permutation: &[usize]) -> IndexMap {
    let steps = Strided::row_major(x);
    IndexMap { offset: 0, steps: permutation.iter().map(|&axis| steps[axis]).collect() }
}

pub(crate) fn reverse_map(x: &Shape, axes: &[usize]) -> IndexMap {
    let mut offset = 0;
    let mut steps = Strided::row_major(x);
    for &axis in axes {
        offset += x[axis].saturating_sub(1) * steps[axis] as usize;
        steps[axis] = -steps[axis];
    }
    // The last element of an empty tensor does not exist, so the offset is 0.
    IndexMap { offset: if x.size() == 0 { 0 } else { offset }, steps }
}

/// The access rules of the elements that padding keeps, in the operand and in the result.
pub(crate) fn padding(config: &[Padding], x: &Shape, padded: &Shape) -> Option<(Strided, Strided)> {
    let (from_steps, to_steps) = (Strided::row_major(x), Strided::row_major(padded));
    let (mut from_offset, mut to_offset) = (0, 0);
    let mut axes: Vec<(usize, isize, isize)> = Vec::with_capacity(config.len());
    for (axis, padding) in config.iter().enumerate() {
        let kept = KeptRange::new(padding, x[axis], padded[axis]);
        from_offset += kept.first * from_steps[axis] as usize;
        to_offset += kept.target * to_steps[axis] as usize;
        let step = padding.interior as isize + 1;
        axes.push((kept.count, from_steps[axis], to_steps[axis] * step));
    }
    let source = Strided::new(from_offset, axes.iter().map(|&(count, from, _)| (count, from)));
    let target = Strided::new(to_offset, axes.iter().map(|&(count, _, to)| (count, to)));
    axes.iter().all(|&(count, ..)| count > 0).then_some((source, target))
}

/// Elements of `x` keep their positions unless negative padding removes them.
fn pad(
    cx: Cx<'_>,
    x: &HostTensor,
    padding: &HostTensor,
    config: &[Padding],
    ty: &TensorType,
) -> Result<HostTensor, Fault> {
    let x = convert(cx, x, ty.dtype)?;
    let fill = padding.get(0).cast(padding.dtype()).cast(ty.dtype);
    let mut result = HostTensor::full(fill, ty.dtype, ty.shape.clone())?;
    let Some((source, target)) = self::padding(config, x.shape(), &ty.shape) else {
        return Ok(result);
    };
    let out = context::bytes_mut(&mut result);
    match_size!(ty.dtype.size(), T => {
        let elements: &[T] = bytemuck::cast_slice(x.bytes());
        let out: &mut [T] = bytemuck::cast_slice_mut(out);
        if let Some(first) = source.neighbors(0, source.len()) {
            target.write(&elements[first..first + source.len()], out);
        } else {
            let mut kept = context::filled(T::default(), source.len());
            source.read_all(cx, elements, &mut kept);
            target.write(&kept, out);
        }
    });
    Ok(result)
}

/// The elements of an axis that padding keeps, and the index of the first of them in the result.
struct KeptRange {
    first: usize,
    count: usize,
    target: usize,
}

impl KeptRange {
    fn new(padding: &Padding, size: usize, padded: usize) -> Self {
        let step = i128::try_from(padding.interior).expect("it fits in 128 bits") + 1;
        let low = i128::from(padding.low);
        // Element i goes to low + i * step, if that is within 0..padded.
        let steps_to = |distance: i128| (distance.max(0) + step - 1) / step;
        let first = steps_to(-low);
        let end = steps_to(padded as i128 - low).min(size as i128);
        let count = (end - first).max(0);
        let target = if count == 0 { 0 } else { low + first * step };
        Self { first: first as usize, count: count as usize, target: target as usize }
    }
}

/// Concatenates or stacks: for each index of the leading axes, the operands follow each other.
fn join(cx: Cx<'_>, args: &Args<'_>, axis: usize, ty: &TensorType) -> Result<HostTensor, Fault> {
    let outer: usize = ty.shape[..axis].iter().product();
    let total = ty.shape.size().checked_div(outer).unwrap_or(0);
    let parts = (0..args.len()).map(|index| convert(cx, args.get(index), ty.dtype));
    let parts: Vec<HostTensor> = parts.collect::<Result<_, _>>()?;
    context::build_bytes(ty.dtype, &ty.shape, |out| {
        match_size!(ty.dtype.size(), T => {
            let out: &mut [T] = bytemuck::cast_slice_mut(out);
            cx.rows(out, total, total, |first, out| {
                let (rows, mut offset) = (out.len() / total, 0);
                for part in &parts {
                    let run = part.size() / outer;
                    let part: &[T] = bytemuck::cast_slice(part.bytes());
                    put_runs(&part[first * run..][..rows * run], run, out, total, offset);
                    offset += run;
                }
            });
        });
    })
}

/// Writes consecutive runs to the same position of each row.
fn put_runs<T: Copy>(part: &[T], run: usize, out: &mut [T], row: usize, offset: usize) {
    match run {
        0 => {}
        1 => {
            let elements = out[offset..].iter_mut().step_by(row);
            elements.zip(part).for_each(|(out, &x)| *out = x);
        }
        _ => {
            let rows = out.chunks_exact_mut(row).zip(part.chunks_exact(run));
            rows.for_each(|(out, part)| out[offset..offset + run].copy_from_slice(part));
        }
    }
}
