//! Node creation: type inference, which checks the operands, simplification and interning.
//!
//! The node store has no rules; this module applies them. It also contains the passes that recreate
//! nodes: rewriting, deserialization and verification.

pub mod rewrite;
pub mod serialize;
mod signs;
pub mod verify;

use smallvec::SmallVec;

use crate::graph::store::hash_node;
use crate::graph::{Broadcast, ErrorKind, ExprId, Graph, MAX_NESTING, Op, Result, Type, TypeId};
use crate::infer::{binary_keeps, infer, unary_keeps};
use crate::simplify::{Simplified, simplify};

impl Graph {
    /// Creates a node: checks, simplifies and interns it. A node with effects is always a new node
    /// and is not simplified.
    ///
    /// # Errors
    /// Returns the violated requirement on the operands, with the current source line. An id of
    /// another graph is an error only if this graph has no node with the id.
    pub fn make(&mut self, op: Op, operands: &[ExprId]) -> Result<ExprId> {
        if op.has_effects() {
            return self.make_effect(op, operands);
        }
        self.index();
        let hash = hash_node(&op, operands);
        // An existing node has been checked and simplified already.
        match self.lookup(hash, &op, operands) {
            Some(id) => Ok(id),
            None => self.make_new(hash, op, operands, true),
        }
    }

    /// Creates a node without looking for an existing one, which tells `verify` whether the
    /// existing node is simplified.
    pub(crate) fn make_as_new(&mut self, op: Op, operands: &[ExprId]) -> Result<ExprId> {
        self.index();
        self.make_new(hash_node(&op, operands), op, operands, false)
    }

    #[cold]
    fn make_effect(&mut self, op: Op, operands: &[ExprId]) -> Result<ExprId> {
        let ty = self.checked_type(&op, operands)?;
        Ok(self.push_effect(op, operands, ty))
    }

    /// Checks and simplifies a node without effects, and interns the result. `absent` means that
    /// the intern table has no equal node.
    fn make_new(&mut self, hash: u32, op: Op, operands: &[ExprId], absent: bool) -> Result<ExprId> {
        let ty = self.checked_type(&op, operands)?;
        match self.replacement(&op, operands, ty) {
            Simplified::Keep if absent => Ok(self.push_indexed(hash, op, operands, ty)),
            Simplified::Keep => Ok(self.intern(op, operands, ty)),
            Simplified::Is(id) => Ok(id),
            Simplified::Fitted(id) => self.fit(id, ty),
            Simplified::MixedSigns => self.make_mixed_signs(&op, operands),
            Simplified::Node(op, operands) => self.make(op, &operands),
            Simplified::Nested { op, mut operands, operand_index, inner } => {
                let (inner, own) = inner;
                operands[operand_index] = self.make(inner, &own)?;
                self.make(op, &operands)
            }
        }
    }

    /// Simplifies a node of type `ty`. A replacement of another type is rejected.
    fn replacement(&self, op: &Op, operands: &[ExprId], ty: TypeId) -> Simplified {
        let replacement = simplify(self, op, operands, ty);
        let has_type = match &replacement {
            // `Fitted` is converted to the type, and type inference and `MixedSigns` agree.
            Simplified::Keep | Simplified::Fitted(_) | Simplified::MixedSigns => true,
            Simplified::Is(id) => self.type_id(*id) == ty,
            Simplified::Node(op, operands) => self.infers(op, &self.types(operands), ty),
            Simplified::Nested { op, operands, operand_index, inner } => {
                infer(&inner.0, &self.types(&inner.1)).is_ok_and(|inner| {
                    let mut types = self.types(operands);
                    types[*operand_index] = &inner;
                    self.infers(op, &types, ty)
                })
            }
        };
        if has_type { replacement } else { Simplified::Keep }
    }

    fn infers(&self, op: &Op, types: &[&Type], ty: TypeId) -> bool {
        infer(op, types).is_ok_and(|found| found == *self.type_at(ty))
    }

    fn types(&self, operands: &[ExprId]) -> SmallVec<[&Type; 4]> {
        operands.iter().map(|&id| self.ty(id)).collect()
    }

    /// Casts and broadcasts `x` to a result type, and sets its axis names.
    fn fit(&mut self, x: ExprId, ty: TypeId) -> Result<ExprId> {
        let Type::Tensor(target) = self.type_at(ty).clone() else { return Ok(x) };
        let x = self.make(Op::AsType(target.dtype), &[x])?;
        if self.tensor_type(x) == &target {
            return Ok(x);
        }
        let axes = (target.rank() - self.shape(x).rank()..target.rank()).collect();
        let broadcast = Broadcast { shape: target.shape, axes, names: target.names };
        self.make(Op::Broadcast(Box::new(broadcast)), &[x])
    }

    /// Infers the type of a new node.
    fn checked_type(&mut self, op: &Op, operands: &[ExprId]) -> Result<TypeId> {
        let depth = op.nesting_depth();
        if depth > MAX_NESTING {
            let why = format!(
                "branches and loops must be nested at most {MAX_NESTING} deep; got {depth}"
            );
            return Err(self.error(op.name(), ErrorKind::invalid("body", why)));
        }
        if let Some(unknown) = operands.iter().find(|id| id.index() >= self.len()) {
            let why =
                format!("must be nodes of this graph, which has {}; got {unknown}", self.len());
            return Err(self.error(op.name(), ErrorKind::invalid("operands", why)));
        }
        self.type_of(op, operands).map_err(|kind| self.error(op.name(), kind))
    }

    /// Infers a type; if it is the type of an operand, the type table is not accessed.
    fn type_of(&mut self, op: &Op, operands: &[ExprId]) -> Result<TypeId, ErrorKind> {
        if let Some(ty) = self.type_by_class(op, operands) {
            return Ok(ty);
        }
        let ty = infer(op, &self.types(operands))?;
        Ok(self.intern_type(ty))
    }

    /// The fast path of [`Graph::type_of`]: arithmetic on operands of one type.
    fn type_by_class(&self, op: &Op, operands: &[ExprId]) -> Option<TypeId> {
        let ty = self.type_id(*operands.first()?);
        let keeps = match (op, operands) {
            (Op::Unary(op), [_]) => unary_keeps(*op, self.type_at(ty)),
            (Op::Binary(op), [_, right]) => {
                self.type_id(*right) == ty && binary_keeps(*op, self.type_at(ty))
            }
            _ => false,
        };
        keeps.then_some(ty)
    }
}
