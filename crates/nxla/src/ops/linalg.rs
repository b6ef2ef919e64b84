//! Linear algebra on matrices in the last two axes, and Fourier transforms.

use nxla_expr::build::{FftNorm, Norm};
use nxla_expr::{Transform, TriangularSolve};

use super::axes::{Axis, Over};
use super::methods;

/// The interpretation of a triangular matrix, for
/// [`Tensor::triangular_solve`](crate::Tensor::triangular_solve).
///
/// ```
/// use nxla::{Tensor, Triangular};
///
/// let (a, b) = (Tensor::from([[2.0f32, 0.0], [1.0, 1.0]]), Tensor::from([4.0f32, 5.0]));
/// let x = a.triangular_solve(b, Triangular::lower())?;
/// assert_eq!(x.to_vec::<f32>()?, [2.0, 3.0]);
/// # Ok::<(), nxla::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Triangular(TriangularSolve);

impl Triangular {
    /// Reads the lower triangle of the matrices.
    ///
    /// ```
    /// use nxla::{Tensor, Triangular};
    ///
    /// let (a, b) = (Tensor::from([[2.0f32, 9.0], [1.0, 1.0]]), Tensor::from([4.0f32, 5.0]));
    /// assert_eq!(a.triangular_solve(b, Triangular::lower())?.to_vec::<f32>()?, [2.0, 3.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn lower() -> Self {
        Self(TriangularSolve { lower: true, left_side: true, transform: Transform::None })
    }

    /// Reads the upper triangle of the matrices.
    ///
    /// ```
    /// use nxla::{Tensor, Triangular};
    ///
    /// let (a, b) = (Tensor::from([[2.0f32, 1.0], [9.0, 4.0]]), Tensor::from([4.0f32, 8.0]));
    /// assert_eq!(a.triangular_solve(b, Triangular::upper())?.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn upper() -> Self {
        Self(TriangularSolve { lower: false, left_side: true, transform: Transform::None })
    }

    /// Solves `x a = b` instead of `a x = b`.
    ///
    /// ```
    /// use nxla::{Tensor, Triangular};
    ///
    /// let (a, b) = (Tensor::from([[2.0f32, 0.0], [1.0, 1.0]]), Tensor::from([[4.0f32, 5.0]]));
    /// let x = a.triangular_solve(b, Triangular::lower().right_side())?;
    /// assert_eq!(x.to_vec::<f32>()?, [-0.5, 5.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn right_side(mut self) -> Self {
        self.0.left_side = false;
        self
    }

    /// Transposes the matrices, or transposes and conjugates them.
    ///
    /// ```
    /// use nxla::graph::Transform;
    /// use nxla::{Tensor, Triangular};
    ///
    /// let (a, b) = (Tensor::from([[2.0f32, 0.0], [1.0, 1.0]]), Tensor::from([4.0f32, 2.0]));
    /// let x = a.triangular_solve(b, Triangular::lower().transform(Transform::Transpose))?;
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn transform(mut self, transform: Transform) -> Self {
        self.0.transform = transform;
        self
    }
}

methods! {
    /// Returns the lower-triangular `l` with `l l^H` equal to this positive definite matrix, of
    /// which only the lower triangle is read. The result for another matrix is NaN.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let l = Tensor::new(vec![4.0f32, 2.0, 2.0, 5.0], [2, 2])?.cholesky()?;
    /// assert_eq!(l.to_vec::<f32>()?, [2.0, 0.0, 1.0, 2.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn cholesky(x) one |graph| graph.cholesky(x);

    /// Solves `a x = b` for this triangular matrix `a`. The other triangle is not read.
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

    /// Returns the conjugate transpose of the last two axes.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// assert_eq!(Tensor::from([[1, 2], [3, 4]]).adjoint()?.to_vec::<i32>()?, [1, 3, 2, 4]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn adjoint(x) one |graph| graph.adjoint(x);

    /// Returns a norm of vectors over one axis, of matrices over two axes, or of all elements for
    /// `()`.
    ///
    /// ```
    /// use nxla::{Norm, Tensor};
    ///
    /// let x = Tensor::from(vec![3.0f32, -4.0]);
    /// assert_eq!(x.norm(Norm::Euclid, ())?.item::<f64>()?, 5.0);
    /// assert_eq!(x.norm(Norm::Max, 0)?.item::<f64>()?, 4.0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn norm(x; norm: Norm, over into Over) one |graph| {
        let (axes, keep) = over.of_reduction(graph, x)?;
        graph.norm(x, norm, axes.as_deref(), keep)
    };

    /// Returns the discrete Fourier transform of `length` points along an axis, which is cut or
    /// padded with zeros to this length. `None` uses the size of the axis. The result is complex.
    ///
    /// ```
    /// use nxla::{DType, FftNorm, Tensor};
    ///
    /// let x = Tensor::from([1.0f32, 0.0, 0.0]);
    /// let spectrum = x.fft(Some(4), 0, FftNorm::Backward)?;
    /// assert_eq!((spectrum.dtype(), &spectrum.shape()[..]), (DType::C64, &[4usize][..]));
    /// assert_eq!(spectrum.real()?.to_vec::<f32>()?, [1.0; 4]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn fft(x; length: Option<usize>, axis into Axis, norm: FftNorm) one |graph|
        graph.fft(x, length, axis.of(graph, x)?, norm);

    /// Returns the inverse of [`fft`](Self::fft), divided by the number of points.
    ///
    /// ```
    /// use nxla::{FftNorm, Tensor};
    ///
    /// let x = Tensor::from([1.0f32, 2.0]).fft(None, 0, FftNorm::Backward)?;
    /// assert_eq!(x.ifft(None, 0, FftNorm::Backward)?.real()?.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn ifft(x; length: Option<usize>, axis into Axis, norm: FftNorm) one |graph|
        graph.ifft(x, length, axis.of(graph, x)?, norm);

    /// Returns the nonredundant half of the transform of real numbers: `length / 2 + 1` points.
    ///
    /// ```
    /// use nxla::{DType, FftNorm, Tensor};
    ///
    /// let spectrum = Tensor::ones([4], DType::F32)?.rfft(None, 0, FftNorm::Backward)?;
    /// assert_eq!(spectrum.real()?.to_vec::<f32>()?, [4.0, 0.0, 0.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn rfft(x; length: Option<usize>, axis into Axis, norm: FftNorm) one |graph|
        graph.rfft(x, length, axis.of(graph, x)?, norm);

    /// Returns the inverse of [`rfft`](Self::rfft): `length` real numbers.
    ///
    /// ```
    /// use nxla::{DType, FftNorm, Tensor};
    ///
    /// let spectrum = Tensor::ones([4], DType::F32)?.rfft(None, 0, FftNorm::Backward)?;
    /// assert_eq!(spectrum.irfft(Some(4), 0, FftNorm::Backward)?.to_vec::<f32>()?, [1.0; 4]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn irfft(x; length: Option<usize>, axis into Axis, norm: FftNorm) one |graph|
        graph.irfft(x, length, axis.of(graph, x)?, norm);

    /// Returns the real transform of a signal with Hermitian symmetry from its first half: `length`
    /// real numbers, `2 * (n - 1)` without a length.
    ///
    /// ```
    /// use nxla::{FftNorm, Tensor};
    ///
    /// let half = Tensor::from([1.0f32, 1.0, 1.0]);
    /// let spectrum = half.hfft(None, 0, FftNorm::Backward)?;
    /// assert_eq!(spectrum.to_vec::<f32>()?, [4.0, 0.0, 0.0, 0.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn hfft(x; length: Option<usize>, axis into Axis, norm: FftNorm) one |graph|
        graph.hfft(x, length, axis.of(graph, x)?, norm);

    /// Returns the inverse of [`hfft`](Self::hfft) of real numbers: the first half of a signal with
    /// Hermitian symmetry.
    ///
    /// ```
    /// use nxla::{FftNorm, Tensor};
    ///
    /// let spectrum = Tensor::from([4.0f32, 0.0, 0.0, 0.0]);
    /// let half = spectrum.ihfft(None, 0, FftNorm::Backward)?;
    /// assert_eq!(half.real()?.to_vec::<f32>()?, [1.0, 1.0, 1.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn ihfft(x; length: Option<usize>, axis into Axis, norm: FftNorm) one |graph|
        graph.ihfft(x, length, axis.of(graph, x)?, norm);

    /// Applies [`fft`](Self::fft) along several axes; `lengths` has an entry for each axis.
    ///
    /// ```
    /// use nxla::{FftNorm, Tensor};
    ///
    /// let x = Tensor::new(vec![1.0f32, 0.0, 0.0, 0.0], [2, 2])?;
    /// let ones = x.fftn(None, (), FftNorm::Backward)?.real()?;
    /// assert_eq!(ones.to_vec::<f32>()?, [1.0, 1.0, 1.0, 1.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn fftn(x; lengths: Option<&[usize]>, over into Over, norm: FftNorm) one |graph|
        graph.fftn(x, lengths, over.of(graph, x)?.as_deref(), norm);

    /// Returns the inverse of [`fftn`](Self::fftn).
    ///
    /// ```
    /// use nxla::{DType, FftNorm, Tensor};
    ///
    /// let spectrum = Tensor::ones([2, 2], DType::F32)?.fftn(None, (), FftNorm::Backward)?;
    /// assert_eq!(spectrum.ifftn(None, (), FftNorm::Backward)?.real()?.to_vec::<f32>()?, [1.0; 4]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn ifftn(x; lengths: Option<&[usize]>, over into Over, norm: FftNorm) one |graph|
        graph.ifftn(x, lengths, over.of(graph, x)?.as_deref(), norm);

    /// Applies [`rfft`](Self::rfft) along the last of several axes, and [`fft`](Self::fft) along
    /// the others.
    ///
    /// ```
    /// use nxla::{DType, FftNorm, Tensor};
    ///
    /// let spectrum = Tensor::ones([2, 4], DType::F32)?.rfftn(None, (), FftNorm::Backward)?;
    /// assert_eq!(spectrum.shape()[..], [2, 3]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn rfftn(x; lengths: Option<&[usize]>, over into Over, norm: FftNorm) one |graph|
        graph.rfftn(x, lengths, over.of(graph, x)?.as_deref(), norm);

    /// Returns the inverse of [`rfftn`](Self::rfftn).
    ///
    /// ```
    /// use nxla::{DType, FftNorm, Tensor};
    ///
    /// let spectrum = Tensor::ones([2, 4], DType::F32)?.rfftn(None, (), FftNorm::Backward)?;
    /// assert_eq!(spectrum.irfftn(None, (), FftNorm::Backward)?.to_vec::<f32>()?, [1.0; 8]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn irfftn(x; lengths: Option<&[usize]>, over into Over, norm: FftNorm) one |graph|
        graph.irfftn(x, lengths, over.of(graph, x)?.as_deref(), norm);

    /// Moves the element of frequency 0 from the start to the middle of these axes; `()` means all
    /// axes.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let frequencies = Tensor::from([0, 1, 2, -2, -1]);
    /// assert_eq!(frequencies.fftshift(())?.to_vec::<i32>()?, [-2, -1, 0, 1, 2]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn fftshift(x; over into Over) one |graph| graph.fftshift(x, over.of(graph, x)?.as_deref());

    /// Returns the inverse of [`fftshift`](Self::fftshift).
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let shifted = Tensor::from([-2, -1, 0, 1, 2]);
    /// assert_eq!(shifted.ifftshift(0)?.to_vec::<i32>()?, [0, 1, 2, -2, -1]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn ifftshift(x; over into Over) one |graph| graph.ifftshift(x, over.of(graph, x)?.as_deref());

    /// Returns `(p, l, u)` with the product `p l u` equal to this matrix: a permutation of rows, a
    /// lower triangle with a unit diagonal, and an upper triangle.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let a = Tensor::from([[0.0f32, 2.0], [4.0, 1.0]]);
    /// let (p, l, u) = a.lu()?;
    /// assert_eq!(u.to_vec::<f32>()?, [4.0, 1.0, 0.0, 2.0]);
    /// assert_eq!(p.dot(l)?.dot(u)?.to_vec::<f32>()?, a.to_vec::<f32>()?);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn lu(x) three |graph| graph.lu(x);

    /// Returns `(q, r)` with the product `q r` equal to this matrix: orthonormal columns, and an
    /// upper triangle with a real, nonnegative diagonal. With `complete`, `q` is square; otherwise
    /// it has as many columns as the smaller side.
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

    /// Returns the eigenvalues of Hermitian matrices in increasing order, and the eigenvectors in
    /// columns. Only the lower triangle is read.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let (values, vectors) = Tensor::from([[2.0f64, 1.0], [1.0, 2.0]]).eigh()?;
    /// assert!(values.all_close(Tensor::from([1.0f64, 3.0]), 1e-9, 0.0, false)?.item::<bool>()?);
    /// assert_eq!(vectors.shape()[..], [2, 2]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn eigh(x) two |graph| graph.eigh(x);

    /// Returns `(u, s, v^H)` with `u diag(s) v^H` equal to this matrix and decreasing singular
    /// values `s`. With `full`, `u` and `v` are square; otherwise they have a column for each
    /// singular value.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let (u, s, vh) = Tensor::from([[0.0f64, 3.0], [4.0, 0.0], [0.0, 0.0]]).svd(false)?;
    /// assert!(s.all_close(Tensor::from([4.0f64, 3.0]), 1e-9, 0.0, false)?.item::<bool>()?);
    /// assert_eq!((&u.shape()[..], &vh.shape()[..]), (&[3usize, 2][..], &[2usize, 2][..]));
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn svd(x; full: bool) three |graph| graph.svd(x, full);

    /// Returns the singular values of [`svd`](Self::svd).
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let s = Tensor::from([[0.0f64, 3.0], [4.0, 0.0]]).singular_values()?;
    /// assert!(s.all_close(Tensor::from([4.0f64, 3.0]), 1e-9, 0.0, false)?.item::<bool>()?);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn singular_values(x) one |graph| graph.singular_values(x);

    /// Solves `a x = b` for this square matrix `a`. The solution for a singular matrix is NaN.
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

    /// Returns the inverse of square matrices; NaN for a singular matrix.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([[2.0f32, 0.0], [0.0, 4.0]]).invert()?;
    /// assert_eq!(x.to_vec::<f32>()?, [0.5, 0.0, 0.0, 0.25]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[doc(alias = "inv")]
    fn invert(x) one |graph| graph.invert(x);

    /// Returns the determinant of square matrices.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([[2.0f32, 1.0], [0.0, 3.0]]);
    /// assert_eq!(x.determinant()?.item::<f32>()?, 6.0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[doc(alias = "det")]
    fn determinant(x) one |graph| graph.determinant(x);

    /// Returns the sign (the phase for complex matrices) and the logarithm of the magnitude of the
    /// determinant of square matrices.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let (sign, logarithm) = Tensor::from([[2.0f64, 0.0], [0.0, -3.0]]).slogdet()?;
    /// assert_eq!(sign.item::<f64>()?, -1.0);
    /// assert!((logarithm.item::<f64>()? - 6f64.ln()).abs() < 1e-9);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn slogdet(x) two |graph| graph.slogdet(x);

    /// Returns the pseudo-inverse of matrices. Singular values up to `relative` times the largest
    /// one are treated as 0; the default is the larger side times the precision of the dtype.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([[2.0f64, 0.0], [0.0, 0.0]]).pinv(None)?;
    /// let expected = Tensor::from([[0.5f64, 0.0], [0.0, 0.0]]);
    /// assert!(x.all_close(expected, 0.0, 1e-9, false)?.item::<bool>()?);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn pinv(x; relative: Option<f64>) one |graph| graph.pinv(x, relative.map(Into::into));

    /// Returns the `x` of smallest norm that minimizes the distance of `a x` to `b`, for this
    /// matrix `a`; see [`pinv`](Self::pinv) for `relative`.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let (a, b) = (Tensor::from([[1.0f64], [1.0]]), Tensor::from([1.0f64, 3.0]));
    /// let x = a.least_squares(b, None)?.sum()?.item::<f64>()?;
    /// assert!((x - 2.0).abs() < 1e-9);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn least_squares(x, b; relative: Option<f64>) one |graph| graph.least_squares(x, b, relative.map(Into::into));

    /// Raises square matrices to an integer power; a negative power inverts them.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([[1.0f32, 1.0], [0.0, 1.0]]).matrix_power(5)?;
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 5.0, 0.0, 1.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn matrix_power(x; power: i64) one |graph| graph.matrix_power(x, power);

    /// Returns the exponential of square matrices in the last two axes, in their shape and float
    /// dtype; integers become `f32`. N. J. Higham, "The scaling and squaring method for the matrix
    /// exponential revisited" (2005).
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let nilpotent = Tensor::from([[0.0f32, 2.0], [0.0, 0.0]]);
    /// assert_eq!(nilpotent.expm()?.to_vec::<f32>()?, [1.0, 2.0, 0.0, 1.0]);
    /// assert!(Tensor::from([1.0f32, 2.0]).expm().is_err());
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[doc(alias = "matrix_exp")]
    fn expm(x) one |graph| graph.expm(x);

    /// Returns the number of singular values above `relative` times the largest one; see
    /// [`pinv`](Self::pinv). The rank of a matrix with NaN is 0.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([[1.0f32, 2.0], [2.0, 4.0]]);
    /// assert_eq!(x.matrix_rank(None)?.item::<i32>()?, 1);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn matrix_rank(x; relative: Option<f64>) one |graph| graph.matrix_rank(x, relative.map(Into::into));

    /// Returns the cross product of vectors of three elements along an axis.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let z = Tensor::from([1, 0, 0]).cross(Tensor::from([0, 1, 0]), 0)?;
    /// assert_eq!(z.to_vec::<i32>()?, [0, 0, 1]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn cross(x, y; axis into Axis) one |graph|
        graph.cross(x, y, axis.of_operands(graph, [x, y])?);

    /// Returns the sum of a diagonal of matrices, `offset` columns right of the main diagonal.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([[1, 2], [3, 4]]);
    /// assert_eq!((x.matrix_trace(0)?.item::<i32>()?, x.matrix_trace(1)?.item::<i32>()?), (5, 2));
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn matrix_trace(x; offset: i64) one |graph| graph.trace(x, offset);
}
