//! Containers: the arguments and results of traced functions.
//!
//! The leaves of a container are expressions inside a trace and tensors outside. The structure of a
//! container consists of its type, the lengths of its lists and its static values. The lengths and
//! the static values are stored with the leaves.

mod arguments;
mod functions;
mod standard;
mod static_values;

use nxla_expr::{ErrorKind, TensorType};
use nxla_runtime as runtime;
use smallvec::SmallVec;

pub use arguments::Arguments;
pub(crate) use functions::attempt_call;
pub use functions::{Function, Outputs};
pub(crate) use static_values::AnyStatic;
pub use static_values::StaticValue;

use crate::expr::Expr;
use crate::sharding::{ShardedArgument, ShardedTensor};
use crate::tensor::Tensor;
use crate::{Error, Result};

/// The leaves of a container in order, with the lengths of its lists and its static values.
///
/// ```
/// use nxla::{Leaves, Tensor, Tree};
///
/// let mut leaves = Leaves::default();
/// (1..3).map(Tensor::from).collect::<Vec<_>>().flatten(&mut leaves);
/// let again: Vec<Tensor> = Tree::rebuild(&mut leaves);
/// assert_eq!(again[1].item::<i32>()?, 2);
/// # Ok::<(), nxla::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Leaves<L> {
    pub(crate) items: SmallVec<[L; 4]>,
    pub(crate) structure: Structure,
    read: ReadPositions,
    /// The structure that replaces each leaf in a container of containers.
    each: Option<Box<Structure>>,
    /// Set if only the leaves are known: a list takes all remaining leaves.
    without_structure: bool,
}

/// The numbers of items, lengths of lists and static values that were read.
#[derive(Clone, Copy, Default, Debug)]
struct ReadPositions {
    items: usize,
    lengths: usize,
    statics: usize,
}

/// The lengths of the lists in a container and its static values, in the order of traversal.
#[derive(Clone, Default, PartialEq, Debug)]
pub(crate) struct Structure {
    lengths: SmallVec<[usize; 2]>,
    statics: SmallVec<[AnyStatic; 1]>,
}

/// The kind of containers whose structure is not determined by their type.
const LIST: u8 = 0;

impl Structure {
    /// Returns whether the container consists of leaves only.
    pub(crate) fn is_empty(&self) -> bool {
        self.lengths.is_empty() && self.statics.is_empty()
    }

    /// Returns the structure of two consecutive containers.
    pub(crate) fn then(mut self, other: &Structure) -> Structure {
        self.extend(other);
        self
    }

    /// Appends the structure of another container.
    fn extend(&mut self, other: &Structure) {
        self.lengths.extend(other.lengths.iter().copied());
        self.statics.extend(other.statics.iter().cloned());
    }

    /// Returns the structure of a container whose leaves are replaced by containers of this
    /// structure.
    pub(crate) fn in_each_leaf_of<L>(self, container: &impl Tree<L>) -> Structure {
        let mut leaves = Leaves { each: Some(Box::new(self)), ..Leaves::default() };
        container.flatten(&mut leaves);
        leaves.structure
    }

    /// Returns the structure of the first of two consecutive containers, if `other` is the
    /// structure of the second.
    pub(crate) fn before(&self, other: &Structure) -> Option<Structure> {
        let lengths = self.lengths.strip_suffix(&other.lengths[..])?;
        let statics = self.statics.strip_suffix(&other.statics[..])?;
        Some(Structure { lengths: lengths.into(), statics: statics.iter().cloned().collect() })
    }

    /// Describes the first difference of the structure `found` of a container of the same type,
    /// whose leaves have the same paths.
    fn difference(&self, found: &Structure) -> String {
        let mut lengths = self.lengths.iter().zip(&found.lengths);
        let mut statics = self.statics.iter().zip(&found.statics);
        if let Some((expected, found)) = lengths.find(|(expected, found)| expected != found) {
            format!("a list of length {found} instead of {expected}")
        } else if let Some((expected, found)) = statics.find(|(expected, found)| expected != found)
        {
            format!("the static value {found:?} instead of {expected:?}")
        } else {
            "another structure".to_owned()
        }
    }

    /// Adds the structure to the description of a call.
    pub(crate) fn describe(&self, call: &mut runtime::Call<AnyStatic>) {
        self.lengths.iter().for_each(|&length| call.container(LIST, length));
        self.statics.iter().for_each(|value| call.push_static(value.clone(), value.hash()));
    }
}

impl Leaves<TensorType> {
    /// Checks that arguments have the types for which `function` was compiled. `name` is the name of
    /// the container `C` of the arguments.
    pub(crate) fn check<C: Container>(
        &self,
        found: &Leaves<Tensor>,
        function: &str,
        name: &str,
    ) -> Result<()> {
        let mistake = |why: String| Err(Error::Arguments { function: function.into(), why });
        if found.structure != self.structure {
            let expected: C = self.container()?;
            let found = C::Tensors::rebuild(&mut found.clone());
            let difference = difference::<Expr, Tensor>(&expected, &found, ("", name));
            let why =
                format!("{name}: must have the structure that was compiled; got {difference}");
            return mistake(why);
        }
        let pairs = found.items.iter().zip(&self.items).enumerate();
        let differing = pairs.filter(|(_, (tensor, ty))| {
            !tensor.is_of(ty) && (!tensor.vectors().is_empty() || !ty.accepts(&tensor.ty()))
        });
        let differing: Vec<_> = differing.collect();
        if differing.is_empty() {
            return Ok(());
        }
        let paths = self.paths::<C>(name)?;
        let texts = differing.into_iter().map(|(leaf, (tensor, ty))| {
            let (vectors, found) = (tensor.vectors(), tensor.ty());
            format!("{}: must be {ty}; got {vectors}{found}", paths[leaf])
        });
        mistake(texts.collect::<Vec<_>>().join("; "))
    }

    /// Returns the path of each leaf of the container `C` of these types.
    pub(crate) fn paths<C: Container>(&self, at: &str) -> Result<Vec<String>> {
        Ok(paths_of(&self.container::<C>()?, at))
    }

    /// Returns a container of tracers of these types.
    pub(crate) fn container<C: Container>(&self) -> Result<C> {
        let trace = crate::Trace::new();
        let tracers = self.items.iter().map(|ty| Ok(Expr::from(trace.parameter(ty.clone())?)));
        let tracers: Vec<Expr> = tracers.collect::<Result<_>>()?;
        Ok(C::rebuild(&mut Leaves::new(tracers, self.structure.clone())))
    }
}

/// Iterates over the leaves in order.
impl<L> IntoIterator for Leaves<L> {
    type Item = L;
    type IntoIter = std::vec::IntoIter<L>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.into_vec().into_iter()
    }
}

impl<L> Default for Leaves<L> {
    fn default() -> Self {
        Self::new([], Structure::default())
    }
}

impl<L> Leaves<L> {
    /// Creates leaves for a container of this structure.
    pub(crate) fn new(items: impl IntoIterator<Item = L>, structure: Structure) -> Self {
        let items = items.into_iter().collect();
        Self {
            items,
            structure,
            read: ReadPositions::default(),
            each: None,
            without_structure: false,
        }
    }

    /// Appends a leaf.
    ///
    /// ```
    /// let mut leaves = nxla::Leaves::default();
    /// leaves.push("weights");
    /// assert_eq!(leaves.leaf(), "weights");
    /// ```
    pub fn push(&mut self, leaf: L) {
        self.items.push(leaf);
        if let Some(each) = &self.each {
            self.structure.extend(each);
        }
    }

    /// Appends the length of a list, before its items.
    ///
    /// ```
    /// let mut leaves = nxla::Leaves::<f32>::default();
    /// leaves.push_length(3);
    /// assert_eq!(leaves.length(), 3);
    /// ```
    pub fn push_length(&mut self, length: usize) {
        self.structure.lengths.push(length);
    }

    /// Appends a static value.
    ///
    /// ```
    /// let mut leaves = nxla::Leaves::<f32>::default();
    /// leaves.push_static(&"relu");
    /// assert_eq!(leaves.next_static::<&str>(), "relu");
    /// ```
    pub fn push_static(&mut self, value: &impl StaticValue) {
        self.structure.statics.push(AnyStatic::new(value));
    }

    /// Returns the length of the next list.
    ///
    /// ```
    /// let mut leaves = nxla::Leaves::<f32>::default();
    /// leaves.push_length(3);
    /// leaves.push_length(5);
    /// assert_eq!((leaves.length(), leaves.length()), (3, 5));
    /// ```
    ///
    /// # Panics
    /// Panics if the container is rebuilt in another order than it was flattened.
    pub fn length(&mut self) -> usize {
        self.read.lengths += 1;
        if self.without_structure {
            self.items.len().saturating_sub(self.read.items)
        } else {
            self.structure.lengths[self.read.lengths - 1]
        }
    }

    /// Returns the next static value.
    ///
    /// ```
    /// let mut leaves = nxla::Leaves::<f32>::default();
    /// leaves.push_static(&0.9f32);
    /// assert_eq!(leaves.next_static::<f32>(), 0.9);
    /// ```
    ///
    /// # Panics
    /// Panics if the container is rebuilt in another order than it was flattened.
    pub fn next_static<T: StaticValue>(&mut self) -> T {
        self.read.statics += 1;
        let value = self.structure.statics[self.read.statics - 1].get();
        value.expect("a container is rebuilt in the order in which it was flattened")
    }
}

impl<L: Clone> Leaves<L> {
    /// Returns a container whose structure its type and the number of values determine; a list in the
    /// container takes all remaining values. Returns `None` if the type needs another number of
    /// values, has two lists or has static values.
    pub(crate) fn container_of<C: Tree<L>>(values: impl IntoIterator<Item = L>) -> Option<C> {
        let mut leaves = Self::new(values, Structure::default());
        leaves.without_structure = true;
        if leaves.items.is_empty() || C::has_static_values() {
            return None;
        }
        let container = C::rebuild(&mut leaves);
        let ReadPositions { items, lengths, statics: _ } = leaves.read;
        (items == leaves.items.len() && lengths <= 1).then_some(container)
    }

    /// Returns the next leaf.
    ///
    /// ```
    /// let mut leaves = nxla::Leaves::default();
    /// leaves.push(1);
    /// leaves.push(2);
    /// assert_eq!((leaves.leaf(), leaves.leaf()), (1, 2));
    /// ```
    ///
    /// # Panics
    /// Panics if the container is rebuilt in another order than it was flattened.
    pub fn leaf(&mut self) -> L {
        self.read.items += 1;
        if self.without_structure {
            // If a leaf is missing, repeat the last one; the check of the count reports the error later.
            self.items[(self.read.items - 1).min(self.items.len() - 1)].clone()
        } else {
            self.items[self.read.items - 1].clone()
        }
    }
}

/// A container with leaves of type `L`, which can be flattened and rebuilt.
///
/// Implemented for expressions and tensors, `()`, lists, arrays, options, boxes, ordered maps and
/// tuples of up to twelve items; [`#[derive(nxla::Container)]`](derive@crate::Container) implements
/// it for structs.
///
/// ```
/// use nxla::{Tensor, Tree};
///
/// let pair = (Tensor::from(1), vec![Tensor::from(2), Tensor::from(3)]);
/// let doubled = pair.try_map(|x| x * 2)?;
/// assert_eq!(doubled.leaves()[2].item::<i32>()?, 6);
/// # Ok::<(), nxla::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a container of `{L}`",
    note = "derive `nxla::Container` for your struct, which must be generic in its leaves: \
            `struct Layer<T> {{ weights: T }}`",
    note = "mark a field without tensors with `#[container(skip)]`",
    note = "convert a scalar with `Expr::of(1.0)` in a trace and `Tensor::from(1.0)` elsewhere"
)]
#[doc(alias = "pytree")]
pub trait Tree<L>: Sized {
    /// Appends the leaves in order.
    ///
    /// ```
    /// use nxla::{Leaves, Tree};
    ///
    /// /// A list that is kept in reverse.
    /// struct Reversed<T>(Vec<T>);
    ///
    /// impl<L: Clone> Tree<L> for Reversed<L> {
    ///     fn flatten(&self, leaves: &mut Leaves<L>) {
    ///         leaves.push_length(self.0.len());
    ///         self.0.iter().rev().for_each(|item| leaves.push(item.clone()));
    ///     }
    ///
    ///     fn rebuild(leaves: &mut Leaves<L>) -> Self {
    ///         let mut items: Vec<L> = (0..leaves.length()).map(|_| leaves.leaf()).collect();
    ///         items.reverse();
    ///         Reversed(items)
    ///     }
    /// }
    ///
    /// let list = Reversed(vec![1, 2, 3]);
    /// assert_eq!(list.leaves(), [3, 2, 1]);
    /// assert_eq!(list.map(|x| x * 10).0, [10, 20, 30]);
    /// ```
    fn flatten(&self, leaves: &mut Leaves<L>);

    /// Rebuilds the container from the next leaves.
    ///
    /// ```
    /// use nxla::{Leaves, Tensor, Tree};
    ///
    /// let mut leaves = Leaves::default();
    /// (0..3).for_each(|leaf| leaves.push(Tensor::from(leaf)));
    /// let (_, [_, last]) = <(Tensor, [Tensor; 2])>::rebuild(&mut leaves);
    /// assert_eq!(last.item::<i32>()?, 2);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn rebuild(leaves: &mut Leaves<L>) -> Self;

    /// Returns whether [`rebuild`](Tree::rebuild) reads static values, which leaves alone do not
    /// determine: [`Jit::hook`](crate::Jit::hook) rejects such containers. An implementation that
    /// calls [`Leaves::next_static`] returns `true`.
    ///
    /// ```
    /// use std::collections::BTreeMap;
    /// use nxla::{Tensor, Tree};
    ///
    /// assert!(<BTreeMap<String, Tensor> as Tree<Tensor>>::has_static_values());
    /// assert!(!<Vec<Tensor> as Tree<Tensor>>::has_static_values());
    /// ```
    fn has_static_values() -> bool {
        false
    }

    /// Appends the path of each leaf, as in error messages: the name `at` of the container,
    /// followed by `.weights`, `[0]` or `.1`.
    ///
    /// ```
    /// use nxla::{Tensor, Tree};
    ///
    /// let mut paths = Vec::new();
    /// (Tensor::from(1), [Tensor::from(2), Tensor::from(3)]).paths("params", &mut paths);
    /// assert_eq!(paths, ["params.0", "params.1[0]", "params.1[1]"]);
    /// ```
    fn paths(&self, at: &str, paths: &mut Vec<String>) {
        let count = leaves_of(self).items.len();
        paths.extend((0..count).map(|leaf| format!("{at}, leaf {leaf}")));
    }

    /// Returns the leaves in order.
    ///
    /// ```
    /// use nxla::{Tensor, Tree};
    ///
    /// let leaves = (Tensor::from(1), [Tensor::from(2), Tensor::from(3)]).leaves();
    /// assert_eq!(leaves[2].item::<i32>()?, 3);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn leaves(&self) -> Vec<L> {
        leaves_of(self).items.into_vec()
    }

    /// Applies `function` to each leaf.
    ///
    /// ```
    /// use nxla::{Expr, Tree, jit};
    ///
    /// let negated = jit(|pair: (Expr, [Expr; 1])| pair.map(|x| -x));
    /// let (x, [y]) = negated.call((1, [2]))?;
    /// assert_eq!((x.item::<i32>()?, y.item::<i32>()?), (-1, -2));
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    fn map(&self, mut function: impl FnMut(&L) -> L) -> Self {
        let leaves = leaves_of(self);
        let mapped = leaves.items.iter().map(&mut function);
        Self::rebuild(&mut Leaves::new(mapped, leaves.structure))
    }

    /// Does the same as [`map`](Tree::map) with a fallible function.
    ///
    /// ```
    /// use nxla::{Tensor, Tree};
    ///
    /// let pair = [Tensor::from([1, 2]), Tensor::from([3, 4])];
    /// assert_eq!(pair.try_map(|x| x + Tensor::from([10, 20]))?[1].to_vec::<i32>()?, [13, 24]);
    /// assert!(pair.try_map(|x| x + Tensor::from([1, 2, 3])).is_err());
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the first error of `function`.
    fn try_map<E>(&self, mut function: impl FnMut(&L) -> Result<L, E>) -> Result<Self, E> {
        let leaves = leaves_of(self);
        let mapped: Vec<L> = leaves.items.iter().map(&mut function).collect::<Result<_, E>>()?;
        Ok(Self::rebuild(&mut Leaves::new(mapped, leaves.structure)))
    }

    /// Applies `function` to corresponding leaves of two containers.
    ///
    /// ```
    /// use nxla::{Expr, Tree, jit};
    ///
    /// let sums = jit(|x: Vec<Expr>, y: Vec<Expr>| x.zip(&y, |x, y| x + y));
    /// assert_eq!(sums.call((vec![1, 2], vec![10, 20]))?[1].item::<i32>()?, 22);
    /// let error = sums.call((vec![1, 2], vec![10])).unwrap_err();
    /// assert!(error.to_string().contains("[1]"));
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error that names the first difference if lists, keys or static values differ.
    fn zip(&self, other: &Self, mut function: impl FnMut(&L, &L) -> L) -> Result<Self> {
        let (left, right) = (leaves_of(self), leaves_of(other));
        if left.structure != right.structure || left.items.len() != right.items.len() {
            let difference = difference(self, other, ("", "other"));
            let why = format!("other: must have the structure of self; got {difference}");
            return Err(Error::Arguments { function: "zip".into(), why });
        }
        let zipped = left.items.iter().zip(&right.items).map(|(left, right)| function(left, right));
        Ok(Self::rebuild(&mut Leaves::new(zipped, left.structure)))
    }
}

/// A container of expressions, and the corresponding container of tensors.
///
/// [`#[derive(nxla::Container)]`](derive@crate::Container) implements it for structs.
///
/// ```
/// use nxla::prelude::*;
/// use nxla::{Container, Expr, Tensor, jit};
///
/// #[derive(Container)]
/// struct Line<T> {
///     slope: T,
///     offset: T,
/// }
///
/// let at = jit(|line: Line<Expr>, x: Expr| line.slope * x + line.offset);
/// let line = Line { slope: Tensor::from(2), offset: Tensor::from(1) };
/// assert_eq!(at.call((&line, 4))?.item::<i32>()?, 9);
/// # Ok::<(), nxla::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a container of expressions",
    note = "derive `nxla::Container` for your struct, which must be generic in its leaves: \
            `struct Layer<T> {{ weights: T }}` is a container as `Layer<Expr>`",
    note = "mark a field without tensors with `#[container(skip)]`",
    note = "convert a scalar or a tensor to an expression: `Expr::of(1.0)`"
)]
#[doc(alias = "pytree")]
pub trait Container: Tree<Expr> {
    /// The same container of tensors.
    type Tensors: Tree<Tensor> + Arguments<Self, Tensor>;

    /// The same container of sharded tensors.
    type Sharded: Tree<ShardedTensor> + Arguments<Self, ShardedArgument>;

    /// The same container with containers as leaves, such as the Jacobian of a function with
    /// several arguments and results.
    type Of<C: Container>: Container;
}

/// Returns the leaves of a container.
pub(crate) fn leaves_of<L>(tree: &impl Tree<L>) -> Leaves<L> {
    let mut leaves = Leaves::default();
    tree.flatten(&mut leaves);
    leaves
}

/// Returns the container of a structure with these tensors.
pub(crate) fn container_of_tensors<T: Tree<Tensor>>(
    tensors: Vec<runtime::RawTensor>,
    structure: &Structure,
) -> T {
    T::rebuild(&mut Leaves::new(tensors.into_iter().map(Tensor::from), structure.clone()))
}

/// Returns the leaves of the arguments of a call.
pub(crate) fn leaves_of_arguments<C, L>(arguments: impl Arguments<C, L>) -> Leaves<L> {
    let mut leaves = Leaves::default();
    arguments.append(&mut leaves);
    leaves
}

/// Returns the path of each leaf of a container, which begins with `at`.
pub(crate) fn paths_of<L>(tree: &impl Tree<L>, at: &str) -> Vec<String> {
    let mut paths = Vec::new();
    tree.paths(at, &mut paths);
    paths
}

/// Returns the path of a leaf in a container without a name: `weights`, `layers[0].offset`.
pub(crate) fn relative_path(path: &str) -> &str {
    path.strip_prefix('.').unwrap_or(path)
}

/// The requirement that a container has the structure of another one, because their leaves are
/// matched by position. All fields are names for the error.
#[derive(Clone, Copy)]
pub(crate) struct Expected {
    /// The function that the user called.
    pub(crate) function: &'static str,
    /// The argument that is or returns the container.
    pub(crate) argument: &'static str,
    /// The container that has the required structure.
    pub(crate) of: &'static str,
    /// The start of a path in the container, and its name.
    pub(crate) root: (&'static str, &'static str),
}

impl Expected {
    /// Returns the leaves of a container that has the structure of `like`.
    pub(crate) fn check<C: Container>(
        self,
        container: &C,
        like: &Leaves<Expr>,
    ) -> Result<Leaves<Expr>> {
        let leaves = leaves_of(container);
        if leaves.structure == like.structure {
            return Ok(leaves);
        }
        let expected = C::rebuild(&mut like.clone());
        let difference = difference::<Expr, Expr>(&expected, container, self.root);
        let why = format!("must have the structure of {}; got {difference}", self.of);
        Err(ErrorKind::invalid(self.argument, why).of(self.function).into())
    }
}

/// Describes the first difference of a container from a container of the same type. The start of
/// paths is replaced by a name.
pub(crate) fn difference<L, M>(
    expected: &impl Tree<L>,
    found: &impl Tree<M>,
    (start, name): (&str, &str),
) -> String {
    let (expected_paths, found_paths) = (paths_of(expected, ""), paths_of(found, ""));
    let count = expected_paths.len().max(found_paths.len());
    let mut pairs = (0..count).map(|at| (expected_paths.get(at), found_paths.get(at)));
    let Some((expected_path, found_path)) = pairs.find(|(expected, found)| expected != found)
    else {
        return leaves_of(expected).structure.difference(&leaves_of(found).structure);
    };
    let shown = |path: Option<&String>| match path {
        None => "nothing".to_owned(),
        Some(path) => match path.strip_prefix(start) {
            Some(rest) => format!("{name}{rest}"),
            None => path.clone(),
        },
    };
    format!("{} instead of {}", shown(found_path), shown(expected_path))
}

/// Adds the path of a leaf in a container to an error; see [`Error::locate`].
pub(crate) fn locate_error<L>(
    error: Error,
    function: &str,
    roots: &[(&str, &str)],
    tree: &impl Tree<L>,
) -> Error {
    error.locate(function, roots, |region, result| {
        (region, paths_of(tree, "").into_iter().nth(result))
    })
}

/// Returns the trace of the leaves of a container, or the current trace of this thread.
#[track_caller]
pub(crate) fn trace_of(leaves: &[Expr]) -> crate::Trace {
    match leaves.first() {
        Some(first) => first.trace().clone(),
        None => Expr::current_trace(),
    }
}
