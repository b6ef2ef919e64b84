//! The steps of a plan, and which values each one reads and makes.

use nxla_expr::{ExprId, Graph, Op, Program, While};
use nxla_tensor::Shape;
use rustc_hash::FxHashMap;

use super::dead::Read;
use super::groups::{Groups, MAX_NODES, Role};
use super::{Action, Planner, Step};
use crate::block;
use crate::bytecode::Written;
use crate::elementwise::{Access, Code, Input, Value, Writer};
use crate::layout::Strided;
use crate::long;
use crate::movement::{self, Places};

/// A value of a run: an input, or a result of a step.
pub(super) type ValueId = u32;

/// Steps in order. Operands and results are values; slots come later.
pub(super) struct Built {
    pub(super) steps: Vec<Step>,
    pub(super) args: Vec<ValueId>,
    pub(super) results: Vec<ValueId>,
    /// The value of each input that is needed.
    pub(super) inputs: Vec<Option<ValueId>>,
    pub(super) outputs: Vec<ValueId>,
    pub(super) values: usize,
    /// About how many steps a run takes, see [`long`].
    pub(super) work: f64,
}

impl Built {
    /// Leaves results of code that only its own step reads where they are computed.
    fn keep_needed(&mut self) {
        let mut needed = vec![false; self.values];
        self.args.iter().chain(&self.outputs).for_each(|&value| needed[value as usize] = true);
        let before = std::mem::take(&mut self.results);
        let ends = self.steps.iter().skip(1).map(|step| step.first_target as usize);
        let ends: Vec<usize> = ends.chain([before.len()]).collect();
        for (step, end) in self.steps.iter_mut().zip(ends) {
            let results = &before[step.first_target as usize..end];
            step.first_target = u32::try_from(self.results.len()).expect("no more than before");
            let Action::Code(code) = &mut step.action else {
                self.results.extend(results);
                continue;
            };
            let is_needed: Vec<bool> =
                results.iter().map(|&value| needed[value as usize]).collect();
            // Code that nobody needs at all has its results all the same.
            if is_needed.contains(&false) && is_needed.contains(&true) {
                code.keep(&is_needed);
                self.results.extend(results.iter().filter(|&&value| needed[value as usize]));
            } else {
                self.results.extend(results);
            }
        }
    }
}

pub(super) struct Builder<'a, 'p> {
    program: &'a Program,
    graph: &'a Graph,
    planner: &'a mut Planner<'p>,
    groups: Groups,
    built: Built,
    /// The values of all parts of all nodes; a node's own begin at `first_part`.
    parts: Vec<ValueId>,
    first_part: Vec<u32>,
    /// Groups of one shape that become one step. What does not need them comes before it.
    open: Open,
    /// What is read of loops; only found out where there are any.
    read: Option<Read>,
}

/// Groups whose step has not been written.
#[derive(Default)]
struct Open {
    /// The groups, and their results.
    groups: Vec<(u32, ExprId, ValueId)>,
    nodes: usize,
}

/// Results of one step of element-wise code.
const MAX_RESULTS: usize = 8;

const NO_PART: u32 = u32::MAX;

impl<'a, 'p> Builder<'a, 'p> {
    pub(super) fn new(program: &'a Program, planner: &'a mut Planner<'p>) -> Self {
        let graph = program.graph();
        let fuses = !planner.checks;
        let groups = Groups::new(program, fuses, |op| planner.acts(op));
        let built = Built {
            steps: Vec::new(),
            args: Vec::new(),
            results: Vec::new(),
            inputs: vec![None; program.inputs().len()],
            outputs: Vec::new(),
            values: 0,
            work: 0.0,
        };
        Self {
            program,
            graph,
            planner,
            groups,
            built,
            parts: Vec::new(),
            first_part: vec![NO_PART; graph.len()],
            open: Open::default(),
            read: None,
        }
    }

    pub(super) fn build(mut self) -> Built {
        for id in self.graph.ids() {
            match self.groups.role(self.graph, id) {
                Role::Nothing => {}
                Role::Alias => self.alias(id),
                Role::Group(group) => self.group(id, group),
                Role::Step => self.step(id),
            }
        }
        self.close();
        self.built.outputs = self.program.outputs().iter().map(|&id| self.value(id)).collect();
        self.built.keep_needed();
        self.built
    }

    /// The value of a node that is one tensor.
    fn value(&self, id: ExprId) -> ValueId {
        self.parts[self.first_part[id.index()] as usize]
    }

    fn next_part(&self) -> u32 {
        u32::try_from(self.parts.len()).expect("fewer than 2^32 values")
    }

    fn new_value(&mut self) -> ValueId {
        let value = u32::try_from(self.built.values).expect("fewer than 2^32 values");
        self.built.values += 1;
        value
    }

    fn alias(&mut self, id: ExprId) {
        let operands = self.graph.operands(id);
        self.first_part[id.index()] = match self.graph.op(id) {
            Op::Elem(index) => {
                let index = u32::try_from(*index).expect("a tuple has fewer than 2^32 parts");
                self.first_part[operands[0].index()] + index
            }
            op => match self.groups.passed_on(self.graph, id) {
                // Its operand may be inside a group, and then it is as well.
                Some(&[x]) => self.first_part[x.index()],
                Some(shown) => self.alias_each(shown),
                None => unreachable!("{} is no alias", op.name()),
            },
        };
    }

    /// Lists the values of several nodes as parts of one.
    fn alias_each(&mut self, ids: &[ExprId]) -> u32 {
        let first = self.next_part();
        for &id in ids {
            self.parts.push(self.value(id));
        }
        first
    }

    /// Begins a step; its operands and results follow.
    fn push_step(&mut self, id: ExprId, action: Action) {
        let first_arg = u32::try_from(self.built.args.len()).expect("fewer than 2^32 operands");
        let first_target = u32::try_from(self.built.results.len()).expect("fewer than 2^32 values");
        let (work, is_long) = match &action {
            Action::Code(code) => {
                let steps = self.graph.shape(id).size().saturating_mul(code.cost);
                (long::work_of_code(steps), long::is_long_code(steps))
            }
            Action::Rows(_) | Action::Totals(_) => {
                unreachable!("steps are put together afterwards")
            }
            Action::Op => (long::work(self.graph, id, 0.0), long::is_long(self.graph, id)),
            Action::Written(written) => (long::work(self.graph, id, written.work()), false),
            Action::Regions(plans) => {
                let regions = plans.iter().map(|plan| plan.work).sum();
                (long::work(self.graph, id, regions), false)
            }
        };
        self.built.work += work;
        self.built.steps.push(Step { id, first_arg, first_target, is_long, action });
    }

    /// Gives the node of the last step a new value for each of its results.
    fn push_results(&mut self, id: ExprId) {
        self.first_part[id.index()] = self.next_part();
        for _ in self.graph.ty(id).parts() {
            let value = self.new_value();
            self.parts.push(value);
            self.built.results.push(value);
        }
    }

    fn step(&mut self, id: ExprId) {
        let op = self.graph.op(id);
        if let Op::Parameter(parameter) = op {
            let value = self.new_value();
            self.first_part[id.index()] = self.next_part();
            self.parts.push(value);
            self.built.inputs[parameter.index as usize] = Some(value);
            return;
        }
        let action = match op {
            // The checks are for single operations, which are in the body.
            Op::Block(block) if !self.planner.checks && block::is_native(block) => Action::Op,
            Op::While(op) => Action::Written(Box::new(self.looped(id, op))),
            op if op.regions().is_empty() => Action::Op,
            op => {
                let regions = op.regions();
                let plans = regions.iter().map(|program| self.planner.region(program));
                Action::Regions(plans.collect())
            }
        };
        let operands = self.graph.operands(id);
        if op.has_effects() || operands.iter().any(|&operand| self.is_open(self.value(operand))) {
            self.close();
        }
        self.push_step(id, action);
        for &operand in self.graph.operands(id) {
            let value = self.value(operand);
            self.built.args.push(value);
        }
        match op {
            // A hook looks at values and gives them back.
            Op::Hook(hook) if hook.results.is_none() => {
                self.first_part[id.index()] = self.alias_each(self.graph.operands(id));
            }
            _ => self.push_results(id),
        }
    }

    /// Checks are for all that is written, also for what nobody reads.
    fn looped(&mut self, id: ExprId, op: &While) -> Written {
        let (graph, checks) = (self.graph, self.planner.checks);
        let read = self.read.get_or_insert_with(|| Read::new(graph));
        let lean = if checks { None } else { read.body(graph, id, op) };
        let condition = self.planner.loop_region(&op.condition);
        let body = self.planner.loop_region(lean.as_ref().unwrap_or(&op.body));
        Written::loop_of(op.state, condition, body)
    }

    fn group(&mut self, root: ExprId, group: u32) {
        let nodes = self.groups.members(group).count();
        if !self.joins(root, group, nodes) {
            self.close();
        }
        let value = self.new_value();
        self.first_part[root.index()] = self.next_part();
        self.parts.push(value);
        self.open.groups.push((group, root, value));
        self.open.nodes += nodes;
    }

    /// Whether a group can be computed with those that are open: it has their shape, and reads of
    /// their results the element that it computes.
    fn joins(&self, root: ExprId, group: u32, nodes: usize) -> bool {
        let Some(&(_, first, _)) = self.open.groups.first() else { return true };
        let shape = self.graph.shape(root);
        self.groups.fuses()
            && self.graph.shape(first) == shape
            && shape.size() > 1
            && self.open.groups.len() < MAX_RESULTS
            && self.open.nodes + nodes <= MAX_NODES
            && self.groups.members(group).all(|id| {
                self.graph
                    .operands(id)
                    .iter()
                    .all(|&operand| self.is_same_or_closed(operand, shape))
            })
    }

    /// Whether an operand of a group is the element of an open result, or known before the open step.
    fn is_same_or_closed(&self, operand: ExprId, shape: &Shape) -> bool {
        let operand = self.groups.behind(self.graph, operand);
        let is_root = self.open.groups.iter().any(|&(_, root, _)| root == operand);
        if is_root && self.graph.shape(operand) == shape {
            return true;
        }
        let is_repeated = self.groups.is_read_in_place(self.graph, operand);
        let operand = if is_repeated { self.graph.operands(operand)[0] } else { operand };
        self.first_part[operand.index()] == NO_PART || !self.is_open(self.value(operand))
    }

    /// Whether a value is a result of the open step.
    fn is_open(&self, value: ValueId) -> bool {
        self.open.groups.iter().any(|&(_, _, result)| result == value)
    }

    /// Writes the step of the open groups.
    fn close(&mut self) {
        let groups = std::mem::take(&mut self.open).groups;
        let Some(&(_, root, _)) = groups.last() else { return };
        let mut writer = GroupWriter {
            builder: self,
            groups: &groups,
            code: Writer::default(),
            known: FxHashMap::default(),
            inputs: Vec::new(),
        };
        let (code, inputs) = writer.write();
        self.push_step(root, Action::Code(Box::new(code)));
        for input in inputs {
            let value = self.value(input);
            self.built.args.push(value);
        }
        self.built.results.extend(groups.iter().map(|&(_, _, value)| value));
    }
}

/// Writes the code of groups of one shape.
struct GroupWriter<'b, 'a, 'p> {
    builder: &'b Builder<'a, 'p>,
    groups: &'b [(u32, ExprId, ValueId)],
    code: Writer,
    known: FxHashMap<ExprId, Value>,
    inputs: Vec<ExprId>,
}

impl GroupWriter<'_, '_, '_> {
    fn write(&mut self) -> (Code, Vec<ExprId>) {
        let graph = self.builder.graph;
        let shape = graph.shape(self.groups[0].1);
        let mut operands = Vec::new();
        for &(group, ..) in self.groups {
            for id in self.builder.groups.members(group) {
                operands.clear();
                for &operand in graph.operands(id) {
                    operands.push(self.operand(operand, shape));
                }
                let value = self.code.node(graph, id, &operands);
                self.known.insert(id, value);
            }
        }
        let roots: Vec<Value> = self.groups.iter().map(|(_, root, _)| self.known[root]).collect();
        let code = std::mem::take(&mut self.code).finish(&roots, shape);
        (code, std::mem::take(&mut self.inputs))
    }

    /// The value of an operand, which becomes an input if it is not computed in the group.
    fn operand(&mut self, id: ExprId, shape: &Shape) -> Value {
        let graph = self.builder.graph;
        let id = self.builder.groups.behind(graph, id);
        if let Some(&value) = self.known.get(&id) {
            return value;
        }
        let value = match graph.op(id) {
            Op::Constant(constant) => self.code.constant(constant.value, constant.ty.dtype),
            _ if self.builder.groups.is_read_in_place(graph, id) => self.input(
                graph.operands(id)[0],
                &movement::places(graph, id),
                graph.shape(id),
                shape,
            ),
            _ => {
                let own = graph.shape(id);
                self.input(id, &Places { offset: 0, steps: Strided::row_major(own) }, own, shape)
            }
        };
        self.known.insert(id, value);
        value
    }

    /// An input, whose elements are at these places of the node `id`, and stand for a tensor of shape
    /// `own` that is broadcast to the group's shape.
    fn input(&mut self, id: ExprId, places: &Places, own: &Shape, shape: &Shape) -> Value {
        let ty = self.builder.graph.tensor_type(id);
        let mut steps = vec![0; shape.rank()];
        let added = shape.rank() - own.rank();
        for (axis, (&size, &step)) in own.iter().zip(&places.steps).enumerate() {
            if size != 1 {
                steps[added + axis] = step;
            }
        }
        let rule = Strided::new(places.offset, shape.iter().copied().zip(steps));
        let is_whole = ty.shape.size() == shape.size() && places.offset == 0;
        let access = if is_whole && (rule.is_contiguous() || ty.shape == *shape) {
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
