//! Operands of functions on tensors: expressions, tensors and weak scalars.

use nxla_tensor::{DType, Number};

use crate::apply::number_tensor;
use crate::expr::RawExpr;
use crate::tensor::RawTensor;
use crate::vectors::VectorAxes;

/// An owned operand by kind.
#[derive(Clone, Debug)]
pub enum Value {
    /// A value inside a trace.
    Expr(RawExpr),
    /// Data.
    Tensor(RawTensor),
    /// A weak scalar, which takes the dtype of the other operands if its kind allows.
    Number(Number),
}

impl Value {
    /// The dtype; `None` for a weak scalar.
    pub fn dtype(&self) -> Option<DType> {
        match self {
            Value::Expr(expr) => Some(expr.dtype()),
            Value::Tensor(tensor) => Some(tensor.dtype()),
            Value::Number(_) => None,
        }
    }
}

/// A borrowed operand by kind.
#[derive(Clone, Copy, Debug)]
pub enum View<'a> {
    /// A value inside a trace.
    Expr(&'a RawExpr),
    /// Data.
    Tensor(&'a RawTensor),
    /// A weak scalar.
    Number(Number),
}

impl<'a> View<'a> {
    /// The vectorized axes.
    #[inline]
    pub fn vectors(self) -> &'a VectorAxes {
        static NONE: VectorAxes = VectorAxes::NONE;
        match self {
            View::Expr(expr) => expr.vectors(),
            View::Tensor(tensor) => tensor.vectors(),
            View::Number(_) => &NONE,
        }
    }
}

/// Anything that functions of tensors take: expressions, tensors, weak scalars, and references
/// to them.
///
/// ```
/// use nxla::Tensor;
///
/// let x = Tensor::from(vec![1.0f32, 2.0]);
/// let shifted = x.add(1)?; // the number becomes an f32
/// assert_eq!(shifted.add(&x)?.to_vec::<f32>()?, [3.0, 5.0]);
/// # Ok::<(), nxla::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither a tensor, nor a traced value, nor a number",
    note = "convert arrays and lists with `Expr::from` in a trace and `Tensor::from` elsewhere"
)]
pub trait Operand {
    /// The kind of the operand.
    fn view(&self) -> View<'_>;

    /// The operand itself. Tensors and expressions are handles, so this copies no data.
    fn to_value(&self) -> Value {
        match self.view() {
            View::Expr(expr) => Value::Expr(expr.clone()),
            View::Tensor(tensor) => Value::Tensor(tensor.clone()),
            View::Number(number) => Value::Number(number),
        }
    }
}

impl Operand for Value {
    #[inline]
    fn view(&self) -> View<'_> {
        match self {
            Value::Expr(expr) => View::Expr(expr),
            Value::Tensor(tensor) => View::Tensor(tensor),
            Value::Number(number) => View::Number(*number),
        }
    }
}

impl Operand for View<'_> {
    #[inline]
    fn view(&self) -> View<'_> {
        *self
    }
}

impl Operand for RawExpr {
    #[inline]
    fn view(&self) -> View<'_> {
        View::Expr(self)
    }
}

impl Operand for RawTensor {
    #[inline]
    fn view(&self) -> View<'_> {
        View::Tensor(self)
    }
}

impl Operand for Number {
    #[inline]
    fn view(&self) -> View<'_> {
        View::Number(*self)
    }
}

impl<T: Operand + ?Sized> Operand for &T {
    #[inline]
    fn view(&self) -> View<'_> {
        (**self).view()
    }
}

/// An operand that is a position: a weak scalar becomes an integer, for any dtype of the elements.
pub fn position(operand: &impl Operand) -> Value {
    match operand.to_value() {
        Value::Number(number) => match number_tensor(number, None) {
            Ok(tensor) => Value::Tensor(tensor),
            Err(_) => Value::Number(number),
        },
        value @ (Value::Expr(_) | Value::Tensor(_)) => value,
    }
}

macro_rules! numbers {
    ($($ty:ty)*) => {
        $(
            impl Operand for $ty {
                #[inline]
                fn view(&self) -> View<'_> {
                    View::Number(Number::from(*self))
                }
            }
        )*
    };
}

numbers!(bool u8 u16 u32 u64 usize i8 i16 i32 i64 i128 isize f32 f64);
