//! Plans: executable programs.

use std::fmt;
use std::sync::Arc;

use nxla_expr::{HookOp, Program, TensorType};
use nxla_tensor::HostTensor;

use crate::context::{EvalError, ExecContext, Hooks, Interrupt, run_on_pool};
use crate::execute::code::Bytecode;
use crate::execute::with_names;
use crate::lower::lower;
use crate::schedule::{Schedule, is_large, schedule, schedule_checked};

/// An executable program.
///
/// A plan can run any number of times, also on several threads at once.
pub struct Plan {
    program: Arc<Program>,
    bytecode: Bytecode,
    steps: usize,
    /// True if a run may move to the thread pool.
    uses_pool: bool,
}

impl Plan {
    /// Plans a program and the programs of its regions. Each run decides which hooks are called.
    pub fn new(program: Arc<Program>) -> Self {
        Self::with_listeners(program, &|_| true)
    }

    /// Plans a program without the hooks for which `listens` returns false. Their operands are computed only if
    /// another operation needs them.
    pub fn with_listeners(program: Arc<Program>, listens: &dyn Fn(&HookOp) -> bool) -> Self {
        Self::of(&schedule(program, listens))
    }

    /// Plans a program whose runs end at the first operation that produces NaN or an infinity from
    /// finite operands, see [`Fault::NotFinite`](crate::Fault::NotFinite). Each operation is a
    /// separate step, which is slower. Hooks are not called.
    pub fn checked(program: Arc<Program>) -> Self {
        Self::of(&schedule_checked(program))
    }

    fn of(schedule: &Schedule) -> Self {
        let program = schedule.program.clone();
        // A host function may wait for other runs, which need the pool.
        let uses_pool = is_large(schedule.cost) && program.effects().is_empty();
        Self { program, bytecode: lower(schedule), steps: schedule.steps.len(), uses_pool }
    }

    /// The program of the plan.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// The number of steps outside of loops and branches. A fused group is one step.
    pub fn step_count(&self) -> usize {
        self.steps
    }

    /// Runs the program.
    ///
    /// Inputs are passed by value: the run may overwrite an input to which no other handle exists. Each result has the
    /// dtype, shape and axis names of the output of the program.
    ///
    /// # Errors
    /// Returns [`EvalError`] if inputs do not fit, if a host function fails, or if memory is refused.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use nxla_eval::{Hooks, Plan};
    /// use nxla_expr::{Graph, Program, TensorType};
    /// use nxla_tensor::{DType, HostTensor};
    ///
    /// let mut graph = Graph::new();
    /// let ty = TensorType::new(DType::F32, [2]);
    /// let x = graph.parameter(0, ty.clone());
    /// let doubled = graph.add(x, x)?;
    /// let program = Program::new(&graph, vec![ty], &[doubled])?;
    ///
    /// let plan = Plan::new(Arc::new(program));
    /// let x = HostTensor::from_slice(&[1.0_f32, 2.5], [2])?;
    /// let results = plan.run(vec![x], &Hooks::new())?;
    /// assert_eq!(results[0].as_slice::<f32>()?, [2.0, 5.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn run(
        &self,
        inputs: Vec<HostTensor>,
        hooks: &Hooks,
    ) -> Result<Vec<HostTensor>, EvalError> {
        self.run_with(inputs, hooks, None)
    }

    /// Runs the program as [`Plan::run`] does, and stops soon after `interrupt` returns true. The callback is called
    /// often, such as in each iteration of a loop, so it should be quick.
    ///
    /// # Errors
    /// Returns the errors of [`Plan::run`], and [`EvalError::Interrupted`].
    pub fn run_with(
        &self,
        inputs: Vec<HostTensor>,
        hooks: &Hooks,
        interrupt: Option<&Interrupt<'_>>,
    ) -> Result<Vec<HostTensor>, EvalError> {
        self.check_inputs(&inputs)?;
        let cx = ExecContext::new(hooks, interrupt);
        let run = |cx: &ExecContext<'_>| self.bytecode.run(cx, inputs);
        let results = if self.uses_pool { run_on_pool(&cx, run)? } else { run(&cx)? };
        let types = self.program.output_types();
        Ok(results.into_iter().zip(types).map(|(result, ty)| with_names(result, ty)).collect())
    }

    fn check_inputs(&self, inputs: &[HostTensor]) -> Result<(), EvalError> {
        let expected = self.program.inputs();
        if inputs.len() != expected.len() {
            return Err(EvalError::InputCount { expected: expected.len(), found: inputs.len() });
        }
        for (index, (input, ty)) in inputs.iter().zip(expected).enumerate() {
            if input.dtype() != ty.dtype || *input.shape() != ty.shape {
                let found = TensorType::new(input.dtype(), input.shape().clone());
                let (expected, found) = (Box::new(ty.clone()), Box::new(found));
                return Err(EvalError::InputType { index, expected, found });
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan").field("program", &self.program).field("steps", &self.steps).finish()
    }
}

/// Runs a program once. To run a program several times, create a [`Plan`].
///
/// # Errors
/// Returns the errors of [`Plan::run`].
pub fn evaluate(program: &Program, inputs: Vec<HostTensor>) -> Result<Vec<HostTensor>, EvalError> {
    Plan::new(Arc::new(program.clone())).run(inputs, &Hooks::new())
}
