//! Eigenvalues of matrices without symmetry, for callers with data on the host. There is no op for
//! them, because XLA has no algorithm for them on devices.

use nxla_tensor::{Complex, DType, HostTensor, Shape, TensorError};

use crate::context::{ExecContext, Hooks};

/// The eigenvalues of each square matrix in the last two axes, in no particular order, and its
/// eigenvectors in columns, of length 1; both `c128`. The results of a matrix with NaN or infinities are NaN.
///
/// ```
/// use nxla_eval::eigen;
/// use nxla_tensor::{HostTensor, Scalar};
///
/// let rotation = HostTensor::from_slice(&[0.0, -1.0, 1.0, 0.0], [2, 2]).unwrap();
/// let (values, _) = eigen(&rotation).unwrap();
/// let (re, im) = values.get(0).parts();
/// assert!(re.abs() < 1e-12 && (im.abs() - 1.0).abs() < 1e-12);
/// ```
///
/// # Errors
/// Returns an error if the elements do not fit in memory.
///
/// # Panics
/// If the last two axes do not contain square matrices.
pub fn eigen(a: &HostTensor) -> Result<(HostTensor, HostTensor), TensorError> {
    let [batch @ .., side, columns] = a.shape().as_slice() else {
        panic!("the tensor does not contain matrices")
    };
    let side = *side;
    assert_eq!(side, *columns, "the matrices are square");
    let wide = a.cast(DType::C128);
    let elements = wide.as_slice::<Complex<f64>>()?;
    let (square, total) = (side * side, side * (side + 1));
    let count = batch.iter().product::<usize>();
    let mut results = HostTensor::scratch(DType::C128, [count, total])?;
    let hooks = Hooks::new();
    let cx = ExecContext::new(&hooks, None);
    if total > 0 {
        cx.rows(results.make_mut()?, total, square * side * 32, |first, results| {
            let matrices = elements[first * square..].chunks_exact(square);
            for (out, a) in results.chunks_exact_mut(total).zip(matrices) {
                if a.iter().all(|x| x.re.is_finite() && x.im.is_finite()) {
                    nxla_factor::eigen(a, side, out);
                } else {
                    out.fill(Complex::new(f64::NAN, f64::NAN));
                }
            }
        });
    }
    let rows = results.as_slice::<Complex<f64>>()?.chunks_exact(total.max(1));
    let shape: Shape = batch.iter().copied().chain([side]).collect();
    let mut values = HostTensor::scratch(DType::C128, shape)?;
    let mut vectors = HostTensor::scratch(DType::C128, a.shape().clone())?;
    let out = values.make_mut()?.chunks_exact_mut(side.max(1));
    let out = out.zip(vectors.make_mut()?.chunks_exact_mut(square.max(1)));
    for (row, (values, vectors)) in rows.zip(out) {
        values.copy_from_slice(&row[..side]);
        vectors.copy_from_slice(&row[side..]);
    }
    Ok((values, vectors))
}
