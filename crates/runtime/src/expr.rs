//! A value inside a trace.

use std::fmt;

use nxla_expr::print::ExprText;
use nxla_expr::{ErrorKind, ExprId, Graph, TensorType};
use nxla_tensor::{DType, Shape};

use crate::error::{Error, Result};
use crate::trace::{Trace, finished_trace_error};
use crate::vectors::VectorAxes;

/// A node of the graph of a [`Trace`], and its vectorized axes, without the operations of
/// `nxla::Expr`.
#[derive(Clone)]
pub struct RawExpr {
    trace: Trace,
    /// `None` if the node could not be built: the trace keeps the error.
    node: Option<ExprId>,
    vectors: VectorAxes,
}

impl AsRef<RawExpr> for RawExpr {
    fn as_ref(&self) -> &RawExpr {
        self
    }
}

impl RawExpr {
    /// The node `id` of a trace.
    pub fn new(trace: Trace, id: ExprId) -> Self {
        Self { trace, node: Some(id), vectors: VectorAxes::NONE }
    }

    /// Creates a value whose node could not be built. The trace stores the error and returns it at its
    /// end.
    pub fn new_failed(trace: Trace) -> Self {
        Self { trace, node: None, vectors: VectorAxes::NONE }
    }

    /// The node `id` of a trace, whose first axes are these vectorized ones.
    pub fn with_vectors(trace: Trace, id: ExprId, vectors: VectorAxes) -> Self {
        Self { trace, node: Some(id), vectors }
    }

    /// Returns the vectorized axes, which are not part of the shape and the type.
    ///
    /// ```
    /// use nxla::{Expr, Tensor, jit};
    ///
    /// let rows = Tensor::from([[1, 2], [3, 4]]).vectorize(["row"])?;
    /// let f = jit(|x: Expr| {
    ///     assert_eq!(x.vectors().to_string(), "vectorized[row: 2]");
    ///     assert_eq!(x.shape()[..], [2]);
    ///     x.sum()
    /// });
    /// assert_eq!(f.call(&rows)?.to_vec::<i32>()?, [3, 7]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    pub fn vectors(&self) -> &VectorAxes {
        &self.vectors
    }

    /// Returns the trace of the expression.
    ///
    /// ```
    /// use nxla::{Expr, jit};
    ///
    /// let f = jit(|x: Expr| {
    ///     assert!(x.trace().is(x.sin().trace()));
    ///     x
    /// });
    /// assert_eq!(f.call(3)?.item::<i32>()?, 3);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// The node in the trace's graph.
    ///
    /// ```
    /// use nxla::{Expr, jit};
    ///
    /// let f = jit(|x: Expr| {
    ///     let (first, second) = (x.sin().id()?, x.sin().id()?);
    ///     assert_eq!(first, second); // Equal expressions are one node.
    ///     Ok::<_, nxla::Error>(x)
    /// });
    /// f.call(3.0f32)?;
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error of the class [`ErrorClass::Trace`](crate::ErrorClass::Trace) if the node
    /// could not be built.
    pub fn id(&self) -> Result<ExprId> {
        self.node.ok_or_else(|| {
            let why = "the value could not be built because of an earlier error";
            Error::Expr(ErrorKind::Trace(why.into()).of("trace"))
        })
    }

    /// Reads the graph at the node. Returns `None` if the node could not be built, or if the trace
    /// has finished.
    ///
    /// ```
    /// use nxla::{Expr, jit};
    ///
    /// let f = jit(|x: Expr| {
    ///     let y = x.sin();
    ///     assert_eq!(y.read(|graph, id| graph.op(id).name()), Some("sin"));
    ///     y
    /// });
    /// f.call(3.0f32)?;
    /// # Ok::<(), nxla::Error>(())
    /// ```
    pub fn read<T>(&self, read: impl FnOnce(&Graph, ExprId) -> T) -> Option<T> {
        self.try_read(read).ok()
    }

    /// Does the same as [`RawExpr::read`], but states why the node is missing.
    ///
    /// # Errors
    /// Returns an error of the class [`ErrorClass::Trace`](crate::ErrorClass::Trace) if the node
    /// could not be built, or if the trace has finished.
    pub fn try_read<T>(&self, read: impl FnOnce(&Graph, ExprId) -> T) -> Result<T> {
        let id = self.id()?;
        self.trace.read(|graph| read(graph, id)).ok_or_else(finished_trace_error)
    }

    /// Returns the dtype, shape and axis names; of one entry if axes are vectorized.
    ///
    /// The type of a value of a finished trace, and of a value that could not be built, is an `f32`
    /// scalar here. Operations reject such values.
    ///
    /// ```
    /// use nxla::{Expr, Tensor, jit};
    ///
    /// let f = jit(|x: Expr| {
    ///     assert_eq!(x.sum_over(0).ty().to_string(), "f32[2]");
    ///     x
    /// });
    /// f.call(Tensor::from([[1.0f32, 2.0]]))?;
    /// # Ok::<(), nxla::Error>(())
    /// ```
    pub fn ty(&self) -> TensorType {
        self.try_ty().unwrap_or_else(|_| TensorType::scalar(DType::F32))
    }

    /// Does the same as [`RawExpr::ty`], but returns an error if the type is unknown.
    ///
    /// # Errors
    /// Returns the errors of [`RawExpr::try_read`], and an error for a node of several results.
    pub fn try_ty(&self) -> Result<TensorType> {
        let ty = self.try_read(|graph, id| graph.ty(id).as_tensor().cloned())?;
        let several = || {
            let why = "the node of several results has no type; each of its results has one";
            Error::Expr(ErrorKind::Trace(why.into()).of("trace"))
        };
        let ty = ty.ok_or_else(several)?;
        Ok(if self.vectors.is_empty() { ty } else { self.vectors.entry_type(&ty) })
    }

    /// Returns `true` if the expression has an error.
    ///
    /// ```
    /// use nxla::{Expr, Tensor, jit};
    ///
    /// let f = jit(|x: Expr| {
    ///     let wrong = x.reshape([7]);
    ///     assert!(wrong.has_failed());
    ///     wrong
    /// });
    /// assert!(f.call(Tensor::from([1, 2])).is_err());
    /// ```
    pub fn has_failed(&self) -> bool {
        self.node.is_none()
    }

    /// The size of each axis.
    ///
    /// ```
    /// use nxla::{Expr, Tensor, jit};
    ///
    /// let mean = jit(|x: Expr| x.sum() / x.shape().size());
    /// assert_eq!(mean.call(Tensor::from([1.0f32, 3.0]))?.item::<f32>()?, 2.0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    pub fn shape(&self) -> Shape {
        self.ty().shape
    }

    /// The element type.
    ///
    /// ```
    /// use nxla::{DType, Expr, jit};
    ///
    /// let f = jit(|x: Expr| {
    ///     assert_eq!((x.dtype(), x.greater(0).dtype()), (DType::F32, DType::Pred));
    ///     x
    /// });
    /// f.call(1.0f32)?;
    /// # Ok::<(), nxla::Error>(())
    /// ```
    pub fn dtype(&self) -> DType {
        self.ty().dtype
    }
}

impl fmt::Display for RawExpr {
    /// The expression line by line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.has_failed() {
            return match self.trace.why_failed() {
                Some(why) => write!(f, "#nxla.Expr<that could not be built: {why}>"),
                None => f.write_str("#nxla.Expr<that could not be built>"),
            };
        }
        let text = self.read(|graph, id| ExprText::new(graph, id).to_string());
        f.write_str(text.as_deref().unwrap_or("#nxla.Expr<of a finished trace>"))
    }
}

impl fmt::Debug for RawExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.node {
            Some(id) => write!(f, "Expr({id}: {}{})", self.vectors, self.ty()),
            None => f.write_str("Expr(could not be built)"),
        }
    }
}
