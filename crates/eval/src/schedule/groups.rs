//! Liveness of nodes and groups of element-wise nodes.
//!
//! One backward pass over the graph computes both, because every user of a node has a larger id. An element-wise
//! node joins the group of its users if they are all in one group and have its shape: no other node needs its
//! value, which then never leaves the cache. Constants, and index maps (broadcasts, slices and others) that only
//! element-wise nodes use, are read in place and get no step.

use nxla_expr::{ExprId, Family, Graph, IdSet, Op, Program, Start};

use super::limits::MAX_NODES;

/// The users of the value of a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Users {
    /// No node: the node is not computed.
    None,
    /// The nodes of one group.
    Group(u32),
    /// Other nodes, or several groups.
    Several,
}

/// The result of the pass.
pub(super) struct Groups {
    users: Vec<Users>,
    /// The nodes whose value must be a tensor, because other ops than element-wise ops read it.
    outside: IdSet,
    group_of: Vec<Option<u32>>,
    /// The nodes of each group, root first, in decreasing order.
    members: Vec<Vec<ExprId>>,
    /// The hooks without a listener.
    silent: IdSet,
    /// The largest number of nodes of a group.
    max_nodes: usize,
}

/// The role of a node in the schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// The node gets no step: its value is not needed, or element-wise code contains it.
    NoStep,
    /// The results are the values of operands.
    Alias,
    /// The node is the root of this group.
    Group(u32),
    /// The node is a step.
    Step,
}

impl Groups {
    /// `calls_hook` returns whether an op with effects calls a hook.
    pub(super) fn new(
        program: &Program,
        fuses: bool,
        mut calls_hook: impl FnMut(&Op) -> bool,
    ) -> Self {
        let graph = program.graph();
        let mut groups = Self {
            users: vec![Users::None; graph.len()],
            outside: IdSet::with_len(graph.len()),
            group_of: vec![None; graph.len()],
            members: Vec::new(),
            silent: IdSet::default(),
            max_nodes: if fuses { MAX_NODES } else { 1 },
        };
        for &id in program.effects() {
            match graph.op(id) {
                op if calls_hook(op) => groups.use_outside(id),
                Op::Hook(_) => {
                    groups.silent.insert(id);
                }
                _ => {}
            }
        }
        for &output in program.outputs() {
            groups.use_outside(output);
        }
        for id in graph.ids().rev() {
            groups.visit(graph, id);
        }
        groups
    }

    fn visit(&mut self, graph: &Graph, id: ExprId) {
        if !self.is_needed(id) {
            return;
        }
        let operands = graph.operands(id);
        if graph.op(id).family() == Family::Elementwise {
            let group = self.join(graph, id);
            for &operand in operands {
                self.use_in_group(operand, group);
            }
            return;
        }
        match self.alias_operands(graph, id) {
            Some(&[x]) => self.propagate_users(id, x),
            Some(shown) => shown.iter().for_each(|&x| self.use_outside(x)),
            None => operands.iter().for_each(|&operand| self.use_outside(operand)),
        }
    }

    /// Adds an element-wise node to the group of its users, or to a new group.
    fn join(&mut self, graph: &Graph, id: ExprId) -> u32 {
        let group = match self.users[id.index()] {
            Users::Group(group) if !self.outside.contains(id) => {
                let members = &mut self.members[group as usize];
                let fits =
                    members.len() < self.max_nodes && graph.shape(members[0]) == graph.shape(id);
                fits.then(|| members.push(id)).map(|()| group)
            }
            _ => None,
        };
        let group = group.unwrap_or_else(|| {
            self.members.push(vec![id]);
            u32::try_from(self.members.len() - 1).expect("fewer groups than nodes")
        });
        self.group_of[id.index()] = Some(group);
        group
    }

    fn use_outside(&mut self, id: ExprId) {
        self.users[id.index()] = Users::Several;
        self.outside.insert(id);
    }

    fn use_in_group(&mut self, id: ExprId, group: u32) {
        let users = &mut self.users[id.index()];
        *users = match *users {
            Users::None => Users::Group(group),
            Users::Group(same) if same == group => Users::Group(group),
            Users::Group(_) | Users::Several => Users::Several,
        };
    }

    /// Counts the users of an alias as users of its operand.
    fn propagate_users(&mut self, alias: ExprId, to: ExprId) {
        if self.outside.contains(alias) {
            return self.use_outside(to);
        }
        match self.users[alias.index()] {
            Users::None => {}
            Users::Group(group) => self.use_in_group(to, group),
            Users::Several => self.users[to.index()] = Users::Several,
        }
    }

    fn is_needed(&self, id: ExprId) -> bool {
        self.users[id.index()] != Users::None
    }

    /// The role of a node.
    pub(super) fn role(&self, graph: &Graph, id: ExprId) -> Role {
        if !self.is_needed(id) {
            return Role::NoStep;
        }
        let is_inlined = matches!(graph.op(id), Op::Constant(_)) && !self.outside.contains(id);
        if is_inlined || self.is_read_in_place(graph, id) {
            return Role::NoStep;
        }
        match graph.op(id) {
            Op::Metadata(_) | Op::Elem(_) => Role::Alias,
            Op::Hook(_) if self.silent.contains(id) => Role::Alias,
            _ => match self.group_of[id.index()] {
                None => Role::Step,
                Some(group) if self.members[group as usize][0] == id => Role::Group(group),
                Some(_) => Role::NoStep,
            },
        }
    }

    /// Returns true if groups may have several nodes.
    pub(super) fn fuses(&self) -> bool {
        self.max_nodes > 1
    }

    /// The operands that a node returns unchanged; `None` if the node computes.
    pub(super) fn alias_operands<'g>(&self, graph: &'g Graph, id: ExprId) -> Option<&'g [ExprId]> {
        let operands = graph.operands(id);
        match graph.op(id) {
            Op::Metadata(metadata) => Some(metadata.values_of(operands)),
            Op::Hook(_) if self.silent.contains(id) => Some(operands),
            _ => None,
        }
    }

    /// Follows aliases of single tensors to the node that computes the value.
    pub(super) fn resolve_alias(&self, graph: &Graph, mut id: ExprId) -> ExprId {
        while let Some(&[x]) = self.alias_operands(graph, id) {
            id = x;
        }
        id
    }

    /// Returns true if element-wise code reads the operand of an index map in place of its result.
    pub(super) fn is_read_in_place(&self, graph: &Graph, id: ExprId) -> bool {
        !self.outside.contains(id)
            && match graph.op(id) {
                Op::Broadcast(_) | Op::Reverse(_) | Op::Reshape(_) | Op::Squeeze(_) => true,
                Op::Slice(slice) => {
                    // If several groups read a strided slice, a copy is faster. A slice of one
                    // element becomes a broadcast operand.
                    let is_run = slice.strides.last() == Some(&1);
                    let is_known = |start: &Start| matches!(start, Start::Static(_));
                    slice.starts.iter().all(is_known)
                        && graph.shape(id).size() > 1
                        && (is_run || matches!(self.users[id.index()], Users::Group(_)))
                }
                Op::Transpose(_) | Op::Pad(_) | Op::Concatenate(_) | Op::Stack(_) => false,
                nxla_expr::outside!(movement) => false,
            }
    }

    /// The nodes of a group in topological order.
    pub(super) fn members(&self, group: u32) -> impl ExactSizeIterator<Item = ExprId> {
        self.members[group as usize].iter().rev().copied()
    }
}
