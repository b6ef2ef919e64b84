//! Vectorized axes: leading axes that functions do not see, and `vmap`.
//!
//! [`nxla_runtime::vectors`] explains them.

use std::panic::Location;

use nxla_runtime::vectors::map_entries;
use nxla_runtime::{self as runtime, Result};

use crate::containers::{Container, Leaves, Outputs, Tree, attempt_call, leaves_of, trace_of};
use crate::expr::Expr;
use crate::tensor::Tensor;

pub use nxla_runtime::vectors::{EntryAxes, NewVector, VectorAxes, VectorAxis, VectorTensor};

fn to_new_vectors<T: Into<NewVector>>(axes: impl IntoIterator<Item = T>) -> Vec<NewVector> {
    axes.into_iter().map(Into::into).collect()
}

fn to_exprs(exprs: Vec<runtime::RawExpr>) -> Vec<Expr> {
    exprs.into_iter().map(Expr::from).collect()
}

pub(crate) fn inner<T: std::ops::Deref<Target = U>, U: Clone>(handles: &[T]) -> Vec<U> {
    handles.iter().map(|handle| U::clone(handle)).collect()
}

impl Expr {
    /// Makes leading axes, one for each name, vectorized: functions apply to each entry. A name may
    /// be given with the required size of the axis.
    ///
    /// ```
    /// use nxla::{Expr, Tensor, jit};
    ///
    /// // Sums rows, without saying so.
    /// let sums = jit(|[x]: [Expr; 1]| x.vectorize(["row"]).sum().devectorize(false));
    /// let x = Tensor::new(vec![1, 2, 3, 4, 5, 6], [2, 3])?;
    /// assert_eq!(sums.call([&x])?.to_vec::<i32>()?, [6, 15]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// Fewer axes than names, other sizes and existing names are errors.
    #[must_use]
    #[track_caller]
    pub fn vectorize<T: Into<NewVector>>(&self, axes: impl IntoIterator<Item = T>) -> Expr {
        self.or_fail(Location::caller(), || {
            runtime::RawExpr::vectorize(self, &to_new_vectors(axes))
        })
    }

    /// Converts vectorized axes to ordinary leading axes; with `keep_names`, their names become
    /// axis names.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([[1, 2], [3, 4]]).vectorize(["row"])?;
    /// assert_eq!(x.sum()?.devectorize(false)?.to_vec::<i32>()?, [3, 7]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    #[track_caller]
    pub fn devectorize(&self, keep_names: bool) -> Expr {
        self.or_fail(Location::caller(), || runtime::RawExpr::devectorize(self, keep_names))
    }

    /// Reshapes all elements, in row-major order, to other vectorized axes and another shape. One
    /// size among all of them may be inferred.
    ///
    /// Sizes whose product differs from the number of elements are an error.
    ///
    /// ```
    /// use nxla::vectors::EntryAxes;
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([1, 2, 3, 4]).vectorize(["x"])?;
    /// let rows = x.revectorize(["row"], &EntryAxes::shape([2]))?;
    /// assert_eq!(rows.sum()?.devectorize(false)?.to_vec::<i32>()?, [3, 7]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    #[track_caller]
    pub fn revectorize<T: Into<NewVector>>(
        &self,
        axes: impl IntoIterator<Item = T>,
        target: &EntryAxes,
    ) -> Expr {
        self.or_fail(Location::caller(), || {
            runtime::RawExpr::revectorize(self, &to_new_vectors(axes), target)
        })
    }

    /// Returns the values with the same vectorized axes, in order of first appearance; missing axes
    /// have size 1. With `align_ranks`, entries are extended by leading axes of size 1 to equal
    /// ranks.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([1, 2]).vectorize(["x"])?;
    /// let both = Tensor::reshape_vectors(&[x, Tensor::from(5)], false)?;
    /// assert!(!both[1].vectors().is_empty());
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error for values of several traces, and for axes of equal names and different
    /// sizes.
    pub fn reshape_vectors(exprs: &[Expr], align_ranks: bool) -> Result<Vec<Expr>> {
        runtime::RawExpr::reshape_vectors(&inner(exprs), align_ranks).map(to_exprs)
    }

    /// Does the same as [`Expr::reshape_vectors`], and then broadcasts to the full size of each
    /// axis.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([1, 2]).vectorize(["x"])?;
    /// let both = Tensor::broadcast_vectors(&[x, Tensor::from(5)], false)?;
    /// assert_eq!(both[1].devectorize(false)?.to_vec::<i32>()?, [5, 5]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`Expr::reshape_vectors`].
    pub fn broadcast_vectors(exprs: &[Expr], align_ranks: bool) -> Result<Vec<Expr>> {
        runtime::RawExpr::broadcast_vectors(&inner(exprs), align_ranks).map(to_exprs)
    }

    /// Returns the built value; the trace records the first error.
    fn or_fail(
        &self,
        location: &'static Location<'static>,
        build: impl FnOnce() -> Result<runtime::RawExpr>,
    ) -> Expr {
        let trace = self.trace();
        let built = trace.attempt(location, build);
        built.map_or_else(|| Expr::new_failed(trace), Expr::from)
    }
}

impl Tensor {
    /// Makes leading axes, one for each name, vectorized, as [`Expr::vectorize`] does. The data is
    /// not moved.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::new(vec![1, 2, 3, 4, 5, 6], [2, 3])?.vectorize([("row", 2)])?;
    /// assert_eq!(x.shape()[..], [3]);
    /// assert_eq!(
    ///     x.to_string(),
    ///     "#nxla.Tensor<\n  vectorized[row: 2]\n  s32[3]\n  [\n    [1, 2, 3],\n    [4, 5, 6]\n  ]\n>"
    /// );
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error for fewer axes than names, other sizes, or existing names.
    pub fn vectorize<T: Into<NewVector>>(
        &self,
        axes: impl IntoIterator<Item = T>,
    ) -> Result<Tensor> {
        runtime::RawTensor::vectorize(self, &to_new_vectors(axes)).map(Tensor::from)
    }

    /// Converts vectorized axes to ordinary axes, as [`Expr::devectorize`] does.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([[1, 2], [3, 4]]).vectorize(["row"])?;
    /// assert_eq!(x.sum()?.devectorize(false)?.to_vec::<i32>()?, [3, 7]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the tensor cannot be read or a device fails to reshape it.
    pub fn devectorize(&self, keep_names: bool) -> Result<Tensor> {
        runtime::RawTensor::devectorize(self, keep_names).map(Tensor::from)
    }

    /// Reshapes all elements to other vectorized axes and another shape, as [`Expr::revectorize`]
    /// does.
    ///
    /// ```
    /// use nxla::vectors::EntryAxes;
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([1, 2, 3, 4]).vectorize(["x"])?;
    /// let rows = x.revectorize(["row"], &EntryAxes::shape([2]))?;
    /// assert_eq!(rows.sum()?.devectorize(false)?.to_vec::<i32>()?, [3, 7]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the product of the sizes differs from the number of elements, or if
    /// several sizes are inferred.
    pub fn revectorize<T: Into<NewVector>>(
        &self,
        axes: impl IntoIterator<Item = T>,
        target: &EntryAxes,
    ) -> Result<Tensor> {
        runtime::RawTensor::revectorize(self, &to_new_vectors(axes), target).map(Tensor::from)
    }

    /// Returns the tensors with the same vectorized axes, as [`Expr::reshape_vectors`] does.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([1, 2]).vectorize(["x"])?;
    /// let both = Tensor::reshape_vectors(&[x, Tensor::from(5)], false)?;
    /// assert!(!both[1].vectors().is_empty());
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error for axes of equal names and different sizes.
    pub fn reshape_vectors(tensors: &[Tensor], align_ranks: bool) -> Result<Vec<Tensor>> {
        let tensors = runtime::RawTensor::reshape_vectors(&inner(tensors), align_ranks)?;
        Ok(tensors.into_iter().map(Tensor::from).collect())
    }

    /// Broadcasts the tensors to the same vectorized axes, as [`Expr::broadcast_vectors`] does.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([1, 2]).vectorize(["x"])?;
    /// let both = Tensor::broadcast_vectors(&[x, Tensor::from(5)], false)?;
    /// assert_eq!(both[1].devectorize(false)?.to_vec::<i32>()?, [5, 5]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error for axes of equal names and different sizes.
    pub fn broadcast_vectors(tensors: &[Tensor], align_ranks: bool) -> Result<Vec<Tensor>> {
        let tensors = runtime::RawTensor::broadcast_vectors(&inner(tensors), align_ranks)?;
        Ok(tensors.into_iter().map(Tensor::from).collect())
    }
}

/// Converts a function of a single entry to a function of many entries: `in_axis` of each value in
/// the argument holds the entries, and so does `out_axis` of each result. Captured values are
/// shared by all entries.
///
/// It is [`Expr::vectorize`] for axes without names.
///
/// ```
/// use nxla::{Expr, Tensor, grad, jit, vmap};
///
/// let slopes = jit(vmap(grad(|x: Expr| x.pow(2).sum()), 0, 0));
/// let rows = Tensor::new(vec![1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
/// assert_eq!(slopes.call(&rows)?.to_vec::<f32>()?, [2.0, 4.0, 6.0, 8.0]);
///
/// let products = jit(|x: Expr, y: Expr| vmap(|x: Expr| &x * &y, 0, -1)(x));
/// let (x, y) = (Tensor::from(vec![1, 2, 3]), Tensor::from(vec![10, 20]));
/// assert_eq!(products.call((&x, &y))?.to_vec::<i32>()?, [10, 20, 30, 20, 40, 60]);
/// # Ok::<(), nxla::Error>(())
/// ```
#[track_caller]
pub fn vmap<F, A, R>(
    function: F,
    in_axis: i64,
    out_axis: i64,
) -> impl Fn(A) -> R::Return<R::Container>
where
    F: Fn(A) -> R,
    A: Container,
    R: Outputs,
{
    let location = Location::caller();
    move |argument| {
        let leaves = leaves_of(&argument);
        let trace = trace_of(&leaves.items);
        let mut given = None;
        let found = attempt_call(&trace, location, |errors| {
            let (values, axes) = (inner(&leaves.items), vec![Some(in_axis); leaves.items.len()]);
            map_entries(&values, &axes, out_axis, ["in_axis", "out_axis"], |entries| {
                let mut entries = Leaves::new(to_exprs(entries), leaves.structure.clone());
                let result = errors.check(function(A::rebuild(&mut entries)))?;
                let results = leaves_of(&result);
                given = Some(result);
                Ok((inner(&results.items), results.structure))
            })
        });
        R::from_result(found.and_then(|found| match (found, given) {
            (Some((results, structure)), _) => {
                Ok(Tree::rebuild(&mut Leaves::new(to_exprs(results), structure)))
            }
            // The trace has an error, so the results are dropped.
            (None, Some(result)) => Ok(result),
            (None, None) => function(argument).into_container(),
        }))
    }
}
