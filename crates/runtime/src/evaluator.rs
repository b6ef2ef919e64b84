//! The evaluator as a compiler, which runs in the process and returns results on the host.

use std::ops::Range;
use std::sync::Arc;

use nxla_eval::{EvalError, Fault, Hooks, Plan};
use nxla_expr::{Graph, Op, Program};
use nxla_tensor::HostTensor;
use smallvec::SmallVec;

use crate::compiler::{CompileRequest, Compiler, Executable, RunContext, check_settings};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::options::Settings;
use crate::tensor::RawTensor;

/// Interprets programs; named `"evaluator"`. It has no settings.
#[derive(Clone, Copy, Debug)]
pub struct Evaluator;

impl Compiler for Evaluator {
    fn name(&self) -> &str {
        "evaluator"
    }

    fn compile(&self, request: &CompileRequest<'_>) -> Result<Arc<dyn Executable>> {
        check_settings(self.name(), request.settings, &[])?;
        let plan = Plan::with_listeners(request.program.clone(), &|hook| request.listens(hook));
        Ok(Arc::new(plan))
    }

    fn check_device(&self, device: &Device) -> Result<()> {
        if device.is_host() {
            return Ok(());
        }
        Err(Error::Options(format!(
            "compiler: \"evaluator\" does not support the device {device}; it runs on the host"
        )))
    }

    fn resolves_hooks(&self) -> bool {
        true
    }

    fn check_settings(&self, settings: &Settings) -> Result<()> {
        check_settings(self.name(), settings, &[])
    }
}

/// A run's error. For a hook, the error of its function.
fn failure(error: EvalError) -> Error {
    let EvalError::Op { fault, line, .. } = &error else { return Error::Eval(error) };
    match fault {
        Fault::Hook { name, error: failure } => match failure.take() {
            Some(error) => Error::Hook { name: name.clone(), error },
            None => Error::Eval(error),
        },
        Fault::RuntimeCall { error: failure } => match failure.take() {
            Some(error) => Error::RuntimeCall { line: line.clone(), error },
            None => Error::Eval(error),
        },
        _ => Error::Eval(error),
    }
}

/// Returns a result outside of borrowed memory: a result inside would prevent programs from reusing the
/// memory.
fn copy_if_borrowed(result: HostTensor, borrowed: &[Range<*const u8>]) -> Result<HostTensor> {
    let part = result.bytes().as_ptr_range();
    if !borrowed.iter().any(|whole| whole.start < part.end && part.start < whole.end) {
        return Ok(result);
    }
    let names = result.names().cloned();
    let copy = HostTensor::from_bytes(result.dtype(), result.shape().clone(), result.bytes())?;
    Ok(copy.with_names(names)?)
}

/// Returns the bytes of a program: its literals, and the given bytes for each node. Programs inside
/// its ops count too.
pub(crate) fn program_bytes(program: &Program, per_node: usize) -> usize {
    let of_node = |op: &Op| match op {
        Op::Tensor(literal) => per_node + literal.0.byte_size(),
        _ => per_node,
    };
    let of_graph = |graph: &Graph| graph.ids().map(|id| of_node(graph.op(id))).sum::<usize>();
    program.programs().map(|program| of_graph(program.graph())).sum()
}

/// The bytes of a plan for each node of its program: the node, its step and its liveness.
const BYTES_PER_NODE: usize = 256;

impl Executable for Plan {
    fn run(&self, inputs: &[&RawTensor], context: &RunContext<'_>) -> Result<Vec<RawTensor>> {
        let mut data = Vec::with_capacity(inputs.len());
        let mut borrowed = SmallVec::<[Range<*const u8>; 4]>::new();
        for input in inputs {
            if let Some(interrupt) = context.interrupt
                && !input.is_readable()
            {
                input.wait_watched(interrupt)?;
            }
            let host = input.share()?;
            // The plugin may have used the memory of the tensor in the meantime.
            if !input.is_readable() {
                borrowed.push(host.bytes().as_ptr_range());
            }
            data.push(host);
        }
        let hooks = context.hooks.map_or_else(Hooks::default, |hooks| {
            hooks.iter().map(|(name, hook)| (name.clone(), hook.clone())).collect()
        });
        let hooks = hooks.with_own(context.own_hooks);
        let results = self.run_with(data, &hooks, context.interrupt).map_err(failure)?;
        let mut tensors = Vec::with_capacity(results.len());
        for result in results {
            tensors.push(RawTensor::Host(copy_if_borrowed(result, &borrowed)?));
        }
        Ok(tensors)
    }

    fn byte_size(&self) -> usize {
        program_bytes(self.program(), BYTES_PER_NODE)
    }
}

#[cfg(test)]
mod tests {
    use nxla_expr::{ExprId, TensorType};
    use nxla_tensor::{DType, Scalar};

    use super::*;

    #[test]
    fn byte_size_includes_literals_and_nested_programs() {
        let compiled = |build: &dyn Fn(&mut Graph) -> ExprId| {
            let mut graph = Graph::new();
            let output = build(&mut graph);
            Plan::new(Arc::new(Program::new(&graph, Vec::new(), &[output]).unwrap())).byte_size()
        };
        let literal = |graph: &mut Graph| {
            let values: Vec<f64> = (0..100_000).map(f64::from).collect();
            let values = graph.tensor(HostTensor::from_slice(&values, [100_000]).unwrap()).unwrap();
            graph.sum(values, None, false).unwrap()
        };
        assert!(compiled(&|graph| graph.eye([2, 2], DType::F32).unwrap()) < 8000);
        assert!(compiled(&literal) > 800_000);
        let nested = compiled(&|graph| {
            let zero = graph.constant(Scalar::Float(0.0), TensorType::scalar(DType::F64)).unwrap();
            let body = |graph: &mut Graph, x: &[ExprId]| {
                let sum = literal(graph);
                Ok::<_, nxla_expr::Error>(vec![graph.add(x[0], sum)?])
            };
            graph.block("nested", Vec::new(), &[zero], body).unwrap()[0]
        });
        assert!(nested > 800_000, "{nested}");
    }
}
