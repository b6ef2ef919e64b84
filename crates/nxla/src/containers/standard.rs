//! Implementations for containers of the standard library.

use std::collections::BTreeMap;
use std::fmt::Debug;

use nxla_expr::TensorType;

use super::{Container, Leaves, StaticValue, Tree};
use crate::expr::Expr;
use crate::sharding::ShardedTensor;
use crate::tensor::Tensor;

/// Appends the paths of the leaves of a list.
fn paths_of_items<'a, L, I: Debug, T: Tree<L> + 'a>(
    items: impl IntoIterator<Item = (I, &'a T)>,
    at: &str,
    paths: &mut Vec<String>,
) {
    items.into_iter().for_each(|(index, item)| item.paths(&format!("{at}[{index:?}]"), paths));
}

macro_rules! leaf {
    ($($ty:ty),*) => {
        $(
            impl Tree<$ty> for $ty {
                fn flatten(&self, leaves: &mut Leaves<$ty>) {
                    leaves.push(self.clone());
                }

                fn rebuild(leaves: &mut Leaves<$ty>) -> Self {
                    leaves.leaf()
                }

                fn paths(&self, at: &str, paths: &mut Vec<String>) {
                    paths.push(at.to_owned());
                }
            }
        )*
    };
}

leaf!(Expr, Tensor, TensorType, ShardedTensor);

impl Container for Expr {
    type Tensors = Tensor;
    type Sharded = ShardedTensor;
    type Of<C: Container> = C;
}

impl<L> Tree<L> for () {
    fn flatten(&self, _: &mut Leaves<L>) {}

    fn rebuild(_: &mut Leaves<L>) -> Self {}
}

impl Container for () {
    type Tensors = ();
    type Sharded = ();
    type Of<C: Container> = ();
}

impl<L, T: Tree<L>> Tree<L> for Vec<T> {
    fn flatten(&self, leaves: &mut Leaves<L>) {
        leaves.push_length(self.len());
        self.iter().for_each(|item| item.flatten(leaves));
    }

    fn rebuild(leaves: &mut Leaves<L>) -> Self {
        (0..leaves.length()).map(|_| T::rebuild(leaves)).collect()
    }

    fn has_static_values() -> bool {
        T::has_static_values()
    }

    fn paths(&self, at: &str, paths: &mut Vec<String>) {
        paths_of_items(self.iter().enumerate(), at, paths);
    }
}

impl<T: Container> Container for Vec<T> {
    type Tensors = Vec<T::Tensors>;
    type Sharded = Vec<T::Sharded>;
    type Of<C: Container> = Vec<T::Of<C>>;
}

impl<L, T: Tree<L>, const N: usize> Tree<L> for [T; N] {
    fn flatten(&self, leaves: &mut Leaves<L>) {
        self.iter().for_each(|item| item.flatten(leaves));
    }

    fn rebuild(leaves: &mut Leaves<L>) -> Self {
        std::array::from_fn(|_| T::rebuild(leaves))
    }

    fn has_static_values() -> bool {
        T::has_static_values()
    }

    fn paths(&self, at: &str, paths: &mut Vec<String>) {
        paths_of_items(self.iter().enumerate(), at, paths);
    }
}

impl<T: Container, const N: usize> Container for [T; N] {
    type Tensors = [T::Tensors; N];
    type Sharded = [T::Sharded; N];
    type Of<C: Container> = [T::Of<C>; N];
}

/// The presence of a value is part of the signature, like the length of a list.
impl<L, T: Tree<L>> Tree<L> for Option<T> {
    fn flatten(&self, leaves: &mut Leaves<L>) {
        leaves.push_length(self.is_some().into());
        self.iter().for_each(|item| item.flatten(leaves));
    }

    fn rebuild(leaves: &mut Leaves<L>) -> Self {
        (leaves.length() == 1).then(|| T::rebuild(leaves))
    }

    fn has_static_values() -> bool {
        T::has_static_values()
    }

    fn paths(&self, at: &str, paths: &mut Vec<String>) {
        self.iter().for_each(|item| item.paths(at, paths));
    }
}

impl<T: Container> Container for Option<T> {
    type Tensors = Option<T::Tensors>;
    type Sharded = Option<T::Sharded>;
    type Of<C: Container> = Option<T::Of<C>>;
}

impl<L, T: Tree<L>> Tree<L> for Box<T> {
    fn flatten(&self, leaves: &mut Leaves<L>) {
        (**self).flatten(leaves);
    }

    fn rebuild(leaves: &mut Leaves<L>) -> Self {
        Box::new(T::rebuild(leaves))
    }

    fn has_static_values() -> bool {
        T::has_static_values()
    }

    fn paths(&self, at: &str, paths: &mut Vec<String>) {
        (**self).paths(at, paths);
    }
}

impl<T: Container> Container for Box<T> {
    type Tensors = Box<T::Tensors>;
    type Sharded = Box<T::Sharded>;
    type Of<C: Container> = Box<T::Of<C>>;
}

/// The keys are part of the signature.
impl<L, K: StaticValue + Ord, T: Tree<L>> Tree<L> for BTreeMap<K, T> {
    fn flatten(&self, leaves: &mut Leaves<L>) {
        leaves.push_length(self.len());
        for (key, item) in self {
            leaves.push_static(key);
            item.flatten(leaves);
        }
    }

    fn rebuild(leaves: &mut Leaves<L>) -> Self {
        let length = leaves.length();
        (0..length).map(|_| (leaves.next_static(), T::rebuild(leaves))).collect()
    }

    fn has_static_values() -> bool {
        true
    }

    fn paths(&self, at: &str, paths: &mut Vec<String>) {
        paths_of_items(self, at, paths);
    }
}

impl<K: StaticValue + Ord, T: Container> Container for BTreeMap<K, T> {
    type Tensors = BTreeMap<K, T::Tensors>;
    type Sharded = BTreeMap<K, T::Sharded>;
    type Of<C: Container> = BTreeMap<K, T::Of<C>>;
}

macro_rules! tuples {
    ($(($($name:ident $index:tt),+))*) => {
        $(
            impl<Leaf, $($name: Tree<Leaf>),+> Tree<Leaf> for ($($name,)+) {
                fn flatten(&self, leaves: &mut Leaves<Leaf>) {
                    $(self.$index.flatten(leaves);)+
                }

                fn rebuild(leaves: &mut Leaves<Leaf>) -> Self {
                    ($($name::rebuild(leaves),)+)
                }

                fn has_static_values() -> bool {
                    $($name::has_static_values())||+
                }

                fn paths(&self, at: &str, paths: &mut Vec<String>) {
                    $(self.$index.paths(&format!("{at}.{}", $index), paths);)+
                }
            }

            impl<$($name: Container),+> Container for ($($name,)+) {
                type Tensors = ($($name::Tensors,)+);
                type Sharded = ($($name::Sharded,)+);
                type Of<Each: Container> = ($($name::Of<Each>,)+);
            }
        )*
    };
}

tuples! {
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, M 11)
}
