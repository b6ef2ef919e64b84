//! Reductions over sliding windows.

use nxla_expr::{Op, ScatterOp, TensorType, WindowAttributes, WindowOp};

use crate::array::{Array, indices, position};
use crate::error::Error;
use crate::number::Number;
use crate::reduce::Fold;
use crate::run::Site;

pub(crate) fn evaluate(site: Site<'_>, ty: &TensorType, x: &[&Array]) -> Result<Array, Error> {
    match site.op() {
        Op::Window(op, window) => Ok(uniform(*op, window, x[0], ty)),
        Op::WindowFun(attributes) => {
            let fold = Fold::new(&attributes.function, &x[2..], site.listener);
            let initial = x[1].item();
            let reduced = indices(&ty.shape).map(|index| {
                // The padding has the initial value, which is folded like an element.
                let places = seen(&attributes.window, &x[0].shape, &index);
                let element = |place: Option<Vec<usize>>| place.map_or(initial, |at| x[0].at(&at));
                fold.run(initial, &places.map(element).collect::<Vec<_>>(), x[0])
            });
            Ok(Array::new(ty.dtype, &ty.shape, reduced.collect::<Result<_, Error>>()?))
        }
        Op::WindowScatter(op, window) => Ok(scatter(*op, window, x[0], x[1], x[2].item(), ty)),
        op @ nxla_expr::outside!(window) => unreachable!("{} is of another family", op.name()),
    }
}

/// Returns the indices that the window at `index` reads, in row-major order: along each axis `index
/// stride + tap dilation - low` for each tap of the window. `None` is an element of the padding.
fn seen<'a>(
    window: &'a WindowAttributes,
    shape: &'a [usize],
    index: &'a [usize],
) -> impl Iterator<Item = Option<Vec<usize>>> + 'a {
    indices(&window.dimensions).map(move |taps| {
        let place = |axis: usize| {
            let (low, _) = window.padding[axis];
            let at = index[axis] * window.strides[axis] + taps[axis] * window.dilations[axis];
            usize::try_from(at as i64 - low).ok().filter(|&at| at < shape[axis])
        };
        (0..shape.len()).map(place).collect()
    })
}

/// Computes the sum, product or extremum of each window. The padding has the value 0, 1, and the
/// smallest or largest value of the dtype. An extremum is NaN if any element is NaN.
fn uniform(op: WindowOp, window: &WindowAttributes, x: &Array, ty: &TensorType) -> Array {
    let x = x.cast(ty.dtype);
    Array::from_fn(ty, |index| {
        let elements = seen(window, &x.shape, index).flatten().map(|place| x.at(&place));
        match op {
            WindowOp::Sum => elements.fold(Number::ZERO.cast(ty.dtype), Number::add),
            WindowOp::Product => elements.fold(Number::ONE.cast(ty.dtype), Number::multiply),
            WindowOp::Max => elements.fold(Number::of(ty.dtype.min_value()), Number::larger),
            WindowOp::Min => elements.fold(Number::of(ty.dtype.max_value()), Number::smaller),
        }
    })
}

/// Adds the element of `source` for each window of `x` at the position of the window's extremum,
/// starting from `initial`. Of several equal extrema, the last one in row-major order counts. An
/// element remains the extremum only if it is larger (or smaller) than the next element, which is
/// false for NaN. The padding receives nothing.
fn scatter(
    op: ScatterOp,
    window: &WindowAttributes,
    x: &Array,
    source: &Array,
    initial: Number,
    ty: &TensorType,
) -> Array {
    let mut sums = vec![initial.cast(ty.dtype); ty.shape.size()];
    for index in indices(&source.shape) {
        let mut extremum: Option<Vec<usize>> = None;
        for place in seen(window, &x.shape, &index).flatten() {
            let stays = extremum.as_ref().is_some_and(|best| {
                let order = x.at(best).compare(x.at(&place));
                match op {
                    ScatterOp::Max => order.is_some_and(|order| order.is_gt()),
                    ScatterOp::Min => order.is_some_and(|order| order.is_lt()),
                }
            });
            if !stays {
                extremum = Some(place);
            }
        }
        if let Some(place) = extremum {
            let sum = &mut sums[position(&place, &ty.shape)];
            *sum = sum.add(source.at(&index).cast(ty.dtype));
        }
    }
    Array::new(ty.dtype, &ty.shape, sums)
}
