//! Vectorized axes: leading axes that functions do not see, and `vmap` over them.
//!
//! What they are is told at [`nxla_runtime::vectors`].

use std::panic::Location;

use nxla_runtime::vectors::mapped;
use nxla_runtime::{self as runtime, Result};

use crate::containers::{Container, Leaves, leaves_of, trace_of};
use crate::expr::Expr;
use crate::tensor::Tensor;

pub use nxla_runtime::vectors::{NewVector, Target, VectorAxis, VectorTensor, Vectors};

fn listed<T: Into<NewVector>>(axes: impl IntoIterator<Item = T>) -> Vec<NewVector> {
    axes.into_iter().map(Into::into).collect()
}

fn wrapped(exprs: Vec<runtime::Expr>) -> Vec<Expr> {
    exprs.into_iter().map(Expr::from).collect()
}

pub(crate) fn inner<T: std::ops::Deref<Target = U>, U: Clone>(handles: &[T]) -> Vec<U> {
    handles.iter().map(|handle| U::clone(handle)).collect()
}

impl Expr {
    /// The first axes, one for each name, become vectorized: functions leave them alone and work
    /// on each entry. A name can come with the size that the axis must have.
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
    /// Fewer axes than names, other sizes and names that are taken are mistakes.
    #[must_use]
    #[track_caller]
    pub fn vectorize<T: Into<NewVector>>(&self, axes: impl IntoIterator<Item = T>) -> Expr {
        self.or_fail(Location::caller(), || runtime::Expr::vectorize(self, &listed(axes)))
    }

    /// Vectorized axes become ordinary ones again, in front of the others; with `keep_names`
    /// their names become names of axes.
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
        self.or_fail(Location::caller(), || runtime::Expr::devectorize(self, keep_names))
    }

    /// All elements, in row-major order, under other vectorized axes and another shape. One size
    /// of both together can be left open.
    ///
    /// Sizes that do not multiply to the number of elements are a mistake.
    ///
    /// ```
    /// use nxla::vectors::Target;
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([1, 2, 3, 4]).vectorize(["x"])?;
    /// let rows = x.revectorize(["row"], &Target::shape([2]))?;
    /// assert_eq!(rows.sum()?.devectorize(false)?.to_vec::<i32>()?, [3, 7]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    #[track_caller]
    pub fn revectorize<T: Into<NewVector>>(
        &self,
        axes: impl IntoIterator<Item = T>,
        target: &Target,
    ) -> Expr {
        self.or_fail(Location::caller(), || runtime::Expr::revectorize(self, &listed(axes), target))
    }

    /// The values with the same vectorized axes, in the order in which they are met: those that a
    /// value has not had are of size 1. With `align_ranks`, entries get axes of size 1 in front
    /// until all have as many.
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
    /// Values of several traces; axes of one name and different sizes.
    pub fn reshape_vectors(exprs: &[Expr], align_ranks: bool) -> Result<Vec<Expr>> {
        runtime::Expr::reshape_vectors(&inner(exprs), align_ranks).map(wrapped)
    }

    /// [`Expr::reshape_vectors`], and then repeated to the full size of each axis.
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
    /// As for [`Expr::reshape_vectors`].
    pub fn broadcast_vectors(exprs: &[Expr], align_ranks: bool) -> Result<Vec<Expr>> {
        runtime::Expr::broadcast_vectors(&inner(exprs), align_ranks).map(wrapped)
    }

    /// What was built; the first error is kept for the end of the trace.
    fn or_fail(
        &self,
        location: &'static Location<'static>,
        build: impl FnOnce() -> Result<runtime::Expr>,
    ) -> Expr {
        let trace = self.trace();
        let built = trace.attempt(|| trace.enter_rust(location).and_then(|()| build()));
        built.map_or_else(|| Expr::failed(trace), Expr::from)
    }
}

impl Tensor {
    /// The first axes, one for each name, become vectorized, as for [`Expr::vectorize`]. The data
    /// stays where it is.
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
    /// Fewer axes than names; other sizes; names that are taken.
    pub fn vectorize<T: Into<NewVector>>(
        &self,
        axes: impl IntoIterator<Item = T>,
    ) -> Result<Tensor> {
        runtime::Tensor::vectorize(self, &listed(axes)).map(Tensor::from)
    }

    /// Vectorized axes become ordinary ones again, as for [`Expr::devectorize`].
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
    /// None; the result is fallible like that of every function of tensors.
    pub fn devectorize(&self, keep_names: bool) -> Result<Tensor> {
        runtime::Tensor::devectorize(self, keep_names).map(Tensor::from)
    }

    /// All elements under other vectorized axes and another shape, as for [`Expr::revectorize`].
    ///
    /// ```
    /// use nxla::vectors::Target;
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([1, 2, 3, 4]).vectorize(["x"])?;
    /// let rows = x.revectorize(["row"], &Target::shape([2]))?;
    /// assert_eq!(rows.sum()?.devectorize(false)?.to_vec::<i32>()?, [3, 7]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Sizes that do not multiply to the number of elements; several that are left open.
    pub fn revectorize<T: Into<NewVector>>(
        &self,
        axes: impl IntoIterator<Item = T>,
        target: &Target,
    ) -> Result<Tensor> {
        runtime::Tensor::revectorize(self, &listed(axes), target).map(Tensor::from)
    }

    /// The tensors with the same vectorized axes, as for [`Expr::reshape_vectors`].
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
    /// Axes of one name and different sizes.
    pub fn reshape_vectors(tensors: &[Tensor], align_ranks: bool) -> Result<Vec<Tensor>> {
        let tensors = runtime::Tensor::reshape_vectors(&inner(tensors), align_ranks)?;
        Ok(tensors.into_iter().map(Tensor::from).collect())
    }

    /// The tensors repeated to the same vectorized axes, as for [`Expr::broadcast_vectors`].
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
    /// Axes of one name and different sizes.
    pub fn broadcast_vectors(tensors: &[Tensor], align_ranks: bool) -> Result<Vec<Tensor>> {
        let tensors = runtime::Tensor::broadcast_vectors(&inner(tensors), align_ranks)?;
        Ok(tensors.into_iter().map(Tensor::from).collect())
    }
}

/// A function of many entries, of one that is written for a single entry: `in_axis` of each value
/// in the argument holds the entries, and so does `out_axis` of each result. What the function
/// captures is shared by all entries.
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
pub fn vmap<F, A, R>(function: F, in_axis: i64, out_axis: i64) -> impl Fn(A) -> R
where
    F: Fn(A) -> R,
    A: Container,
    R: Container,
{
    let location = Location::caller();
    move |argument| {
        let leaves = leaves_of(&argument);
        let trace = trace_of(&leaves.items);
        let mut given = None;
        let found = trace.attempt(|| {
            trace.enter_rust(location)?;
            let (values, axes) = (inner(&leaves.items), vec![Some(in_axis); leaves.items.len()]);
            mapped(&values, &axes, out_axis, |entries| {
                let mut entries = Leaves::new(wrapped(entries), leaves.structure.clone());
                let result = function(A::rebuild(&mut entries));
                let results = leaves_of(&result);
                given = Some(result);
                Ok((inner(&results.items), results.structure))
            })
        });
        match (found, given) {
            (Some((results, structure)), _) => {
                R::rebuild(&mut Leaves::new(wrapped(results), structure))
            }
            // The trace has an error, and whatever comes of it is dropped.
            (None, Some(result)) => result,
            (None, None) => function(argument),
        }
    }
}
