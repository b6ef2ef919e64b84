//! Linear algebra.

mod fourier;

use std::borrow::Cow;

use nxla_runtime::Result;
use nxla_runtime::graph::build::{Norm, Tolerance as Relative};
use nxla_runtime::graph::{Transform, TriangularSolve};
use pyo3::prelude::*;

use super::add_functions;
use super::args::{AxisList, Integer};
use super::declare::{
    Argument, ArgumentContext, Choice, Choices, DiagonalOffset, Signature, functions,
};
use super::reduce::{reduce_in, sum_dtype};
use crate::apply::{apply, apply_parts, many, one};
use crate::dtype::DTypeArg;
use crate::errors::{OrRaise, argument_error, user_error};
use crate::operands::Operands;
use crate::tensor::PyTensor;
use crate::value::{FromPython, Value, number_of};

/// The order of a norm: a number, or a name.
#[derive(FromPyObject)]
enum Order {
    Number(f64),
    Name(String),
}

impl From<&'static str> for Order {
    fn from(name: &'static str) -> Self {
        Order::Name(name.to_owned())
    }
}

impl Argument for Order {
    type Value = Norm;

    fn annotation() -> Cow<'static, str> {
        "float | Literal[\"fro\", \"nuc\"]".into()
    }

    fn into_value(self, _site: &mut ArgumentContext<'_>) -> Result<Norm> {
        match self {
            Order::Number(f64::INFINITY) => Ok(Norm::Max),
            Order::Number(f64::NEG_INFINITY) => Ok(Norm::Min),
            Order::Number(power) => Ok(Norm::Power(power)),
            Order::Name(name) if name == "fro" => Ok(Norm::Frobenius),
            Order::Name(name) if name == "nuc" => Ok(Norm::Nuclear),
            Order::Name(name) => {
                let why = format!("ord: must be a number, \"fro\" or \"nuc\"; got {name:?}");
                Err(user_error(argument_error("norm", why)))
            }
        }
    }
}

/// A multiple of the largest singular value: one number, or one for each matrix.
enum Tolerance<'py> {
    Number(f64),
    Each(Bound<'py, PyAny>),
}

impl<'a, 'py> FromPyObject<'a, 'py> for Tolerance<'py> {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        Ok(match number_of(&value)? {
            Some(_) => Tolerance::Number(value.extract()?),
            None => Tolerance::Each(value.to_owned()),
        })
    }
}

impl Argument for Tolerance<'_> {
    type Value = Relative;

    fn annotation() -> Cow<'static, str> {
        <&Bound<'_, PyAny>>::annotation()
    }

    fn operands(&self, function: &'static str, operands: &mut Operands) -> PyResult<()> {
        match self {
            Tolerance::Number(_) => Ok(()),
            Tolerance::Each(value) => value.operands(function, operands),
        }
    }

    fn into_value(self, site: &mut ArgumentContext<'_>) -> Result<Relative> {
        Ok(match self {
            Tolerance::Number(number) => Relative::Number(number),
            Tolerance::Each(_) => Relative::Each(site.next()),
        })
    }
}

/// The transformation of a matrix before its systems are solved. The adjoint is the conjugate
/// transpose.
#[derive(Clone, Copy)]
struct SolveWith {
    transform: Transform,
    conjugates: bool,
}

impl Choices for SolveWith {
    const ALL: &'static [(&'static str, Self)] = &[
        ("none", SolveWith { transform: Transform::None, conjugates: false }),
        ("transpose", SolveWith { transform: Transform::Transpose, conjugates: false }),
        ("conjugate", SolveWith { transform: Transform::Conjugate, conjugates: false }),
        ("adjoint", SolveWith { transform: Transform::Transpose, conjugates: true }),
    ];
}

functions! {
    /// Return the length of vectors, or a norm of matrices.
    ///
    /// The number of axes selects one of `vector_norm` and `matrix_norm`.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Numbers; integers count as ``float32``.
    /// ord : float or {"fro", "nuc"}, optional
    ///     By default the root of the sum of squares, which is ``"fro"`` for matrices. For vectors a
    ///     number ``p`` means
    ///     ``sum(abs(x) ** p) ** (1 / p)``, 0 counts what is not 0, infinity is the largest
    ///     magnitude, and minus infinity the smallest. For matrices 1 and infinity mean the largest
    ///     sum of a column or a row, 2 the largest singular value, their negatives the smallest of
    ///     these, and
    ///     ``"nuc"`` the sum of the singular values.
    /// axis : int or str, or a sequence, optional
    ///     One axis for vectors, two for matrices; all by default.
    /// keepdims : bool
    ///     If True, keep these axes with size 1.
    ///
    /// Raises
    /// ------
    /// ArgumentError
    ///     If the order is not supported.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.linalg.norm([3.0, 4.0]).item(), nx.linalg.norm([3.0, -4.0], ord=1).item()
    /// (5.0, 7.0)
    fn norm(
        x, /, ord: Option<Order> = None, axis: Option<AxisList> = None, *, keepdims: bool = false
    ) |graph| graph.norm(x, ord.unwrap_or(Norm::Euclid), axis.as_deref(), keepdims);

    /// Return the norm of the matrices in the last two axes.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Numbers, with at least two axes; integers count as ``float32``.
    /// keepdims : bool
    ///     If True, keep the last two axes with size 1.
    /// ord : {1, 2, inf, -1, -2, -inf, "fro", "nuc"}
    ///     As for `norm` of matrices.
    ///
    /// Raises
    /// ------
    /// ArgumentError
    ///     If the order is not supported.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.linalg.matrix_norm([[3.0, 0.0], [0.0, 4.0]]).item()
    /// 5.0
    /// >>> nx.linalg.matrix_norm([[3.0, 0.0], [0.0, 4.0]], ord="nuc").item()
    /// 7.0
    fn matrix_norm(x, /, *, keepdims: bool = false, ord: Order = "fro") |graph|
        graph.norm(x, ord, Some(&[-2, -1]), keepdims);

    /// Solve ``a @ x == b`` for a triangular matrix.
    ///
    /// Parameters
    /// ----------
    /// a : tensor_like
    ///     Square matrices in the last two axes; only one triangle is read.
    /// b : tensor_like
    ///     Right sides: matrices with as many rows, or a vector.
    /// lower : bool
    ///     If True, read the lower triangle of `a`, else the upper one.
    /// left_side : bool
    ///     If True, solve ``a @ x == b``, else ``x @ a == b``.
    /// transform : {"none", "transpose", "conjugate", "adjoint"}
    ///     The transformation of `a`. ``"conjugate"`` conjugates the matrix without transposing it,
    ///     as in Nx; ``"adjoint"`` transposes and conjugates it. `lower` refers to the triangle of
    ///     `a` before the transformation.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If the matrices are not square, or the right side does not fit.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.linalg.triangular_solve([[2.0, 0.0], [1.0, 4.0]], [2.0, 9.0]).tolist()
    /// [1.0, 2.0]
    fn triangular_solve(
        a, b, /, *, lower: bool = true, left_side: bool = true,
        transform: Choice<SolveWith> = "none"
    ) |graph| {
        let SolveWith { transform, conjugates } = transform;
        let a = if conjugates { graph.conjugate_complex(a)? } else { a };
        graph.triangular_solve(a, b, TriangularSolve { lower, left_side, transform })
    };

    /// Return the inverse of square matrices.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Square matrices in the last two axes.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     Floats or complex numbers; NaN where a matrix is singular.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If the matrices are not square.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.linalg.inv([[2.0, 0.0], [0.0, 4.0]]).tolist()
    /// [[0.5, 0.0], [0.0, 0.25]]
    fn inv(x, /) |graph| graph.invert(x);

    /// Return the determinant of square matrices.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Square matrices in the last two axes.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If the matrices are not square.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.linalg.det([[2.0, 3.0], [1.0, 4.0]]).item()
    /// 5.0
    fn det(x, /) |graph| graph.determinant(x);

    /// Return powers of square matrices.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Square matrices in the last two axes.
    /// n : int
    ///     The exponent; 0 returns the identity, a negative exponent uses the inverse.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If the matrices are not square.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.linalg.matrix_power([[1, 1], [0, 1]], 5).tolist()
    /// [[1, 5], [0, 1]]
    fn matrix_power(x, n: Integer, /) |graph| graph.matrix_power(x, n);

    /// Return the matrix exponential.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Square matrices in the last two axes; integers count as ``float32``.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     Matrices of the shape of `x`.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If the matrices are not square.
    ///
    /// Notes
    /// -----
    /// N. J. Higham, "The scaling and squaring method for the matrix exponential revisited" (2005),
    /// with the approximant of degree 13.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.linalg.expm([[0.0, 1.0], [0.0, 0.0]]).tolist()
    /// [[1.0, 1.0], [0.0, 1.0]]
    fn expm(x, /) |graph| graph.expm(x);

    /// Return the numerical rank of each matrix.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Matrices in the last two axes.
    /// rtol : float or tensor_like, optional
    ///     Values up to this multiple of the largest one do not count: one number, or one for each
    ///     matrix. By default the larger side times
    ///     the precision of the dtype.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     ``int32``; 0 for a matrix with NaN.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If an operand has fewer than two axes.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.linalg.matrix_rank([[1.0, 2.0], [2.0, 4.0]]).item()
    /// 1
    fn matrix_rank(x, /, *, rtol: Option<Tolerance<'_>> = None) |graph| graph.matrix_rank(x, rtol);

    /// Return the Moore-Penrose pseudo-inverse of matrices.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Matrices in the last two axes.
    /// rtol : float or tensor_like, optional
    ///     Singular values up to this multiple of the largest one count as 0. By default the larger
    ///     side times the precision of the dtype.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If an operand has fewer than two axes.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.linalg.pinv([[2.0, 0.0], [0.0, 0.0]]).tolist()
    /// [[0.5, 0.0], [0.0, 0.0]]
    fn pinv(x, /, *, rtol: Option<Tolerance<'_>> = None) |graph| graph.pinv(x, rtol);

    /// Return the ``x`` of least norm that minimizes the norm of ``a @ x - b``.
    ///
    /// Parameters
    /// ----------
    /// a : tensor_like
    ///     Matrices in the last two axes.
    /// b : tensor_like
    ///     For each of them a vector, or a matrix with as many rows.
    /// rtol : float or tensor_like, optional
    ///     As for `pinv`.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If an operand has fewer than two axes, or the right side does not match.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> x = nx.linalg.least_squares([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]], [1.0, 3.0, 5.0])
    /// >>> nx.all_close(x, [1.0, 2.0], atol=1e-5).item()
    /// True
    fn least_squares(a, b, /, *, rtol: Option<Tolerance<'_>> = None) |graph| graph.least_squares(a, b, rtol);

    /// Exchange the last two axes, and conjugate complex numbers. A vector is only conjugated.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.linalg.adjoint([[1 + 1j, 2 + 0j]]).tolist()
    /// [[(1-1j)], [(2-0j)]]
    fn adjoint(x, /) |graph| graph.adjoint(x);

    /// Return the sum of a diagonal of each matrix.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Matrices in the last two axes.
    /// offset : int
    ///     The number of columns to the right of the main diagonal; outside the matrices the sum is
    ///     0.
    /// dtype : dtype_like, optional
    ///     The dtype of the accumulation and of the result; by default as for `nxla.sum`.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If an operand has fewer than two axes.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.linalg.trace([[1, 2], [3, 4]]).item()
    /// 5
    fn trace(x, /, offset: DiagonalOffset = 0, *, dtype: Option<DTypeArg> = None) |graph| {
        let dtype = dtype.or(sum_dtype(graph, x));
        reduce_in(graph, x, dtype, |graph, x| graph.trace(x, offset))
    };

    /// Return a diagonal of each matrix.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Matrices in the last two axes.
    /// offset : int
    ///     The number of columns to the right of the main diagonal; outside the matrices the result
    ///     is empty.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If an operand has fewer than two axes.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.linalg.diagonal([[1, 2], [3, 4]]).tolist()
    /// [1, 4]
    fn diagonal(x, /, offset: DiagonalOffset = 0) |graph| graph.diagonal_or_none(x, offset);

    /// Return the cross product of vectors of three elements.
    ///
    /// Parameters
    /// ----------
    /// x1, x2 : tensor_like
    ///     Vectors along one axis; the other axes broadcast.
    /// axis : int
    ///     The axis, of size 3 in both; counted from the end where they have other ranks.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If the size of the axis is not 3, or the other axes do not broadcast.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.linalg.cross([1, 0, 0], [0, 1, 0]).tolist()
    /// [0, 0, 1]
    fn cross(x1, x2, /, axis: Integer = -1) |graph| graph.cross(x1, x2, axis);

    /// Return the Cholesky factor of symmetric (Hermitian) positive definite matrices.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Square matrices in the last two axes; only the lower triangle is read.
    /// upper : bool
    ///     If True, return the upper triangular factor.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     ``L`` with ``L @ adjoint(L) == x``, or its adjoint. NaN where a matrix is not positive
    ///     definite.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If the matrices are not square.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.linalg.cholesky([[4.0, 2.0], [2.0, 5.0]]).tolist()
    /// [[2.0, 0.0], [1.0, 2.0]]
    fn cholesky(x, /, *, upper: bool = false) |graph| {
        let lower = graph.cholesky(x)?;
        if upper { graph.adjoint(lower) } else { Ok(lower) }
    };

    /// Return the eigenvalues of Hermitian matrices, as `eigh` computes them.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.all_close(nx.linalg.eigvalsh([[2.0, 1.0], [1.0, 2.0]]), [1.0, 3.0]).item()
    /// True
    fn eigvalsh(x, /) |graph| graph.eigh(x).map(|(values, _)| values);

    /// Return the singular values of matrices, as `svd` computes them.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.linalg.svdvals([[0.0, 2.0], [1.0, 0.0]]).tolist()
    /// [2.0, 1.0]
    fn svdvals(x, /) |graph| graph.singular_values(x);
}

type Parts = Vec<Py<PyAny>>;

/// `p`, `l` and `u` of square matrices.
#[pyfunction]
fn lu_parts(a: &Bound<'_, PyAny>) -> PyResult<Parts> {
    let operand = Value::of(a, "lu")?;
    apply_parts(a.py(), "lu", &[operand], |graph, ids| {
        many(graph.lu(ids[0]).map(|(p, l, u)| [p, l, u]))
    })
}

/// `q` and `r` of matrices.
#[pyfunction]
fn qr_parts(a: &Bound<'_, PyAny>, complete: bool) -> PyResult<Parts> {
    let operand = Value::of(a, "qr")?;
    apply_parts(a.py(), "qr", &[operand], |graph, ids| {
        many(graph.qr(ids[0], complete).map(|(q, r)| [q, r]))
    })
}

/// Eigenvalues and eigenvectors of Hermitian matrices.
#[pyfunction]
fn eigh_parts(a: &Bound<'_, PyAny>) -> PyResult<Parts> {
    let operand = Value::of(a, "eigh")?;
    apply_parts(a.py(), "eigh", &[operand], |graph, ids| {
        many(graph.eigh(ids[0]).map(|(w, v)| [w, v]))
    })
}

/// Singular vectors and values of matrices.
#[pyfunction]
fn svd_parts(a: &Bound<'_, PyAny>, full_matrices: bool) -> PyResult<Parts> {
    let operand = Value::of(a, "svd")?;
    apply_parts(a.py(), "svd", &[operand], |graph, ids| {
        many(graph.svd(ids[0], full_matrices).map(|(u, s, vh)| [u, s, vh]))
    })
}

/// The sign and the logarithm of the magnitude of determinants.
#[pyfunction]
fn slogdet_parts(a: &Bound<'_, PyAny>) -> PyResult<Parts> {
    let operand = Value::of(a, "slogdet")?;
    apply_parts(a.py(), "slogdet", &[operand], |graph, ids| {
        many(graph.slogdet(ids[0]).map(|(sign, logarithm)| [sign, logarithm]))
    })
}

/// Solves systems of linear equations.
#[pyfunction]
fn solve_batch(a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let operands = [Value::of(a, "solve")?, Value::of(b, "solve")?];
    apply(a.py(), "solve", &operands, |graph, ids| one(graph.solve(ids[0], ids[1])))
}

/// The types of the functions of this family.
/// The eigenvalues and eigenvectors of square matrices, as `c128` on the host.
#[pyfunction]
fn eigen_of_data(py: Python<'_>, x: &Bound<'_, PyTensor>) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
    let host = x.get().host(py)?;
    let (values, vectors) = py.detach(|| nxla_runtime::eval::eigen(&host)).or_raise()?;
    Ok((PyTensor::wrap(py, values.into())?, PyTensor::wrap(py, vectors.into())?))
}

pub(super) fn all_signatures() -> impl Iterator<Item = Signature> {
    signatures().into_iter().chain(fourier::signatures())
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    declared_functions(module)?;
    fourier::declared_functions(module)?;
    add_functions!(module: lu_parts, qr_parts, eigh_parts, svd_parts, slogdet_parts, solve_batch, eigen_of_data);
    Ok(())
}
