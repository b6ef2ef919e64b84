//! Folding with a function of the user's.
//!
//! The function is a program of scalars. Where it is all element-wise, it runs on many
//! accumulators at once: one call for each position of the reduced part instead of one for each
//! element.

use nxla_tensor::{DType, HostTensor, match_dtype};

use crate::args::Args;
use crate::error::{Fault, Stop};
use crate::plan::Plan;
use crate::run::{Context, Frame, Site};
use crate::value;

pub(crate) struct Fold<'a> {
    plan: &'a Plan,
    context: Context<'a>,
    captures: Vec<HostTensor>,
}

impl<'a> Fold<'a> {
    /// The fold of a node with the operands `[x, initial, captures…]`.
    pub(crate) fn new(site: Site<'a>, args: &Args<'_>) -> Self {
        let captures = (2..args.len()).map(|index| args.get(index).clone()).collect();
        Self { plan: &site.regions[0], context: site.context, captures }
    }

    /// The initial accumulator, for `count` results.
    pub(crate) fn repeated(&self, initial: &HostTensor, count: usize) -> Result<HostTensor, Fault> {
        Ok(HostTensor::full(initial.get(0), initial.dtype(), [count])?)
    }

    /// `function(element, accumulator)` for each pair of elements of two vectors.
    pub(crate) fn step(
        &self,
        element: HostTensor,
        accumulator: HostTensor,
    ) -> Result<HostTensor, Stop> {
        let count = element.size();
        if self.plan.is_pointwise() {
            return self.call(element, accumulator, Some(count));
        }
        let dtype = accumulator.dtype();
        let mut results = Vec::with_capacity(count);
        for index in 0..count {
            let (element, accumulator) = (single(&element, index)?, single(&accumulator, index)?);
            results.push(self.call(element, accumulator, None)?);
        }
        Ok(collected(dtype, &results)?)
    }

    fn call(
        &self,
        element: HostTensor,
        accumulator: HostTensor,
        lanes: Option<usize>,
    ) -> Result<HostTensor, Stop> {
        let (mut element, mut accumulator) = (Some(element), Some(accumulator));
        let mut frame = Frame::over(lanes);
        let mut results = self.plan.call(&mut frame, self.context, |index| match index {
            0 => element.take().expect("each input is asked for once"),
            1 => accumulator.take().expect("each input is asked for once"),
            index => self.captures[index - 2].clone(),
        })?;
        let result = results.pop().expect("the function of a fold has one result");
        match lanes {
            // A result that depends on no element is one number, the same for all.
            Some(count) if result.size() != count => Ok(self.repeated(&result, count)?),
            _ => Ok(result),
        }
    }
}

/// The element of a vector as a scalar.
fn single(x: &HostTensor, index: usize) -> Result<HostTensor, Fault> {
    let size = x.dtype().size();
    Ok(HostTensor::from_bytes(x.dtype(), [], &x.bytes()[index * size..][..size])?)
}

/// Scalars as a vector.
fn collected(dtype: DType, scalars: &[HostTensor]) -> Result<HostTensor, Fault> {
    let shape = nxla_tensor::Shape::from([scalars.len()]);
    match_dtype!(dtype, T => {
        value::build(dtype, &shape, |out: &mut [T]| {
            for (out, scalar) in out.iter_mut().zip(scalars) {
                *out = value::slice::<T>(scalar)[0];
            }
        })
    })
}
