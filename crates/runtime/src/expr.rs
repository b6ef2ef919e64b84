//! A value inside a trace.

use std::fmt;

use nxla_expr::print::ExprText;
use nxla_expr::{ExprId, TensorType};
use nxla_tensor::{DType, Shape};

use crate::trace::Trace;
use crate::vectors::Vectors;

/// A tensor that is being computed: a node of the graph of a [`Trace`], and its vectorized axes.
#[derive(Clone)]
pub struct Expr {
    trace: Trace,
    id: ExprId,
    vectors: Vectors,
}

/// Stands for a node that could not be built, in no graph. Whoever looks at a value of it is told
/// nothing of any other node, and the error that the trace keeps comes first wherever it is used.
pub const FAILED: ExprId = ExprId::NONE;

impl AsRef<Expr> for Expr {
    fn as_ref(&self) -> &Expr {
        self
    }
}

impl Expr {
    /// The node `id` of a trace.
    pub fn new(trace: Trace, id: ExprId) -> Self {
        Self { trace, id, vectors: Vectors::NONE }
    }

    /// The node `id` of a trace, whose first axes are these vectorized ones.
    pub fn with_vectors(trace: Trace, id: ExprId, vectors: Vectors) -> Self {
        Self { trace, id, vectors }
    }

    /// The vectorized axes, which shape and type leave out.
    pub fn vectors(&self) -> &Vectors {
        &self.vectors
    }

    /// The trace it belongs to.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// The node in the trace's graph.
    pub fn id(&self) -> ExprId {
        self.id
    }

    /// Dtype, shape and axis names, of one entry if axes are vectorized.
    ///
    /// A value of a finished trace has no type any more, and one that could not be built never had
    /// any; they count as `f32` scalars here, and are refused wherever they are used.
    pub fn ty(&self) -> TensorType {
        if self.has_failed() {
            return TensorType::scalar(DType::F32);
        }
        let ty = self.trace.read(|graph| graph.ty(self.id).as_tensor().cloned());
        match ty.flatten() {
            Some(ty) if self.vectors.is_empty() => ty,
            Some(ty) => self.vectors.entry_type(&ty),
            None => TensorType::scalar(DType::F32),
        }
    }

    /// Whether it could not be built.
    pub fn has_failed(&self) -> bool {
        self.id == FAILED
    }

    /// The size of each axis.
    pub fn shape(&self) -> Shape {
        self.ty().shape
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.ty().dtype
    }
}

impl fmt::Display for Expr {
    /// The expression line by line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.has_failed() {
            return match self.trace.why_failed() {
                Some(why) => write!(f, "#nxla.Expr<that could not be built: {why}>"),
                None => f.write_str("#nxla.Expr<that could not be built>"),
            };
        }
        let text = self.trace.read(|graph| ExprText::new(graph, self.id).to_string());
        f.write_str(text.as_deref().unwrap_or("#nxla.Expr<of a finished trace>"))
    }
}

impl fmt::Debug for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Expr({}: {}{})", self.id, self.vectors, self.ty())
    }
}
