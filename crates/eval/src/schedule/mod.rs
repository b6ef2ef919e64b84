//! Scheduling: from a program to an ordered list of steps.
//!
//! A schedule contains all decisions that do not depend on data or memory: the nodes that are needed, the
//! element-wise nodes that form one [`body`], the steps that share one [loop nest](nest), and the loops
//! whose unread states are dropped. Scheduling is linear in the size of the program.

mod body;
mod build;
mod combine;
mod cost;
mod dead;
mod groups;
mod limits;
mod nest;

use std::sync::Arc;

use nxla_expr::{
    ActiveHooks, ExprId, Graph, HookOp, Op, Program, TensorType, decompose, merge_gathers,
    merge_transposes,
};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::kernels::elementwise::BodyCode;
use crate::kernels::index::known_slice;
use crate::kernels::matrix::Kernels;
use crate::kernels::movement::{IndexMap, broadcast_map, reverse_map, transpose_map};
use crate::kernels::strided::Strided;

pub(crate) use build::has_instructions;
pub(crate) use cost::{is_large, is_long, is_long_body};
pub(crate) use limits::SMALL_BYTES;
pub(crate) use nest::{Nest, NestPart, Width};

/// The number of a value: an input of the program, or a result of a step.
pub(crate) type ValueId = usize;

/// A program as an ordered list of steps.
pub(crate) struct Schedule {
    pub(crate) program: Arc<Program>,
    pub(crate) steps: Vec<Step>,
    /// The value of each input, or `None` if no step reads the input.
    pub(crate) inputs: Vec<Option<ValueId>>,
    pub(crate) outputs: Vec<ValueId>,
    /// The number of values.
    pub(crate) values: usize,
    /// The estimated cost of a run, in operations, see [`cost`].
    pub(crate) cost: f64,
    /// True if small values live in the arena: always in loops, and in programs on small tensors.
    pub(crate) uses_arena: bool,
    /// True if each result is checked to be finite.
    pub(crate) checks: bool,
}

/// A step: an op, a fused group of ops, or control flow.
#[derive(Clone)]
pub(crate) struct Step {
    /// The node that the step computes; the last node of a group.
    pub(crate) id: ExprId,
    pub(crate) work: Work,
    pub(crate) args: SmallVec<[ValueId; 4]>,
    pub(crate) results: SmallVec<[ValueId; 2]>,
}

/// The computation of a step.
#[derive(Clone)]
pub(crate) enum Work {
    /// Element-wise code.
    Body(Box<BodyCode>),
    /// A loop nest of several bodies and reductions.
    Nest(Box<Nest>),
    /// The op of the node.
    Op,
    /// A loop.
    Loop(Loop),
    /// The op of the node, with a schedule for each of its regions.
    Regions(Box<[Arc<Schedule>]>),
}

/// A loop with the schedules of its regions.
#[derive(Clone)]
pub(crate) struct Loop {
    /// The number of operands that are state; the other operands are captures.
    pub(crate) state: usize,
    pub(crate) condition: Arc<Schedule>,
    pub(crate) body: Arc<Schedule>,
}

impl Step {
    /// The types of the results, without axis names.
    pub(crate) fn types(&self, graph: &Graph) -> Vec<TensorType> {
        match &self.work {
            Work::Body(code) => {
                let dtypes = code.results.iter();
                dtypes.map(|&dtype| TensorType::new(dtype, code.shape.clone())).collect()
            }
            Work::Nest(nest) => nest.types.clone(),
            Work::Op | Work::Loop(_) | Work::Regions(_) => {
                graph.ty(self.id).parts().iter().map(without_names).collect()
            }
        }
    }
}

/// A type without the names of its axes.
pub(crate) fn without_names(ty: &TensorType) -> TensorType {
    TensorType::new(ty.dtype, ty.shape.clone())
}

/// The number of reads of each value, by steps and as an output.
fn count_uses(steps: &[Step], outputs: &[ValueId], values: usize) -> Vec<u32> {
    let mut uses = vec![0; values];
    for &value in steps.iter().flat_map(|step| &step.args).chain(outputs) {
        uses[value] += 1;
    }
    uses
}

/// The index map of a node into its operand.
pub(crate) fn index_map(graph: &Graph, id: ExprId) -> IndexMap {
    let x = graph.shape(graph.operands(id)[0]);
    match graph.op(id) {
        Op::Reshape(_) | Op::Squeeze(_) => {
            IndexMap { offset: 0, steps: Strided::row_major(graph.shape(id)) }
        }
        Op::Broadcast(attributes) => broadcast_map(x, attributes),
        Op::Reverse(axes) => reverse_map(x, axes),
        Op::Transpose(permutation) => transpose_map(x, permutation),
        Op::Slice(attributes) => known_slice(x, attributes),
        op @ (Op::Pad(_) | Op::Concatenate(_) | Op::Stack(_)) => {
            unreachable!("{} is not an index map", op.name())
        }
        op @ nxla_expr::outside!(movement) => unreachable!("{} is of another family", op.name()),
    }
}

/// Schedules a program and the programs of its regions. Hooks for which `listens` returns false are not called,
/// and their operands are computed only if another node needs them.
pub(crate) fn schedule(program: Arc<Program>, listens: &dyn Fn(&HookOp) -> bool) -> Schedule {
    Scheduler::new(listens, false).program(prepare(program), false)
}

/// Schedules a program whose runs end at the first operation that produces NaN or an infinity from
/// finite operands. Each operation is a separate step, and no hook is called.
pub(crate) fn schedule_checked(program: Arc<Program>) -> Schedule {
    Scheduler::new(&|_| false, true).program(prepare(program), false)
}

/// Rewrites a program to ops with fast kernels: factorizations without a kernel become simpler ops,
/// products read transposed operands directly, and gathers have one offset for each window.
fn prepare(program: Arc<Program>) -> Arc<Program> {
    let well_typed = "a rewrite of a well-typed program is well typed";
    let mut program = program;
    if f64::FACTORIZE.is_none()
        && let Some(composed) = decompose(&program, |_, _| false).expect(well_typed)
    {
        program = Arc::new(composed);
    }
    for rewrite in [merge_transposes, merge_gathers] {
        program = rewrite(&program).expect(well_typed).map_or(program, Arc::new);
    }
    program
}

/// Schedules programs, and each region once, however many nodes share it.
struct Scheduler<'a> {
    hooks: ActiveHooks<'a>,
    checks: bool,
    /// Schedules by the address of the region and whether it is in a loop. Programs of equal digests may hold
    /// different host functions. The outermost program keeps the addresses alive.
    regions: FxHashMap<(*const Program, bool), Arc<Schedule>>,
}

impl<'a> Scheduler<'a> {
    fn new(listens: &'a dyn Fn(&HookOp) -> bool, checks: bool) -> Self {
        Self { hooks: ActiveHooks::new(listens), checks, regions: FxHashMap::default() }
    }

    /// Schedules a program; one in a loop uses the arena.
    fn program(&mut self, program: Arc<Program>, in_loop: bool) -> Schedule {
        let mut schedule = build::ScheduleBuilder::new(&program, in_loop, self).build();
        if !self.checks {
            nest::fuse(&mut schedule);
        }
        schedule
    }

    /// Schedules a region. Regions nest as deep as the loops and branches of the user, and so does this call.
    fn region(&mut self, program: &Arc<Program>, in_loop: bool) -> Arc<Schedule> {
        let key = (Arc::as_ptr(program), in_loop);
        if let Some(schedule) = self.regions.get(&key) {
            return schedule.clone();
        }
        let schedule = Arc::new(self.program(program.clone(), in_loop));
        self.regions.insert(key, schedule.clone());
        schedule
    }
}
