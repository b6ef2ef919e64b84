//! Rewriting: the same expression with replaced nodes, and the same program on other inputs.
//!
//! Every node that depends on a replaced node is created again, and thereby simplified and
//! interned. Other nodes are shared with the original. A rewrite visits each node once, without
//! recursion.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use crate::graph::{ErrorKind, ExprId, Graph, IdMap, IdSet, Op, Operands, Program, Result};

/// A map from nodes to their replacements.
#[derive(Clone, Default, Debug)]
pub struct Substitution {
    /// The new id plus one, or zero for unchanged nodes.
    new_id: IdMap<u32>,
    first: Option<ExprId>,
    /// True if replacements replace each other.
    has_cycle: bool,
}

impl Substitution {
    /// Creates a substitution without replacements.
    pub fn new() -> Self {
        Self::default()
    }

    /// Replaces `old` by `new`, or by the replacement of `new`. A node can replace itself, which
    /// has no effect.
    pub fn insert(&mut self, old: ExprId, new: ExprId) {
        if new == old {
            return;
        }
        if self.resolve(new) == old {
            self.has_cycle = true;
            return;
        }
        self.new_id.set(old, u32::try_from(new.index() + 1).expect("ids fit in 32 bits"));
        self.first = Some(self.first.map_or(old, |first| first.min(old)));
    }

    /// Returns whether a node has a replacement.
    fn is_replaced(&self, id: ExprId) -> bool {
        self.new_id.get(id) != 0
    }

    /// Returns the replacement of a node, also of a replacement, or the node itself.
    fn resolve(&self, mut id: ExprId) -> ExprId {
        while let Some(new) = self.new_id.get(id).checked_sub(1) {
            id = ExprId::from_index(new as usize);
        }
        id
    }
}

impl Extend<(ExprId, ExprId)> for Substitution {
    fn extend<T: IntoIterator<Item = (ExprId, ExprId)>>(&mut self, replacements: T) {
        replacements.into_iter().for_each(|(old, new)| self.insert(old, new));
    }
}

impl FromIterator<(ExprId, ExprId)> for Substitution {
    fn from_iter<T: IntoIterator<Item = (ExprId, ExprId)>>(replacements: T) -> Self {
        let mut substitution = Substitution::new();
        substitution.extend(replacements);
        substitution
    }
}

impl Graph {
    /// Returns the roots after the substitution. A replacement may depend on other replaced nodes,
    /// but not on the node that it replaces. A node with effects that depends on a replaced node is
    /// created again, and so are all later nodes with effects, which preserves their order.
    ///
    /// # Errors
    /// Returns an error if a replacement has the wrong type for a user, or if nodes replace each
    /// other.
    pub fn substitute(
        &mut self,
        roots: &[ExprId],
        substitution: &mut Substitution,
    ) -> Result<Vec<ExprId>> {
        if substitution.has_cycle {
            let why = "must not replace nodes by each other; replace them in two substitutions, \
                       with new nodes in between";
            return Err(self.error("substitute", ErrorKind::invalid("substitution", why)));
        }
        let Some(first) = substitution.first else { return Ok(roots.to_vec()) };
        let plan = RewritePlan::new(self, roots, first, substitution);
        let mut replaced_effects = Vec::new();
        for id in plan {
            let operands: Operands =
                self.operands(id).iter().map(|&operand| substitution.resolve(operand)).collect();
            let op = self.op(id).clone();
            self.set_source(self.source_id(id));
            if op.has_effects() {
                replaced_effects.push(id);
            }
            let new = self.make(op, &operands)?;
            // An interned node can be the node itself.
            substitution.insert(id, new);
        }
        self.remove_effects(&replaced_effects);
        Ok(roots.iter().map(|&root| substitution.resolve(root)).collect())
    }
}

/// The nodes that a substitution creates again, in an order in which operands and replacements come
/// before their users. Nodes that are ready come in the order of their ids.
struct RewritePlan {
    ready: BinaryHeap<Reverse<ExprId>>,
    /// For each node, the nodes that wait for it.
    users: FxHashMap<ExprId, Vec<ExprId>>,
    /// The number of nodes for which a node waits.
    waits: FxHashMap<ExprId, usize>,
}

impl RewritePlan {
    fn new(graph: &Graph, roots: &[ExprId], first: ExprId, substitution: &Substitution) -> Self {
        let needed = needed_after(graph, roots, first, substitution);
        let mut plan = RewritePlan {
            ready: BinaryHeap::new(),
            users: FxHashMap::default(),
            waits: FxHashMap::default(),
        };
        let mut last_effect = None;
        // The operands of a replacement have smaller ids than the replacement, so one pass over the
        // ids finds all nodes that depend on a replaced node.
        let ids = (first.index()..graph.len()).map(ExprId::from_index);
        for id in ids.filter(|&id| needed.contains(id)) {
            let operands = graph.operands(id);
            let depends = |&operand: &ExprId| {
                substitution.is_replaced(operand) || plan.waits.contains_key(&operand)
            };
            let has_effects = graph.op(id).has_effects();
            // A recreated effect must not move behind later effects, so these are recreated too.
            if operands.iter().any(depends) || (has_effects && last_effect.is_some()) {
                plan.waits.insert(id, 0);
                let before = if has_effects { last_effect.replace(id) } else { None };
                plan.users.extend(before.map(|before| (before, vec![id])));
            }
        }
        let mut effects = std::mem::take(&mut plan.users);
        let recreated: Vec<ExprId> = plan.waits.keys().copied().collect();
        for id in recreated {
            let operands = graph.operands(id).iter().map(|&operand| substitution.resolve(operand));
            for operand in operands.filter(|operand| plan.waits.contains_key(operand)) {
                plan.users.entry(operand).or_default().push(id);
            }
            for later in effects.remove(&id).into_iter().flatten() {
                plan.users.entry(id).or_default().push(later);
            }
        }
        for &user in plan.users.values().flatten() {
            *plan.waits.get_mut(&user).expect("users are recreated") += 1;
        }
        let ready = plan.waits.iter().filter(|(_, waits)| **waits == 0);
        plan.ready = ready.map(|(&id, _)| Reverse(id)).collect();
        plan
    }
}

impl Iterator for RewritePlan {
    type Item = ExprId;

    fn next(&mut self) -> Option<ExprId> {
        let Reverse(id) = self.ready.pop()?;
        for user in self.users.remove(&id).into_iter().flatten() {
            let waits = self.waits.get_mut(&user).expect("users are recreated");
            *waits -= 1;
            if *waits == 0 {
                self.ready.push(Reverse(user));
            }
        }
        Some(id)
    }
}

/// Returns the nodes from `first` on that the roots and the effects need after a substitution.
fn needed_after(
    graph: &Graph,
    roots: &[ExprId],
    first: ExprId,
    substitution: &Substitution,
) -> IdSet {
    let mut needed = IdSet::with_len(graph.len());
    let mut pending: Vec<ExprId> = roots.iter().chain(graph.effects()).copied().collect();
    while let Some(id) = pending.pop() {
        let id = substitution.resolve(id);
        if id >= first && needed.insert(id) {
            pending.extend(graph.operands(id));
        }
    }
    needed
}

impl Program {
    /// Appends the nodes of the program to another graph, with `arguments` for its inputs, and
    /// returns its outputs. Nodes are simplified again, since an argument may be a constant. Hooks
    /// become hooks of the other graph.
    ///
    /// # Errors
    /// Returns an error if the number or the types of the arguments do not fit.
    pub fn inline(&self, into: &mut Graph, arguments: &[ExprId]) -> Result<Vec<ExprId>> {
        if arguments.len() != self.inputs().len() {
            let expected = self.inputs().len().to_string();
            return Err(into.error("call", ErrorKind::Arity { expected, found: arguments.len() }));
        }
        let mut new_id: Vec<ExprId> = Vec::with_capacity(self.graph().len());
        for id in self.graph().ids() {
            let op = self.graph().op(id);
            let operands: Operands =
                self.graph().operands(id).iter().map(|&id| new_id[id.index()]).collect();
            new_id.push(match op {
                Op::Parameter(parameter) => arguments[parameter.index as usize],
                op => into.make(op.clone(), &operands)?,
            });
        }
        Ok(self.outputs().iter().map(|&id| new_id[id.index()]).collect())
    }
}
