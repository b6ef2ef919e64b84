//! Plans: programs put in the order in which they run.
//!
//! A plan is made once per program and holds everything that does not depend on the values:
//! which nodes are needed, the code of the element-wise groups, the plans of the regions, and for
//! each value the slot it lives in and the step after which it dies. Making it is linear in the
//! size of the program.

mod build;
mod dead;
mod groups;
mod rows;
mod slots;
mod small;
mod tiles;
mod totals;
mod whole;

use std::fmt;
use std::sync::Arc;

use nxla_expr::{ExprId, Graph, HookOp, Inside, Op, Program, TensorType};
use rustc_hash::FxHashMap;

use crate::args::Arg;
use crate::bytecode::{NEAR, Written, unnamed};
use crate::elementwise::Code;
use crate::kernels::composed;
use crate::rows::Rows;
use crate::totals::Totals;

/// A program that is ready to run.
///
/// It can be run any number of times, also by several threads at once.
pub struct Plan {
    pub(crate) program: Arc<Program>,
    pub(crate) steps: Vec<Step>,
    /// The operands of all steps, one after the other.
    pub(crate) args: Vec<Arg>,
    /// The slots for the results of all steps, one after the other.
    pub(crate) targets: Vec<Target>,
    /// The slot of each input that is needed.
    pub(crate) inputs: Vec<Target>,
    pub(crate) outputs: Vec<Arg>,
    pub(crate) slots: usize,
    /// Whether results are checked to be finite.
    pub(crate) checks: bool,
    /// About how many steps a run takes, see [`long`](crate::long).
    pub(crate) work: f64,
}

/// The slot for a value, or `None` where nobody needs it.
pub(crate) type Target = Option<u32>;

/// One thing to do.
pub(crate) struct Step {
    /// The node that it computes, the last one of a group.
    pub(crate) id: ExprId,
    /// Where its operands begin in [`Plan::args`]; they end where those of the next step begin.
    pub(crate) first_arg: u32,
    /// Where its results begin in [`Plan::targets`].
    pub(crate) first_target: u32,
    /// Whether somebody may want to break it off.
    pub(crate) is_long: bool,
    pub(crate) action: Action,
}

/// How a step is done.
pub(crate) enum Action {
    /// By the code of an element-wise group.
    Code(Box<Code>),
    /// By several steps, on tiles of rows.
    Rows(Box<Rows>),
    /// By the code of an element-wise group, of which a result is reduced on the way.
    Totals(Box<Totals>),
    /// By the op of its node.
    Op,
    /// By code over one piece of memory: a loop, or the only step of a program.
    Written(Box<Written>),
    /// By the op of its node, with a plan for each of its regions.
    Regions(Box<[Arc<Plan>]>),
}

impl Plan {
    /// Plans a program, and the programs of its regions. Which hooks are called is decided by each
    /// run.
    pub fn new(program: Arc<Program>) -> Self {
        Self::with_listeners(program, &|_| true)
    }

    /// Like [`Plan::new`], without the hooks for which `listens` answers no: what they show is
    /// computed only if something else needs it.
    pub fn with_listeners(program: Arc<Program>, listens: &dyn Fn(&HookOp) -> bool) -> Self {
        Planner::new(listens, false).program(composed(program))
    }

    /// A plan whose runs end at the first operation that makes NaN or an infinity from finite
    /// operands, see [`Fault::NotFinite`](crate::Fault::NotFinite). Each operation is a step of its
    /// own, which takes longer; hooks are not called.
    pub fn checked(program: Arc<Program>) -> Self {
        Planner::new(&|_| false, true).plan(composed(program))
    }

    /// The program behind the plan.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// How many steps a run takes, not counting those inside of loops and branches. Fused
    /// element-wise ops are one step.
    pub fn step_count(&self) -> usize {
        self.written().steps.len()
    }

    /// How many values are alive at the same time at most.
    pub fn slot_count(&self) -> usize {
        self.written().slots
    }

    /// The plan that is written as code, if that is how this one runs.
    fn written(&self) -> &Self {
        match &self.steps[..] {
            [Step { action: Action::Written(written), .. }] => written.program().unwrap_or(self),
            _ => self,
        }
    }

    /// Whether every step is element-wise code of scalars (or a constant), so that the program can
    /// also run on vectors, element by element.
    pub(crate) fn is_pointwise(&self) -> bool {
        let graph = self.program.graph();
        self.steps.iter().all(|step| match &step.action {
            Action::Code(code) => code.shape.rank() == 0,
            Action::Op => matches!(graph.op(step.id), Op::Constant(_)),
            Action::Rows(_) | Action::Totals(_) | Action::Written(_) | Action::Regions(_) => false,
        })
    }

    /// The types of what a step makes.
    pub(crate) fn types_of(&self, position: usize) -> Vec<TensorType> {
        self.steps[position].types(self.program.graph())
    }

    /// The operands of the step at this position.
    pub(crate) fn args_of(&self, position: usize) -> &[Arg] {
        let end =
            self.steps.get(position + 1).map_or(self.args.len(), |step| step.first_arg as usize);
        &self.args[self.steps[position].first_arg as usize..end]
    }

    /// The result slots of the step at this position.
    pub(crate) fn targets_of(&self, position: usize) -> &[Target] {
        let next = self.steps.get(position + 1);
        let end = next.map_or(self.targets.len(), |step| step.first_target as usize);
        &self.targets[self.steps[position].first_target as usize..end]
    }
}

impl Step {
    /// The types of what it makes.
    fn types(&self, graph: &Graph) -> Vec<TensorType> {
        let code_types = |code: &Code| -> Vec<TensorType> {
            let dtypes = code.results.iter();
            dtypes.map(|&dtype| TensorType::new(dtype, code.shape.clone())).collect()
        };
        match &self.action {
            Action::Code(code) => code_types(code),
            Action::Rows(rows) => {
                let results = rows.results.iter();
                results.map(|made| TensorType::new(made.dtype, made.shape.clone())).collect()
            }
            Action::Totals(totals) => {
                let mut types = code_types(&totals.code);
                if !totals.is_kept {
                    types.remove(totals.reduced);
                }
                types.push(TensorType::new(totals.dtype(), totals.shape.clone()));
                types
            }
            Action::Op | Action::Written(_) | Action::Regions(_) => {
                graph.ty(self.id).parts().iter().map(unnamed).collect()
            }
        }
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan")
            .field("program", &self.program)
            .field("steps", &self.steps.len())
            .field("slots", &self.slots)
            .finish()
    }
}

/// Plans programs, each region once however many nodes share it.
struct Planner<'a> {
    listens: &'a dyn Fn(&HookOp) -> bool,
    checks: bool,
    /// By address: programs of equal digests may still hold different host functions. The
    /// programs are kept alive by the one that is being planned.
    regions: FxHashMap<*const Program, Arc<Plan>>,
    /// Whether a hook is called in a region, by address as well.
    acting: FxHashMap<*const Program, bool>,
    /// How many of those that are around what is being planned are written as code.
    writes: usize,
}

impl<'a> Planner<'a> {
    fn new(listens: &'a dyn Fn(&HookOp) -> bool, checks: bool) -> Self {
        let (regions, acting) = Default::default();
        Self { listens, checks, regions, acting, writes: 0 }
    }

    /// Whether an op calls a hook that somebody listens to.
    fn acts(&mut self, op: &Op) -> bool {
        match op.inside() {
            Inside::Nothing | Inside::Keeps(_) => false,
            Inside::Hook(hook) => hook.results.is_some() || (self.listens)(hook),
            Inside::Runs(regions) => regions.iter().any(|region| self.region_acts(region)),
        }
    }

    fn region_acts(&mut self, program: &Arc<Program>) -> bool {
        let address = Arc::as_ptr(program);
        if let Some(&known) = self.acting.get(&address) {
            return known;
        }
        let acts = program.effects().iter().any(|&id| self.acts(program.graph().op(id)));
        self.acting.insert(address, acts);
        acts
    }

    /// Plans a whole program.
    fn program(&mut self, program: Arc<Program>) -> Plan {
        let built = build::Builder::new(&program, self).build();
        if !small::pays(program.graph(), &built) {
            return self.finish(program, built);
        }
        self.writes += 1;
        let plan = self.finish(program, built);
        self.writes -= 1;
        small::written(Arc::new(plan))
    }

    /// Plans a program whose steps are done one by one.
    fn plan(&mut self, program: Arc<Program>) -> Plan {
        let built = build::Builder::new(&program, self).build();
        self.finish(program, built)
    }

    fn finish(&self, program: Arc<Program>, mut built: build::Built) -> Plan {
        if !self.checks {
            // Code over one piece of memory has no use for rows of what is there.
            let least = if self.writes > 0 { NEAR / 4 } else { 1 };
            built = rows::join(program.graph(), built, least);
            built = totals::join(program.graph(), built);
        }
        let assigned = slots::assign(&built);
        let build::Built { steps, work, .. } = built;
        Plan {
            program,
            steps,
            args: assigned.args,
            targets: assigned.targets,
            inputs: assigned.inputs,
            outputs: assigned.outputs,
            slots: assigned.slots,
            checks: self.checks,
            work,
        }
    }

    /// The plan of a region of a loop.
    fn loop_region(&mut self, program: &Arc<Program>) -> Arc<Plan> {
        self.writes += 1;
        let plan = self.region(program);
        self.writes -= 1;
        plan
    }

    /// The plan of a region. Regions nest as deep as the user nested loops and branches, and so
    /// does this call.
    fn region(&mut self, program: &Arc<Program>) -> Arc<Plan> {
        if let Some(plan) = self.regions.get(&Arc::as_ptr(program)) {
            return plan.clone();
        }
        let plan = Arc::new(self.plan(program.clone()));
        self.regions.insert(Arc::as_ptr(program), plan.clone());
        plan
    }
}
