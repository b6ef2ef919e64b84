//! Rewriting: the same expression with replaced nodes, and the same program on other inputs.
//!
//! Every node that depends on a replaced node is created again, and thereby simplified and
//! interned. Other nodes are shared with the original. The rewrite is one pass over the ids,
//! without recursion.

use crate::graph::{ErrorKind, ExprId, Graph, IdMap, Op, Operands, Program, Result};

/// A map from nodes to their replacements.
#[derive(Clone, Default, Debug)]
pub struct Substitution {
    /// The new id plus one, or zero for unchanged nodes.
    new_id: IdMap<u32>,
    first: Option<ExprId>,
}

impl Substitution {
    /// Creates a substitution without replacements.
    pub fn new() -> Self {
        Self::default()
    }

    /// Replaces `old` by `new`.
    pub fn insert(&mut self, old: ExprId, new: ExprId) {
        self.new_id.set(old, u32::try_from(new.index() + 1).expect("ids fit in 32 bits"));
        self.first = Some(self.first.map_or(old, |first| first.min(old)));
    }

    /// Returns the replacement of a node, or the node itself.
    pub fn get(&self, id: ExprId) -> ExprId {
        match self.new_id.get(id) {
            0 => id,
            new => ExprId::from_index(new as usize - 1),
        }
    }
}

impl Graph {
    /// Returns the roots after the substitution. A node with effects that depends on a replaced
    /// node is created again, and so are all later nodes with effects, which preserves their order.
    ///
    /// # Errors
    /// Returns an error if a replacement has the wrong type for a user.
    pub fn substitute(
        &mut self,
        roots: &[ExprId],
        substitution: &mut Substitution,
    ) -> Result<Vec<ExprId>> {
        let all: Vec<ExprId> = roots.iter().chain(self.effects()).copied().collect();
        let (Some(first), Some(&last)) = (substitution.first, all.iter().max()) else {
            return Ok(roots.to_vec());
        };
        let reachable = self.reachable(&all);
        let mut replaced_effects = Vec::new();
        for index in first.index()..=last.index() {
            let id = ExprId::from_index(index);
            let replaced = substitution.new_id.get(id) != 0;
            if replaced || !reachable.contains(id) {
                continue;
            }
            let operands: Operands =
                self.operands(id).iter().map(|&operand| substitution.get(operand)).collect();
            let op = self.op(id);
            // A recreated effect must not move behind later effects, so these are recreated too.
            let follows = op.has_effects() && !replaced_effects.is_empty();
            if operands[..] == *self.operands(id) && !follows {
                continue;
            }
            let op = op.clone();
            let source = self.source_id(id);
            self.set_source(source);
            if op.has_effects() {
                replaced_effects.push(id);
            }
            let new = self.make(op, &operands)?;
            substitution.insert(id, new);
        }
        self.remove_effects(&replaced_effects);
        Ok(roots.iter().map(|&root| substitution.get(root)).collect())
    }
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
