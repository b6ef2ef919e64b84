//! Reductions over sliding windows, and their scatters.

use nxla_expr::{Op, ScatterOp, TensorType, WindowAttributes, WindowFun, WindowOp};
use nxla_tensor::{Scalar, Shape};
use smallvec::SmallVec;

use crate::builder::{Pad, Range};
use crate::context::Cx;
use crate::error::Result;
use crate::fold;
use crate::index::{Update, scatter_values};
use crate::literal::{I64s, Pairs};
use crate::reduce::accumulation;
use crate::region::Source;
use crate::widen;
use crate::writer::{Value, Values};

pub(crate) fn lower<'a>(
    cx: &mut Cx<'a>,
    op: &'a Op,
    operands: &[Source],
    ty: &TensorType,
) -> Result<Value> {
    match op {
        Op::Window(op, window) => uniform(cx, *op, window, operands[0], ty),
        Op::WindowFun(attributes) => window_fun(cx, attributes, operands, ty),
        Op::WindowScatter(op, window) => scatter(cx, *op, window, operands, ty),
        op @ nxla_expr::outside!(window) => unreachable!("{} is of another family", op.name()),
    }
}

fn uniform(
    cx: &mut Cx<'_>,
    op: WindowOp,
    window: &WindowAttributes,
    x: Source,
    ty: &TensorType,
) -> Result<Value> {
    let (name, neutral, compute) = accumulation(op.reduction(), ty.dtype);
    let x = cx.cast(x, compute);
    let (x, padding) = trim(cx, x, &window.padding);
    let result = if ty.rank() == 0 {
        // The one window of a scalar holds the scalar.
        x
    } else {
        let initial = cx.splat(neutral, compute, &Shape::scalar());
        let body = |cx: &mut Cx<'_>, accumulators: &[Value], elements: &[Value]| {
            Ok(Values::from_slice(&[cx.uniform(name, &[accumulators[0], elements[0]])]))
        };
        let results = cx.fold(
            "stablehlo.reduce_window",
            &[x],
            &[initial],
            &ty.shape,
            format_args!("{}", attributes_text(window, &padding)),
            body,
        )?;
        results[0]
    };
    Ok(cx.convert(result, ty.dtype))
}

/// The attributes of a `reduce_window` with this padding.
fn attributes_text(window: &WindowAttributes, padding: &[(i64, i64)]) -> String {
    format!(
        "window_dimensions = {}, window_strides = {}, window_dilations = {}, padding = {}",
        I64s(&window.dimensions),
        I64s(&window.strides),
        I64s(&window.dilations),
        Pairs(padding)
    )
}

/// Removes the elements of negative padding, and returns the other padding. XLA's simplifier ends
/// the process at negative padding of windows of size 1.
fn trim(cx: &mut Cx<'_>, x: Value, padding: &[(i64, i64)]) -> (Value, SmallVec<[(i64, i64); 8]>) {
    let removed = |amount: i64| usize::try_from(-amount).unwrap_or(0);
    let mut lengths = cx.shape(x.ty).clone();
    let (mut starts, strides) = (lengths.clone(), Shape::from(vec![1; padding.len()]));
    let axes = starts.as_mut_slice().iter_mut().zip(lengths.as_mut_slice());
    let padding = (axes.zip(padding))
        .map(|((start, length), &(low, high))| {
            *start = removed(low).min(*length);
            *length -= *start;
            let end = removed(high).min(*length);
            *length -= end;
            // Padding that removes more than all elements also removes padding of the other end.
            match (low + *start as i64, high + end as i64) {
                (low @ 0.., high @ 0..) => (low, high),
                (low, high) => (0, low + high),
            }
        })
        .collect();
    (cx.slice(x, &Range { starts: &starts, lengths: &lengths, strides: &strides }), padding)
}

/// The padding is written out, because the padding of a window reduction counts as absent where
/// the initial value is not neutral.
fn window_fun<'a>(
    cx: &mut Cx<'a>,
    attributes: &'a WindowFun,
    operands: &[Source],
    ty: &TensorType,
) -> Result<Value> {
    let window = &attributes.window;
    let function = fold::Function { program: &attributes.function, captures: operands[2..].into() };
    let (mut x, initial) = (cx.value(operands[0]), cx.value(operands[1]));
    if window.padding.iter().any(|&padding| padding != (0, 0)) {
        let padded: Shape = (cx.shape(x.ty).iter().zip(&window.padding))
            .map(|(&size, &(low, high))| {
                size.checked_add_signed((low + high) as isize)
                    .expect("the type of the node holds such windows")
            })
            .collect();
        x = cx.pad(x, initial, &Pad::edges(&window.padding, &padded));
    }
    if ty.rank() > 0 && function.is_scalar() {
        return fold::windows(
            cx,
            x,
            initial,
            &function,
            &ty.shape,
            format_args!(
                "{}",
                attributes_text(window, &SmallVec::<[_; 8]>::from_elem((0, 0), ty.rank()))
            ),
        );
    }
    let elements = fold::unroll_windows(cx, x, window, &ty.shape);
    let height = cx.shape(elements.ty)[0];
    let elements = cx.reshape(elements, &Shape::from([height, ty.shape.size()]));
    let result = fold::rows(cx, elements, initial, &function)?;
    Ok(cx.reshape(result, &ty.shape))
}

/// Each window sends its element of the source to its extremum, the last one if there are several.
///
/// StableHLO's `select_and_scatter` leaves the choice among equal elements to the plugin. Therefore the
/// windows are reduced to the positions of their extrema, to which the elements are added.
fn scatter(
    cx: &mut Cx<'_>,
    op: ScatterOp,
    window: &WindowAttributes,
    operands: &[Source],
    ty: &TensorType,
) -> Result<Value> {
    let selects = match op {
        ScatterOp::Max => "GT",
        ScatterOp::Min => "LT",
    };
    let x = cx.cast(operands[0], widen::comparison(cx.dtype(operands[0].ty())));
    let compute = widen::accumulator(ty.dtype);
    let source = cx.cast(operands[1], compute);
    let initial = cx.cast(operands[2], compute);
    let initial = cx.broadcast(initial, &[], &ty.shape);
    let count = cx.shape(source.ty).size();
    let sum = if count == 0 || ty.shape.size() == 0 {
        initial
    } else if ty.rank() == 0 {
        cx.uniform("stablehlo.add", &[source, initial])
    } else {
        let targets = extremum_positions(cx, selects, window, x, source)?;
        let flat = Shape::from([ty.shape.size()]);
        let (sum, source) = (cx.reshape(initial, &flat), cx.reshape(source, &Shape::from([count])));
        let sum = scatter_values(cx, &[0], sum, targets, source, Update::Add);
        cx.reshape(sum, &ty.shape)
    };
    Ok(cx.convert(sum, ty.dtype))
}

/// For each window the position of its extremum in the flat tensor, -1 for a window of padding alone.
///
/// A plugin may fold a window in any order and begin several times. Of two elements the one with the smaller
/// position stays if it is strictly more extreme.
fn extremum_positions(
    cx: &mut Cx<'_>,
    selects: &str,
    window: &WindowAttributes,
    x: Value,
    source: Value,
) -> Result<Value> {
    let (shape, counts) = (cx.shape(x.ty).clone(), cx.shape(source.ty).clone());
    let index = widen::index(shape.size());
    let positions = cx.iota(0, index, &Shape::from([shape.size()]));
    let positions = cx.reshape(positions, &shape);
    let filling = cx.splat(Scalar::UInt(0), cx.dtype(x.ty), &Shape::scalar());
    let nowhere = cx.splat(Scalar::Int(-1), index, &Shape::scalar());
    let body = |cx: &mut Cx<'_>, left: &[Value], right: &[Value]| {
        let is_before = cx.compare("LT", left[1], right[1]);
        let (first, second) =
            (cx.select(is_before, left[0], right[0]), cx.select(is_before, right[0], left[0]));
        let start = cx.select(is_before, left[1], right[1]);
        let end = cx.select(is_before, right[1], left[1]);
        let is_extreme = cx.compare(selects, first, second);
        let zero = cx.splat(Scalar::UInt(0), index, &Shape::scalar());
        let is_element = cx.compare("GE", start, zero);
        let stays = cx.uniform("stablehlo.and", &[is_extreme, is_element]);
        Ok(Values::from_slice(&[cx.select(stays, first, second), cx.select(stays, start, end)]))
    };
    let results = cx.fold(
        "stablehlo.reduce_window",
        &[x, positions],
        &[filling, nowhere],
        &counts,
        format_args!("{}", attributes_text(window, &window.padding)),
        body,
    )?;
    Ok(cx.reshape(results[1], &Shape::from([counts.size(), 1])))
}
