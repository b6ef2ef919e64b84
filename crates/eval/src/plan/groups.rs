//! Which nodes are needed, and which element-wise nodes run together.
//!
//! One backward pass over the graph decides both, as every user of a node has a larger id. An
//! element-wise node joins the group of its users where all of them are in one group and have its
//! shape: nobody else needs its value, so it never has to leave the cache. Constants, and
//! broadcasts, slices and the like that only element-wise nodes use, are read where they are and get no
//! step: so `x - mean[:, None]` goes over the rows as `x - mean` of kept axes does.

use nxla_expr::{ExprId, Family, Graph, IdSet, Metadata, Op, Program, Start};

/// Nodes of one group, or of several that run together, so that the registers of long chains stay
/// few.
pub(super) const MAX_NODES: usize = 64;

/// Who uses the value of a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Users {
    /// Nobody: the node is not computed.
    None,
    /// The nodes of one group.
    Group(u32),
    /// Others, or several groups.
    Several,
}

/// The result of the pass.
pub(super) struct Groups {
    users: Vec<Users>,
    /// Nodes whose value is needed as a tensor, not only by element-wise code.
    outside: IdSet,
    group_of: Vec<u32>,
    /// The nodes of each group, root first, in decreasing order.
    members: Vec<Vec<ExprId>>,
    /// Hooks that nobody listens to.
    silent: IdSet,
    /// How many nodes a group has at most.
    max_nodes: usize,
}

/// What a plan does with a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// Nothing, as its value is not needed or is part of element-wise code.
    Nothing,
    /// Its results are values of its operands.
    Alias,
    /// It is the result of this group.
    Group(u32),
    /// It has a step of its own.
    Step,
}

const NO_GROUP: u32 = u32::MAX;

impl Groups {
    /// `acts` tells which nodes with effects call a hook.
    pub(super) fn new(program: &Program, fuses: bool, mut acts: impl FnMut(&Op) -> bool) -> Self {
        let graph = program.graph();
        let mut groups = Self {
            users: vec![Users::None; graph.len()],
            outside: IdSet::with_len(graph.len()),
            group_of: vec![NO_GROUP; graph.len()],
            members: Vec::new(),
            silent: IdSet::default(),
            max_nodes: if fuses { MAX_NODES } else { 1 },
        };
        for &id in program.effects() {
            match graph.op(id) {
                op if acts(op) => groups.use_outside(id),
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
        match self.passed_on(graph, id) {
            Some(&[x]) => self.pass_on(id, x),
            Some(shown) => shown.iter().for_each(|&x| self.use_outside(x)),
            None => operands.iter().for_each(|&operand| self.use_outside(operand)),
        }
    }

    /// Puts an element-wise node into the group of its users, or into one of its own.
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
        self.group_of[id.index()] = group;
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

    /// The users of an alias use what it stands for.
    fn pass_on(&mut self, alias: ExprId, to: ExprId) {
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

    /// What becomes of a node.
    pub(super) fn role(&self, graph: &Graph, id: ExprId) -> Role {
        if !self.is_needed(id) {
            return Role::Nothing;
        }
        match graph.op(id) {
            Op::Metadata(_) | Op::Elem(_) => Role::Alias,
            Op::Hook(_) if self.silent.contains(id) => Role::Alias,
            Op::Constant(_) if !self.outside.contains(id) => Role::Nothing,
            _ if self.is_read_in_place(graph, id) => Role::Nothing,
            _ => match self.group_of[id.index()] {
                NO_GROUP => Role::Step,
                group if self.members[group as usize][0] == id => Role::Group(group),
                _ => Role::Nothing,
            },
        }
    }

    /// Whether several nodes may run together.
    pub(super) fn fuses(&self) -> bool {
        self.max_nodes > 1
    }

    /// The operands that a node gives back unchanged, if that is all it does.
    pub(super) fn passed_on<'g>(&self, graph: &'g Graph, id: ExprId) -> Option<&'g [ExprId]> {
        let operands = graph.operands(id);
        match graph.op(id) {
            Op::Metadata(metadata) => Some(shown_operands(metadata, operands)),
            Op::Hook(_) if self.silent.contains(id) => Some(operands),
            _ => None,
        }
    }

    /// The node behind those that pass on a single tensor.
    pub(super) fn behind(&self, graph: &Graph, mut id: ExprId) -> ExprId {
        while let Some(&[x]) = self.passed_on(graph, id) {
            id = x;
        }
        id
    }

    /// Whether a node that only moves elements is left to those who read it.
    pub(super) fn is_read_in_place(&self, graph: &Graph, id: ExprId) -> bool {
        !self.outside.contains(id)
            && match graph.op(id) {
                Op::Broadcast(_) | Op::Reverse(_) | Op::Reshape(_) | Op::Squeeze(_) => true,
                Op::Slice(slice) => {
                    // Elements that lie apart are fetched once, and a single one is repeated.
                    let is_run = slice.strides.last() == Some(&1);
                    let is_known = |start: &Start| matches!(start, Start::Static(_));
                    slice.starts.iter().all(is_known)
                        && graph.shape(id).size() > 1
                        && (is_run || matches!(self.users[id.index()], Users::Group(_)))
                }
                _ => false,
            }
    }

    /// The nodes of a group, operands first.
    pub(super) fn members(&self, group: u32) -> impl Iterator<Item = ExprId> {
        self.members[group as usize].iter().rev().copied()
    }
}

/// The operands that an annotation gives back; the others belong to a user's derivative.
fn shown_operands<'a>(metadata: &Metadata, operands: &'a [ExprId]) -> &'a [ExprId] {
    match &metadata.custom_grad {
        Some(custom) => &operands[..custom.outputs],
        None => operands,
    }
}
