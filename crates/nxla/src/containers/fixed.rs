//! Values inside of containers that are no tensors: the same in every run of a traced function.

use std::any::Any;
use std::fmt::{self, Debug};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use nxla_runtime::{Result, Static};
use rustc_hash::FxHasher;

/// A value that is fixed when a function is traced: a field of a container that is told apart by
/// `#[container(skip)]`, or the key of a map. Another value traces the function again.
///
/// Everything with these traits is one; there is nothing to implement.
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
    message = "`{Self}` can be no fixed value of a container",
    note = "it has to be `Clone + PartialEq + Debug + Send + Sync + 'static`"
)]
pub trait Fixable: Any + Clone + PartialEq + Debug + Send + Sync {}

impl<T: Any + Clone + PartialEq + Debug + Send + Sync> Fixable for T {}

/// A fixed value whose type is forgotten.
#[derive(Clone)]
pub(crate) struct Fixed(Arc<dyn Kept>);

/// What is kept of a type.
trait Kept: Any + Send + Sync {
    fn same(&self, other: &dyn Any) -> bool;
    fn text(&self) -> String;
    fn as_any(&self) -> &dyn Any;
}

impl<T: Fixable> Kept for T {
    fn same(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<T>().is_some_and(|other| self == other)
    }

    fn text(&self) -> String {
        format!("{self:?}")
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Fixed {
    pub(super) fn new(value: &impl Fixable) -> Self {
        Self(Arc::new(value.clone()))
    }

    /// The value, if it is of this type.
    pub(super) fn get<T: Fixable>(&self) -> Option<T> {
        (*self.0).as_any().downcast_ref().cloned()
    }

    /// A hash of what the value looks like: equal values look alike. Were they not to, a function
    /// would be traced once more than it needs to be.
    pub(crate) fn hash(&self) -> u64 {
        let mut hasher = FxHasher::default();
        (*self.0).as_any().type_id().hash(&mut hasher);
        self.0.text().hash(&mut hasher);
        hasher.finish()
    }
}

impl PartialEq for Fixed {
    fn eq(&self, other: &Self) -> bool {
        self.0.same((*other.0).as_any())
    }
}

impl Debug for Fixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text())
    }
}

impl Static for Fixed {
    fn same(&self, other: &Self) -> Result<bool> {
        Ok(self == other)
    }
}
