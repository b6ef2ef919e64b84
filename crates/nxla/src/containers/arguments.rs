//! Values that callers may pass for a container.

use std::collections::BTreeMap;

use nxla_expr::TensorType;
use nxla_tensor::{Complex, bf16, f16};

use super::{Leaves, StaticValue};
use crate::expr::Expr;
use crate::sharding::{ShardedArgument, ShardedTensor};
use crate::tensor::Tensor;

/// A value that callers may pass for a container `C`: the same container with leaves `L`, or a
/// reference to one. A scalar may be passed for a tensor.
///
/// ```
/// use nxla::{Expr, Tensor, jit};
///
/// let sum = jit(|x: Expr, [y, z]: [Expr; 2]| x + y * z);
/// let (x, pair) = (Tensor::from(1), [Tensor::from(2), Tensor::from(3)]);
/// assert_eq!(sum.call((&x, &pair))?.item::<i32>()?, 7);
/// assert_eq!(sum.call((x, [2, 3]))?.item::<i32>()?, 7);
/// # Ok::<(), nxla::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not hold a `{L}` for each leaf of `{C}`",
    label = "expected the container `{C}` with a `{L}` as each leaf",
    note = "convert an array or a list of numbers to one tensor: `f.call(Tensor::from(list))`",
    note = "pass several arguments as one tuple: `f.call((&x, &y))`",
    note = "pass a struct, a list or a map as the same container, or as a reference to one",
    note = "inside a traced function, write `f.join(x)?` instead of `f.call(x)?`: `join` takes and \
            returns traced values"
)]
pub trait Arguments<C, L> {
    /// Appends the leaves in order.
    ///
    /// ```
    /// use nxla::{Arguments, Expr, Leaves, Tensor};
    ///
    /// let mut leaves: Leaves<Tensor> = Leaves::default();
    /// Arguments::<(Expr, Expr), Tensor>::append((1, 2.5), &mut leaves);
    /// assert_eq!(leaves.leaf().item::<i32>()?, 1);
    /// assert_eq!(leaves.leaf().item::<f64>()?, 2.5);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn append(self, leaves: &mut Leaves<L>);
}

macro_rules! leaf_arguments {
    ($($ty:ty as $leaf:ty => $convert:expr;)*) => {
        $(
            impl Arguments<Expr, $leaf> for $ty {
                fn append(self, leaves: &mut Leaves<$leaf>) {
                    leaves.push($convert(self));
                }
            }
        )*
    };
}

leaf_arguments! {
    Tensor as Tensor => |tensor| tensor;
    &Tensor as Tensor => Tensor::clone;
    Tensor as ShardedArgument => ShardedArgument::Whole;
    &Tensor as ShardedArgument => |tensor: &Tensor| ShardedArgument::Whole(tensor.clone());
    ShardedTensor as ShardedArgument => ShardedArgument::Sharded;
    &ShardedTensor as ShardedArgument => |tensor: &ShardedTensor| ShardedArgument::Sharded(tensor.clone());
    TensorType as TensorType => |ty| ty;
    &TensorType as TensorType => TensorType::clone;
    &Tensor as TensorType => |tensor: &Tensor| tensor.ty();
}

/// Generates the arguments that are numbers, for both kinds of calls.
macro_rules! number_arguments {
    ($($ty:ty => $convert:expr;)*) => {
        $(
            leaf_arguments! {
                $ty as Tensor => $convert;
                &$ty as Tensor => |number: &$ty| $convert(*number);
                $ty as ShardedArgument => |number: $ty| ShardedArgument::Whole($convert(number));
                &$ty as ShardedArgument => |number: &$ty| ShardedArgument::Whole($convert(*number));
            }
        )*
    };
}

number_arguments! {
    bool => Tensor::from;
    f16 => Tensor::from;
    bf16 => Tensor::from;
    f32 => Tensor::from;
    f64 => Tensor::from;
    u8 => Tensor::from;
    u16 => Tensor::from;
    u32 => Tensor::from;
    u64 => Tensor::from;
    i8 => Tensor::from;
    i16 => Tensor::from;
    i32 => Tensor::from;
    i64 => Tensor::from;
    usize => (|number: usize| Tensor::from(number as u64));
    isize => (|number: isize| Tensor::from(number as i64));
    Complex<f32> => Tensor::from;
    Complex<f64> => Tensor::from;
}

impl<L> Arguments<(), L> for () {
    fn append(self, _: &mut Leaves<L>) {}
}

impl<C, L, T: Arguments<C, L>> Arguments<Vec<C>, L> for Vec<T> {
    fn append(self, leaves: &mut Leaves<L>) {
        leaves.push_length(self.len());
        self.into_iter().for_each(|item| item.append(leaves));
    }
}

impl<'a, C, L, T> Arguments<Vec<C>, L> for &'a Vec<T>
where
    &'a T: Arguments<C, L>,
{
    fn append(self, leaves: &mut Leaves<L>) {
        self.as_slice().append(leaves);
    }
}

impl<'a, C, L, T> Arguments<Vec<C>, L> for &'a [T]
where
    &'a T: Arguments<C, L>,
{
    fn append(self, leaves: &mut Leaves<L>) {
        leaves.push_length(self.len());
        self.iter().for_each(|item| item.append(leaves));
    }
}

impl<C, L, T: Arguments<C, L>, const N: usize> Arguments<[C; N], L> for [T; N] {
    fn append(self, leaves: &mut Leaves<L>) {
        self.into_iter().for_each(|item| item.append(leaves));
    }
}

impl<'a, C, L, T, const N: usize> Arguments<[C; N], L> for &'a [T; N]
where
    &'a T: Arguments<C, L>,
{
    fn append(self, leaves: &mut Leaves<L>) {
        self.iter().for_each(|item| item.append(leaves));
    }
}

impl<C, L, T: Arguments<C, L>> Arguments<Option<C>, L> for Option<T> {
    fn append(self, leaves: &mut Leaves<L>) {
        leaves.push_length(self.is_some().into());
        self.into_iter().for_each(|item| item.append(leaves));
    }
}

impl<'a, C, L, T> Arguments<Option<C>, L> for &'a Option<T>
where
    &'a T: Arguments<C, L>,
{
    fn append(self, leaves: &mut Leaves<L>) {
        self.as_ref().append(leaves);
    }
}

impl<C, L, T: Arguments<C, L>> Arguments<Box<C>, L> for Box<T> {
    fn append(self, leaves: &mut Leaves<L>) {
        (*self).append(leaves);
    }
}

impl<'a, C, L, T> Arguments<Box<C>, L> for &'a Box<T>
where
    &'a T: Arguments<C, L>,
{
    fn append(self, leaves: &mut Leaves<L>) {
        (&**self).append(leaves);
    }
}

impl<K, C, L, T> Arguments<BTreeMap<K, C>, L> for BTreeMap<K, T>
where
    K: StaticValue + Ord,
    T: Arguments<C, L>,
{
    fn append(self, leaves: &mut Leaves<L>) {
        leaves.push_length(self.len());
        for (key, item) in self {
            leaves.push_static(&key);
            item.append(leaves);
        }
    }
}

impl<'a, K, C, L, T> Arguments<BTreeMap<K, C>, L> for &'a BTreeMap<K, T>
where
    K: StaticValue + Ord,
    &'a T: Arguments<C, L>,
{
    fn append(self, leaves: &mut Leaves<L>) {
        leaves.push_length(self.len());
        for (key, item) in self {
            leaves.push_static(key);
            item.append(leaves);
        }
    }
}

macro_rules! tuples {
    ($(($($name:ident $given:ident $index:tt),+))*) => {
        $(
            impl<Leaf, $($name, $given: Arguments<$name, Leaf>),+>
                Arguments<($($name,)+), Leaf> for ($($given,)+)
            {
                fn append(self, leaves: &mut Leaves<Leaf>) {
                    $(self.$index.append(leaves);)+
                }
            }

            impl<'a, Leaf, $($name, $given),+>
                Arguments<($($name,)+), Leaf> for &'a ($($given,)+)
            where
                $(&'a $given: Arguments<$name, Leaf>),+
            {
                fn append(self, leaves: &mut Leaves<Leaf>) {
                    $(self.$index.append(leaves);)+
                }
            }
        )*
    };
}

tuples! {
    (A GA 0)
    (A GA 0, B GB 1)
    (A GA 0, B GB 1, C GC 2)
    (A GA 0, B GB 1, C GC 2, D GD 3)
    (A GA 0, B GB 1, C GC 2, D GD 3, E GE 4)
    (A GA 0, B GB 1, C GC 2, D GD 3, E GE 4, F GF 5)
    (A GA 0, B GB 1, C GC 2, D GD 3, E GE 4, F GF 5, G GG 6)
    (A GA 0, B GB 1, C GC 2, D GD 3, E GE 4, F GF 5, G GG 6, H GH 7)
    (A GA 0, B GB 1, C GC 2, D GD 3, E GE 4, F GF 5, G GG 6, H GH 7, I GI 8)
    (A GA 0, B GB 1, C GC 2, D GD 3, E GE 4, F GF 5, G GG 6, H GH 7, I GI 8, J GJ 9)
    (A GA 0, B GB 1, C GC 2, D GD 3, E GE 4, F GF 5, G GG 6, H GH 7, I GI 8, J GJ 9, K GK 10)
    (A GA 0, B GB 1, C GC 2, D GD 3, E GE 4, F GF 5, G GG 6, H GH 7, I GI 8, J GJ 9, K GK 10, M GM 11)
}
