//! The steps of a plan, and which values each one reads and makes.

use std::sync::Arc;

use nxla_expr::{ExprId, Graph, Op, Program};
use nxla_tensor::Shape;
use rustc_hash::FxHashMap;

use super::groups::{Groups, Role};
use super::{Action, Plan, Planner, Step};
use crate::block;
use crate::elementwise::{Access, Code, Input, Value, Writer};
use crate::layout::Strided;
use crate::long;

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

pub(super) struct Builder<'a, 'p> {
    program: &'a Program,
    graph: &'a Graph,
    planner: &'a mut Planner<'p>,
    groups: Groups,
    built: Built,
    /// The values of all parts of all nodes; a node's own begin at `first_part`.
    parts: Vec<ValueId>,
    first_part: Vec<u32>,
}

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
        self.built.outputs = self.program.outputs().iter().map(|&id| self.value(id)).collect();
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
            Action::Op => (long::work(self.graph, id, 0.0), long::is_long(self.graph, id)),
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
        let regions: Box<[Arc<Plan>]> = match op {
            // The checks are for single operations, which are in the body.
            Op::Block(block) if !self.planner.checks && block::is_native(block) => Box::default(),
            op => op.regions().iter().map(|program| self.planner.region(program)).collect(),
        };
        let action = if regions.is_empty() { Action::Op } else { Action::Regions(regions) };
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

    fn group(&mut self, root: ExprId, group: u32) {
        let mut writer = GroupWriter {
            builder: self,
            group,
            code: Writer::default(),
            known: FxHashMap::default(),
            inputs: Vec::new(),
        };
        let (code, inputs) = writer.write(root);
        self.push_step(root, Action::Code(Box::new(code)));
        for input in inputs {
            let value = self.value(input);
            self.built.args.push(value);
        }
        self.push_results(root);
    }
}

/// Writes the code of one group.
struct GroupWriter<'b, 'a, 'p> {
    builder: &'b Builder<'a, 'p>,
    group: u32,
    code: Writer,
    known: FxHashMap<ExprId, Value>,
    inputs: Vec<ExprId>,
}

impl GroupWriter<'_, '_, '_> {
    fn write(&mut self, root: ExprId) -> (Code, Vec<ExprId>) {
        let graph = self.builder.graph;
        let shape = graph.shape(root);
        let mut operands = Vec::new();
        for id in self.builder.groups.members(self.group) {
            operands.clear();
            for &operand in graph.operands(id) {
                operands.push(self.operand(operand, shape));
            }
            let value = self.code.node(graph, id, &operands);
            self.known.insert(id, value);
        }
        let value = self.known[&root];
        let code = std::mem::take(&mut self.code).finish(value, graph.dtype(root), shape);
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
            Op::Broadcast(broadcast) if self.builder.groups.is_read_in_place(graph, id) => {
                let added = shape.rank() - broadcast.shape.rank();
                let axes = broadcast.axes.iter().map(|&axis| axis + added);
                self.input(graph.operands(id)[0], axes, shape)
            }
            _ => {
                debug_assert!(!self.builder.groups.is_member(id, self.group));
                let added = shape.rank() - graph.shape(id).rank();
                self.input(id, (0..graph.shape(id).rank()).map(|axis| axis + added), shape)
            }
        };
        self.known.insert(id, value);
        value
    }

    /// An input, each of whose axes becomes one of `axes` of the group's shape.
    fn input(&mut self, id: ExprId, axes: impl Iterator<Item = usize>, shape: &Shape) -> Value {
        let ty = self.builder.graph.tensor_type(id);
        let mut steps = vec![0; shape.rank()];
        for ((axis, &size), step) in axes.zip(&ty.shape).zip(Strided::row_major(&ty.shape)) {
            if size != 1 {
                steps[axis] = step;
            }
        }
        let rule = Strided::new(0, shape.iter().copied().zip(steps));
        let access =
            if ty.shape.size() == shape.size() && (rule.is_contiguous() || ty.shape == *shape) {
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
