//! Reductions over sliding windows, and their scatters.

use nxla_expr::{Op, ScatterOp, TensorType, Window, WindowFun, WindowOp};
use nxla_tensor::{DType, Scalar, Shape};
use smallvec::SmallVec;

use crate::builder::{Pad, Range};
use crate::context::Cx;
use crate::error::Result;
use crate::fold;
use crate::literal::{I64s, Pairs};
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
    window: &Window,
    x: Source,
    ty: &TensorType,
) -> Result<Value> {
    let (name, neutral, compute) = match op {
        WindowOp::Sum => ("stablehlo.add", Scalar::UInt(0), widen::accumulator(ty.dtype)),
        WindowOp::Product => ("stablehlo.multiply", Scalar::UInt(1), widen::accumulator(ty.dtype)),
        WindowOp::Max => ("stablehlo.maximum", ty.dtype.min_value(), widen::stored(ty.dtype)),
        WindowOp::Min => ("stablehlo.minimum", ty.dtype.max_value(), widen::stored(ty.dtype)),
    };
    let x = cx.cast(x, compute);
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
            format_args!(
                "window_dimensions = {}, window_strides = {}, window_dilations = {}, padding = {}",
                I64s(&window.dimensions),
                I64s(&window.strides),
                I64s(&window.dilations),
                Pairs(&window.padding)
            ),
            body,
        )?;
        results[0]
    };
    Ok(cx.convert(result, ty.dtype))
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
                "window_dimensions = {}, window_strides = {}, window_dilations = {}, padding = {}",
                I64s(&window.dimensions),
                I64s(&window.strides),
                I64s(&window.dilations),
                Pairs(&SmallVec::<[_; 8]>::from_elem((0, 0), ty.rank()))
            ),
        );
    }
    let elements = fold::unrolled(cx, x, window, &ty.shape);
    let height = cx.shape(elements.ty)[0];
    let elements = cx.reshape(elements, &Shape::from([height, ty.shape.size()]));
    let result = fold::rows(cx, elements, initial, &function)?;
    Ok(cx.reshape(result, &ty.shape))
}

/// Each window sends its element of the source to its extremum, the last one if there are several.
fn scatter(
    cx: &mut Cx<'_>,
    op: ScatterOp,
    window: &Window,
    operands: &[Source],
    ty: &TensorType,
) -> Result<Value> {
    let (name, selects) = match op {
        ScatterOp::Max => ("window_scatter_max", "GT"),
        ScatterOp::Min => ("window_scatter_min", "LT"),
    };
    if window.dilations.iter().any(|&dilation| dilation != 1) {
        return Err(cx.unsupported(name, "dilations: windows with gaps cannot be scattered to"));
    }
    let compute = widen::scatter(cx.dtype(operands[0].ty()), ty.dtype);
    let x = cx.cast(operands[0], compute);
    let source = cx.cast(operands[1], compute);
    let initial = cx.cast(operands[2], compute);
    if ty.rank() == 0 {
        let sum = cx.uniform("stablehlo.add", &[source, initial]);
        return Ok(cx.convert(sum, ty.dtype));
    }
    if are_apart(cx, window) && cx.shape(source.ty).size() > 0 {
        let sum = scatter_apart(cx, selects, window, x, source, initial);
        return Ok(cx.convert(sum, ty.dtype));
    }

    let scalars = [initial.ty, initial.ty];
    let mut open = cx.writer.open("stablehlo.select_and_scatter", &[x, source, initial], &[x.ty]);
    let pair = cx.begin_region(&mut open, &scalars);
    let stays = cx.compare(selects, pair[0], pair[1]);
    cx.end_region(&[stays]);
    let pair = cx.begin_region(&mut open, &scalars);
    let sum = cx.uniform("stablehlo.add", &pair);
    cx.end_region(&[sum]);
    let results = cx.writer.close(
        open,
        format_args!(
            "window_dimensions = {}, window_strides = {}, padding = {}",
            I64s(&window.dimensions),
            I64s(&window.strides),
            Pairs(&window.padding)
        ),
    );
    Ok(cx.convert(results[0], ty.dtype))
}

/// Whether windows share no elements, lie inside the tensor, and are small enough to be unrolled.
fn are_apart(cx: &Cx<'_>, window: &Window) -> bool {
    let most = cx.options.shape_limits.map_or(0, |limits| limits.most_unrolled);
    let size: usize = window.dimensions.iter().product();
    let mut axes = window.dimensions.iter().zip(&window.strides);
    size <= most
        && axes.all(|(size, stride)| stride >= size)
        && window.padding.iter().all(|&padding| padding == (0, 0))
}

/// [`scatter`] of windows that are apart: the first elements of all windows are compared with all
/// second ones and so on, and each goes back to where it came from. XLA's own operation becomes a
/// fold over windows that carries positions along, and a scatter to these, which takes two to three
/// times as long.
fn scatter_apart(
    cx: &mut Cx<'_>,
    selects: &str,
    window: &Window,
    x: Value,
    source: Value,
    initial: Value,
) -> Value {
    let (shape, counts) = (cx.shape(x.ty).clone(), cx.shape(source.ty).clone());
    let spans = fold::spans(window, &counts);
    let places: Vec<_> = fold::places(window).collect();
    let position =
        |cx: &mut Cx<'_>, at: usize| cx.splat(Scalar::UInt(at as u64), DType::S32, &counts);
    let elements = |cx: &mut Cx<'_>, place: &[usize]| {
        cx.slice(x, &Range { starts: place, lengths: &spans, strides: &window.strides })
    };
    let (mut extremum, mut winner) = (elements(cx, &places[0]), position(cx, 0));
    for (at, place) in places.iter().enumerate().skip(1) {
        let candidate = elements(cx, place);
        let stays = cx.compare(selects, extremum, candidate);
        let this = position(cx, at);
        winner = cx.select(stays, winner, this);
        extremum = cx.select(stays, extremum, candidate);
    }
    let compute = cx.dtype(x.ty);
    let filling = cx.splat(Scalar::UInt(0), compute, &Shape::scalar());
    let nowhere = cx.splat(Scalar::UInt(0), compute, &counts);
    let mut sum = cx.broadcast(initial, &[], &shape);
    for (at, place) in places.iter().enumerate() {
        let this = position(cx, at);
        let is_here = cx.compare("EQ", winner, this);
        let sent = cx.select(is_here, source, nowhere);
        let ends = place.iter().zip(&spans).zip(&shape);
        let padding = Pad {
            low: place.iter().map(|&low| low as i64).collect(),
            high: ends.map(|((low, span), size)| (size - low - span) as i64).collect(),
            interior: window.strides.iter().map(|&stride| stride - 1).collect(),
            shape: &shape,
        };
        let sent = cx.pad(sent, filling, &padding);
        sum = cx.uniform("stablehlo.add", &[sum, sent]);
    }
    sum
}
