//! Element-wise functions: one for each row of the op table, and what is composed of them.

use nxla_runtime::DType;
use nxla_runtime::graph::{
    BinaryOp, ExprId, Graph, Op, UnaryOp, binary_class, for_each_binary, for_each_unary,
    unary_class,
};
use pyo3::prelude::*;

use super::declare::{Signature, functions};
use crate::apply::{Built, apply, number_tensor, one};
use crate::dtype::DTypeArg;
use crate::errors::{OrRaise, argument_error};
use crate::value::{FromPython, Value};

/// Applies a unary op.
pub(crate) fn unary(x: &Bound<'_, PyAny>, op: UnaryOp) -> PyResult<Py<PyAny>> {
    let operand = Value::of(x, op.public_name())?;
    apply(x.py(), &[operand], |graph, ids| one(graph.make(Op::Unary(op), ids)))
}

fn binary(x: &Bound<'_, PyAny>, y: &Bound<'_, PyAny>, op: BinaryOp) -> PyResult<Py<PyAny>> {
    let operands = [Value::of(x, op.public_name())?, Value::of(y, op.public_name())?];
    apply(x.py(), &operands, |graph, ids| one(graph.make(Op::Binary(op), ids)))
}

/// What follows the summary in the docstring of an op of the table.
macro_rules! sections {
    ($operands:expr, $takes:expr, $gives:expr, $refuses:expr, $($example:literal)*) => {
        concat!(
            "\nParameters\n----------\n", $operands, " : tensor_like\n    ", $takes,
            "\n\nReturns\n-------\nTensor\n    ", $gives, $refuses,
            "\n\nExamples\n--------\n>>> import nxla as nx", $("\n", $example),*
        )
    };
}

macro_rules! unary_functions {
    ($($(#[$doc:meta])* $variant:ident $method:ident $name:literal $class:ident ($($lowering:tt)*) $domain:tt $public:literal [$($example:literal)*];)*) => {
        $(
            #[doc = concat!($public, "(x, /)\n--\n")]
            $(#[$doc])*
            #[doc = sections!(
                "x", unary_class!(takes $class), unary_class!(gives $class),
                unary_class!(raises $class), $($example)*
            )]
            #[pyfunction]
            #[pyo3(name = $public, signature = (x, /), text_signature = None)]
            fn $method(x: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
                unary(x, UnaryOp::$variant)
            }
        )*

        fn table_functions_of_one(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(module.add_function(wrap_pyfunction!($method, module)?)?;)*
            Ok(())
        }
    };
}
for_each_unary!(unary_functions);

macro_rules! binary_functions {
    ($($(#[$doc:meta])* $variant:ident $method:ident $name:literal $class:ident ($($lowering:tt)*) $public:literal [$($example:literal)*];)*) => {
        $(
            #[doc = concat!($public, "(", binary_class!(operands $class), ", /)\n--\n")]
            $(#[$doc])*
            #[doc = sections!(
                binary_class!(operands $class), binary_class!(takes $class),
                binary_class!(gives $class), binary_class!(raises $class), $($example)*
            )]
            #[pyfunction]
            #[pyo3(name = $public, signature = (x, y, /), text_signature = None)]
            fn $method(x: &Bound<'_, PyAny>, y: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
                binary(x, y, BinaryOp::$variant)
            }
        )*

        fn table_functions_of_two(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(module.add_function(wrap_pyfunction!($method, module)?)?;)*
            Ok(())
        }
    };
}
for_each_binary!(binary_functions);

/// The types of the functions of the table: tensors all.
pub(super) fn table_signatures() -> impl Iterator<Item = Signature> {
    let names = UnaryOp::ALL.iter().map(|op| op.public_name());
    let names = names.chain(BinaryOp::ALL.iter().map(|op| op.public_name()));
    names.map(|name| (name, vec![("*", "TensorLike".into())], "Tensor".into()))
}

/// Python's `//`: the quotient rounded down, in the promoted dtype.
pub(crate) fn floor_divide_operator(
    x: &Bound<'_, PyAny>,
    y: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    operator(x, y, floor_divide_of)
}

/// Python's `%`: what `//` leaves, with the sign of the divisor.
pub(crate) fn remainder_operator(
    x: &Bound<'_, PyAny>,
    y: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    operator(x, y, floor_remainder_of)
}

/// An operator leaves operands that it does not know to the other side.
fn operator(
    x: &Bound<'_, PyAny>,
    y: &Bound<'_, PyAny>,
    build: fn(&mut Graph, &[ExprId]) -> Built,
) -> PyResult<Py<PyAny>> {
    let py = x.py();
    match (Value::try_of(x)?, Value::try_of(y)?) {
        (Some(x), Some(y)) => apply(py, &[x, y], build),
        _ => Ok(py.NotImplemented()),
    }
}

fn floor_divide_of(graph: &mut Graph, ids: &[ExprId]) -> Built {
    one(graph.floor_divide(ids[0], ids[1]))
}

fn floor_remainder_of(graph: &mut Graph, ids: &[ExprId]) -> Built {
    one(graph.floor_remainder(ids[0], ids[1]))
}

functions! {
    /// Divide and round toward minus infinity; the operator ``//``.
    ///
    /// Dividing an integer by zero gives an unspecified number, not an error.
    ///
    /// Parameters
    /// ----------
    /// x1, x2 : tensor_like
    ///     Operands; their shapes broadcast and their dtypes promote.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     Numbers of the common shape and dtype.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If the shapes do not broadcast.
    /// DTypeError
    ///     If an operand is complex.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.floor_divide([7, -7], 2).tolist()
    /// [3, -4]
    fn floor_divide(x1, x2, /) |graph| graph.floor_divide(x1, x2);

    /// Return what floor_divide leaves; the operator ``%``.
    ///
    /// A result that is not zero has the sign of the divisor, as in Python. `fmod` is the remainder
    /// with the sign of the dividend.
    ///
    /// Parameters
    /// ----------
    /// x1, x2 : tensor_like
    ///     Operands; their shapes broadcast and their dtypes promote.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     Numbers of the common shape and dtype.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If the shapes do not broadcast.
    /// DTypeError
    ///     If an operand is complex.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.remainder([7, -7], 3).tolist()
    /// [1, 2]
    fn floor_remainder "remainder"(x1, x2, /) |graph| graph.floor_remainder(x1, x2);

    /// Multiply each element by itself.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Numbers of any dtype.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     Numbers of the shape and dtype of `x`.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.square([1, -2, 3]).tolist()
    /// [1, 4, 9]
    fn square(x, /) |graph| graph.square(x);

    /// Divide one by each element.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Numbers; integers count as ``float32``.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     Floats or complex numbers of the shape of `x`.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.reciprocal([2.0, 4.0]).tolist()
    /// [0.5, 0.25]
    fn reciprocal(x, /) |graph| graph.reciprocal(x);

    /// Tell where elements are neither infinite nor NaN.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Numbers of any dtype.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     Truth values of the shape of `x`.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.isfinite([1.0, float("inf"), float("nan")]).tolist()
    /// [True, False, False]
    fn isfinite(x, /) |graph| graph.is_finite(x);

    /// Tell where the sign bit is set, also that of a zero or a NaN.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Real numbers.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     Truth values of the shape of `x`.
    ///
    /// Raises
    /// ------
    /// DTypeError
    ///     If `x` is complex.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.signbit([1.0, -0.0]).tolist()
    /// [False, True]
    fn signbit(x, /) |graph| graph.sign_bit(x);

    /// Return the magnitude of the first with the sign of the second.
    ///
    /// Parameters
    /// ----------
    /// x1, x2 : tensor_like
    ///     Real numbers; their shapes broadcast.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     Floats of the common shape.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If the shapes do not broadcast.
    /// DTypeError
    ///     If an operand is complex.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.copysign([1.0, -2.0], -0.0).tolist()
    /// [-1.0, -2.0]
    fn copysign(x1, x2, /) |graph| graph.copy_sign(x1, x2);

    /// Return the logarithm to base 2 of each element.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Numbers; integers count as ``float32``.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     Floats or complex numbers of the shape of `x`.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.log2([1.0, 8.0]).tolist()
    /// [0.0, 3.0]
    fn log2(x, /) |graph| graph.log2(x);

    /// Return the logarithm to base 10 of each element.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Numbers; integers count as ``float32``.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     Floats or complex numbers of the shape of `x`.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.log10([1.0, 100.0]).tolist()
    /// [0.0, 2.0]
    fn log10(x, /) |graph| graph.log10(x);

    /// Return the angle in radians of each complex element.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Numbers of any dtype.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     Floats of the shape of `x`.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.phase([1j, -1 + 0j]).tolist()
    /// [1.5707963705062866, 3.1415927410125732]
    fn phase(x, /) |graph| graph.phase(x);

    /// Return log(exp(x1) + exp(x2)) without overflow.
    ///
    /// Parameters
    /// ----------
    /// x1, x2 : tensor_like
    ///     Real numbers; their shapes broadcast and their dtypes promote.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     Floats of the common shape.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If the shapes do not broadcast.
    /// DTypeError
    ///     If an operand is complex.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.logaddexp(1000.0, 1000.0).item()
    /// 1000.6931762695312
    fn logaddexp(x1, x2, /) |graph| graph.log_add_exp(x1, x2);

    /// Return the distance of the point (x1, x2) from the origin without overflow.
    ///
    /// Parameters
    /// ----------
    /// x1, x2 : tensor_like
    ///     Real numbers; their shapes broadcast and their dtypes promote.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     Floats of the common shape.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If the shapes do not broadcast.
    /// DTypeError
    ///     If an operand is complex.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.hypot(3.0, 4.0).item()
    /// 5.0
    fn hypot(x1, x2, /) |graph| graph.hypot(x1, x2);

    /// Drop what is behind the point of each element.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Real numbers; integers stay as they are.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     Numbers of the shape and dtype of `x`.
    ///
    /// Raises
    /// ------
    /// DTypeError
    ///     If `x` is complex.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.trunc([1.5, -1.5]).tolist()
    /// [1.0, -1.0]
    fn trunc(x, /) |graph| graph.truncate(x);

    /// Return the nearest whole number, the even one of two equally near.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Real numbers; integers stay as they are.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     Numbers of the shape and dtype of `x`.
    ///
    /// Raises
    /// ------
    /// DTypeError
    ///     If `x` is complex.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.round([0.5, 1.5, 2.5]).tolist()
    /// [0.0, 2.0, 2.0]
    fn round_half_even "round"(x, /) |graph| graph.round_half_even(x);

    /// Limit elements to a range.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Real numbers.
    /// min, max : tensor_like, optional
    ///     The limits; where a minimum exceeds the maximum, the maximum wins.
    ///
    /// Raises
    /// ------
    /// DTypeError
    ///     If an operand is complex.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.clip([1, 5, 9], 2, 8).tolist(), nx.clip([1, 5, 9], max=4).tolist()
    /// ([2, 5, 8], [1, 4, 4])
    fn clip(
        x, /, min: Option<&Bound<'_, PyAny>> = None, max: Option<&Bound<'_, PyAny>> = None
    ) |graph|
        match (min, max) {
            (Some(min), Some(max)) if graph.shape(min).rank() == 0 && graph.shape(max).rank() == 0 => {
                graph.clip(x, min, max)
            }
            (min, max) => {
                let x = min.map_or(Ok(x), |min| graph.max(x, min))?;
                max.map_or(Ok(x), |max| graph.min(x, max))
            }
        };

    /// Tell whether all elements are equal up to a tolerance.
    ///
    /// Parameters
    /// ----------
    /// x1, x2 : tensor_like
    ///     Numbers; their shapes broadcast.
    /// rtol, atol : float
    ///     Elements are close if ``abs(x1 - x2) <= atol + rtol * abs(x2)``. Equal infinities are close.
    /// equal_nan : bool
    ///     Whether NaN is close to NaN.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     One truth value.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.all_close([1.0, 2.0], [1.0, 2.00001]).item(), nx.all_close(1.0, 1.1).item()
    /// (True, False)
    fn all_close(
        x1, x2, /, *, rtol: f64 = 1e-05, atol: f64 = 1e-08, equal_nan: bool = false
    ) |graph| graph.all_close(x1, x2, rtol, atol, equal_nan);

    /// Convert elements to another dtype.
    ///
    /// Floats lose what is behind the point when they become integers, and are limited to what the
    /// dtype holds; NaN becomes zero. Integers wrap. Complex numbers lose their imaginary part.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Any tensor.
    /// dtype : dtype_like
    ///     The dtype.
    /// copy : bool
    ///     Part of the standard. It makes no difference: tensors never change.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.astype([1.9, -1.9], nx.int32).tolist()
    /// [1, -1]
    fn astype(x, dtype: DTypeArg, /, *, copy: bool = true) |graph| {
        // Nobody could tell a copy from what never changes.
        let _ = copy;
        graph.as_type(x, dtype)
    };

    /// Read the bits of elements as another dtype of the same width.
    ///
    /// Raises
    /// ------
    /// DTypeError
    ///     If the widths differ.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> hex(nx.bitcast(1.0, nx.uint32).item())
    /// '0x3f800000'
    fn bitcast(x, dtype: DTypeArg, /) |graph| graph.bitcast(x, dtype);
}

/// Choose between two elements, one place at a time.
///
/// Parameters
/// ----------
/// condition : tensor_like
///     Where it is not zero, the element of `x1` is taken.
/// x1, x2 : tensor_like
///     What to choose from; their dtypes promote.
///
/// Returns
/// -------
/// Tensor
///     Of the shape that all three broadcast to.
///
/// Raises
/// ------
/// ShapeError
///     If the shapes do not broadcast.
///
/// Examples
/// --------
/// >>> import nxla as nx
/// >>> nx.where([True, False], [1, 2], 0).tolist()
/// [1, 0]
#[pyfunction]
#[pyo3(name = "where", signature = (condition, x1, x2, /))]
fn select(
    condition: &Bound<'_, PyAny>,
    x1: &Bound<'_, PyAny>,
    x2: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    let [x1, x2] =
        nxla_runtime::either([Value::of(x1, "where")?, Value::of(x2, "where")?]).or_raise()?;
    let operands = [Value::of(condition, "where")?, x1, x2];
    apply(condition.py(), &operands, |graph, ids| one(graph.select(ids[0], ids[1], ids[2])))
}

/// Return the dtype that operands have together; plain numbers adapt to the others.
///
/// Examples
/// --------
/// >>> import nxla as nx
/// >>> nx.result_type(nx.int8, nx.tensor([1.5], "f16")), nx.result_type("u8", 1)
/// (f16, u8)
#[pyfunction]
#[pyo3(signature = (*operands))]
fn result_type(operands: Vec<Bound<'_, PyAny>>) -> PyResult<crate::dtype::PyDType> {
    let mut common: Option<DType> = None;
    let mut numbers = Vec::new();
    for operand in &operands {
        let dtype = match crate::dtype::dtype_of(operand) {
            Ok(dtype) => dtype,
            Err(_) => match Value::of(operand, "result_type")? {
                Value::Tensor(tensor) => tensor.dtype(),
                Value::Expr(expr) => expr.dtype(),
                Value::Number(number) => {
                    numbers.push(number);
                    continue;
                }
            },
        };
        common = Some(
            common.map_or(dtype, |common| nxla_runtime::host::promote_keep_pred(common, dtype)),
        );
    }
    for number in numbers {
        let tensor = number_tensor(number, common).or_raise()?;
        let dtype = tensor.dtype();
        common = Some(
            common.map_or(dtype, |common| nxla_runtime::host::promote_keep_pred(common, dtype)),
        );
    }
    match common {
        Some(dtype) => Ok(crate::dtype::PyDType(dtype)),
        None => Err(argument_error("result_type", "expected at least one operand")),
    }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    table_functions_of_one(module)?;
    table_functions_of_two(module)?;
    declared_functions(module)?;
    module.add_function(wrap_pyfunction!(select, module)?)?;
    module.add_function(wrap_pyfunction!(result_type, module)?)
}
