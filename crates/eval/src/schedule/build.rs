//! Building the steps of a schedule: groups of element-wise nodes become bodies, and other nodes become steps.
//!
//! Groups of one shape that are adjacent, up to independent steps, share one body with several results.

use std::sync::Arc;

use nxla_expr::{ExprId, Family, Graph, Op, Program, While};
use nxla_tensor::Shape;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::body::{TypedLoc, Writer};
use super::cost::{body_cost, op_cost};
use super::dead::LoopReads;
use super::groups::{Groups, Role};
use super::limits::{MAX_BODY_RESULTS, MAX_NODES, MIN_STEPS, SMALL_BYTES};
use super::{Loop, Schedule, Scheduler, Step, ValueId, Work, count_uses, index_map};
use crate::kernels::block::is_native;
use crate::kernels::elementwise::{Access, BodyCode, Input};
use crate::kernels::movement::IndexMap;
use crate::kernels::strided::Strided;

pub(super) struct ScheduleBuilder<'a, 'p> {
    graph: &'a Graph,
    scheduler: &'a mut Scheduler<'p>,
    groups: Groups,
    schedule: Schedule,
    /// The values of all parts of all nodes. The parts of a node that has values begin at its `first_part`.
    parts: Vec<ValueId>,
    first_part: Vec<Option<usize>>,
    /// Groups of one shape that will become one step. Steps that do not read their results come before them.
    open: Vec<OpenGroup>,
    /// The parts of loops that are read; computed at the first loop.
    read: Option<LoopReads>,
    in_loop: bool,
}

/// A group whose step has not been written.
struct OpenGroup {
    group: u32,
    root: ExprId,
    result: ValueId,
}

impl<'a, 'p> ScheduleBuilder<'a, 'p> {
    pub(super) fn new(
        program: &'a Arc<Program>,
        in_loop: bool,
        scheduler: &'a mut Scheduler<'p>,
    ) -> Self {
        let graph = program.graph();
        let groups =
            Groups::new(program, !scheduler.checks, |op| scheduler.hooks.are_called_by(op));
        let schedule = Schedule {
            program: program.clone(),
            steps: Vec::new(),
            inputs: vec![None; program.inputs().len()],
            outputs: Vec::new(),
            values: 0,
            cost: 0.0,
            uses_arena: false,
            checks: scheduler.checks,
        };
        Self {
            graph,
            scheduler,
            groups,
            schedule,
            parts: Vec::new(),
            first_part: vec![None; graph.len()],
            open: Vec::new(),
            read: None,
            in_loop,
        }
    }

    pub(super) fn build(mut self) -> Schedule {
        for id in self.graph.ids() {
            match self.groups.role(self.graph, id) {
                Role::NoStep => {}
                Role::Alias => self.alias(id),
                Role::Group(group) => self.group(id, group),
                Role::Step => self.step(id),
            }
        }
        self.close();
        let outputs = self.schedule.program.outputs().iter();
        self.schedule.outputs = outputs.map(|&id| self.value(id)).collect();
        self.schedule.uses_arena =
            !self.schedule.checks && (self.in_loop || arena_pays(self.graph, &self.schedule));
        drop_unread_results(&mut self.schedule);
        self.schedule
    }

    /// The value of a node with one part.
    fn value(&self, id: ExprId) -> ValueId {
        self.parts[self.first_part(id)]
    }

    fn first_part(&self, id: ExprId) -> usize {
        self.first_part[id.index()].expect("a node has values before another node reads them")
    }

    fn new_value(&mut self) -> ValueId {
        self.schedule.values += 1;
        self.schedule.values - 1
    }

    fn alias(&mut self, id: ExprId) {
        let operands = self.graph.operands(id);
        self.first_part[id.index()] = match self.graph.op(id) {
            Op::Elem(index) => Some(self.first_part(operands[0]) + index),
            op => match self.groups.alias_operands(self.graph, id) {
                // The operand may be the result of a fused group; the alias then refers to the same
                // result. A value that only a group computes has none.
                Some(&[x]) => self.first_part[x.index()],
                Some(operands) => Some(self.alias_each(operands)),
                None => unreachable!("{} computes its results", op.name()),
            },
        };
    }

    /// Lists the values of several nodes as parts of one node.
    fn alias_each(&mut self, ids: &[ExprId]) -> usize {
        let first = self.parts.len();
        for &id in ids {
            self.parts.push(self.value(id));
        }
        first
    }

    fn push(&mut self, step: Step) {
        self.schedule.cost += match &step.work {
            Work::Body(code) => body_cost(code.total_cost()),
            Work::Op => op_cost(self.graph, step.id, 0.0),
            Work::Loop(Loop { condition, body, .. }) => {
                op_cost(self.graph, step.id, condition.cost + body.cost)
            }
            Work::Regions(regions) => {
                let regions = regions.iter().map(|region| region.cost).sum();
                op_cost(self.graph, step.id, regions)
            }
            Work::Nest(_) => unreachable!("nests are fused afterwards"),
        };
        self.schedule.steps.push(step);
    }

    fn step(&mut self, id: ExprId) {
        let op = self.graph.op(id);
        if let Op::Parameter(parameter) = op {
            let value = self.new_value();
            self.first_part[id.index()] = Some(self.parts.len());
            self.parts.push(value);
            self.schedule.inputs[parameter.index as usize] = Some(value);
            return;
        }
        let work = match op {
            // Checks run after each op, and a block that runs natively has no separate ops.
            Op::Block(block) if !self.scheduler.checks && is_native(block) => Work::Op,
            Op::While(op) => Work::Loop(self.loop_work(id, op)),
            op if op.regions().is_empty() => Work::Op,
            op => {
                let regions = op.regions();
                let schedules =
                    regions.iter().map(|region| self.scheduler.region(region, self.in_loop));
                Work::Regions(schedules.collect())
            }
        };
        let operands = self.graph.operands(id);
        if op.has_effects() || operands.iter().any(|&operand| self.is_open(self.value(operand))) {
            self.close();
        }
        let args = operands.iter().map(|&operand| self.value(operand)).collect();
        let mut results = SmallVec::new();
        let first = match op {
            // A hook returns its operands.
            Op::Hook(hook) if hook.results.is_none() => self.alias_each(operands),
            _ => {
                let first = self.parts.len();
                for _ in self.graph.ty(id).parts() {
                    let value = self.new_value();
                    self.parts.push(value);
                    results.push(value);
                }
                first
            }
        };
        self.first_part[id.index()] = Some(first);
        self.push(Step { id, work, args, results });
    }

    /// Checked plans also compute the dead states of a loop.
    fn loop_work(&mut self, id: ExprId, op: &While) -> Loop {
        let (graph, checks) = (self.graph, self.scheduler.checks);
        let read = self.read.get_or_insert_with(|| LoopReads::new(graph));
        let live = if checks { None } else { read.body(graph, id, op) };
        let condition = self.scheduler.region(&op.condition, true);
        // A body from which unused states were removed is not shared with other loops.
        let body = match live {
            Some(live) => Arc::new(self.scheduler.program(live, true)),
            None => self.scheduler.region(&op.body, true),
        };
        Loop { state: op.state, condition, body }
    }

    fn group(&mut self, root: ExprId, group: u32) {
        if !self.joins(root, group) {
            self.close();
        }
        let result = self.new_value();
        self.first_part[root.index()] = Some(self.parts.len());
        self.parts.push(result);
        self.open.push(OpenGroup { group, root, result });
    }

    /// Returns true if a group joins the open groups: it has their shape, and reads of their
    /// results only the element that it computes.
    fn joins(&self, root: ExprId, group: u32) -> bool {
        let Some(first) = self.open.first() else { return true };
        let shape = self.graph.shape(root);
        let groups = self.open.iter().map(|open| open.group).chain([group]);
        self.groups.fuses()
            && self.graph.shape(first.root) == shape
            && shape.size() > 1
            && self.open.len() < MAX_BODY_RESULTS
            && groups.map(|group| self.groups.members(group).len()).sum::<usize>() <= MAX_NODES
            && self.groups.members(group).all(|id| {
                let operands = self.graph.operands(id).iter();
                operands.into_iter().all(|&operand| self.is_same_or_closed(operand, shape))
            })
    }

    /// Returns true if an operand of a group is the element of an open result, or computed before the open step.
    fn is_same_or_closed(&self, operand: ExprId, shape: &Shape) -> bool {
        let operand = self.groups.resolve_alias(self.graph, operand);
        let is_root = self.open.iter().any(|open| open.root == operand);
        if is_root && self.graph.shape(operand) == shape {
            return true;
        }
        let is_index_map = self.groups.is_read_in_place(self.graph, operand);
        let operand = if is_index_map { self.graph.operands(operand)[0] } else { operand };
        self.first_part[operand.index()].is_none() || !self.is_open(self.value(operand))
    }

    /// Returns true if a value is a result of the open step.
    fn is_open(&self, value: ValueId) -> bool {
        self.open.iter().any(|open| open.result == value)
    }

    /// Writes the step of the open groups.
    fn close(&mut self) {
        let groups = std::mem::take(&mut self.open);
        let Some(&OpenGroup { root, .. }) = groups.last() else { return };
        let writer = GroupWriter {
            builder: self,
            groups: &groups,
            code: Writer::default(),
            known: FxHashMap::default(),
            inputs: Vec::new(),
        };
        let (code, inputs) = writer.write();
        let args = inputs.into_iter().map(|input| self.value(input)).collect();
        let results = groups.iter().map(|open| open.result).collect();
        self.push(Step { id: root, work: Work::Body(Box::new(code)), args, results });
    }
}

/// Returns true if all values of a program are small and most of its steps have instructions, so that the arena pays:
/// then a step takes nanoseconds, and a step on tensors takes a third of a microsecond.
fn arena_pays(graph: &Graph, schedule: &Schedule) -> bool {
    let steps = &schedule.steps;
    let is_small = |step: &Step| step.types(graph).iter().all(|ty| ty.byte_size() <= SMALL_BYTES);
    let is_inlined = |step: &Step| match &step.work {
        Work::Body(_) | Work::Loop(_) => true,
        Work::Nest(_) => false,
        Work::Op => has_instructions(graph.op(step.id)),
        Work::Regions(_) => matches!(graph.op(step.id), Op::Cond(_)),
    };
    let called = steps.iter().filter(|step| !is_inlined(step)).count();
    steps.len() >= MIN_STEPS * called.max(1) && steps.iter().all(is_small)
}

/// Returns true if lowering has instructions for an op without regions on small tensors. Other ops become calls.
pub(crate) fn has_instructions(op: &Op) -> bool {
    match op.family() {
        Family::Create | Family::Movement => true,
        Family::Reduce => matches!(op, Op::Reduce(..)),
        Family::Contract => matches!(op, Op::Dot(_)),
        Family::Index => matches!(op, Op::Slice(_) | Op::PutSlice(_)),
        Family::Control => matches!(op, Op::Constant(_) | Op::Tensor(_)),
        // Element-wise ops are part of bodies.
        Family::Elementwise | Family::Window | Family::Linalg => false,
    }
}

/// Converts results of bodies that no other step reads into registers.
fn drop_unread_results(schedule: &mut Schedule) {
    let uses = count_uses(&schedule.steps, &schedule.outputs, schedule.values);
    for step in &mut schedule.steps {
        let Work::Body(code) = &mut step.work else { continue };
        let is_read: Vec<bool> = step.results.iter().map(|&value| uses[value] > 0).collect();
        // If no result of the body is read, the body is unchanged.
        if is_read.contains(&false) && is_read.contains(&true) {
            code.keep(&is_read);
            step.results.retain(|value| uses[*value] > 0);
        }
    }
}

/// The code generator of groups of one shape.
struct GroupWriter<'b, 'a, 'p> {
    builder: &'b ScheduleBuilder<'a, 'p>,
    groups: &'b [OpenGroup],
    code: Writer,
    known: FxHashMap<ExprId, TypedLoc>,
    inputs: Vec<ExprId>,
}

impl GroupWriter<'_, '_, '_> {
    fn write(mut self) -> (BodyCode, Vec<ExprId>) {
        let graph = self.builder.graph;
        let shape = graph.shape(self.groups[0].root);
        let mut operands = Vec::new();
        for open in self.groups {
            for id in self.builder.groups.members(open.group) {
                operands.clear();
                for &operand in graph.operands(id) {
                    operands.push(self.operand(operand, shape));
                }
                let value = self.code.node(graph, id, &operands);
                self.known.insert(id, value);
            }
        }
        let roots: Vec<TypedLoc> = self.groups.iter().map(|open| self.known[&open.root]).collect();
        (self.code.finish(&roots, shape), self.inputs)
    }

    /// The value of an operand, which is an input unless the groups compute it.
    fn operand(&mut self, id: ExprId, shape: &Shape) -> TypedLoc {
        let graph = self.builder.graph;
        let id = self.builder.groups.resolve_alias(graph, id);
        if let Some(&value) = self.known.get(&id) {
            return value;
        }
        let value = match graph.op(id) {
            Op::Constant(constant) => self.code.constant(constant.value, constant.ty.dtype),
            _ if self.builder.groups.is_read_in_place(graph, id) => {
                self.input(graph.operands(id)[0], &index_map(graph, id), graph.shape(id), shape)
            }
            _ => {
                let own = graph.shape(id);
                self.input(id, &IndexMap { offset: 0, steps: Strided::row_major(own) }, own, shape)
            }
        };
        self.known.insert(id, value);
        value
    }

    /// Adds an input: a tensor of shape `own`, which is broadcast to the shape of the groups, and whose elements `map`
    /// finds in the node `id`.
    fn input(&mut self, id: ExprId, map: &IndexMap, own: &Shape, shape: &Shape) -> TypedLoc {
        let ty = self.builder.graph.tensor_type(id);
        let mut steps = vec![0; shape.rank()];
        let added = shape.rank() - own.rank();
        for (axis, (&size, &step)) in own.iter().zip(&map.steps).enumerate() {
            if size != 1 {
                steps[added + axis] = step;
            }
        }
        let rule = Strided::new(map.offset, shape.iter().copied().zip(steps));
        let is_whole = ty.shape.size() == shape.size() && map.offset == 0;
        let access = if is_whole && (rule.is_contiguous() || shape.size() == 0) {
            Access::Same
        } else if ty.shape.size() == 1 {
            Access::Single
        } else {
            Access::Strided(Box::new(rule))
        };
        self.inputs.push(id);
        self.code.input(Input { dtype: ty.dtype, access })
    }
}
