//! A value inside a trace.

use std::fmt;
use std::ops::{Add, Div, Mul, Neg, Rem, Sub};
use std::panic::Location;

use nxla_expr::{BinaryOp, ExprId, Graph, Op, TensorType};
use nxla_tensor::{DType, Shape};

use crate::error::Result;
use crate::operand::Operand;
use crate::trace::Trace;

/// A tensor that is being computed: a node of the graph of a [`Trace`].
///
/// Operators and methods build further nodes. They never panic: a mistake (shapes that do not
/// broadcast, say) is kept by the trace with the line that made it, and [`Jit::call`] returns it.
///
/// [`Jit::call`]: crate::Jit::call
#[derive(Clone)]
pub struct Expr {
    trace: Trace,
    id: ExprId,
}

impl Expr {
    /// The node `id` of a trace.
    pub fn new(trace: Trace, id: ExprId) -> Self {
        Self { trace, id }
    }

    /// The trace it belongs to.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// The node in the trace's graph.
    pub fn id(&self) -> ExprId {
        self.id
    }

    /// Dtype, shape and axis names.
    ///
    /// A value of a finished trace has no type any more; it counts as an `f32` scalar here, and
    /// is refused wherever it is used.
    pub fn ty(&self) -> TensorType {
        let ty = self.trace.read(|graph| graph.ty(self.id).as_tensor().cloned());
        ty.flatten().unwrap_or_else(|| TensorType::scalar(DType::F32))
    }

    /// The size of each axis.
    pub fn shape(&self) -> Shape {
        self.ty().shape
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.ty().dtype
    }

    /// Builds a node from this one.
    #[track_caller]
    pub(crate) fn then(&self, build: impl FnOnce(&mut Graph, ExprId) -> Result<ExprId>) -> Expr {
        self.trace.operator(Location::caller(), |graph| build(graph, self.id))
    }

    /// Applies a binary op, the other operand being anything that becomes an expression.
    #[track_caller]
    pub(crate) fn with(&self, op: BinaryOp, other: impl Operand) -> Expr {
        self.trace.operator(Location::caller(), |graph| {
            let other = other.node(&self.trace, graph, Some(self.id))?;
            Ok(graph.make(Op::Binary(op), &[self.id, other])?)
        })
    }
}

impl fmt::Debug for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Expr({}: {})", self.id, self.ty())
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $op:ident;)*) => {
        $(
            impl<T: Operand> $trait<T> for Expr {
                type Output = Expr;

                #[track_caller]
                fn $method(self, other: T) -> Expr {
                    self.with(BinaryOp::$op, other)
                }
            }

            impl<T: Operand> $trait<T> for &Expr {
                type Output = Expr;

                #[track_caller]
                fn $method(self, other: T) -> Expr {
                    self.with(BinaryOp::$op, other)
                }
            }

            operators!(@number $trait $method $op f64 f32 i32 i64);
        )*
    };
    (@number $trait:ident $method:ident $op:ident $($number:ty)*) => {
        $(
            impl $trait<Expr> for $number {
                type Output = Expr;

                #[track_caller]
                fn $method(self, other: Expr) -> Expr {
                    reversed(BinaryOp::$op, self, &other)
                }
            }

            impl $trait<&Expr> for $number {
                type Output = Expr;

                #[track_caller]
                fn $method(self, other: &Expr) -> Expr {
                    reversed(BinaryOp::$op, self, other)
                }
            }
        )*
    };
}

operators! {
    Add add Add;
    Sub sub Subtract;
    Mul mul Multiply;
    Div div Divide;
    Rem rem Remainder;
}

#[track_caller]
fn reversed(op: BinaryOp, number: impl Operand, other: &Expr) -> Expr {
    other.trace.operator(Location::caller(), |graph| {
        let number = number.node(&other.trace, graph, Some(other.id))?;
        Ok(graph.make(Op::Binary(op), &[number, other.id])?)
    })
}

impl Neg for Expr {
    type Output = Expr;

    #[track_caller]
    fn neg(self) -> Expr {
        self.negate()
    }
}

impl Neg for &Expr {
    type Output = Expr;

    #[track_caller]
    fn neg(self) -> Expr {
        self.negate()
    }
}
