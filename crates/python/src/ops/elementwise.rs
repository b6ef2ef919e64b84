//! Element-wise functions: one for each row of the op table, and what is composed of them.

use nxla_runtime::DType;
use nxla_runtime::graph::{
    BinaryOp, ExprId, Graph, Op, UnaryOp, binary_class, for_each_binary, for_each_composed_binary,
    for_each_composed_unary, for_each_unary, unary_class,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::add_functions;
use super::declare::{
    Compared, LowerLimit, Signature, UpperLimit, functions, reject_keywords, unexpected_keyword,
};
use crate::apply::{Built, apply, apply_op, number_tensor, one};
use crate::dtype::DTypeArg;
use crate::errors::{OrRaise, argument_error};
use crate::operands::{Operands, Role, pair};
use crate::value::{FromPython, Value};

/// Applies a unary op.
pub(crate) fn unary(x: &Bound<'_, PyAny>, op: UnaryOp) -> PyResult<Py<PyAny>> {
    let operand = Value::of(x, op.public_name())?;
    apply_op(x.py(), &[operand], &Op::Unary(op))
}

/// The elements as they are, in another handle.
pub(crate) fn same(x: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    match Value::of(x, "positive")? {
        Value::Tensor(tensor) if !nxla_runtime::Trace::is_entered() => {
            crate::tensor::PyTensor::wrap(x.py(), tensor)
        }
        _ => Ok(x.clone().unbind()),
    }
}

/// The part of the docstring after the summary of a row of the table.
macro_rules! sections {
    ($operands:expr, $takes:expr, $returns:expr, $raises:expr, $($example:literal)*) => {
        concat!(
            "\nParameters\n----------\n", $operands, " : tensor_like\n    ", $takes,
            "\n\nReturns\n-------\nTensor\n    ", $returns, $raises,
            "\n\nExamples\n--------\n>>> import nxla as nx", $("\n", $example),*
        )
    };
}

/// A keyword argument that element-wise functions of other libraries have.
type Rejected<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// Rejects keyword arguments of other libraries with a hint. The functions declare these arguments
/// because Python passes arguments more slowly to a function that accepts any keyword.
fn reject(
    py: Python<'_>,
    function: &str,
    [dtype, inplace, name, order, out, r#where]: [Rejected<'_, '_>; 6],
) -> PyResult<()> {
    let keywords = [
        ("dtype", dtype),
        ("inplace", inplace),
        ("name", name),
        ("order", order),
        ("out", out),
        ("where", r#where),
    ];
    match keywords.iter().find(|(_, value)| value.is_some()) {
        Some((keyword, _)) => Err(unexpected_keyword(py, function, keyword)),
        None => Ok(()),
    }
}

/// The function of a row with one operand.
macro_rules! function_of_one {
    ([$($doc:tt)*] $method:ident $class:ident $public:literal [$($example:literal)*] $apply:expr) => {
        #[doc = concat!($public, "(x, /)\n--\n")]
        $($doc)*
        #[doc = sections!(
            "x", unary_class!(takes $class), unary_class!(returns $class),
            unary_class!(raises $class), $($example)*
        )]
        #[allow(rustdoc::broken_intra_doc_links, reason = "a docstring of Python has no links")]
        #[pyfunction]
        #[pyo3(
            name = $public,
            signature = (
                x, /, *, dtype=None, inplace=None, name=None, order=None, out=None, r#where=None
            ),
            text_signature = None
        )]
        fn $method(
            x: &Bound<'_, PyAny>,
            dtype: Rejected<'_, '_>,
            inplace: Rejected<'_, '_>,
            name: Rejected<'_, '_>,
            order: Rejected<'_, '_>,
            out: Rejected<'_, '_>,
            r#where: Rejected<'_, '_>,
        ) -> PyResult<Py<PyAny>> {
            reject(x.py(), $public, [dtype, inplace, name, order, out, r#where])?;
            ($apply)(x.py(), &[Value::of(x, $public)?])
        }
    };
}

/// The role of the operands of a row with two.
macro_rules! role {
    (RealFloat) => {
        Role::Free
    };
    ($class:ident) => {
        crate::numbers::role(nxla_runtime::graph::BinaryClass::$class)
    };
}

/// The function of a row with two operands.
macro_rules! function_of_two {
    ([$($doc:tt)*] $method:ident $class:ident $public:literal [$($example:literal)*] $apply:expr) => {
        #[doc = concat!($public, "(", binary_class!(operands $class), ", /)\n--\n")]
        $($doc)*
        #[doc = sections!(
            binary_class!(operands $class), binary_class!(takes $class),
            binary_class!(returns $class), binary_class!(raises $class), $($example)*
        )]
        #[allow(rustdoc::broken_intra_doc_links, reason = "a docstring of Python has no links")]
        #[pyfunction]
        #[pyo3(
            name = $public,
            signature = (
                x, y, /, *, dtype=None, inplace=None, name=None, order=None, out=None,
                r#where=None
            ),
            text_signature = None
        )]
        fn $method(
            x: &Bound<'_, PyAny>,
            y: &Bound<'_, PyAny>,
            dtype: Rejected<'_, '_>,
            inplace: Rejected<'_, '_>,
            name: Rejected<'_, '_>,
            order: Rejected<'_, '_>,
            out: Rejected<'_, '_>,
            r#where: Rejected<'_, '_>,
        ) -> PyResult<Py<PyAny>> {
            reject(x.py(), $public, [dtype, inplace, name, order, out, r#where])?;
            ($apply)(x.py(), &pair([x, y], $public, role!($class))?)
        }
    };
}

/// Adds the functions of a table to the module, and defines the list of their names.
macro_rules! table {
    ($register:ident $names:ident: $($method:ident $public:literal)*) => {
        fn $register(module: &Bound<'_, PyModule>) -> PyResult<()> {
            add_functions!(module: $($method),*);
            Ok(())
        }

        const $names: &[&str] = &[$($public),*];
    };
}

macro_rules! unary_functions {
    ($($(#[$doc:meta])* $variant:ident $method:ident $name:literal $class:ident ($($lowering:tt)*) $operations:literal $domain:tt $public:literal [$($example:literal)*];)*) => {
        $(function_of_one! {
            [$(#[$doc])*] $method $class $public [$($example)*]
            |py: Python<'_>, operands: &[Value]| {
                apply_op(py, operands, &Op::Unary(UnaryOp::$variant))
            }
        })*
        table!(register_unary UNARY: $($method $public)*);
    };
}
for_each_unary!(unary_functions);

macro_rules! binary_functions {
    ($($(#[$doc:meta])* $variant:ident $method:ident $name:literal $class:ident ($($lowering:tt)*) $operations:literal $public:literal [$($example:literal)*];)*) => {
        $(function_of_two! {
            [$(#[$doc])*] $method $class $public [$($example)*]
            |py: Python<'_>, operands: &[Value]| {
                apply_op(py, operands, &Op::Binary(BinaryOp::$variant))
            }
        })*
        table!(register_binary BINARY: $($method $public)*);
    };
}
for_each_binary!(binary_functions);

macro_rules! composed_of_one {
    ($($(#[$doc:meta])* $method:ident $class:ident $public:literal [$($example:literal)*];)*) => {
        $(function_of_one! {
            [$(#[$doc])*] $method $class $public [$($example)*]
            |py: Python<'_>, operands: &[Value]| {
                apply(py, $public, operands, |graph, ids| one(graph.$method(ids[0])))
            }
        })*
        table!(register_composed_of_one COMPOSED_OF_ONE: $($method $public)*);
    };
}
for_each_composed_unary!(composed_of_one);

macro_rules! composed_of_two {
    ($($(#[$doc:meta])* $method:ident $class:ident $public:literal [$($example:literal)*];)*) => {
        $(function_of_two! {
            [$(#[$doc])*] $method $class $public [$($example)*]
            |py: Python<'_>, operands: &[Value]| {
                apply(py, $public, operands, |graph, ids| {
                    one(graph.$method(ids[0], ids[1]))
                })
            }
        })*
        table!(register_composed_of_two COMPOSED_OF_TWO: $($method $public)*);
    };
}
for_each_composed_binary!(composed_of_two);

/// The types of the functions of the tables: tensors all.
pub(super) fn table_signatures() -> impl Iterator<Item = Signature> {
    let names = [UNARY, BINARY, COMPOSED_OF_ONE, COMPOSED_OF_TWO].into_iter().flatten();
    names.map(|&name| (name, vec![("*", "TensorLike".into())], "Tensor".into()))
}

/// Python's `//`: the quotient rounded down, in the promoted dtype.
pub(crate) fn floor_divide_operator(
    x: &Bound<'_, PyAny>,
    y: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    operator(x, y, "floor_divide", |graph, ids| one(graph.floor_divide(ids[0], ids[1])))
}

/// Python's `%`: the remainder of `//`, with the sign of the divisor.
pub(crate) fn remainder_operator(
    x: &Bound<'_, PyAny>,
    y: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    operator(x, y, "remainder", |graph, ids| one(graph.floor_remainder(ids[0], ids[1])))
}

/// An operator returns `NotImplemented` for unknown operands.
fn operator(
    x: &Bound<'_, PyAny>,
    y: &Bound<'_, PyAny>,
    function: &str,
    build: fn(&mut Graph, &[ExprId]) -> Built,
) -> PyResult<Py<PyAny>> {
    let py = x.py();
    let mut operands = Operands::default();
    if operands.try_push(x, Role::Element)? && operands.try_push(y, Role::Element)? {
        apply(py, function, &operands.values()?, build)
    } else {
        Ok(py.NotImplemented())
    }
}

functions! {
    /// Limit elements to a range.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Real numbers.
    /// min, max : tensor_like, optional
    ///     The limits; where a minimum exceeds the maximum, the maximum wins.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     The limited elements. Shapes broadcast, and dtypes promote.
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
        x, /, min: Option<LowerLimit<'_>> = None, max: Option<UpperLimit<'_>> = None
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

    /// Return whether all elements are equal up to a tolerance.
    ///
    /// Parameters
    /// ----------
    /// x1, x2 : tensor_like
    ///     Numbers; their shapes broadcast.
    /// rtol, atol : float
    ///     Elements are close if ``abs(x1 - x2) <= atol + rtol * abs(x2)``. Equal infinities are
    ///     close.
    /// equal_nan : bool
    ///     If True, NaN is close to NaN.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     A boolean scalar.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.all_close([1.0, 2.0], [1.0, 2.00001]).item(), nx.all_close(1.0, 1.1).item()
    /// (True, False)
    fn all_close(
        x1: Compared<'_>, x2: Compared<'_>, /, *, rtol: f64 = 1e-05, atol: f64 = 1e-08, equal_nan: bool = false
    ) |graph| graph.all_close(x1, x2, rtol, atol, equal_nan);

    /// Return whether all elements are equal up to a tolerance.
    ///
    /// This is `all_close` under numpy's name.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.allclose([1.0, 2.0], [1.0, 2.00001]).item()
    /// True
    fn allclose(
        x1: Compared<'_>, x2: Compared<'_>, /, rtol: f64 = 1e-05, atol: f64 = 1e-08, equal_nan: bool = false
    ) |graph| graph.all_close(x1, x2, rtol, atol, equal_nan);

    /// Return for each element whether it is equal up to a tolerance.
    ///
    /// Parameters
    /// ----------
    /// x1, x2 : tensor_like
    ///     Numbers; their shapes broadcast.
    /// rtol, atol : float
    ///     Elements are close if ``abs(x1 - x2) <= atol + rtol * abs(x2)``. Equal infinities are
    ///     close.
    /// equal_nan : bool
    ///     If True, NaN is close to NaN.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     Booleans.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.isclose([1.0, 2.0], [1.0, 2.1]).tolist()
    /// [True, False]
    fn isclose(
        x1: Compared<'_>, x2: Compared<'_>, /, rtol: f64 = 1e-05, atol: f64 = 1e-08, equal_nan: bool = false
    ) |graph| graph.is_close(x1, x2, rtol, atol, equal_nan);

    /// Convert elements to another dtype.
    fn astype(x, dtype: DTypeArg, /) |graph| graph.as_type(x, dtype);

    /// Reinterpret the bits of elements as another dtype of the same width.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Real numbers.
    /// dtype : dtype_like
    ///     A real dtype of the same width.
    ///
    /// Raises
    /// ------
    /// ArgumentError
    ///     If the widths differ.
    /// DTypeError
    ///     If a dtype is complex.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> hex(nx.bitcast(1.0, nx.uint32).item())
    /// '0x3f800000'
    fn bitcast(x, dtype: DTypeArg, /) |graph| graph.bitcast(x, dtype);
}

/// Select elements by a condition; with only a condition, see `nonzero`.
///
/// Parameters
/// ----------
/// condition : tensor_like
///     The condition: nonzero elements select from `x1`, zeros from `x2`.
/// x1, x2 : tensor_like, optional
///     The values to select from; their dtypes promote.
///
/// Returns
/// -------
/// Tensor
///     A tensor with the broadcast shape of all three operands.
///
/// Raises
/// ------
/// ShapeError
///     If the shapes do not broadcast.
/// ArgumentError
///     If only one of `x1` and `x2` is passed.
///
/// Examples
/// --------
/// >>> import nxla as nx
/// >>> nx.where([True, False], [1, 2], 0).tolist()
/// [1, 0]
#[pyfunction]
#[pyo3(
    name = "where",
    signature = (condition, x1=None, x2=None, /, **unexpected),
    text_signature = "(condition, x1=None, x2=None, /)"
)]
fn select(
    condition: &Bound<'_, PyAny>,
    x1: Option<&Bound<'_, PyAny>>,
    x2: Option<&Bound<'_, PyAny>>,
    unexpected: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyAny>> {
    reject_keywords(condition.py(), "where", unexpected)?;
    let (x1, x2) = match (x1, x2) {
        (Some(x1), Some(x2)) => (x1, x2),
        (None, None) => {
            let search = condition.py().import("nxla.ops.search")?;
            return search.call_method1("nonzero", (condition,)).map(Bound::unbind);
        }
        _ => return Err(argument_error("where", "x, y: must be passed together")),
    };
    let operands = pair([x1, x2], "where", Role::Element)?;
    let common = nxla_runtime::common_dtype(&operands);
    let [x1, x2] = [&operands[0], &operands[1]].map(|operand| match common {
        Some(common) => nxla_runtime::try_element(operand, common),
        None => Ok(nxla_runtime::position(operand)),
    });
    let (x1, x2) = (x1.or_raise()?, x2.or_raise()?);
    let operands = [Value::of(condition, "where")?, x1, x2];
    apply(
        condition.py(),
        "where",
        &operands,
        |graph, ids| one(graph.select(ids[0], ids[1], ids[2])),
    )
}

/// Return the promoted dtype of operands; scalars adapt to the other operands.
///
/// Examples
/// --------
/// >>> import nxla as nx
/// >>> nx.result_type(nx.int8, nx.tensor([1.5], "f16")), nx.result_type("u8", 1)
/// (f16, u8)
#[pyfunction]
#[pyo3(signature = (*operands, **unexpected), text_signature = "(*operands)")]
fn result_type(
    py: Python<'_>,
    operands: Vec<Bound<'_, PyAny>>,
    unexpected: Option<&Bound<'_, PyDict>>,
) -> PyResult<crate::dtype::PyDType> {
    reject_keywords(py, "result_type", unexpected)?;
    let mut common: Option<DType> = None;
    let mut numbers = Vec::new();
    for operand in &operands {
        let dtype = match crate::dtype::parse(operand)? {
            Some(dtype) => dtype,
            None => match Value::of(operand, "result_type")? {
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
        let dtype = match crate::numbers::checked_weak_scalar(number, common)? {
            Value::Number(number) => number_tensor(number, common).or_raise()?.dtype(),
            Value::Tensor(tensor) => tensor.dtype(),
            Value::Expr(expr) => expr.dtype(),
        };
        common = Some(
            common.map_or(dtype, |common| nxla_runtime::host::promote_keep_pred(common, dtype)),
        );
    }
    match common {
        Some(dtype) => Ok(crate::dtype::PyDType(dtype)),
        None => Err(argument_error("result_type", "operands: must be at least one; got none")),
    }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    register_unary(module)?;
    register_binary(module)?;
    register_composed_of_one(module)?;
    register_composed_of_two(module)?;
    declared_functions(module)?;
    add_functions!(module: select, result_type);
    Ok(())
}
