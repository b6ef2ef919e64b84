//! Running a split program: each stage is compiled on its own, and independent ones run at the
//! same time.

use std::sync::Arc;

use nxla_eval::Interrupt;
use nxla_split::{RunError, RunOptions, StageGraph};

use crate::compiler::{Executable, RunContext};
use crate::error::{Error, Result};
use crate::options::{Options, default_options};
use crate::program::compile_program;
use crate::tensor::Tensor;

/// A split program, ready to run.
///
/// ```
/// use nxla::split::{Decision, split};
/// use nxla::{DType, Expr, Options, Stages, Tensor, TensorType, jit};
///
/// let f = jit(|[x, y]: [Expr; 2]| x.negate().sin().cos() + y);
/// let scalar = TensorType::scalar(DType::S32);
/// let (program, _) = f.trace([scalar.clone(), scalar])?;
/// let graph = split(&program, |node| match node.op.name() {
///     "cos" => Decision::Before,
///     _ => Decision::None,
/// })?;
/// let stages = Stages::compile(graph, &Options::new())?;
/// let results = stages.run(&[Tensor::from(1i32), Tensor::from(2i32)])?;
/// let expected = f.call([&Tensor::from(1i32), &Tensor::from(2i32)])?;
/// assert_eq!(results[0].item()?, expected.item()?);
/// # Ok::<(), nxla::Error>(())
/// ```
pub struct Stages {
    graph: StageGraph,
    executables: Vec<Arc<dyn Executable>>,
    options: Options,
}

impl Stages {
    /// Compiles every stage; equal stages are compiled once.
    ///
    /// # Errors
    /// As for [`compile_program`].
    pub fn compile(graph: StageGraph, options: &Options) -> Result<Self> {
        let options = options.over(&default_options());
        let executables = graph
            .stages()
            .iter()
            .map(|stage| compile_program(&stage.program, &options, &[]))
            .collect::<Result<_>>()?;
        Ok(Self { graph, executables, options })
    }

    /// The stages.
    pub fn graph(&self) -> &StageGraph {
        &self.graph
    }

    /// Runs all stages on the inputs of the original program and gives its outputs. A value is
    /// freed after the last stage that needs it.
    ///
    /// # Errors
    /// The first error of a stage; another number of inputs than the program has.
    pub fn run(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        self.run_watched(inputs, None)
    }

    /// Like [`Stages::run`], for callers that can be interrupted, see [`RunContext::interrupt`].
    ///
    /// # Errors
    /// As for [`Stages::run`], and if `interrupt` answers `true`.
    pub fn run_watched(
        &self,
        inputs: &[Tensor],
        interrupt: Option<&Interrupt<'_>>,
    ) -> Result<Vec<Tensor>> {
        let hooks = Some(&self.options.hooks);
        let context = RunContext { hooks, interrupt, ..RunContext::default() };
        let run = |stage: &nxla_split::Stage, values: Vec<Tensor>| {
            let values: Vec<&Tensor> = values.iter().collect();
            self.executables[stage.id.index()].run(&values, &context)
        };
        let results = self.graph.run(inputs.to_vec(), run, RunOptions::default());
        results.map_err(|error| match error {
            RunError::Stage { error, .. } => error,
            RunError::Schedule(error) => {
                Error::Arguments { function: "stages".into(), why: error.to_string() }
            }
        })
    }
}
