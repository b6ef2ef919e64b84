//! `x[...]`: ints, ranges, new axes, ellipses, masks, traced indices and index tensors.

use nxla_runtime::graph::build::{Subscript, Update};
use nxla_runtime::graph::{Combine, ExprId, Graph, UnaryOp};
use nxla_runtime::host::broadcast_shapes;
use nxla_runtime::{DType, RawTensor, Scalar, Shape, Trace};
use pyo3::exceptions::{PyIndexError, PyOverflowError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyInt, PySlice, PyTuple};

use super::true_indices;
use crate::apply::{apply, one, run_eagerly};
use crate::arrays::array_type;
use crate::errors::{argument_error, dtype_error, kind_of, trace_error};
use crate::expr::PyExpr;
use crate::nested::Nested;
use crate::numbers::{fit_elements, refuse_complex};
use crate::source::at_current_line;
use crate::tensor::PyTensor;
use crate::value::{FromPython, Value, describe, is_list, is_sample};

/// An entry of a subscript, before its operand is a node.
enum Item {
    Known(Subscript),
    Dynamic(usize),
    Take(usize),
}

/// A parsed subscript.
#[derive(Default)]
struct ParsedSubscript {
    items: Vec<Item>,
    operands: Vec<Value>,
    /// True for a mask of one false element.
    keeps_nothing: bool,
}

impl ParsedSubscript {
    /// The subscript, whose operands are these nodes.
    fn subscript(&self, ids: &[ExprId]) -> Vec<Subscript> {
        let items = self.items.iter().map(|item| match *item {
            Item::Known(known) => known,
            Item::Dynamic(position) => Subscript::Dynamic(ids[position]),
            Item::Take(position) => Subscript::Take(ids[position]),
        });
        items.collect()
    }

    fn operand(&mut self, value: Value) -> usize {
        self.operands.push(value);
        self.operands.len() - 1
    }

    /// Makes operands of single indices of an eager operation, so that another index does not
    /// compile another program.
    fn free_indices(&mut self) {
        for position in 0..self.items.len() {
            let Item::Known(Subscript::At(index)) = self.items[position] else { continue };
            let dtype = if u32::try_from(index).is_ok() { DType::U32 } else { DType::U64 };
            let index = RawTensor::scalar(Scalar::UInt(index as u64), dtype);
            self.items[position] = Item::Dynamic(self.operand(Value::Tensor(index)));
        }
    }
}

/// Reads the subscript of a value.
fn parse_subscript(
    py: Python<'_>,
    x: &Value,
    key: &Bound<'_, PyAny>,
    by_mask: &str,
) -> PyResult<ParsedSubscript> {
    let mut parsed = read_entries(py, &shape_of(x), key, by_mask)?;
    if matches!(x, Value::Tensor(_)) && !Trace::is_entered() {
        parsed.free_indices();
    }
    Ok(parsed)
}

/// The shape of a tensor or a traced value.
fn shape_of(value: &Value) -> Shape {
    match value {
        Value::Expr(expr) => expr.shape(),
        Value::Tensor(tensor) => tensor.shape().clone(),
        Value::Number(_) => Shape::scalar(),
    }
}

fn dtype_of(value: &Value) -> DType {
    match value {
        Value::Expr(expr) => expr.dtype(),
        Value::Tensor(tensor) => tensor.dtype(),
        Value::Number(_) => DType::S32,
    }
}

/// `x[key]`.
pub(crate) fn get_item(x: &Bound<'_, PyAny>, key: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let operand = Value::of(x, "index")?;
    let parsed = parse_subscript(x.py(), &operand, key, "select by it with nx.where")?;
    let mut operands = parsed.operands.clone();
    operands.push(operand);
    apply(x.py(), "index", &operands, |graph, ids| {
        let found = graph.subscript(ids[ids.len() - 1], &parsed.subscript(ids))?;
        if parsed.keeps_nothing {
            return one(graph.slice_along_axis(found, 0, 0, 0, 1));
        }
        one::<nxla_runtime::Error>(Ok(found))
    })
}

/// The alternative to an assignment that is not supported.
fn instead(py: Python<'_>) -> String {
    let line = at_current_line(py);
    format!(
        "use x = x.at[key].set(value), x = x.at[key].add(value), x = nx.put_slice(x, starts, \
         values) or x = nx.where(condition, values, x) instead of assigning to elements{line}"
    )
}

/// `x[key] = value`: replaces the data of the variable; other variables keep the old data.
pub(crate) fn set_tensor_item(
    x: &Bound<'_, PyTensor>,
    key: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let py = x.py();
    if Trace::is_entered() {
        return Err(trace_error(format!(
            "a traced function cannot assign to elements of a tensor from outside; {}",
            instead(py)
        )));
    }
    // Assignments change neither the dtype nor the shape, which determine the operands.
    let (mut operands, target) = update_operands(py, x.as_any(), key, value)?;
    let position = operands.len() - 2;
    x.get().replace(|data| {
        operands[position] = Value::Tensor(data);
        let written = run_eagerly(py, "index", &operands, &mut |graph, ids| {
            one(build_update(graph, ids, &target, Change::Set))
        })?;
        let written = written.into_iter().next().expect("the builder returns one result");
        Ok(written.bind(py).cast::<PyTensor>()?.get().tensor())
    })
}

/// The error for `x[key] = value` of a traced value.
pub(crate) fn no_assignment(py: Python<'_>) -> PyErr {
    trace_error(format!("a traced value cannot be changed; {}", instead(py)))
}

/// The error for `del x[key]`.
pub(crate) fn no_deletion() -> PyErr {
    pyo3::exceptions::PyTypeError::new_err("elements of a tensor cannot be deleted")
}

/// The elements that an update changes.
enum Target {
    Subscript(ParsedSubscript),
    /// The entries for which the first operand, a mask of the leading axes, is true.
    Mask,
}

/// Returns the operands of the target, then the indexed value, then the new elements.
fn update_operands(
    py: Python<'_>,
    x: &Bound<'_, PyAny>,
    key: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
) -> PyResult<(Vec<Value>, Target)> {
    let operand = Value::of(x, "index")?;
    let written = value_to_write(value, dtype_of(&operand))?;
    if let Some(mask) = mask_of_update(key, &shape_of(&operand), &shape_of(&written))? {
        return Ok((vec![mask, operand, written], Target::Mask));
    }
    let parsed = parse_subscript(py, &operand, key, "write by it with nx.where")?;
    let mut operands = parsed.operands.clone();
    operands.extend([operand, written]);
    Ok((operands, Target::Subscript(parsed)))
}

/// Returns the key if it is a mask, traced or not, and the new elements are the same for each selected
/// entry. Their number is not needed then.
fn mask_of_update(
    key: &Bound<'_, PyAny>,
    x: &[usize],
    written: &[usize],
) -> PyResult<Option<Value>> {
    let is_value = key.is_instance_of::<PyTensor>() || key.is_instance_of::<PyExpr>();
    if !is_value && !array_type(key)?.is_some_and(|(dtype, _)| dtype.is_pred()) {
        return Ok(None); // The elements of index arrays are not read here.
    }
    let Some(mask) = Value::try_of(key)? else { return Ok(None) };
    let sizes = shape_of(&mask);
    let is_mask = dtype_of(&mask).is_pred() && sizes.rank() > 0 && x.starts_with(&sizes);
    let entry = x.get(sizes.rank()..).unwrap_or_default();
    let broadcasts = broadcast_shapes(written, entry).is_ok_and(|common| common[..] == *entry);
    Ok((is_mask && broadcasts).then_some(mask))
}

/// A change of elements by new ones.
#[derive(Clone, Copy)]
enum Change {
    Set,
    Add,
    Subtract,
    Combine(Combine),
}

fn build_update(
    graph: &mut Graph,
    ids: &[ExprId],
    target: &Target,
    change: Change,
) -> nxla_runtime::Result<ExprId> {
    let (x, value) = (ids[ids.len() - 2], ids[ids.len() - 1]);
    let parsed = match target {
        Target::Subscript(parsed) if parsed.keeps_nothing => return Ok(x),
        Target::Subscript(parsed) => parsed,
        Target::Mask => return update_by_mask(graph, ids[0], x, value, change),
    };
    let (update, value) = match change {
        Change::Set => (Update::Set, value),
        Change::Add => (Update::Add, value),
        Change::Combine(combine) => (Update::Combine(combine), value),
        Change::Subtract => {
            let value = graph.as_type(value, graph.dtype(x))?;
            (Update::Add, graph.unary(UnaryOp::Negate, value)?)
        }
    };
    Ok(graph.subscript_update(x, &parsed.subscript(ids), value, update)?)
}

fn update_by_mask(
    graph: &mut Graph,
    mask: ExprId,
    x: ExprId,
    value: ExprId,
    change: Change,
) -> nxla_runtime::Result<ExprId> {
    let (dtype, rank) = (graph.dtype(x), graph.shape(x).rank());
    let value = graph.as_type(value, dtype)?;
    let changed = match change {
        Change::Set => value,
        Change::Add => graph.add(x, value)?,
        Change::Subtract => graph.subtract(x, value)?,
        Change::Combine(combine) => graph.binary(combine.binary(), x, value)?,
    };
    let changed = graph.as_type(changed, dtype)?;
    let mut sizes = graph.shape(mask).to_vec();
    sizes.resize(rank, 1);
    let mask = graph.reshape(mask, sizes)?;
    Ok(graph.select(mask, changed, x)?)
}

/// A value that is written to elements of a dtype. Python scalars and lists of them are rounded
/// once, to that dtype.
fn value_to_write(value: &Bound<'_, PyAny>, dtype: DType) -> PyResult<Value> {
    if is_list(value) {
        let list = Nested::of(value)?;
        if list.needs_stack() {
            // The update converts the stacked tensors like a single tensor.
            fit_elements(list.scalars(), dtype)?;
            let own = list.dtype()?;
            if own.is_complex() {
                refuse_complex(dtype)?;
            }
            return list.tensor_of(value, own);
        }
        let list = list.into_numbers()?;
        fit_elements(list.numbers(), dtype)?;
        return list.tensor(dtype);
    }
    match Value::of(value, "index")? {
        Value::Number(number) => {
            fit_elements(&[number], dtype)?;
            Ok(Value::Tensor(RawTensor::scalar(number.cast(dtype), dtype)))
        }
        value => {
            if value.dtype().is_some_and(DType::is_complex) {
                refuse_complex(dtype)?;
            }
            Ok(value)
        }
    }
}

/// A tensor with updated elements at `key`; `how` names the update.
#[pyfunction]
fn subscript_update(
    x: &Bound<'_, PyAny>,
    key: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
    how: &str,
) -> PyResult<Py<PyAny>> {
    let py = x.py();
    let change = match how {
        "set" => Change::Set,
        "add" => Change::Add,
        "subtract" => Change::Subtract,
        "multiply" => Change::Combine(Combine::Multiply),
        "min" => Change::Combine(Combine::Min),
        "max" => Change::Combine(Combine::Max),
        _ => return Err(argument_error("at", format!("update: unknown kind {how:?}"))),
    };
    let (operands, target) = update_operands(py, x, key, value)?;
    if matches!(change, Change::Combine(Combine::Min | Combine::Max)) {
        let dtype = dtype_of(&Value::of(x, "index")?);
        if dtype.is_complex() {
            return Err(dtype_error(format!(
                "at: x: must have a real dtype for {how}; got {dtype}"
            )));
        }
    }
    apply(py, "index", &operands, |graph, ids| one(build_update(graph, ids, &target, change)))
}

fn read_entries(
    py: Python<'_>,
    shape: &[usize],
    key: &Bound<'_, PyAny>,
    by_mask: &str,
) -> PyResult<ParsedSubscript> {
    let items: Vec<Bound<'_, PyAny>> = match key.cast::<PyTuple>() {
        Ok(items) if !is_sample(key) => items.iter().collect(),
        _ => vec![key.clone()],
    };
    let read: Vec<Entry> =
        items.iter().map(|item| entry(item, by_mask)).collect::<PyResult<_>>()?;
    let given: usize = read.iter().map(Entry::axes).sum();
    if given > shape.len() {
        let why = format!(
            "index: must have at most {} entries, one for each axis; got {given}",
            shape.len()
        );
        return Err(PyIndexError::new_err(why));
    }
    let is_truth =
        |entry: &Entry<'_>| matches!(entry, Entry::Mask(mask) if mask.shape().rank() == 0);
    if read.len() > 1 && read.iter().any(is_truth) {
        return Err(argument_error("index", "a boolean scalar must be the only index"));
    }
    let ellipses = read.iter().filter(|entry| matches!(entry, Entry::Ellipsis)).count();
    if ellipses > 1 {
        let why = format!("must contain at most one ellipsis (...); got {ellipses}");
        return Err(argument_error("index", why));
    }
    let mut parsed = ParsedSubscript::default();
    let mut axis = 0;
    let whole = |size: usize| Item::Known(Subscript::whole_axis(size));
    for entry in read {
        match entry {
            Entry::New => parsed.items.push(Item::Known(Subscript::New)),
            Entry::Ellipsis => {
                let skipped = shape.len() - given;
                if skipped == 0 {
                    parsed.items.push(Item::Known(Subscript::Nothing));
                }
                parsed.items.extend(shape[axis..axis + skipped].iter().copied().map(whole));
                axis += skipped;
            }
            Entry::Index(index) => {
                parsed.items.push(single(index, axis, shape[axis])?);
                axis += 1;
            }
            Entry::Slice(slice) => {
                parsed.items.push(Item::Known(range(&slice, shape[axis])?));
                axis += 1;
            }
            Entry::Tensor(value) => {
                let scalar = shape_of(&value).rank() == 0;
                let at = parsed.operand(value);
                parsed.items.push(if scalar { Item::Dynamic(at) } else { Item::Take(at) });
                axis += 1;
            }
            Entry::Mask(mask) => {
                index_by_mask(py, &mut parsed, &mask, axis, shape)?;
                axis += mask.shape().rank();
            }
        }
    }
    parsed.items.extend(shape[axis..].iter().copied().map(whole));
    Ok(parsed)
}

/// An item of a subscript.
enum Entry<'py> {
    New,
    Ellipsis,
    Index(i64),
    Slice(Bound<'py, PySlice>),
    /// Integers.
    Tensor(Value),
    /// A mask. It indexes as many axes as its own rank.
    Mask(RawTensor),
}

impl Entry<'_> {
    /// The number of axes that the item indexes.
    fn axes(&self) -> usize {
        match self {
            Entry::New | Entry::Ellipsis => 0,
            Entry::Index(_) | Entry::Slice(_) | Entry::Tensor(_) => 1,
            Entry::Mask(mask) => mask.shape().rank(),
        }
    }
}

fn entry<'py>(item: &Bound<'py, PyAny>, by_mask: &str) -> PyResult<Entry<'py>> {
    if item.is_none() {
        return Ok(Entry::New);
    }
    if item.is_instance_of::<PyEllipsis>() {
        return Ok(Entry::Ellipsis);
    }
    if let Ok(truth) = item.cast::<PyBool>() {
        return Ok(Entry::Mask(RawTensor::scalar(
            Scalar::UInt(truth.is_true().into()),
            DType::Pred,
        )));
    }
    if is_integer(item)? {
        let index = item.extract().map_err(|error: PyErr| {
            // Other errors come from the method `__index__` of the object.
            if !error.is_instance_of::<PyOverflowError>(item.py()) {
                return error;
            }
            PyIndexError::new_err(format!("index: must fit in 64 bits; got {item}"))
        });
        return index.map(Entry::Index);
    }
    if let Ok(slice) = item.cast::<PySlice>() {
        return Ok(Entry::Slice(slice.clone()));
    }
    let is_tensor = item.is_instance_of::<PyTensor>() || item.is_instance_of::<PyExpr>();
    let indices = match Value::try_of(item)? {
        Some(value) if is_tensor || is_list(item) => value,
        Some(value @ Value::Tensor(_)) => value,
        _ => {
            let kind = if is_sample(item) { describe(item)? } else { kind_of(item)? };
            let why = format!(
                "must contain integers, slices, ..., None, and tensors of integers or booleans; got \
                 {kind}"
            );
            return Err(argument_error("index", why));
        }
    };
    let dtype = dtype_of(&indices);
    match indices {
        Value::Tensor(mask) if dtype.is_pred() => Ok(Entry::Mask(mask)),
        _ if dtype.is_pred() => Err(trace_error(format!(
            "a mask must not be traced, because the number of its true elements determines the \
             shape of the result; {by_mask} instead"
        ))),
        // An empty list has no dtype.
        indices if dtype.is_integer() || is_list(item) && shape_of(&indices).size() == 0 => {
            Ok(Entry::Tensor(whole_numbers(indices)))
        }
        _ => {
            let why = format!("indices: must be integers or booleans; got {dtype}");
            Err(argument_error("index", why))
        }
    }
}

/// Returns whether an index is an integer of Python or a scalar of NumPy, whose range is checked.
/// Tensors and arrays have a length; they are operands, and their values are not read here.
fn is_integer(item: &Bound<'_, PyAny>) -> PyResult<bool> {
    if item.is_instance_of::<PyInt>() {
        return Ok(true);
    }
    let kind = item.get_type();
    Ok(kind.hasattr(intern!(item.py(), "__index__"))?
        && !kind.hasattr(intern!(item.py(), "__len__"))?)
}

/// Indices without elements as integers.
fn whole_numbers(indices: Value) -> Value {
    match indices {
        Value::Tensor(RawTensor::Host(host)) if !host.dtype().is_integer() => {
            Value::Tensor(host.cast(DType::S32).into())
        }
        indices => indices,
    }
}

fn single(index: i64, axis: usize, size: usize) -> PyResult<Item> {
    let signed = i64::try_from(size).unwrap_or(i64::MAX);
    let resolved = if index < 0 { index + signed } else { index };
    match usize::try_from(resolved) {
        Ok(resolved) if resolved < size => Ok(Item::Known(Subscript::At(resolved))),
        _ => {
            let why = format!("index {index} is out of range for axis {axis} of size {size}");
            Err(PyIndexError::new_err(why))
        }
    }
}

fn range(slice: &Bound<'_, PySlice>, size: usize) -> PyResult<Subscript> {
    let range = slice.indices(isize::try_from(size).unwrap_or(isize::MAX))?;
    let length = range.slicelength;
    if length == 0 {
        return Ok(Subscript::Range { start: 0, span: 0, stride: 1, is_reversed: false });
    }
    let stride = range.step.unsigned_abs();
    let span = (length - 1) * stride + 1;
    // A negative step selects the same elements in reverse order.
    let start = range.start.unsigned_abs();
    let is_reversed = range.step < 0;
    let start = if is_reversed { start + 1 - span } else { start };
    Ok(Subscript::Range { start, span, stride, is_reversed })
}

/// A mask is converted to the indices of its true elements, one tensor for each axis.
fn index_by_mask(
    py: Python<'_>,
    parsed: &mut ParsedSubscript,
    mask: &RawTensor,
    axis: usize,
    shape: &[usize],
) -> PyResult<()> {
    let sizes = mask.shape().clone();
    if !mask.vectors().is_empty() {
        return Err(argument_error("index", "mask: must not have vectorized axes"));
    }
    if let Some(wrong) = (0..sizes.rank()).find(|&at| shape[axis + at] != sizes[at]) {
        let why = format!(
            "mask: must have size {} along axis {wrong}, as the tensor along axis {}; got size {}",
            shape[axis + wrong],
            axis + wrong,
            sizes[wrong]
        );
        return Err(PyIndexError::new_err(why));
    }
    if sizes.rank() == 0 {
        // A boolean scalar is a mask of a new axis of size 1, which it keeps or drops.
        parsed.items.push(Item::Known(Subscript::New));
        parsed.keeps_nothing = !true_indices::is_true(py, mask)?;
        return Ok(());
    }
    for indices in true_indices::indices(py, mask)? {
        let position = parsed.operand(Value::Tensor(indices));
        parsed.items.push(Item::Take(position));
    }
    Ok(())
}

/// Iterates over the first axis.
pub(crate) fn iterate<'py, T>(x: &Bound<'py, T>) -> PyResult<Bound<'py, PyAny>> {
    let x = x.as_any();
    let length = x.len()?;
    let items: Vec<Bound<'py, PyAny>> =
        (0..length).map(|index| x.get_item(index)).collect::<PyResult<_>>()?;
    pyo3::types::PyList::new(x.py(), items)?.into_any().call_method0("__iter__")
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(subscript_update, module)?)
}
