//! A node that is being built: its inputs, its attributes, and values that must be known.

use nxla_expr::{ExprId, Graph, Padding, TensorType};
use nxla_tensor::{DType, HostTensor, Number, Scalar, Shape};

use super::constants::{FOLDED_ELEMENTS, NodeValue};
use super::error::{Built, invalid, unsupported};
use super::importer::Importer;
use super::proto::{self, Node, Value};
use super::tensors::dtype_of;

/// A node that is being built.
pub(super) struct Call<'c, 'm, 'e> {
    pub(super) importer: &'c mut Importer<'m, 'e>,
    pub(super) node: &'m Node,
    pub(super) inputs: Vec<Option<ExprId>>,
    /// The version of the operator set.
    pub(super) version: i64,
}

impl<'m> Call<'_, 'm, '_> {
    pub(super) fn graph(&mut self) -> &mut Graph {
        &mut self.importer.graph
    }

    // --- inputs ---

    /// Returns an input that must exist.
    pub(super) fn input(&self, index: usize) -> Built<ExprId> {
        self.optional(index).ok_or_else(|| format!("input {index}: must not be missing").into())
    }

    /// Returns an input, or `None` if the node has no such input.
    pub(super) fn optional(&self, index: usize) -> Option<ExprId> {
        self.inputs.get(index).copied().flatten()
    }

    /// Returns the first inputs, which must exist.
    pub(super) fn inputs<const N: usize>(&self) -> Built<[ExprId; N]> {
        let mut inputs = [ExprId::from_index(0); N];
        for (index, input) in inputs.iter_mut().enumerate() {
            *input = self.input(index)?;
        }
        Ok(inputs)
    }

    /// Returns two neighboring inputs, or `None` if the node has neither.
    pub(super) fn optional_pair(&self, first: usize, names: &str) -> Built<Option<[ExprId; 2]>> {
        match (self.optional(first), self.optional(first + 1)) {
            (Some(left), Some(right)) => Ok(Some([left, right])),
            (None, None) => Ok(None),
            _ => invalid(format!("{names}: must both exist or both be missing")),
        }
    }

    /// Returns all inputs from an index on, which must exist.
    pub(super) fn inputs_from(&self, first: usize) -> Built<Vec<ExprId>> {
        (first..self.inputs.len()).map(|index| self.input(index)).collect()
    }

    /// Returns whether an output is used.
    pub(super) fn has_output(&self, index: usize) -> bool {
        self.node.outputs.get(index).is_some_and(|name| !name.is_empty())
    }

    pub(super) fn shape(&self, id: ExprId) -> Shape {
        self.importer.graph.shape(id).clone()
    }

    pub(super) fn rank(&self, id: ExprId) -> usize {
        self.importer.graph.shape(id).rank()
    }

    pub(super) fn dtype(&self, id: ExprId) -> DType {
        self.importer.graph.dtype(id)
    }

    /// Resolves an axis that may be negative.
    pub(super) fn axis(&self, axis: i64, rank: usize) -> Built<usize> {
        let resolved = nxla_tensor::normalize_axis(axis, rank);
        resolved.map_err(|error| format!("axis: {error}").into())
    }

    /// Resolves axes that may be negative. By default, they are all axes.
    pub(super) fn axes(&self, axes: Option<Vec<i64>>, rank: usize) -> Built<Vec<usize>> {
        match axes {
            Some(axes) => axes.into_iter().map(|axis| self.axis(axis, rank)).collect(),
            None => Ok((0..rank).collect()),
        }
    }

    // --- known values ---

    /// Returns the value of an input that must not depend on the inputs of the model.
    pub(super) fn constant(&mut self, id: ExprId, argument: &str) -> Built<HostTensor> {
        match self.importer.value_of(id)? {
            NodeValue::Value(value) => Ok(value),
            NodeValue::TooLarge => invalid(format!(
                "{argument}: must depend on values of at most {FOLDED_ELEMENTS} elements, since it \
                 determines the shape of a result; got a value that depends on a larger one"
            )),
            NodeValue::Data => {
                let why = "must depend only on shapes and constants, since it determines the shape \
                           of a result; got a value that is computed from the data";
                unsupported(format!("{argument}: {why}"))
            }
        }
    }

    /// Returns the value of an input that may depend on the inputs of the model.
    pub(super) fn known_value(&mut self, id: ExprId) -> Built<Option<HostTensor>> {
        match self.importer.value_of(id)? {
            NodeValue::Value(value) => Ok(Some(value)),
            NodeValue::TooLarge | NodeValue::Data => Ok(None),
        }
    }

    /// Returns the integers of an input as [`Call::constant`] does.
    pub(super) fn integers(&mut self, id: ExprId, argument: &str) -> Built<Vec<i64>> {
        let value = self.constant(id, argument)?;
        let integers = (0..value.size()).map(|index| value.get(index).as_i64());
        let integers: Option<Vec<i64>> = integers.collect();
        integers.ok_or_else(|| format!("{argument}: must contain integers; got {value}").into())
    }

    /// Returns the numbers of an input as [`Call::constant`] does.
    pub(super) fn numbers(&mut self, id: ExprId, argument: &str) -> Built<Vec<f64>> {
        let value = self.constant(id, argument)?;
        Ok((0..value.size()).map(|index| value.get(index).as_f64()).collect())
    }

    /// Returns the single integer of an input as [`Call::constant`] does.
    pub(super) fn integer(&mut self, id: ExprId, argument: &str) -> Built<i64> {
        match self.integers(id, argument)?[..] {
            [integer] => Ok(integer),
            ref other => invalid(format!("{argument}: must be one integer; got {other:?}")),
        }
    }

    /// Returns the sizes of an input, which must not be negative.
    pub(super) fn sizes(&mut self, id: ExprId, argument: &str) -> Built<Vec<usize>> {
        let integers = self.integers(id, argument)?;
        to_sizes(&integers, argument)
    }

    /// Returns integers of an input, or of the attribute that older versions of an operator have.
    pub(super) fn int_list(&mut self, index: usize, name: &str) -> Built<Option<Vec<i64>>> {
        match self.optional(index) {
            Some(id) => Ok(Some(self.integers(id, name)?)),
            None => self.ints(name),
        }
    }

    // --- attributes ---

    fn attribute(&self, name: &str) -> Option<&'m Value> {
        let node: &'m Node = self.node;
        let found = node.attributes.iter().find(|attribute| attribute.name == name)?;
        self.importer.resolve(found)
    }

    fn wrong<T>(&self, name: &str, expected: &str) -> Built<T> {
        invalid(format!("attribute {name}: must be {expected}; got another kind of value"))
    }

    pub(super) fn maybe_int(&self, name: &str) -> Built<Option<i64>> {
        match self.attribute(name) {
            None => Ok(None),
            Some(Value::Int(value)) => Ok(Some(*value)),
            Some(_) => self.wrong(name, "an integer"),
        }
    }

    pub(super) fn int(&self, name: &str, default: i64) -> Built<i64> {
        Ok(self.maybe_int(name)?.unwrap_or(default))
    }

    /// Returns an attribute that must be a positive number.
    pub(super) fn positive(&self, name: &str, default: i64) -> Built<usize> {
        let value = self.int(name, default)?;
        match usize::try_from(value) {
            Ok(count) if count > 0 => Ok(count),
            _ => invalid(format!("{name}: must be positive; got {value}")),
        }
    }

    /// Returns an integer attribute as a boolean.
    pub(super) fn flag(&self, name: &str, default: bool) -> Built<bool> {
        Ok(self.maybe_int(name)?.map_or(default, |value| value != 0))
    }

    pub(super) fn maybe_float(&self, name: &str) -> Built<Option<f64>> {
        match self.attribute(name) {
            None => Ok(None),
            Some(Value::Float(value)) => Ok(Some(shortest(*value))),
            Some(_) => self.wrong(name, "a float"),
        }
    }

    pub(super) fn float(&self, name: &str, default: f64) -> Built<f64> {
        Ok(self.maybe_float(name)?.unwrap_or(default))
    }

    pub(super) fn text(&self, name: &str, default: &str) -> Built<String> {
        match self.attribute(name) {
            None => Ok(default.into()),
            Some(Value::Text(value)) => Ok(value.clone()),
            Some(_) => self.wrong(name, "a string"),
        }
    }

    pub(super) fn ints(&self, name: &str) -> Built<Option<Vec<i64>>> {
        match self.attribute(name) {
            None => Ok(None),
            Some(Value::Ints(values)) => Ok(Some(values.clone())),
            Some(Value::Other) => Ok(Some(Vec::new())),
            Some(_) => self.wrong(name, "a list of integers"),
        }
    }

    /// Returns a list of integers that must have a number of entries.
    pub(super) fn ints_of_length(&self, name: &str, length: usize) -> Built<Option<Vec<i64>>> {
        match self.ints(name)? {
            Some(list) if list.len() != length => {
                invalid(format!("{name}: must have {length} entries; got {}", list.len()))
            }
            list => Ok(list),
        }
    }

    pub(super) fn floats(&self, name: &str) -> Built<Option<Vec<f64>>> {
        match self.attribute(name) {
            None => Ok(None),
            Some(Value::Floats(values)) => {
                Ok(Some(values.iter().map(|&value| shortest(value)).collect()))
            }
            Some(_) => self.wrong(name, "a list of floats"),
        }
    }

    pub(super) fn texts(&self, name: &str) -> Built<Option<Vec<String>>> {
        match self.attribute(name) {
            None => Ok(None),
            Some(Value::Texts(values)) => Ok(Some(values.clone())),
            Some(_) => self.wrong(name, "a list of strings"),
        }
    }

    pub(super) fn tensor(&self, name: &str) -> Built<Option<HostTensor>> {
        match self.attribute(name) {
            None => Ok(None),
            Some(Value::Tensor(Ok(tensor))) => Ok(Some(tensor.clone())),
            Some(Value::Tensor(Err(fault))) => Err(fault.clone().of(&format!("attribute {name}"))),
            Some(_) => self.wrong(name, "a tensor"),
        }
    }

    /// Returns the dtype that an attribute names, or `None` if it is absent or 0.
    pub(super) fn data_type(&self, name: &str) -> Built<Option<DType>> {
        match self.int(name, 0)? {
            0 => Ok(None),
            data_type => dtype_of(data_type).map(Some).map_err(|fault| fault.of(name)),
        }
    }

    pub(super) fn subgraph(&self, name: &str) -> Built<&'m proto::Graph> {
        match self.attribute(name) {
            Some(Value::Graph(graph)) => Ok(graph),
            _ => self.wrong(name, "a graph"),
        }
    }

    /// Returns the sizes of an attribute, which must not be negative.
    pub(super) fn attribute_sizes(&self, name: &str) -> Built<Option<Vec<usize>>> {
        self.ints(name)?.map(|values| to_sizes(&values, name)).transpose()
    }

    // --- numbers with the dtype of a tensor ---

    /// Applies a function in a float of at least 32 bits, and returns the result in the dtype of `x`.
    /// Powers and sums can overflow 16 bits although the result fits.
    pub(super) fn in_wide_float(
        &mut self,
        x: ExprId,
        function: impl FnOnce(&mut Self, ExprId) -> Built<ExprId>,
    ) -> Built<ExprId> {
        let dtype = self.dtype(x);
        let wide = self.graph().as_type(x, dtype.at_least_f32())?;
        let result = function(self, wide)?;
        Ok(self.graph().as_type(result, dtype)?)
    }

    /// Creates a scalar of the dtype of a tensor.
    pub(super) fn scalar(&mut self, value: f64, beside: ExprId) -> Built<ExprId> {
        let dtype = self.dtype(beside);
        self.scalar_of(value, dtype)
    }

    /// Creates a scalar of a dtype. A fraction is an error for an integer dtype, which would truncate
    /// the number.
    pub(super) fn scalar_of(&mut self, value: f64, dtype: DType) -> Built<ExprId> {
        if dtype.is_integer() && value.is_finite() && value.fract() != 0.0 {
            let why = format!("must be a float for the number {value}; got {dtype}");
            return invalid(format!("input: {why}"));
        }
        let value =
            if dtype.is_float() { Scalar::Float(value) } else { Number::Float(value).cast(dtype) };
        Ok(self.graph().scalar_constant(value, dtype)?)
    }

    /// Creates a tensor of integers.
    pub(super) fn literal(&mut self, values: &[i64]) -> Built<ExprId> {
        let tensor = HostTensor::from_slice(values, [values.len()])?;
        Ok(self.graph().tensor(tensor)?)
    }

    /// Pads one axis with a value; negative widths remove elements.
    pub(super) fn pad_axis(
        &mut self,
        x: ExprId,
        value: ExprId,
        axis: usize,
        (low, high): (i64, i64),
    ) -> Built<ExprId> {
        let mut padding = vec![Padding::NONE; self.rank(x)];
        padding[axis] = Padding { low, high, interior: 0 };
        Ok(self.graph().pad(x, value, &padding)?)
    }

    /// Broadcasts a tensor to a shape, aligned from the right.
    pub(super) fn broadcast(&mut self, x: ExprId, shape: &[usize]) -> Built<ExprId> {
        if self.graph().shape(x).as_slice() == shape {
            return Ok(x);
        }
        Ok(self.graph().broadcast(x, Shape::from(shape), None)?)
    }

    /// Returns the type of a value.
    pub(super) fn ty(&self, id: ExprId) -> TensorType {
        self.importer.graph.tensor_type(id).clone()
    }
}

/// Converts integers to sizes.
pub(super) fn to_sizes(values: &[i64], argument: &str) -> Built<Vec<usize>> {
    let sizes = values.iter().map(|&value| usize::try_from(value)).collect::<Result<_, _>>();
    sizes.map_err(|_| format!("{argument}: must not be negative; got {values:?}").into())
}

/// Returns the shortest decimal number that rounds to a 32-bit float: files store 0.1 in 32 bits,
/// and a program for 64 bits is meant to use 0.1.
fn shortest(value: f32) -> f64 {
    value.to_string().parse().unwrap_or_else(|_| f64::from(value))
}
