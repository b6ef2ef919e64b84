//! Chains of eager operators with a single error at the end.

use std::ops::{Add, Div, Mul, Neg, Rem, Sub};

use nxla_expr::{BinaryOp, Op};

use crate::Result;
use crate::apply::run_op_eagerly;
use crate::expr::Concrete;
use crate::tensor::Tensor;

/// A chain of eager operators on tensors whose first error is returned at the end.
///
/// An operator on a [`Tensor`] returns a `Result`, and Rust has no operators on results, so a
/// formula of two operators needs `((x * 0.5)? + y)?`. A chain starts with [`Tensor::chain`] and
/// ends with [`Chain::done`]. After an error, the operators do nothing.
///
/// ```
/// use nxla::Tensor;
///
/// let (x, y) = (Tensor::from([1.0f32, 2.0]), Tensor::from([10.0f32, 20.0]));
/// let z = (1.0 - x.chain() * 0.5 + &y).then(|z| z.sum()).done()?;
/// assert_eq!(z.item::<f32>()?, 30.5);
///
/// let error = (x.chain() + Tensor::from([1.0f32, 2.0, 3.0]) * 2.0).done().unwrap_err();
/// assert!(error.to_string().starts_with("add: "));
/// # Ok::<(), nxla::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "the error of a chain is lost unless it ends with `done`"]
pub struct Chain(Result<Tensor>);

impl Tensor {
    /// Starts a chain of operators; see [`Chain`].
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([1.0f32, 2.0]);
    /// assert_eq!((x.chain() * 2 + &x).done()?.to_vec::<f32>()?, [3.0, 6.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    pub fn chain(&self) -> Chain {
        Chain(Ok(self.clone()))
    }
}

impl From<Tensor> for Chain {
    fn from(tensor: Tensor) -> Self {
        Chain(Ok(tensor))
    }
}

impl From<Result<Tensor>> for Chain {
    fn from(result: Result<Tensor>) -> Self {
        Chain(result)
    }
}

impl Chain {
    /// Applies a function of tensors, unless the chain has failed.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let norm = |x: &Tensor| (x.chain() * x).then(|x| x.sum()).then(|x| x.sqrt()).done();
    /// assert_eq!(norm(&Tensor::from([3.0f32, 4.0]))?.item::<f32>()?, 5.0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    pub fn then(self, function: impl FnOnce(Tensor) -> Result<Tensor>) -> Chain {
        Chain(self.0.and_then(function))
    }

    /// Ends the chain.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// assert_eq!((-Tensor::from(2).chain() + 5).done()?.item::<i32>()?, 3);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the first error of the chain.
    pub fn done(self) -> Result<Tensor> {
        self.0
    }
}

/// Applies an op to two operands, or returns the first error among them.
#[track_caller]
fn combine(op: BinaryOp, left: Result<impl Concrete>, right: Result<impl Concrete>) -> Chain {
    Chain(match (left, right) {
        (Ok(left), Ok(right)) => run_op_eagerly(&Op::Binary(op), &[left.view(), right.view()]),
        (Err(error), _) | (_, Err(error)) => Err(error),
    })
}

macro_rules! operators {
    ($($trait:ident $method:ident $op:ident;)*) => {
        $(
            impl<T: Concrete> $trait<T> for Chain {
                type Output = Chain;

                #[track_caller]
                fn $method(self, other: T) -> Chain {
                    combine(BinaryOp::$op, self.0, Ok(other))
                }
            }

            impl $trait<Chain> for Chain {
                type Output = Chain;

                #[track_caller]
                fn $method(self, other: Chain) -> Chain {
                    combine(BinaryOp::$op, self.0, other.0)
                }
            }

            impl $trait<Result<Tensor>> for Chain {
                type Output = Chain;

                #[track_caller]
                fn $method(self, other: Result<Tensor>) -> Chain {
                    combine(BinaryOp::$op, self.0, other)
                }
            }

            operators!(@left $trait $method $op; f64 i32 Tensor &Tensor);
        )*
    };
    (@left $trait:ident $method:ident $op:ident; $($left:ty)*) => {
        $(
            impl $trait<Chain> for $left {
                type Output = Chain;

                #[track_caller]
                fn $method(self, other: Chain) -> Chain {
                    combine(BinaryOp::$op, Ok(self), other.0)
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

impl Neg for Chain {
    type Output = Chain;

    #[track_caller]
    fn neg(self) -> Chain {
        Chain(match self.0 {
            Ok(x) => x.negate(),
            Err(error) => Err(error),
        })
    }
}
