//! Folds with a user-defined function.
//!
//! The function is a program of scalars. A function of element-wise ops runs on the vector of all accumulators: one
//! call for each position of the reduced part instead of one call for each element.

use nxla_expr::{Op, ReduceFun, WindowFun};
use nxla_tensor::{DType, HostTensor};

use super::code::{Bytecode, CallWork, Inst};
use super::dispatch::{NodeRef, empty_results, is_literal};
use crate::context::{Args, Cx, Fault, Results, Stop, bytes_mut, one, reshape};
use crate::kernels::reduce::reduced_first;
use crate::kernels::strided::Strided;
use crate::kernels::window::{axes, for_each_tap};

/// Computes a fold whose operands are the tensor, the initial value and the captures of the function.
pub(super) fn evaluate(
    cx: Cx<'_>,
    node: NodeRef<'_>,
    function: &Bytecode,
    args: &Args<'_>,
) -> Result<Results, Stop> {
    if let Some(empty) = empty_results(node)? {
        return Ok(empty);
    }
    let captures = (2..args.len()).map(|index| args.get(index).clone()).collect();
    let is_pointwise = is_pointwise(function);
    let fold = UserFold { cx, function, is_pointwise, captures };
    let (x, initial) = (args.get(0), args.get(1));
    let result = match node.op() {
        Op::ReduceFun(attributes) => fold.reduce(attributes, x, initial, node),
        Op::WindowFun(attributes) => fold.slide(attributes, x, initial, node),
        op => unreachable!("{} has no function to fold with", op.name()),
    };
    result.map(one)
}

/// Returns true if all instructions of a function apply to scalars element by element.
fn is_pointwise(function: &Bytecode) -> bool {
    function.insts.iter().all(|inst| match inst {
        Inst::Handle(_) => true,
        Inst::Call(call) => match &call.work {
            CallWork::Body(code) => code.shape.rank() == 0,
            CallWork::Op => is_literal(function.graph(call.origin).op(call.origin.id)),
            CallWork::Nest(_) | CallWork::Fold(_) | CallWork::Outlined(_) => false,
        },
        Inst::Kernel { .. }
        | Inst::Copy { .. }
        | Inst::Elements(_)
        | Inst::SliceUpdate(_)
        | Inst::Check
        | Inst::Jump(_)
        | Inst::JumpUnless { .. } => false,
    })
}

struct UserFold<'a> {
    cx: Cx<'a>,
    function: &'a Bytecode,
    is_pointwise: bool,
    captures: Vec<HostTensor>,
}

impl UserFold<'_> {
    /// Folds in row-major order of the reduced axes.
    fn reduce(
        &self,
        attributes: &ReduceFun,
        x: &HostTensor,
        initial: &HostTensor,
        node: NodeRef<'_>,
    ) -> Result<HostTensor, Stop> {
        let ty = node.ty();
        let order = |axis| attributes.reduce.reduces(axis);
        let (elements, plane) = reduced_first(self.cx, x, order)?;
        let kept = plane.inner;
        let mut accumulator = repeat_scalar(initial, kept)?;
        let row = kept * ty.dtype.size();
        for position in 0..plane.count {
            let bytes = &elements.bytes()[position * row..][..row];
            let element = HostTensor::from_bytes(ty.dtype, [kept], bytes).map_err(Fault::from)?;
            accumulator = self.step(element, accumulator)?;
        }
        Ok(reshape(accumulator, &ty.shape))
    }

    /// Folds each window in row-major order. The padding holds the initial value, which is folded
    /// like an element.
    fn slide(
        &self,
        attributes: &WindowFun,
        x: &HostTensor,
        initial: &HostTensor,
        node: NodeRef<'_>,
    ) -> Result<HostTensor, Stop> {
        let (ty, size) = (node.ty(), node.ty().dtype.size());
        let axes = axes(&attributes.window, x.shape(), &ty.shape);
        let count = ty.shape.size();
        let mut accumulator = repeat_scalar(initial, count)?;
        let (steps, target_steps) = (Strided::row_major(x.shape()), Strided::row_major(&ty.shape));
        for_each_tap(&axes, |taps| {
            // The element of each window at this position, from the operand or from the padding.
            let mut element = repeat_scalar(initial, count)?;
            let seen: Vec<_> =
                axes.iter().zip(taps).map(|(axis, &tap)| axis.windows_inside(tap)).collect();
            if seen.iter().all(|seen| !seen.is_empty()) {
                let (mut from, mut to) = (0, 0);
                for (index, axis) in axes.iter().enumerate() {
                    let first = axis
                        .position(seen[index].start, taps[index])
                        .expect("windows_inside returns positions inside the operand");
                    from += first * steps[index] as usize;
                    to += seen[index].start * target_steps[index] as usize;
                }
                let source = axes.iter().zip(&seen).zip(&steps);
                let source =
                    source.map(|((axis, seen), &step)| (seen.len(), axis.stride as isize * step));
                let source = Strided::new(from, source);
                let target = seen.iter().zip(&target_steps).map(|(seen, &step)| (seen.len(), step));
                let mut scratch = self.cx.scratch();
                let elements = scratch.bytes(source.len() * size);
                source.read_all_bytes(self.cx, size, x.bytes(), elements);
                Strided::new(to, target).write_bytes(size, elements, bytes_mut(&mut element));
            }
            let empty = HostTensor::scalar(initial.get(0), ty.dtype);
            let previous = std::mem::replace(&mut accumulator, empty);
            accumulator = self.step(element, previous)?;
            Ok::<(), Stop>(())
        })?;
        Ok(reshape(accumulator, &ty.shape))
    }

    /// `function(element, accumulator)` for each pair of elements of two vectors.
    fn step(&self, element: HostTensor, accumulator: HostTensor) -> Result<HostTensor, Stop> {
        let count = element.size();
        if self.is_pointwise {
            let result = self.call(element, accumulator, Some(count))?;
            // A result that depends on no element is a scalar.
            return Ok(if result.size() == count {
                result
            } else {
                repeat_scalar(&result, count)?
            });
        }
        let dtype = accumulator.dtype();
        let mut results = Vec::with_capacity(count);
        for index in 0..count {
            let (element, accumulator) = (scalar(&element, index)?, scalar(&accumulator, index)?);
            results.push(self.call(element, accumulator, None)?);
        }
        Ok(vector(dtype, &results)?)
    }

    fn call(
        &self,
        element: HostTensor,
        accumulator: HostTensor,
        lanes: Option<usize>,
    ) -> Result<HostTensor, Stop> {
        let inputs = [element, accumulator].into_iter().chain(self.captures.iter().cloned());
        let mut results = self.function.run_lanes(self.cx, lanes, inputs)?;
        Ok(results.pop().expect("the function of a fold has one result"))
    }
}

/// A vector of one repeated value.
fn repeat_scalar(value: &HostTensor, count: usize) -> Result<HostTensor, Fault> {
    Ok(HostTensor::full(value.get(0), value.dtype(), [count])?)
}

/// An element of a vector.
fn scalar(x: &HostTensor, index: usize) -> Result<HostTensor, Fault> {
    let size = x.dtype().size();
    Ok(HostTensor::from_bytes(x.dtype(), [], &x.bytes()[index * size..][..size])?)
}

/// A vector of scalars.
fn vector(dtype: DType, scalars: &[HostTensor]) -> Result<HostTensor, Fault> {
    let bytes: Vec<u8> = scalars.iter().flat_map(HostTensor::bytes).copied().collect();
    Ok(HostTensor::from_bytes(dtype, [scalars.len()], &bytes)?)
}
