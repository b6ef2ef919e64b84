//! Static values in containers: values that are not tensors and are part of the signature.

use std::any::Any;
use std::fmt::{self, Debug};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use nxla_runtime::{Result, Static};
use rustc_hash::FxHasher;

/// A static value: a container field marked by `#[container(skip)]`, or the key of a map. Another
/// value causes another trace.
///
/// All types with these traits implement it automatically.
///
/// ```
/// use nxla::prelude::*;
/// use nxla::Container;
///
/// #[derive(Container)]
/// struct Layer<T> {
///     weights: T,
///     #[container(skip)]
///     activation: &'static str,
/// }
///
/// let f = jit(|layer: Layer<Expr>, x: Expr| match layer.activation {
///     "relu" => (layer.weights * x).relu(),
///     _ => layer.weights * x,
/// });
/// let of = |activation| Layer { weights: Tensor::from(-1), activation };
/// assert_eq!(f.call((of("relu"), 2))?.item::<i32>()?, 0);
/// assert_eq!(f.call((of("none"), 2))?.item::<i32>()?, -2);
/// # Ok::<(), nxla::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a static value of a container",
    note = "a static value must be `Clone + PartialEq + Debug + Send + Sync + 'static`"
)]
pub trait StaticValue: Any + Clone + PartialEq + Debug + Send + Sync {}

impl<T: Any + Clone + PartialEq + Debug + Send + Sync> StaticValue for T {}

/// A type-erased static value.
#[derive(Clone)]
pub(crate) struct AnyStatic(Arc<dyn ErasedStatic>);

/// The operations on a type-erased static value.
trait ErasedStatic: Any + Send + Sync {
    fn same(&self, other: &dyn Any) -> bool;
    fn text(&self) -> String;
    fn as_any(&self) -> &dyn Any;
}

impl<T: StaticValue> ErasedStatic for T {
    /// A value that differs from itself, such as NaN, has the same text as its copies.
    #[expect(clippy::eq_op, reason = "NaN differs from itself")]
    fn same(&self, other: &dyn Any) -> bool {
        let is_same = |other: &T| {
            self == other || (self != self && other != other && self.text() == other.text())
        };
        other.downcast_ref().is_some_and(is_same)
    }

    fn text(&self) -> String {
        format!("{self:?}")
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl AnyStatic {
    pub(super) fn new(value: &impl StaticValue) -> Self {
        Self(Arc::new(value.clone()))
    }

    /// Returns the value if it has this type.
    pub(super) fn get<T: StaticValue>(&self) -> Option<T> {
        (*self.0).as_any().downcast_ref().cloned()
    }

    /// Returns a hash of the value's `Debug` output. Equal values have equal output; if a type
    /// violates this, a function is traced more often than necessary.
    pub(crate) fn hash(&self) -> u64 {
        let mut hasher = FxHasher::default();
        (*self.0).as_any().type_id().hash(&mut hasher);
        self.0.text().hash(&mut hasher);
        hasher.finish()
    }
}

impl PartialEq for AnyStatic {
    fn eq(&self, other: &Self) -> bool {
        self.0.same((*other.0).as_any())
    }
}

impl Debug for AnyStatic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text())
    }
}

impl Static for AnyStatic {
    fn same(&self, other: &Self) -> Result<bool> {
        Ok(self == other)
    }
}
