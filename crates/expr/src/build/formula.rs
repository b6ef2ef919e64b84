//! Arithmetic of nodes that is written as a formula.
//!
//! A builder returns `Result<ExprId>`, so a composition of builders has one statement for each operation.
//! A [`Term`] is a node with the operators of Rust and with a method for each element-wise function:
//!
//! ```text
//! let formula = Formula::new(graph);
//! let [x, y] = formula.terms([x, y]);
//! let distance = (x * x + y * y).sqrt();
//! distance.greater(1.0).select(1.0, distance).id()
//! ```
//!
//! An operator creates its node when Rust evaluates it, after the nodes of its operands. A number
//! becomes a scalar constant by [`Graph::weak_number`] for the other operand. The formula keeps its
//! first error. Later operators create no nodes and return their left operand, and [`Term::id`] returns
//! the error, so no node of a failed formula can be used.

use std::cell::RefCell;
use std::ops::{Add, BitAnd, BitOr, Div, Mul, Neg, Not, Sub};

use nxla_tensor::{DType, Number, Scalar};

use crate::graph::{Error, ExprId, Graph, Op, Result};
use crate::{for_each_binary, for_each_composed_binary, for_each_composed_unary, for_each_unary};

/// A graph to which terms add nodes, and the first error.
#[derive(Debug)]
pub struct Formula<'f> {
    graph: RefCell<&'f mut Graph>,
    error: RefCell<Option<Error>>,
}

/// A node of a formula.
#[derive(Clone, Copy, Debug)]
pub struct Term<'f> {
    formula: &'f Formula<'f>,
    id: ExprId,
}

impl<'f> Formula<'f> {
    /// Starts a formula.
    pub fn new(graph: &'f mut Graph) -> Self {
        Self { graph: RefCell::new(graph), error: RefCell::new(None) }
    }

    /// Returns a node as a term.
    pub fn term(&'f self, id: ExprId) -> Term<'f> {
        Term { formula: self, id }
    }

    /// Returns several nodes as terms.
    pub fn terms<const N: usize>(&'f self, ids: [ExprId; N]) -> [Term<'f>; N] {
        ids.map(|id| self.term(id))
    }

    /// Creates a term by a builder. The builder receives the graph, so it must not use operators of
    /// terms.
    ///
    /// # Errors
    /// Returns the first error of the formula, or the error of the builder.
    pub fn build(&'f self, builder: impl FnOnce(&mut Graph) -> Result<ExprId>) -> Result<Term<'f>> {
        self.check()?;
        builder(&mut self.graph.borrow_mut()).map(|id| self.term(id))
    }

    /// Returns the nodes of terms.
    ///
    /// # Errors
    /// Returns the first error of the formula.
    pub fn ids<const N: usize>(&self, terms: [Term<'f>; N]) -> Result<[ExprId; N]> {
        self.check()?;
        Ok(terms.map(|term| term.id))
    }

    fn check(&self) -> Result<()> {
        self.error.borrow().clone().map_or(Ok(()), Err)
    }
}

impl<'f> Term<'f> {
    /// Returns the node.
    ///
    /// # Errors
    /// Returns the first error of the formula.
    pub fn id(self) -> Result<ExprId> {
        self.formula.check()?;
        Ok(self.id)
    }

    /// Returns the dtype.
    pub fn dtype(self) -> DType {
        self.formula.graph.borrow().dtype(self.id)
    }

    /// Returns the value of a real constant.
    pub fn constant(self) -> Option<f64> {
        match self.formula.graph.borrow().op(self.id) {
            Op::Constant(constant) if !matches!(constant.value, Scalar::Complex(..)) => {
                Some(constant.value.as_f64())
            }
            _ => None,
        }
    }

    /// Applies a builder of one operand, as [`Formula::build`] does. The formula keeps the error.
    pub fn apply(self, builder: impl FnOnce(&mut Graph, ExprId) -> Result<ExprId>) -> Self {
        match self.formula.build(|graph| builder(graph, self.id)) {
            Ok(term) => term,
            Err(error) => {
                self.formula.error.replace(Some(error));
                self
            }
        }
    }

    /// Creates a scalar constant by [`Graph::weak_number`].
    pub fn number(self, number: impl Into<Number>) -> Self {
        self.apply(|graph, id| graph.weak_number(number.into(), id))
    }

    /// Converts the term, as [`Graph::as_type`] does.
    pub fn as_type(self, dtype: DType) -> Self {
        self.apply(|graph, id| graph.as_type(id, dtype))
    }

    /// Returns zero in the dtype of the term.
    pub fn zero(self) -> Self {
        self.apply(Graph::zero_like)
    }

    /// Returns one in the dtype of the term.
    pub fn one(self) -> Self {
        self.apply(Graph::one_like)
    }

    /// Returns the sum of the elements along axes, as [`Graph::sum`] does.
    pub fn sum(self, axes: Option<&[i64]>, keep_axes: bool) -> Self {
        self.apply(|graph, id| graph.sum(id, axes, keep_axes))
    }

    /// Clamps the term, as [`Graph::clip`] does.
    pub fn clip(self, low: impl TermOrNumber<'f>, high: impl TermOrNumber<'f>) -> Self {
        let (low, high) = (low.beside(self), high.beside(self));
        self.apply(|graph, id| graph.clip(id, low.id, high.id))
    }

    /// Returns `on_true` where the term is nonzero, and `on_false` elsewhere. A number is a constant
    /// for the other branch.
    pub fn select(self, on_true: impl TermOrNumber<'f>, on_false: impl TermOrNumber<'f>) -> Self {
        let branch = on_true.term().or(on_false.term()).unwrap_or(self);
        let (on_true, on_false) = (on_true.beside(branch), on_false.beside(branch));
        self.apply(|graph, predicate| graph.select(predicate, on_true.id, on_false.id))
    }
}

/// An operand of a term: a term or a number.
pub trait TermOrNumber<'f>: Copy {
    /// Returns the term, or `None` for a number.
    fn term(self) -> Option<Term<'f>>;

    /// Returns the term, or the constant of a number for an operation with `other`.
    fn beside(self, other: Term<'f>) -> Term<'f>;
}

impl<'f> TermOrNumber<'f> for Term<'f> {
    fn term(self) -> Option<Self> {
        Some(self)
    }

    fn beside(self, _other: Self) -> Self {
        self
    }
}

impl<'f, N: Into<Number> + Copy> TermOrNumber<'f> for N {
    fn term(self) -> Option<Term<'f>> {
        None
    }

    fn beside(self, other: Term<'f>) -> Term<'f> {
        other.number(self)
    }
}

macro_rules! unary_methods {
    ($($(#[$doc:meta])* $variant:ident $method:ident $name:literal $class:ident ($($lowering:tt)*) $operations:literal $domain:tt $public:literal [$($example:literal)*];)*) => {
        composed_unary_methods! { $($(#[$doc])* $method $class $public [];)* }
    };
}
macro_rules! composed_unary_methods {
    ($($(#[$doc:meta])* $method:ident $class:ident $public:literal [$($example:literal)*];)*) => {
        impl Term<'_> {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $method(self) -> Self {
                    self.apply(Graph::$method)
                }
            )*
        }
    };
}
for_each_unary!(unary_methods);
for_each_composed_unary!(composed_unary_methods);

macro_rules! binary_methods {
    ($($(#[$doc:meta])* $variant:ident $method:ident $name:literal $class:ident ($($lowering:tt)*) $operations:literal $public:literal [$($example:literal)*];)*) => {
        composed_binary_methods! { $($(#[$doc])* $method $class $public [];)* }
    };
}
macro_rules! composed_binary_methods {
    ($($(#[$doc:meta])* $method:ident $class:ident $public:literal [$($example:literal)*];)*) => {
        #[allow(clippy::should_implement_trait, reason = "the operators call these methods")]
        impl<'f> Term<'f> {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $method(self, other: impl TermOrNumber<'f>) -> Self {
                    let other = other.beside(self);
                    self.apply(|graph, id| graph.$method(id, other.id))
                }
            )*
        }
    };
}
for_each_binary!(binary_methods);
for_each_composed_binary!(composed_binary_methods);

macro_rules! binary_operators {
    ($($operator:ident $function:ident $method:ident;)*) => {
        $(
            impl<'f, T: TermOrNumber<'f>> $operator<T> for Term<'f> {
                type Output = Self;

                fn $function(self, other: T) -> Self {
                    Term::$method(self, other)
                }
            }

            impl<'f> $operator<Term<'f>> for f64 {
                type Output = Term<'f>;

                fn $function(self, other: Term<'f>) -> Term<'f> {
                    Term::$method(other.number(self), other)
                }
            }
        )*
    };
}
binary_operators! {
    Add add add;
    Sub sub subtract;
    Mul mul multiply;
    Div div divide;
}

impl Neg for Term<'_> {
    type Output = Self;

    fn neg(self) -> Self {
        self.negate()
    }
}

/// The operators `!`, `&` and `|` combine conditions, as [`Graph::logical_and`] does, and not bits.
impl Not for Term<'_> {
    type Output = Self;

    fn not(self) -> Self {
        self.logical_not()
    }
}

impl BitAnd for Term<'_> {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        self.logical_and(other)
    }
}

impl BitOr for Term<'_> {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.logical_or(other)
    }
}
