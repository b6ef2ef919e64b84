//! Slices, gathers, scatters and sorts.

use nxla_expr::{Combine, Op, SliceAttributes, SortAttributes, Start, TensorType};
use nxla_tensor::{DType, Scalar, Shape};
use smallvec::SmallVec;

use crate::builder::Range;
use crate::context::Cx;
use crate::literal::{I64s, List};
use crate::region::Source;
use crate::types::Ty;
use crate::widen;
use crate::writer::{Value, Values};

pub(crate) fn lower(cx: &mut Cx<'_>, op: &Op, operands: &[Source], ty: &TensorType) -> Value {
    match op {
        Op::Slice(attributes) => slice(cx, attributes, operands),
        Op::PutSlice(starts) => put_slice(cx, starts, operands, ty),
        Op::Gather(axes) => gather(cx, axes, operands, ty),
        Op::IndexedAdd(axes) => scatter(cx, axes, operands, ty, Update::Add),
        Op::IndexedPut(axes) => scatter(cx, axes, operands, ty, Update::Put),
        Op::Sort(attributes) => {
            let x = cx.value(operands[0]);
            let ordered = cx.convert(x, widen::comparison(ty.dtype));
            let sorted = sort(cx, *attributes, &[ordered]);
            cx.convert(sorted[0], ty.dtype)
        }
        Op::Argsort(attributes, dtype) => {
            let x = cx.value(operands[0]);
            let ordered = widen::comparison(cx.dtype(x.ty));
            let ordered = cx.convert(x, ordered);
            let index = widen::index(ty.shape[attributes.axis]);
            let positions = cx.iota(attributes.axis, index, &ty.shape);
            let sorted = sort(cx, *attributes, &[ordered, positions]);
            cx.convert(sorted[1], *dtype)
        }
        op @ nxla_expr::outside!(index) => unreachable!("{} is of another family", op.name()),
    }
}

fn slice(cx: &mut Cx<'_>, attributes: &SliceAttributes, operands: &[Source]) -> Value {
    let SliceAttributes { starts, lengths, strides } = attributes;
    let x = cx.value(operands[0]);
    let shape = cx.shape(x.ty).clone();
    if let Some(starts) = static_starts(starts, &shape, lengths) {
        return cx.slice(x, &Range { starts: &starts, lengths, strides });
    }
    let starts = dynamic_starts(cx, starts, &operands[1..], &shape);
    let operands: Values = std::iter::once(x).chain(starts).collect();
    let ty = cx.ty(cx.dtype(x.ty), &Shape::from(&lengths[..]));
    let attributes = format_args!("slice_sizes = {}", I64s(lengths));
    let x = cx.writer.operation("stablehlo.dynamic_slice", &operands, attributes, ty);
    let starts: SmallVec<[usize; 8]> = SmallVec::from_elem(0, lengths.len());
    cx.slice(x, &Range { starts: &starts, lengths, strides })
}

fn put_slice(cx: &mut Cx<'_>, starts: &[Start], operands: &[Source], ty: &TensorType) -> Value {
    let x = cx.cast(operands[0], ty.dtype);
    let update = cx.cast(operands[1], ty.dtype);
    if cx.shape(update.ty).size() == 0 {
        return x;
    }
    let starts = dynamic_starts(cx, starts, &operands[2..], &ty.shape);
    let operands: Values = [x, update].into_iter().chain(starts).collect();
    cx.operation("stablehlo.dynamic_update_slice", &operands, x.ty)
}

/// The starts, if all are known, moved so that the slice fits.
fn static_starts(
    starts: &[Start],
    shape: &Shape,
    lengths: &[usize],
) -> Option<SmallVec<[usize; 8]>> {
    starts
        .iter()
        .zip(shape)
        .zip(lengths)
        .map(|((start, size), length)| match start {
            Start::Static(start) => Some(usize::try_from(*start).unwrap_or(0).min(size - length)),
            Start::Dynamic => None,
        })
        .collect()
}

/// Returns one scalar per axis, all of one dtype, because dynamic slices require this. Dynamic
/// slices clamp the scalars.
fn dynamic_starts(cx: &mut Cx<'_>, starts: &[Start], dynamic: &[Source], shape: &Shape) -> Values {
    let largest = shape.iter().copied().max().unwrap_or(0);
    let index = dynamic
        .iter()
        .map(|&start| widen::index_of(cx.dtype(start.ty()), largest))
        .fold(widen::index(largest), |a, b| if a.bits() >= b.bits() { a } else { b });
    let mut dynamic = dynamic.iter();
    starts
        .iter()
        .zip(shape)
        .map(|(start, &size)| match start {
            Start::Dynamic => {
                let start = *dynamic.next().expect("one operand for each dynamic start");
                as_index(cx, start, index)
            }
            Start::Static(start) => {
                // Clamped here, because it may not fit the dtype.
                let size = i64::try_from(size).unwrap_or(i64::MAX);
                let start = Scalar::Int((*start).clamp(0, size));
                cx.splat(start, index, &Shape::scalar())
            }
        })
        .collect()
}

/// Converts integers to indices of a signed dtype. Integers that do not fit become the largest
/// index, and so stay beyond any axis.
fn as_index(cx: &mut Cx<'_>, indices: Source, index: DType) -> Value {
    let mut value = cx.value(indices);
    let dtype = cx.dtype(value.ty);
    if dtype.is_unsigned() && dtype.bits() >= index.bits() {
        let shape = cx.shape(value.ty).clone();
        let largest = cx.splat(index.max_value(), dtype, &shape);
        value = cx.uniform("stablehlo.minimum", &[value, largest]);
    }
    cx.convert(value, index)
}

fn gather(cx: &mut Cx<'_>, axes: &[usize], operands: &[Source], ty: &TensorType) -> Value {
    let x = cx.value(operands[0]);
    let shape = cx.shape(x.ty).clone();
    let indices = indices(cx, operands[1], &shape);
    gather_values(cx, axes, x, indices, &ty.shape)
}

fn gather_values(
    cx: &mut Cx<'_>,
    axes: &[usize],
    x: Value,
    indices: Value,
    result: &Shape,
) -> Value {
    let shape = cx.shape(x.ty).clone();
    let leading = cx.shape(indices.ty).rank() - 1;
    let offsets: SmallVec<[usize; 8]> = (leading..result.rank()).collect();
    let sizes: SmallVec<[usize; 8]> = (shape.iter().enumerate())
        .map(|(axis, &size)| if axes.contains(&axis) { 1 } else { size })
        .collect();
    let result = cx.ty(cx.dtype(x.ty), result);
    let attributes = format_args!(
        "dimension_numbers = #stablehlo.gather<offset_dims = [{}], collapsed_slice_dims = [{}], \
         start_index_map = [{}], index_vector_dim = {leading}>, slice_sizes = {}",
        List(&offsets),
        List(axes),
        List(axes),
        I64s(&sizes)
    );
    cx.writer.operation("stablehlo.gather", &[x, indices], attributes, result)
}

/// Returns coordinates for a tensor of this shape. Gathers clamp coordinates outside the tensor, and
/// scatters drop them.
fn indices(cx: &mut Cx<'_>, indices: Source, shape: &Shape) -> Value {
    let largest = shape.iter().copied().max().unwrap_or(0);
    let index = widen::index_of(cx.dtype(indices.ty()), largest);
    as_index(cx, indices, index)
}

/// The combination of an element and an update by a scatter.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Update {
    Add,
    Put,
    Combine(Combine),
}

/// Combines elements with all updates at their indices.
pub(crate) fn scatter(
    cx: &mut Cx<'_>,
    axes: &[usize],
    operands: &[Source],
    ty: &TensorType,
    update: Update,
) -> Value {
    let compute = match update {
        Update::Add | Update::Combine(_) => widen::accumulator(ty.dtype),
        Update::Put => ty.dtype,
    };
    let x = cx.cast(operands[0], compute);
    let indices = indices(cx, operands[1], &ty.shape);
    let updates = cx.cast(operands[2], compute);
    let result = match (cx.shape(updates.ty).size(), update) {
        (0, _) => x,
        (_, Update::Put) if !cx.options.scatters_in_order => {
            let indices = last_writes(cx, axes, &ty.shape, indices);
            scatter_values(cx, axes, x, indices, updates, update)
        }
        _ => scatter_values(cx, axes, x, indices, updates, update),
    };
    cx.convert(result, ty.dtype)
}

/// Moves all indices outside of `shape` except the last that names each element, so that the order of
/// the writes does not matter: `stablehlo.scatter` ignores indices outside.
fn last_writes(cx: &mut Cx<'_>, axes: &[usize], shape: &Shape, indices: Value) -> Value {
    let given = cx.shape(indices.ty).clone();
    let (dtype, leading) = (cx.dtype(indices.ty), given.rank() - 1);
    let writes = Shape::from(&given[..leading]);
    let flat = Shape::from([writes.size()]);
    let numbers = cx.iota(0, DType::S32, &flat);
    let numbers = cx.reshape(numbers, &writes);
    // The largest number that is written to each element is the number of its last write.
    let written: Shape = axes.iter().map(|&axis| shape[axis]).collect();
    let all: SmallVec<[usize; 8]> = (0..written.rank()).collect();
    let none = cx.splat(Scalar::Int(-1), DType::S32, &written);
    let last = scatter_values(cx, &all, none, indices, numbers, Update::Combine(Combine::Max));
    let last = gather_values(cx, &all, last, indices, &writes);
    let is_last = cx.compare("EQ", last, numbers);
    let axes: SmallVec<[usize; 8]> = (0..leading).collect();
    let is_last = cx.broadcast(is_last, &axes, &given);
    let outside = cx.splat(dtype.max_value(), dtype, &given);
    cx.select(is_last, indices, outside)
}

/// Writes a scatter. Updates at indices outside of the value are dropped.
pub(crate) fn scatter_values(
    cx: &mut Cx<'_>,
    axes: &[usize],
    x: Value,
    indices: Value,
    updates: Value,
    update: Update,
) -> Value {
    let leading = cx.shape(indices.ty).rank() - 1;
    let windows: SmallVec<[usize; 8]> = (leading..cx.shape(updates.ty).rank()).collect();

    let scalar = cx.ty(cx.dtype(x.ty), &Shape::scalar());
    let mut open = cx.writer.open("stablehlo.scatter", &[x, indices, updates], &[x.ty]);
    let pair = cx.begin_region(&mut open, &[scalar, scalar]);
    let result = match update {
        Update::Add => cx.uniform("stablehlo.add", &pair),
        Update::Put => pair[1],
        Update::Combine(Combine::Multiply) => cx.uniform("stablehlo.multiply", &pair),
        Update::Combine(Combine::Max) => cx.uniform("stablehlo.maximum", &pair),
        Update::Combine(Combine::Min) => cx.uniform("stablehlo.minimum", &pair),
    };
    cx.end_region(&[result]);
    let results = cx.writer.close(
        open,
        format_args!(
            "scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [{}], \
             inserted_window_dims = [{}], scatter_dims_to_operand_dims = [{}], \
             index_vector_dim = {leading}>",
            List(&windows),
            List(axes),
            List(axes)
        ),
    );
    results[0]
}

/// Sorts by the first value and moves the others along; equal elements keep their order.
fn sort(cx: &mut Cx<'_>, sort: SortAttributes, values: &[Value]) -> Values {
    let types: SmallVec<[Ty; 4]> = values.iter().map(|value| value.ty).collect();
    let scalars: SmallVec<[Ty; 4]> = values
        .iter()
        .flat_map(|value| {
            let scalar = cx.ty(cx.dtype(value.ty), &Shape::scalar());
            [scalar, scalar]
        })
        .collect();
    let mut open = cx.writer.open("stablehlo.sort", values, &types);
    let pairs = cx.begin_region(&mut open, &scalars);
    // Descending order is ascending order with the operands exchanged.
    let (x, y) = if sort.descending { (pairs[1], pairs[0]) } else { (pairs[0], pairs[1]) };
    let before = less(cx, x, y);
    cx.end_region(&[before]);
    let attributes = format_args!("dimension = {} : i64, is_stable = true", sort.axis);
    cx.writer.close(open, attributes)
}

/// `x < y` with NaN as the largest; zeros of either sign are equal.
fn less(cx: &mut Cx<'_>, x: Value, y: Value) -> Value {
    let less = cx.compare("LT", x, y);
    if !cx.dtype(x.ty).is_float() {
        return less;
    }
    let y_is_nan = cx.compare("NE", y, y);
    let x_is_number = cx.compare("EQ", x, x);
    let only_y_is_nan = cx.uniform("stablehlo.and", &[x_is_number, y_is_nan]);
    cx.uniform("stablehlo.or", &[less, only_y_is_nan])
}
