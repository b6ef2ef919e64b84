//! Linear algebra on matrices in the last two axes, and Fourier transforms.

use nxla_expr::build::Norm;
use nxla_expr::{Transform, TriangularSolve};

use super::axes::{Axis, Over};
use super::methods;

/// How a triangular system is to be read: see
/// [`Tensor::triangular_solve`](crate::Tensor::triangular_solve).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Triangular(TriangularSolve);

impl Triangular {
    /// The lower triangle of the matrices counts.
    #[must_use]
    pub fn lower() -> Self {
        Self(TriangularSolve { lower: true, left_side: true, transform: Transform::None })
    }

    /// The upper triangle of the matrices counts.
    #[must_use]
    pub fn upper() -> Self {
        Self(TriangularSolve { lower: false, left_side: true, transform: Transform::None })
    }

    /// Solves `x a = b` instead of `a x = b`.
    #[must_use]
    pub fn right_side(mut self) -> Self {
        self.0.left_side = false;
        self
    }

    /// With the matrices transposed, or transposed and conjugated.
    #[must_use]
    pub fn transform(mut self, transform: Transform) -> Self {
        self.0.transform = transform;
        self
    }
}

methods! {
    /// The lower-triangular `l` with `l l^H` the operand, which is positive definite; only its
    /// lower triangle is read.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let l = Tensor::new(vec![4.0f32, 2.0, 2.0, 5.0], [2, 2])?.cholesky()?;
    /// assert_eq!(l.to_vec::<f32>()?, [2.0, 0.0, 1.0, 2.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn cholesky(x) one |graph| graph.cholesky(x);

    /// Solves `a x = b` for triangular matrices `a`, the receiver. The other triangle is not read.
    ///
    /// ```
    /// use nxla::{Tensor, Triangular};
    ///
    /// let a = Tensor::new(vec![2.0f32, 0.0, 1.0, 1.0], [2, 2])?;
    /// let b = Tensor::from(vec![4.0f32, 5.0]);
    /// let x = a.triangular_solve(b, Triangular::lower())?;
    /// assert_eq!(x.to_vec::<f32>()?, [2.0, 3.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn triangular_solve(x, b; options: Triangular) one |graph|
        graph.triangular_solve(x, b, options.0);

    /// The conjugate of the transpose of the last two axes.
    fn adjoint(x) one |graph| graph.adjoint(x);

    /// A norm of vectors over one axis, of matrices over two, of all elements for `()`.
    ///
    /// ```
    /// use nxla::{Norm, Tensor};
    ///
    /// let x = Tensor::from(vec![3.0f32, -4.0]);
    /// assert_eq!(x.norm(Norm::Euclid, ())?.item::<f64>()?, 5.0);
    /// assert_eq!(x.norm(Norm::Max, 0)?.item::<f64>()?, 4.0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn norm(x; norm: Norm, over: impl Into<Over>) one |graph| {
        let over = over.into();
        let axes = over.of(graph, "norm", x)?;
        graph.norm(x, norm, axes.as_deref(), over.keeps())
    };

    /// The discrete Fourier transform of `length` points along an axis (as many as there are for
    /// `None`); the axis is cut or padded with zeros to it. The result is complex.
    fn fft(x; length: Option<usize>, axis: impl Into<Axis>) one |graph| {
        let axis = axis.into().of(graph, "fft", x)?;
        graph.fft(x, length, axis)
    };

    /// The inverse of [`fft`](Self::fft), divided by the number of points.
    fn ifft(x; length: Option<usize>, axis: impl Into<Axis>) one |graph| {
        let axis = axis.into().of(graph, "ifft", x)?;
        graph.ifft(x, length, axis)
    };

    /// The half of the transform of real numbers that tells all: `length / 2 + 1` points.
    fn rfft(x; length: Option<usize>, axis: impl Into<Axis>) one |graph| {
        let axis = axis.into().of(graph, "rfft", x)?;
        graph.rfft(x, length, axis)
    };

    /// The inverse of [`rfft`](Self::rfft): real numbers, `length` of them.
    fn irfft(x; length: Option<usize>, axis: impl Into<Axis>) one |graph| {
        let axis = axis.into().of(graph, "irfft", x)?;
        graph.irfft(x, length, axis)
    };

    /// [`fft`](Self::fft) along several axes; `lengths` has an entry for each of them.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::new(vec![1.0f32, 0.0, 0.0, 0.0], [2, 2])?;
    /// let ones = x.fftn(None, ())?.real()?;
    /// assert_eq!(ones.to_vec::<f32>()?, [1.0, 1.0, 1.0, 1.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn fftn(x; lengths: Option<&[usize]>, over: impl Into<Over>) one |graph| {
        let axes = over.into().of(graph, "fftn", x)?;
        graph.fftn(x, lengths, axes.as_deref())
    };

    /// The inverse of [`fftn`](Self::fftn).
    fn ifftn(x; lengths: Option<&[usize]>, over: impl Into<Over>) one |graph| {
        let axes = over.into().of(graph, "ifftn", x)?;
        graph.ifftn(x, lengths, axes.as_deref())
    };

    /// [`rfft`](Self::rfft) along the last of several axes, [`fft`](Self::fft) along the others.
    fn rfftn(x; lengths: Option<&[usize]>, over: impl Into<Over>) one |graph| {
        let axes = over.into().of(graph, "rfftn", x)?;
        graph.rfftn(x, lengths, axes.as_deref())
    };

    /// The inverse of [`rfftn`](Self::rfftn).
    fn irfftn(x; lengths: Option<&[usize]>, over: impl Into<Over>) one |graph| {
        let axes = over.into().of(graph, "irfftn", x)?;
        graph.irfftn(x, lengths, axes.as_deref())
    };

    /// `(p, l, u)` with `p l u` the operand: a permutation of rows, a lower triangle with ones on
    /// the diagonal, and an upper triangle.
    fn lu(x) three |graph| graph.lu(x);

    /// `(q, r)` with `q r` the operand: orthonormal columns, and an upper triangle whose diagonal
    /// is real and not negative. With `complete`, `q` is square; otherwise it has as many columns
    /// as the smaller side.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let a = Tensor::new(vec![3.0f64, 0.0, 4.0, 5.0], [2, 2])?;
    /// let (q, r) = a.qr(false)?;
    /// let error = q.dot(r)?.subtract(&a)?.abs()?.reduce_max()?;
    /// assert!(error.item::<f64>()? < 1e-12);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn qr(x; complete: bool) two |graph| graph.qr(x, complete);

    /// The eigenvalues of Hermitian matrices, increasing, and the eigenvectors in columns. Only
    /// the lower triangle is read.
    fn eigh(x) two |graph| graph.eigh(x);

    /// `(u, s, v^H)` with `u diag(s) v^H` the operand: the singular values `s` decrease. With
    /// `full`, `u` and `v` are square; otherwise they have a column for each singular value.
    fn svd(x; full: bool) three |graph| graph.svd(x, full);

    /// The singular values of [`svd`](Self::svd) alone.
    fn singular_values(x) one |graph| graph.singular_values(x);

    /// Solves `a x = b` for square matrices `a`, the receiver. A singular one gives NaN.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let a = Tensor::new(vec![0.0f32, 2.0, 1.0, 0.0], [2, 2])?;
    /// let x = a.solve(Tensor::from(vec![4.0f32, 5.0]))?;
    /// assert_eq!(x.to_vec::<f32>()?, [5.0, 2.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn solve(x, b) one |graph| graph.solve(x, b);

    /// The inverse of square matrices; NaN for a singular one.
    fn invert(x) one |graph| graph.invert(x);

    /// The determinant of square matrices.
    fn determinant(x) one |graph| graph.determinant(x);

    /// The sign (for complex matrices the phase) and the logarithm of the magnitude of the
    /// determinant of square matrices.
    fn slogdet(x) two |graph| graph.slogdet(x);

    /// The pseudo-inverse of matrices, in which singular values up to `relative` times the largest
    /// one count as 0; by default, the larger side times the precision of the dtype.
    fn pinv(x; relative: Option<f64>) one |graph| graph.pinv(x, relative.map(Into::into));

    /// The `x` of least norm for which `a x` is nearest to `b`, with `a` the receiver; see
    /// [`pinv`](Self::pinv) for `relative`.
    fn least_squares(x, b; relative: Option<f64>) one |graph| graph.least_squares(x, b, relative.map(Into::into));

    /// Square matrices multiplied with themselves; a negative power inverts them.
    fn matrix_power(x; power: i64) one |graph| graph.matrix_power(x, power);

    /// How many singular values exceed `relative` times the largest one; see
    /// [`pinv`](Self::pinv).
    fn matrix_rank(x; relative: Option<f64>) one |graph| graph.matrix_rank(x, relative.map(Into::into));

    /// The cross product of vectors of three elements along an axis.
    fn cross(x, y; axis: i64) one |graph| graph.cross(x, y, axis);

    /// The sum of a diagonal of matrices, `offset` columns right of the main one.
    fn matrix_trace(x; offset: i64) one |graph| graph.trace(x, offset);
}
