//! What a traced function may return: expressions, alone or in tuples, arrays and vectors.

use crate::expr::Expr;
use crate::tensor::Tensor;

/// The shape of a container of results.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Structure {
    /// One result.
    Leaf,
    /// Several, in order.
    Sequence(Vec<Structure>),
}

/// What a traced function returns, and what its caller gets for it.
pub trait Outputs {
    /// The same container of tensors.
    type Tensors;

    /// Appends the expressions in order and tells the container's shape.
    fn flatten(self, leaves: &mut Vec<Expr>) -> Structure;

    /// The container filled with tensors in the same order.
    ///
    /// # Panics
    /// If there are fewer tensors than leaves, which a compiled program never gives.
    fn rebuild(structure: &Structure, tensors: &mut dyn Iterator<Item = Tensor>) -> Self::Tensors;
}

impl Outputs for Expr {
    type Tensors = Tensor;

    fn flatten(self, leaves: &mut Vec<Expr>) -> Structure {
        leaves.push(self);
        Structure::Leaf
    }

    fn rebuild(_: &Structure, tensors: &mut dyn Iterator<Item = Tensor>) -> Tensor {
        tensors.next().expect("a program gives one tensor for each leaf")
    }
}

impl<T: Outputs> Outputs for Vec<T> {
    type Tensors = Vec<T::Tensors>;

    fn flatten(self, leaves: &mut Vec<Expr>) -> Structure {
        Structure::Sequence(self.into_iter().map(|item| item.flatten(leaves)).collect())
    }

    fn rebuild(structure: &Structure, tensors: &mut dyn Iterator<Item = Tensor>) -> Self::Tensors {
        match structure {
            Structure::Leaf => Vec::new(),
            Structure::Sequence(items) => {
                items.iter().map(|item| T::rebuild(item, tensors)).collect()
            }
        }
    }
}

impl<T: Outputs, const N: usize> Outputs for [T; N] {
    type Tensors = [T::Tensors; N];

    fn flatten(self, leaves: &mut Vec<Expr>) -> Structure {
        Structure::Sequence(self.into_iter().map(|item| item.flatten(leaves)).collect())
    }

    fn rebuild(structure: &Structure, tensors: &mut dyn Iterator<Item = Tensor>) -> Self::Tensors {
        std::array::from_fn(|index| T::rebuild(part(structure, index), tensors))
    }
}

fn part(structure: &Structure, index: usize) -> &Structure {
    match structure {
        Structure::Sequence(items) => items.get(index).unwrap_or(&Structure::Leaf),
        Structure::Leaf => &Structure::Leaf,
    }
}

macro_rules! tuples {
    ($(($($name:ident $index:tt),+))*) => {
        $(
            impl<$($name: Outputs),+> Outputs for ($($name,)+) {
                type Tensors = ($($name::Tensors,)+);

                fn flatten(self, leaves: &mut Vec<Expr>) -> Structure {
                    Structure::Sequence(vec![$(self.$index.flatten(leaves)),+])
                }

                fn rebuild(
                    structure: &Structure,
                    tensors: &mut dyn Iterator<Item = Tensor>,
                ) -> Self::Tensors {
                    ($($name::rebuild(part(structure, $index), tensors),)+)
                }
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
}
