//! ONNX models as programs.
//!
//! [`Model::read`] parses a file, and [`Model::program`] traces its graph for inputs of known types.
//! Sizes are therefore numbers during the trace: a value that depends only on shapes is folded to a
//! constant by the caller's evaluator as soon as an operator needs it.

mod check;
mod constants;
mod error;
mod importer;
mod node;
mod ops;
mod proto;
mod structural;
mod tensors;
mod wire;

use std::collections::{BTreeMap, BTreeSet};

use nxla_expr::{Difference, ExprId, Graph, Program, TensorType};
use nxla_tensor::{DType, HostTensor};

pub use constants::Evaluate;
pub use ops::operators;
pub use proto::Dim;
pub use tensors::{External, NoExternal};

use crate::error::ImportError;
use error::{argument_error, at_name, unsupported_operators};
use importer::Importer;

/// The versions of the default operator set that import accepts.
pub const OPSETS: std::ops::RangeInclusive<i64> = 7..=28;

/// An input or output of a model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ValueInfo {
    /// The name.
    pub name: String,
    /// The dtype, if the model declares it; inputs have one.
    pub dtype: Option<DType>,
    /// The size of each axis, if the model declares them.
    pub shape: Option<Vec<Dim>>,
}

impl ValueInfo {
    /// Checks that an argument has the declared dtype and fits the declared sizes. `named` holds
    /// the sizes of the named axes of the arguments before.
    fn check<'v>(
        &'v self,
        found: &TensorType,
        named: &mut BTreeMap<&'v str, usize>,
    ) -> Result<(), ImportError> {
        let dims = self.shape.as_deref();
        let refuse = |difference, why| Err(argument_error(&self.name, difference, why));
        let expected = || format!("input must be {self}; got {found}");
        if self.dtype != Some(found.dtype) {
            return refuse(Difference::DType, expected());
        }
        if dims.is_some_and(|dims| dims.len() != found.rank()) {
            return refuse(Difference::Shape, expected());
        }
        for (dim, &size) in dims.unwrap_or_default().iter().zip(found.shape.iter()) {
            match dim {
                Dim::Size(fixed) if *fixed != size => {
                    return refuse(Difference::Shape, expected());
                }
                Dim::Named(name) => {
                    let known = *named.entry(name).or_insert(size);
                    if known != size {
                        let why = format!("axis {name} must have the size {known}; got {found}");
                        return refuse(Difference::Shape, why);
                    }
                }
                Dim::Size(_) | Dim::Any => {}
            }
        }
        Ok(())
    }
}

impl std::fmt::Display for ValueInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.dtype {
            Some(dtype) => write!(f, "{dtype}")?,
            None => f.write_str("any dtype")?,
        }
        let Some(dims) = &self.shape else { return f.write_str(" of any shape") };
        for dim in dims {
            match dim {
                Dim::Size(size) => write!(f, "[{size}]")?,
                Dim::Named(name) => write!(f, "[{name}]")?,
                Dim::Any => f.write_str("[?]")?,
            }
        }
        Ok(())
    }
}

/// A model that was read and checked.
#[derive(Clone, Debug)]
pub struct Model {
    proto: proto::Model,
    inputs: Vec<ValueInfo>,
    outputs: Vec<ValueInfo>,
    /// The names and values of the weights.
    weights: Vec<(String, HostTensor)>,
}

impl Model {
    /// Reads a model. Weights in other files are read by `external`.
    ///
    /// # Errors
    /// Returns an error with a position for bytes that are not a model, and one error with all
    /// operators that cannot be imported. Also returns an error for an unknown operator set or an
    /// input that is not a tensor.
    pub fn read(bytes: &[u8], external: &mut dyn External) -> Result<Model, ImportError> {
        let proto = proto::Reader::new(external).model(wire::Message::new(bytes))?;
        let list = check::unsupported_parts(&proto);
        if !list.is_empty() {
            return Err(unsupported_operators(list));
        }
        let graph = &proto.graph;
        let initialized: BTreeSet<&str> =
            graph.initializers.iter().map(|(name, _)| name.as_str()).collect();
        // Old files list initializers among the inputs.
        let is_input = |info: &proto::ValueInfo| !initialized.contains(info.name.as_str());
        let inputs: Vec<ValueInfo> = graph
            .inputs
            .iter()
            .filter(|info| is_input(info))
            .map(value)
            .collect::<Result<_, _>>()?;
        if let Some(other) = inputs.iter().find(|input| input.dtype.is_none()) {
            return Err(at_name(&other.name, "input must have a declared dtype"));
        }
        let outputs = graph.outputs.iter().map(value).collect::<Result<_, _>>()?;
        check_distinct("initializers", graph.initializers.iter().map(|(name, _)| name))?;
        check_distinct("inputs", inputs.iter().map(|input| &input.name))?;
        let constants = structural::constant_initializers(&proto);
        let packed = structural::packed_initializers(&proto);
        let weights = graph.initializers.iter().filter_map(|(name, tensor)| {
            let (name, tensor) = (name.as_str(), tensor.as_ref().ok()?);
            let is_weight = (tensor.dtype().is_float() || packed.contains(name))
                && tensor.rank() > 0
                && !constants.contains(name);
            is_weight.then(|| (name.to_owned(), tensor.clone()))
        });
        let weights = weights.collect();
        Ok(Model { proto, inputs, outputs, weights })
    }

    /// Returns the name of the graph.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.proto.graph.name
    }

    /// Returns the inputs, without initializers.
    #[must_use]
    pub fn inputs(&self) -> &[ValueInfo] {
        &self.inputs
    }

    /// Returns the outputs.
    #[must_use]
    pub fn outputs(&self) -> &[ValueInfo] {
        &self.outputs
    }

    /// Returns the weights: the initializers of floats, except scalars, numbers that determine shapes,
    /// and running statistics of batch normalizations in inference, and the integers of `MatMulNBits`
    /// and `GatherBlockQuantized`. As constants of the program, these integers would be unpacked by the
    /// compiler and need more memory than the file.
    #[must_use]
    pub fn weights(&self) -> &[(String, HostTensor)] {
        &self.weights
    }

    /// Adds the nodes of the model to a graph, with values for the weights and the inputs, and
    /// returns its outputs. `evaluate` computes values that depend only on shapes and constants.
    ///
    /// # Errors
    /// Returns the errors of [`Model::program`].
    pub fn build(
        &self,
        graph: &mut Graph,
        weights: &[ExprId],
        inputs: &[ExprId],
        evaluate: &Evaluate<'_>,
    ) -> Result<Vec<ExprId>, ImportError> {
        let failed = |error: nxla_expr::Error| at_name(self.name(), error.to_string());
        let mut unnamed = Vec::with_capacity(weights.len() + inputs.len());
        for &id in weights.iter().chain(inputs) {
            unnamed.push(graph.rename(id, None).map_err(failed)?);
        }
        let types: Vec<TensorType> =
            unnamed.iter().map(|&id| graph.tensor_type(id).clone()).collect();
        let (weights, inputs) = types.split_at(weights.len());
        let program = self.program(weights, inputs, evaluate)?;
        program.inline(graph, &unnamed).map_err(failed)
    }

    /// Traces the model for weights and inputs of these types, which are the inputs of the program.
    /// A weight may have another dtype than the weight of the file.
    ///
    /// # Errors
    /// Returns an error for weights or inputs that differ in number or type from the declared ones,
    /// and for a node that cannot be built for these types.
    pub fn program(
        &self,
        weights: &[TensorType],
        inputs: &[TensorType],
        evaluate: &Evaluate<'_>,
    ) -> Result<Program, ImportError> {
        self.check_types(weights, inputs)?;
        let types: Vec<TensorType> = weights.iter().chain(inputs).cloned().collect();
        let names = self.weights.iter().map(|(name, _)| name.as_str());
        let names = names.chain(self.inputs.iter().map(|value| value.name.as_str()));
        let mut graph = Graph::new();
        let parameters: Vec<ExprId> =
            types.iter().enumerate().map(|(at, ty)| graph.parameter(at, ty.clone())).collect();
        let mut importer = Importer::new(&self.proto, graph, evaluate);
        let outputs = importer.run(names.zip(parameters).collect())?;
        let program = Program::new(&importer.graph, types, &outputs)
            .map_err(|error| at_name(self.name(), error.to_string()))?;
        Ok(program.with_name(self.name()))
    }

    fn check_types(
        &self,
        weights: &[TensorType],
        inputs: &[TensorType],
    ) -> Result<(), ImportError> {
        for (noun, expected, found) in [
            ("weights", self.weights.len(), weights.len()),
            ("inputs", self.inputs.len(), inputs.len()),
        ] {
            if expected != found {
                let why = format!("must have {expected} {noun}; got {found}");
                return Err(at_name(self.name(), why));
            }
        }
        let mut named = BTreeMap::new();
        for (value, ty) in self.inputs.iter().zip(inputs) {
            value.check(ty, &mut named)?;
        }
        for ((name, value), found) in self.weights.iter().zip(weights) {
            let expected = value.shape();
            if found.shape != *expected {
                let why = format!("weight must have shape {expected}; got {found}");
                return Err(at_name(name, why));
            }
        }
        Ok(())
    }
}

fn check_distinct<'a>(
    what: &str,
    names: impl Iterator<Item = &'a String>,
) -> Result<(), ImportError> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(at_name(name, format!("{what} must have distinct names")));
        }
    }
    Ok(())
}

fn value(info: &proto::ValueInfo) -> Result<ValueInfo, ImportError> {
    let name = info.name.clone();
    let dtype = match info.data_type {
        0 => None,
        data_type => {
            Some(tensors::dtype_of(data_type).map_err(|fault| fault.at_value("value", &name))?)
        }
    };
    Ok(ValueInfo { name, dtype, shape: info.shape.clone() })
}
