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
    /// assert_eq!(x.norm(Norm::Euclid, ())?.item()?.as_f64(), 5.0);
    /// assert_eq!(x.norm(Norm::Max, 0)?.item()?.as_f64(), 4.0);
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
}
