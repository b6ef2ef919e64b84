//! Running a plan.

use std::sync::Arc;

use nxla_expr::{ExprId, Graph, Op, Program, TensorType};
use nxla_tensor::HostTensor;
use smallvec::SmallVec;

use crate::args::Args;
use crate::check::{self, first_not_finite};
use crate::error::{EvalError, Stop};
use crate::family;
use crate::hooks::Hooks;
use crate::long::is_large;
use crate::memory::guarded;
use crate::plan::{Action, Plan};
use crate::threads::{Brake, aboard, watched};

/// Tells whether a run is to stop.
pub type Interrupt<'a> = dyn Fn() -> bool + Sync + 'a;

/// What a run needs besides its inputs.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) hooks: &'a Hooks,
    pub(crate) stop: Wanted<'a>,
}

/// How a run learns that nobody waits for its results any more.
#[derive(Clone, Copy)]
pub(crate) enum Wanted<'a> {
    /// It runs to its end.
    Always,
    /// It asks.
    Asked(&'a Interrupt<'a>),
    /// Whoever handed it over asks, and pulls the brake.
    #[cfg_attr(not(feature = "parallel"), expect(dead_code, reason = "nobody is there to take it"))]
    Told(&'a Brake),
}

impl Context<'_> {
    /// Asked before each step, hence also once per trip of a loop.
    #[inline]
    pub(crate) fn check(&self) -> Result<(), EvalError> {
        let stops = match self.stop {
            Wanted::Always => false,
            Wanted::Asked(interrupted) => interrupted(),
            Wanted::Told(brake) => brake.is_pulled(),
        };
        if stops { Err(EvalError::Interrupted) } else { Ok(()) }
    }
}

/// The slots of a run, kept between the runs of one region.
#[derive(Default)]
pub(crate) struct Frame {
    slots: SmallVec<[Option<HostTensor>; 4]>,
    /// Runs a program of scalars on vectors of this length.
    lanes: Option<usize>,
}

impl Frame {
    /// A frame to run a [pointwise](Plan::is_pointwise) program of scalars on vectors.
    pub(crate) fn over(lanes: Option<usize>) -> Self {
        Self { slots: SmallVec::new(), lanes }
    }
}

/// Results of a step or a program.
pub(crate) type Results = SmallVec<[HostTensor; 2]>;

/// The step that is being done.
#[derive(Clone, Copy)]
pub(crate) struct Site<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) id: ExprId,
    pub(crate) regions: &'a [Arc<Plan>],
    pub(crate) context: Context<'a>,
}

impl<'a> Site<'a> {
    pub(crate) fn op(&self) -> &'a nxla_expr::Op {
        self.graph.op(self.id)
    }

    /// The type of the result, which is one tensor.
    pub(crate) fn ty(&self) -> &'a TensorType {
        self.graph.tensor_type(self.id)
    }
}

impl Plan {
    /// Runs the program.
    ///
    /// Inputs are taken by value: one whose memory nobody else holds may be overwritten. Each
    /// result has the dtype, shape and axis names of the program's output.
    ///
    /// # Errors
    /// Inputs that do not fit; a listener of a hook that returns an error; a result larger than
    /// memory can address.
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

    /// Like [`Plan::run`], and stops soon after `interrupt` answers true: it is asked before each
    /// step, in loops also those of each trip, so it should be quick.
    ///
    /// # Errors
    /// As for [`Plan::run`], and [`EvalError::Interrupted`].
    pub fn run_with(
        &self,
        inputs: Vec<HostTensor>,
        hooks: &Hooks,
        interrupt: Option<&Interrupt<'_>>,
    ) -> Result<Vec<HostTensor>, EvalError> {
        check_inputs(&self.program, &inputs)?;
        let mut inputs = inputs.into_iter().enumerate();
        let mut frame = Frame::default();
        let mut run = |stop: Wanted<'_>| {
            let input = |index: usize| {
                let found = inputs.find(|&(at, _)| at == index);
                found.expect("inputs are asked for in order").1
            };
            self.call(&mut frame, Context { hooks, stop }, input)
        };
        // A function that is called may wait for other runs, which need the crew as well.
        let results = if is_large(self.work) && self.program.effects().is_empty() {
            aboard(interrupt, run)?
        } else {
            run(interrupt.map_or(Wanted::Always, Wanted::Asked))?
        };
        Ok(results.into_iter().zip(self.program.output_types()).map(named).collect())
    }

    /// Runs the program on inputs that fit. Only those that are needed are asked for, in order.
    pub(crate) fn call(
        &self,
        frame: &mut Frame,
        context: Context<'_>,
        mut input: impl FnMut(usize) -> HostTensor,
    ) -> Result<Results, EvalError> {
        let (slots, lanes) = (&mut frame.slots, frame.lanes);
        slots.resize(self.slots, None);
        for (index, slot) in self.inputs.iter().enumerate() {
            if let Some(slot) = slot {
                slots[*slot as usize] = Some(input(index));
            }
        }
        for position in 0..self.steps.len() {
            context.check()?;
            self.step(position, slots, lanes, context)?;
        }
        let mut outputs = Args::new(slots, &self.outputs);
        Ok((0..self.outputs.len()).map(|index| outputs.take(index)).collect())
    }

    pub(crate) fn step(
        &self,
        position: usize,
        slots: &mut [Option<HostTensor>],
        lanes: Option<usize>,
        context: Context<'_>,
    ) -> Result<(), EvalError> {
        let step = &self.steps[position];
        let args = self.args_of(position);
        let mut operands = Args::new(slots, args);
        let graph = self.program.graph();
        let checks = self.checks && self.has_finite_operands(position, &operands);
        let site = |regions| Site { graph, id: step.id, regions, context };
        // Results are long enough for it to tell how often they are moved.
        let mut results = Results::new();
        let work = || {
            results = match &step.action {
                Action::Code(code) => code.run(&mut operands, lanes)?,
                Action::Rows(rows) => rows.run(&mut operands)?,
                Action::Totals(totals) => totals.run(&mut operands)?,
                Action::Op => family::evaluate(site(&[]), &mut operands)?,
                Action::Written(it) => it.code(graph, step.id).run(&mut operands, context)?,
                Action::Regions(regions) => family::evaluate(site(regions), &mut operands)?,
            };
            Ok(())
        };
        let done = match context.stop {
            Wanted::Asked(interrupt) if step.is_long => watched(interrupt, || guarded(work))?,
            _ => guarded(work),
        };
        done.map_err(|stop| stop.at(graph, step.id))?;
        if checks {
            check::results(&results).map_err(|fault| Stop::from(fault).at(graph, step.id))?;
        }
        for arg in args.iter().filter(|arg| arg.is_last()) {
            slots[arg.slot()] = None;
        }
        for (target, result) in self.targets_of(position).iter().zip(results.drain(..)) {
            if let Some(slot) = target {
                slots[*slot as usize] = Some(result);
            }
        }
        Ok(())
    }
}

impl Plan {
    /// Whether it is for a step to make finite results. Literals are what the user wrote.
    fn has_finite_operands(&self, position: usize, operands: &Args<'_>) -> bool {
        let op = self.program.graph().op(self.steps[position].id);
        let literal = matches!(op, Op::Constant(_) | Op::Tensor(_));
        !literal && (0..operands.len()).all(|at| first_not_finite(operands.get(at)).is_none())
    }
}

/// A lone result.
pub(crate) fn one(result: HostTensor) -> Results {
    let mut results = Results::new();
    results.push(result);
    results
}

/// A result with the names of its type.
pub(crate) fn named((tensor, ty): (HostTensor, &TensorType)) -> HostTensor {
    if tensor.names() == ty.names.as_ref() {
        return tensor;
    }
    tensor.with_names(ty.names.clone()).expect("inference gives each axis a name or none")
}

pub(crate) fn check_inputs(program: &Program, inputs: &[HostTensor]) -> Result<(), EvalError> {
    let expected = program.inputs();
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

/// Runs a program once. Where it runs again, keep a [`Plan`].
///
/// # Errors
/// As for [`Plan::run`].
pub fn evaluate(program: &Program, inputs: Vec<HostTensor>) -> Result<Vec<HostTensor>, EvalError> {
    Plan::new(Arc::new(program.clone())).run(inputs, &Hooks::new())
}
