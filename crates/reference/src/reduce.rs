//! Reductions along axes.

use nxla_expr::{ArgReduce, ArgReduceOp, Op, Program, Reduce, ReduceOp, TensorType};

use crate::array::{Array, indices};
use crate::error::Error;
use crate::number::Number;
use crate::run::{HostFnLookup, Site, call};

pub(crate) fn evaluate(site: Site<'_>, ty: &TensorType, x: &[&Array]) -> Result<Array, Error> {
    match site.op() {
        Op::Reduce(op, attributes) => Ok(reduce(*op, attributes, x[0], ty)),
        Op::ArgReduce(op, attributes) => Ok(arg_reduce(*op, attributes, x[0], ty)),
        Op::ReduceFun(attributes) => {
            let fold = Fold::new(&attributes.function, &x[2..], site.listener);
            let reduced = indices(&ty.shape).map(|index| {
                fold.run(x[1].item(), &reduced(x[0], &attributes.reduce, &index), x[0])
            });
            Ok(Array::new(ty.dtype, &ty.shape, reduced.collect::<Result<_, Error>>()?))
        }
        op @ nxla_expr::outside!(reduce) => unreachable!("{} is of another family", op.name()),
    }
}

/// Returns the elements of `x` that are reduced to the result at `index`, in row-major order.
fn reduced(x: &Array, attributes: &Reduce, index: &[usize]) -> Vec<Number> {
    let is_reduced = |axis: usize| attributes.axes.as_ref().is_none_or(|axes| axes.contains(&axis));
    // Kept axes have the index of the result, reduced axes have all indices.
    let mut of_result = index.iter();
    let (mut first, mut counts) = (Vec::new(), Vec::new());
    for axis in 0..x.rank() {
        let kept = if !is_reduced(axis) || attributes.keep_axes { of_result.next() } else { None };
        first.push(kept.copied().unwrap_or(0));
        counts.push(if is_reduced(axis) { x.shape[axis] } else { 1 });
    }
    let places = indices(&counts)
        .map(|step| first.iter().zip(&step).map(|(first, step)| first + step).collect::<Vec<_>>());
    places.map(|place| x.at(&place)).collect()
}

/// Computes the sum, product, conjunction, disjunction or extremum of the reduced elements. The
/// results for no elements are 0, 1, true, false, and the smallest or largest value of the dtype.
/// An extremum is NaN if any element is NaN. Sums and products convert the elements to the dtype of
/// the result, and round once.
fn reduce(op: ReduceOp, attributes: &Reduce, x: &Array, ty: &TensorType) -> Array {
    let x = match op {
        ReduceOp::Sum | ReduceOp::Product => &x.cast(ty.dtype),
        ReduceOp::All | ReduceOp::Any | ReduceOp::Max | ReduceOp::Min => x,
    };
    Array::from_fn(ty, |index| {
        let elements = reduced(x, attributes, index).into_iter();
        match op {
            ReduceOp::Sum => elements.fold(Number::ZERO.cast(ty.dtype), Number::add),
            ReduceOp::Product => elements.fold(Number::ONE.cast(ty.dtype), Number::multiply),
            ReduceOp::All => Number::from_bool(elements.into_iter().all(|x| !x.is_zero())),
            ReduceOp::Any => Number::from_bool(elements.into_iter().any(|x| !x.is_zero())),
            ReduceOp::Max => elements.fold(Number::of(ty.dtype.min_value()), Number::larger),
            ReduceOp::Min => elements.fold(Number::of(ty.dtype.max_value()), Number::smaller),
        }
    })
}

/// Returns the index of the extremum; NaN is an extremum. Of several equal extrema, or several NaN,
/// the first counts, or the last with `tie_high`.
fn arg_reduce(op: ArgReduceOp, attributes: &ArgReduce, x: &Array, ty: &TensorType) -> Array {
    let axes = attributes.axis.map(|axis| [axis].into());
    let along = Reduce { axes, keep_axes: attributes.keep_axis };
    Array::from_fn(ty, |index| {
        let elements = reduced(x, &along, index);
        let mut best = 0;
        for (at, &new) in elements.iter().enumerate().skip(1) {
            let old = elements[best];
            let (wins, ties) = match (new.is_nan(), old.is_nan()) {
                (true, true) => (false, true),
                (true, false) => (true, false),
                (false, true) => (false, false),
                (false, false) => {
                    let order = match op {
                        ArgReduceOp::Argmax => new.compare(old),
                        ArgReduceOp::Argmin => old.compare(new),
                    };
                    (order.is_some_and(|order| order.is_gt()), new.equals(old))
                }
            };
            if wins || ties && attributes.tie_high {
                best = at;
            }
        }
        Number::count(best)
    })
}

/// A fold with a user-defined function.
pub(crate) struct Fold<'a> {
    function: &'a Program,
    captures: &'a [&'a Array],
    listener: &'a HostFnLookup<'a>,
}

impl<'a> Fold<'a> {
    pub(crate) fn new(
        function: &'a Program,
        captures: &'a [&'a Array],
        listener: &'a HostFnLookup<'a>,
    ) -> Self {
        Self { function, captures, listener }
    }

    /// Returns the last accumulator of `a = function(element, a, captures…)`, starting with
    /// `initial`. The elements have the dtype of `of`.
    pub(crate) fn run(
        &self,
        initial: Number,
        elements: &[Number],
        of: &Array,
    ) -> Result<Number, Error> {
        let mut accumulator = Array::scalar(of.dtype, initial);
        for &element in elements {
            let element = Array::scalar(of.dtype, element);
            let mut inputs = vec![&element, &accumulator];
            inputs.extend(self.captures);
            let results = call(self.function, &inputs, self.listener)?;
            accumulator = Array::scalar(of.dtype, results[0].item());
        }
        Ok(accumulator.item())
    }
}
