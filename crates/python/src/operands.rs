//! The operands of a call, and the dtypes of the Python scalars and lists among them.
//!
//! A Python scalar, or a list of scalars, has no dtype until the dtypes of all operands are known.
//! It is then rounded once, to the promoted dtype of the operands that contain elements.

use nxla_runtime::host::{Number, promote_keep_pred};
use nxla_runtime::{DType, number_tensor};
use pyo3::prelude::*;
use pyo3::types::PyInt;
use smallvec::SmallVec;

use crate::errors::OrRaise;
use crate::nested::Nested;
use crate::numbers::{checked_weak_scalar, need_u64};
use crate::tensor::PyTensor;
use crate::value::{FromPython, Value, any_integer, is_list};

/// The operands of a call as tensors, traced values and numbers.
pub(crate) type Values = SmallVec<[Value; 3]>;

/// The dtype of scalars that keep their digits.
const F64: Option<DType> = Some(DType::F64);

/// The dtype of booleans, next to which scalars take their default dtypes.
const PRED: Option<DType> = Some(DType::Pred);

/// The role of an operand in a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The result has elements of the promoted dtype, which an integer must fit.
    Element,
    /// The operand is converted before it meets the others, or the result is a float.
    Free,
    /// The operand is compared exactly with the other operands, for any size.
    Compared,
    /// The operand is a lower limit of the other operands. A limit below the range of an integer
    /// dtype has no effect and need not fit.
    LowerLimit,
    /// The operand is an upper limit of the other operands, with the same rule.
    UpperLimit,
    /// The operand contains indices. Scalars never take its dtype.
    Position,
    /// The operand is computed in `f64`, and scalars keep their digits.
    Precise,
}

impl Role {
    /// Returns whether the operand has no part in the dtype of the others.
    fn is_apart(self) -> bool {
        matches!(self, Role::Position | Role::Precise)
    }

    /// Returns whether integers beyond the range of floats count as infinities.
    fn takes_any_integer(self) -> bool {
        matches!(self, Role::Compared | Role::LowerLimit | Role::UpperLimit)
    }
}

/// An operand before the dtypes of its numbers are known.
enum Operand {
    Value(Value),
    /// A list of Python scalars.
    List(Nested, DType),
}

impl Operand {
    fn try_of(operand: &Bound<'_, PyAny>, role: Role) -> PyResult<Option<Operand>> {
        if role.takes_any_integer() && operand.is_exact_instance_of::<PyInt>() {
            return Ok(Some(Operand::Value(Value::Number(any_integer(operand)?))));
        }
        if !is_list(operand) {
            return Ok(Value::try_of(operand)?.map(Operand::Value));
        }
        let list = Nested::of(operand)?;
        let dtype = list.dtype()?;
        if list.has_arrays() {
            return Ok(Some(Operand::Value(list.tensor_of(operand, dtype)?)));
        }
        Ok(Some(Operand::List(list, dtype)))
    }

    /// Returns whether the operand consists of Python scalars.
    fn is_literal(&self) -> bool {
        matches!(self, Operand::List(..) | Operand::Value(Value::Number(_)))
    }

    /// The Python scalars.
    fn numbers(&self) -> &[Number] {
        match self {
            Operand::Value(Value::Number(number)) => std::slice::from_ref(number),
            Operand::Value(_) => &[],
            Operand::List(list, _) => list.numbers(),
        }
    }

    fn dtype(&self) -> Option<DType> {
        match self {
            Operand::Value(value) => value.dtype(),
            Operand::List(_, dtype) => Some(*dtype),
        }
    }
}

/// The operands of a call, in the order of its arguments.
#[derive(Default)]
pub(crate) struct Operands(SmallVec<[(Operand, Role); 3]>);

impl Operands {
    /// Adds an operand of `function`, which is its public name.
    pub(crate) fn push(
        &mut self,
        operand: &Bound<'_, PyAny>,
        function: &str,
        role: Role,
    ) -> PyResult<()> {
        match Operand::try_of(operand, role)? {
            Some(given) => self.0.push((given, role)),
            None => {
                let value = Value::of(operand, function)?;
                self.0.push((Operand::Value(value), role));
            }
        }
        Ok(())
    }

    /// Adds an operand, or returns `false` for an object that is not one.
    pub(crate) fn try_push(&mut self, operand: &Bound<'_, PyAny>, role: Role) -> PyResult<bool> {
        let Some(given) = Operand::try_of(operand, role)? else { return Ok(false) };
        self.0.push((given, role));
        Ok(true)
    }

    /// The operands, with scalars in their final dtypes.
    pub(crate) fn values(self) -> PyResult<Values> {
        let elements = || self.0.iter().filter(|(_, role)| !role.is_apart());
        let common = elements().filter_map(|(given, _)| given.dtype()).reduce(promote_keep_pred);
        let has_others = elements().count() < self.0.len();
        let mut is_u64 = false;
        if common.is_none_or(|dtype| dtype.is_integer() || dtype.is_pred()) {
            let combined = elements().filter(|(_, role)| *role == Role::Element);
            is_u64 = need_u64(combined.flat_map(|(given, _)| given.numbers()).copied())?
                && elements().all(|(given, _)| given.is_literal() || given.dtype() == PRED);
        }
        // Literals have no dtypes to promote: they share the dtype that represents all of them.
        let common = if is_u64 { Some(DType::U64) } else { common };
        let value = |(given, role): (Operand, Role)| match given {
            Operand::List(list, own) if role == Role::Position => list.tensor(own),
            Operand::List(list, own) if role == Role::Precise => {
                list.tensor(exact_list_dtype(own, F64))
            }
            Operand::List(list, _) if is_u64 => list.tensor(DType::U64),
            Operand::List(list, own) => list.tensor(exact_list_dtype(own, common)),
            Operand::Value(Value::Number(number)) => {
                number_value(number, role, common, has_others || is_u64)
            }
            Operand::Value(value) => Ok(value),
        };
        self.0.into_iter().map(value).collect()
    }
}

/// A Python scalar among operands that promote to `common`. With `is_typed` it takes a dtype here,
/// because the promotion of all operands would choose another one.
fn number_value(
    number: Number,
    role: Role,
    common: Option<DType>,
    is_typed: bool,
) -> PyResult<Value> {
    match role {
        Role::Position => Ok(nxla_runtime::position(&number)),
        Role::Precise => number_tensor(number, F64).map(Value::Tensor).or_raise(),
        Role::Compared => Ok(nxla_runtime::comparison_scalar(number, common)),
        Role::Free => Ok(Value::Number(number)),
        Role::Element | Role::LowerLimit | Role::UpperLimit => {
            match checked_weak_scalar(clamp_limit(number, role, common), common)? {
                Value::Number(number) if is_typed => {
                    number_tensor(number, common).map(Value::Tensor).or_raise()
                }
                value => Ok(value),
            }
        }
    }
}

/// A limit outside the range of the limited integers, clamped to the range.
fn clamp_limit(number: Number, role: Role, common: Option<DType>) -> Number {
    let Some(dtype) = common.filter(|dtype| dtype.is_integer()) else { return number };
    match (number, dtype.min_value().as_i128(), dtype.max_value().as_i128()) {
        (Number::Int(value), Some(least), _) if role == Role::LowerLimit => {
            Number::Int(value.max(least))
        }
        (Number::Int(value), _, Some(most)) if role == Role::UpperLimit => {
            Number::Int(value.min(most))
        }
        (Number::LargeInt(value), Some(least), _) if role == Role::LowerLimit && value < 0.0 => {
            Number::Int(least)
        }
        (Number::LargeInt(value), _, Some(most)) if role == Role::UpperLimit && value > 0.0 => {
            Number::Int(most)
        }
        _ => number,
    }
}

/// The dtype for a list of Python floats of dtype `own`, which loses no digits that the promoted
/// dtype would keep. The list still promotes as `own`.
fn exact_list_dtype(own: DType, common: Option<DType>) -> DType {
    match common {
        Some(DType::F64) if own.is_float() => DType::F64,
        Some(DType::C128) if own.is_float() => DType::F64,
        Some(DType::C128) if own.is_complex() => DType::C128,
        _ => own,
    }
}

/// Two operands of one role.
pub(crate) fn pair(
    operands: [&Bound<'_, PyAny>; 2],
    function: &str,
    role: Role,
) -> PyResult<Values> {
    let mut both = Operands::default();
    for operand in operands {
        both.push(operand, function, role)?;
    }
    both.values()
}

/// Values whose elements are combined, with scalars in the dtypes of a call with these operands.
pub(crate) fn elements(values: impl IntoIterator<Item = Value>) -> PyResult<Values> {
    Operands(values.into_iter().map(|value| (Operand::Value(value), Role::Element)).collect())
        .values()
}

/// The operands as tensors, with scalars in the dtypes of the call.
#[pyfunction]
#[pyo3(signature = (function, operands, compared=false))]
fn as_tensors<'py>(
    function: &str,
    operands: Vec<Bound<'py, PyAny>>,
    compared: bool,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let mut together = Operands::default();
    let role = if compared { Role::Compared } else { Role::Element };
    for operand in &operands {
        together.push(operand, function, role)?;
    }
    let values = together.values()?;
    let common = nxla_runtime::common_dtype(&values);
    let tensor = |(value, operand): (Value, Bound<'py, PyAny>)| match value {
        Value::Expr(_) => Ok(operand),
        Value::Tensor(_) if operand.is_instance_of::<PyTensor>() => Ok(operand),
        Value::Tensor(tensor) => Ok(PyTensor::wrap(operand.py(), tensor)?.into_bound(operand.py())),
        Value::Number(number) => {
            let tensor = number_tensor(number, common).or_raise()?;
            Ok(PyTensor::wrap(operand.py(), tensor)?.into_bound(operand.py()))
        }
    };
    values.into_iter().zip(operands).map(tensor).collect()
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(as_tensors, module)?)
}
