//! Containers of values: what traced functions take and give.
//!
//! The leaves of a container are expressions inside a trace, tensors outside of it. A type tells
//! its own structure but for the lengths of lists, which are told along with the leaves.

use nxla_expr::TensorType;
use smallvec::SmallVec;

use crate::expr::Expr;
use crate::tensor::Tensor;
use crate::{Error, Result};

/// The leaves of a container in order, and the lengths of the lists in it.
#[derive(Clone, Debug)]
pub struct Leaves<L> {
    pub(crate) items: SmallVec<[L; 4]>,
    pub(crate) lengths: Lengths,
    /// How many items and lengths have been taken out again.
    taken: (usize, usize),
}

/// The lengths of the lists in a container, in the order in which they are met.
pub(crate) type Lengths = SmallVec<[usize; 2]>;

impl<L> Default for Leaves<L> {
    fn default() -> Self {
        Self { items: SmallVec::new(), lengths: SmallVec::new(), taken: (0, 0) }
    }
}

impl<L> Leaves<L> {
    /// Leaves to be put into a container with lists of these lengths.
    pub(crate) fn new(items: impl IntoIterator<Item = L>, lengths: Lengths) -> Self {
        Self { items: items.into_iter().collect(), lengths, taken: (0, 0) }
    }

    /// Appends a leaf.
    pub fn push(&mut self, leaf: L) {
        self.items.push(leaf);
    }

    /// Appends the length of a list, before its items.
    pub fn push_length(&mut self, length: usize) {
        self.lengths.push(length);
    }

    /// The length of the next list.
    ///
    /// # Panics
    /// If the container was taken apart in another way than it is put together.
    pub fn length(&mut self) -> usize {
        self.taken.1 += 1;
        self.lengths[self.taken.1 - 1]
    }
}

impl<L: Clone> Leaves<L> {
    /// The next leaf.
    ///
    /// # Panics
    /// If the container was taken apart in another way than it is put together.
    pub fn leaf(&mut self) -> L {
        self.taken.0 += 1;
        self.items[self.taken.0 - 1].clone()
    }
}

/// A container whose leaves are `L`: it comes apart into them, and is put together again.
///
/// Implemented for expressions and tensors, `()`, lists, arrays and tuples of up to eight; structs
/// of one's own become containers by [`container!`](crate::container).
pub trait Tree<L>: Sized {
    /// Appends the leaves in order.
    fn flatten(&self, leaves: &mut Leaves<L>);

    /// The container of the next leaves.
    fn rebuild(leaves: &mut Leaves<L>) -> Self;

    /// Appends where each leaf is for the texts of errors, as one would write it: `at` is what the
    /// container is called, and `.weights`, `[0]` or `.1` come after it.
    fn paths(&self, at: &str, paths: &mut Vec<String>) {
        let count = leaves_of(self).items.len();
        paths.extend((0..count).map(|leaf| format!("{at}, leaf {leaf}")));
    }
}

/// A container of expressions, and its counterpart outside of traces.
pub trait Container: Tree<Expr> {
    /// The same container of tensors.
    type Tensors: Tree<Tensor>;
}

/// The leaves of a container.
pub(crate) fn leaves_of<L>(tree: &impl Tree<L>) -> Leaves<L> {
    let mut leaves = Leaves::default();
    tree.flatten(&mut leaves);
    leaves
}

/// Appends the paths of the leaves of a list.
fn paths_of_items<'a, L, T: Tree<L> + 'a>(
    items: impl IntoIterator<Item = &'a T>,
    at: &str,
    paths: &mut Vec<String>,
) {
    let items = items.into_iter().enumerate();
    items.for_each(|(index, item)| item.paths(&format!("{at}[{index}]"), paths));
}

/// An error about a leaf that does not fit, with its path in a container; see [`Error::locate`].
pub(crate) fn located<L>(
    error: Error,
    function: &str,
    roots: &[(&str, &str)],
    tree: &impl Tree<L>,
) -> Error {
    error.locate(function, roots, |region, result| {
        let mut paths = Vec::new();
        tree.paths("", &mut paths);
        (region, paths.into_iter().nth(result))
    })
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

leaf!(Expr, Tensor, TensorType);

impl Container for Expr {
    type Tensors = Tensor;
}

impl<L> Tree<L> for () {
    fn flatten(&self, _: &mut Leaves<L>) {}

    fn rebuild(_: &mut Leaves<L>) -> Self {}
}

impl Container for () {
    type Tensors = ();
}

impl<L, T: Tree<L>> Tree<L> for Vec<T> {
    fn flatten(&self, leaves: &mut Leaves<L>) {
        leaves.push_length(self.len());
        self.iter().for_each(|item| item.flatten(leaves));
    }

    fn rebuild(leaves: &mut Leaves<L>) -> Self {
        (0..leaves.length()).map(|_| T::rebuild(leaves)).collect()
    }

    fn paths(&self, at: &str, paths: &mut Vec<String>) {
        paths_of_items(self, at, paths);
    }
}

impl<T: Container> Container for Vec<T> {
    type Tensors = Vec<T::Tensors>;
}

impl<L, T: Tree<L>, const N: usize> Tree<L> for [T; N] {
    fn flatten(&self, leaves: &mut Leaves<L>) {
        self.iter().for_each(|item| item.flatten(leaves));
    }

    fn rebuild(leaves: &mut Leaves<L>) -> Self {
        std::array::from_fn(|_| T::rebuild(leaves))
    }

    fn paths(&self, at: &str, paths: &mut Vec<String>) {
        paths_of_items(self, at, paths);
    }
}

impl<T: Container, const N: usize> Container for [T; N] {
    type Tensors = [T::Tensors; N];
}

/// What may be passed for a container `C`: the same container with leaves `L`, or a reference to
/// one. For a tensor, a plain number may be passed too.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed for `{C}`",
    note = "pass the same container of tensors, of references to tensors, or a reference to one"
)]
pub trait Arguments<C, L> {
    /// Appends the leaves in order.
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
    f32 as Tensor => Tensor::from;
    f64 as Tensor => Tensor::from;
    i32 as Tensor => Tensor::from;
    i64 as Tensor => Tensor::from;
    TensorType as TensorType => |ty| ty;
    &TensorType as TensorType => TensorType::clone;
    &Tensor as TensorType => |tensor: &Tensor| tensor.ty();
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

macro_rules! tuples {
    ($(($($name:ident $given:ident $index:tt),+))*) => {
        $(
            impl<Leaf, $($name: Tree<Leaf>),+> Tree<Leaf> for ($($name,)+) {
                fn flatten(&self, leaves: &mut Leaves<Leaf>) {
                    $(self.$index.flatten(leaves);)+
                }

                fn rebuild(leaves: &mut Leaves<Leaf>) -> Self {
                    ($($name::rebuild(leaves),)+)
                }

                fn paths(&self, at: &str, paths: &mut Vec<String>) {
                    $(self.$index.paths(&format!("{at}.{}", $index), paths);)+
                }
            }

            impl<$($name: Container),+> Container for ($($name,)+) {
                type Tensors = ($($name::Tensors,)+);
            }

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
}

/// Makes a container of a struct whose fields are containers of its type parameter.
///
/// ```
/// use nxla::{Expr, Tensor, container, grad, jit};
///
/// struct Layer<T> {
///     weights: T,
///     biases: Vec<T>,
/// }
/// container!(Layer { weights, biases });
///
/// let loss = |layer: Layer<Expr>| (layer.weights * 2.0).sum() + layer.biases[0].sum();
/// let layer = Layer {
///     weights: Tensor::from(vec![1.0f32, 2.0]),
///     biases: vec![Tensor::from(3.0f32)],
/// };
/// let slopes: Layer<Tensor> = jit(grad(loss)).call(&layer)?;
/// assert_eq!(slopes.weights.to_vec::<f32>()?, [2.0, 2.0]);
/// # Ok::<(), nxla::Error>(())
/// ```
#[macro_export]
macro_rules! container {
    ($name:ident { $($field:ident),* $(,)? }) => {
        impl<L: $crate::Tree<L>> $crate::Tree<L> for $name<L> {
            fn flatten(&self, leaves: &mut $crate::Leaves<L>) {
                $($crate::Tree::<L>::flatten(&self.$field, leaves);)*
            }

            fn rebuild(leaves: &mut $crate::Leaves<L>) -> Self {
                $(let $field = $crate::Tree::<L>::rebuild(leaves);)*
                $name { $($field),* }
            }

            fn paths(
                &self,
                at: &str,
                paths: &mut ::std::vec::Vec<::std::string::String>,
            ) {
                $($crate::Tree::<L>::paths(
                    &self.$field,
                    &::std::format!("{at}.{}", ::std::stringify!($field)),
                    paths,
                );)*
            }
        }

        impl $crate::Container for $name<$crate::Expr> {
            type Tensors = $name<$crate::Tensor>;
        }

        impl<L: $crate::Tree<L>> $crate::Arguments<$name<$crate::Expr>, L> for $name<L> {
            fn append(self, leaves: &mut $crate::Leaves<L>) {
                $crate::Tree::<L>::flatten(&self, leaves);
            }
        }

        impl<L: $crate::Tree<L>> $crate::Arguments<$name<$crate::Expr>, L> for &$name<L> {
            fn append(self, leaves: &mut $crate::Leaves<L>) {
                $crate::Tree::<L>::flatten(self, leaves);
            }
        }
    };
}

/// What a traced function may return: a container, or a `Result` of one.
pub trait Outputs {
    /// The container.
    type Container: Container;

    /// The container, unless there is an error.
    ///
    /// # Errors
    /// That of the function.
    fn into_container(self) -> Result<Self::Container>;
}

impl<C: Container> Outputs for C {
    type Container = C;

    fn into_container(self) -> Result<C> {
        Ok(self)
    }
}

impl<C: Container, E> Outputs for Result<C, E>
where
    Error: From<E>,
{
    type Container = C;

    fn into_container(self) -> Result<C> {
        Ok(self?)
    }
}

/// A function that can be traced: of one to six containers of expressions.
///
/// Functions and closures are; `Inputs` is the tuple of their arguments' types, and only there to
/// tell functions with different numbers of arguments apart.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no function of containers of expressions",
    note = "write the types of the arguments: `|x: Expr, (a, b): (Expr, Expr)| …`"
)]
pub trait Function<Inputs> {
    /// The argument, or the tuple of several.
    type Arguments: Container;
    /// What it gives.
    type Results: Container;

    /// Calls it.
    ///
    /// # Errors
    /// Those of the function.
    fn invoke(&self, arguments: Self::Arguments) -> Result<Self::Results>;
}

impl<F, A, R> Function<(A,)> for F
where
    F: Fn(A) -> R,
    A: Container,
    R: Outputs,
{
    type Arguments = A;
    type Results = R::Container;

    fn invoke(&self, argument: A) -> Result<R::Container> {
        self(argument).into_container()
    }
}

macro_rules! functions {
    ($(($($name:ident $index:tt),+))*) => {
        $(
            impl<Fun, Ret, $($name),+> Function<($($name,)+)> for Fun
            where
                Fun: Fn($($name),+) -> Ret,
                Ret: Outputs,
                $($name: Container),+
            {
                type Arguments = ($($name,)+);
                type Results = Ret::Container;

                fn invoke(&self, arguments: ($($name,)+)) -> Result<Ret::Container> {
                    self($(arguments.$index),+).into_container()
                }
            }
        )*
    };
}

functions! {
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
}

/// The trace that the leaves of a container belong to, or that under way on this thread.
pub(crate) fn trace_of(leaves: &[Expr]) -> crate::Trace {
    match leaves.first() {
        Some(first) => first.trace().clone(),
        None => Expr::current_trace(),
    }
}
