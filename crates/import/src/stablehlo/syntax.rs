//! The syntax tree of a module, which the readers of text and of bytecode produce.
//!
//! Regions have one block, as in all operations of StableHLO. Values are numbered within a function.

use nxla_expr::{Line, TensorType};
use nxla_tensor::HostTensor;

use crate::Place;

/// The number of a value within its function.
pub(super) type ValueId = usize;

/// The position of an operation in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Position {
    /// A line of text, starting at 1.
    Line(usize),
    /// An offset in bytecode, starting at 0.
    Byte(usize),
}

impl From<Position> for Place {
    fn from(position: Position) -> Self {
        match position {
            Position::Line(line) => Place::Line(line),
            Position::Byte(byte) => Place::Byte(byte),
        }
    }
}

/// The type of a value or an attribute.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Type {
    /// A tensor with a static shape and a dtype that graphs have.
    Tensor(TensorType),
    /// Several values.
    Tuple(Vec<Type>),
    /// The type of a function.
    Function(Vec<Type>, Vec<Type>),
    /// Another type, with its text.
    Other(String),
}

impl Type {
    /// Returns whether values of the type order side effects.
    pub(super) fn is_token(&self) -> bool {
        matches!(self, Type::Other(text) if text == "!stablehlo.token")
    }
}

/// The value of an attribute.
#[derive(Clone, Debug)]
pub(super) enum Attribute {
    /// An attribute without a value.
    Unit,
    Bool(bool),
    Int(i128),
    Float(f64),
    String(String),
    /// The name of a function, without `@`.
    Symbol(String),
    /// A keyword, such as the direction of a comparison.
    Keyword(String),
    List(Vec<Attribute>),
    Dictionary(Vec<(String, Attribute)>),
    /// A constant tensor.
    Dense(Dense),
    Type(Type),
    /// `[0] x [1]`, or `a -> b`: parts of the short forms of products and convolutions.
    Pair(Box<Attribute>, Box<Attribute>),
}

/// A constant tensor.
#[derive(Clone, Debug)]
pub(super) enum Dense {
    /// One element for the whole tensor, as a tensor without axes.
    Splat(HostTensor, TensorType),
    /// All elements.
    Tensor(HostTensor),
    /// A constant of a type that graphs do not have.
    Other(String),
}

/// An operation.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    /// The name with its dialect, such as `stablehlo.add`.
    pub(super) name: String,
    pub(super) operands: Vec<ValueId>,
    /// The number of the first result; the other results follow.
    pub(super) first_result: ValueId,
    pub(super) result_types: Vec<Type>,
    pub(super) attributes: Vec<(String, Attribute)>,
    pub(super) regions: Vec<Region>,
    pub(super) position: Position,
    /// The line of the user's program that created the operation.
    pub(super) line: Option<Line>,
}

impl Operation {
    /// Creates an operation without operands, results, attributes and regions.
    pub(super) fn new(name: &str, position: Position) -> Self {
        Self {
            name: name.to_owned(),
            operands: Vec::new(),
            first_result: 0,
            result_types: Vec::new(),
            attributes: Vec::new(),
            regions: Vec::new(),
            position,
            line: None,
        }
    }

    /// Returns the attribute of the first of these names that exists.
    pub(super) fn attribute(&self, names: &[&str]) -> Option<&Attribute> {
        let named = |name: &&str| self.attributes.iter().find(|(key, _)| key == name);
        names.iter().find_map(named).map(|(_, value)| value)
    }

    /// Returns the name of a module or function.
    pub(super) fn symbol_name(&self) -> Option<String> {
        match self.attribute(&["sym_name"]) {
            Some(Attribute::String(name) | Attribute::Symbol(name)) => Some(name.clone()),
            _ => None,
        }
    }
}

/// A region with one block.
#[derive(Clone, Debug, Default)]
pub(super) struct Region {
    pub(super) parameters: Vec<ValueId>,
    /// The user's name of each parameter, if the file has one. The short form has no names.
    pub(super) parameter_names: Vec<Option<String>>,
    pub(super) operations: Vec<Operation>,
}

/// A function.
#[derive(Clone, Debug)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) inputs: Vec<Type>,
    /// The user's name of each input, if the file has one.
    pub(super) input_names: Vec<Option<String>>,
    /// The input that is the index of the platform, see [`is_platform_index`].
    pub(super) platform: Option<usize>,
    pub(super) outputs: Vec<Type>,
    /// The user's name of each output, if the file has one.
    pub(super) output_names: Vec<Option<String>>,
    pub(super) body: Region,
    /// The number of values.
    pub(super) values: usize,
    pub(super) position: Position,
}

impl Function {
    /// Converts an operation `func.func`, whose `first_result` is the number of values. A declaration
    /// without a body is `None`.
    pub(super) fn of_operation(operation: Operation) -> Option<Self> {
        if operation.name != "func.func" {
            return None;
        }
        let name = operation.symbol_name()?;
        let Some(Attribute::Type(Type::Function(inputs, outputs))) =
            operation.attribute(&["function_type"]).cloned()
        else {
            return None;
        };
        let constants = information(&operation, "arg_attrs", GLOBAL_CONSTANT, inputs.len());
        let platform = constants.iter().position(is_platform_index);
        let mut input_names = information(&operation, "arg_attrs", "jax.arg_info", inputs.len());
        let output_names = information(&operation, "res_attrs", "jax.result_info", outputs.len());
        let body =
            operation.regions.into_iter().next().filter(|body| !body.operations.is_empty())?;
        for (name, location) in input_names.iter_mut().zip(&body.parameter_names) {
            *name = name.take().or_else(|| location.clone());
        }
        let (values, position) = (operation.first_result, operation.position);
        Some(Self {
            name,
            inputs,
            input_names,
            platform,
            outputs,
            output_names,
            body,
            values,
            position,
        })
    }
}

/// The attribute of an input that JAX computes instead of the caller.
pub(super) const GLOBAL_CONSTANT: &str = "jax.global_constant";

/// Returns whether an input is the index of the platform on which a function runs, by its value of
/// [`GLOBAL_CONSTANT`]. Functions for several platforms have such an input.
pub(super) fn is_platform_index(constant: &Option<String>) -> bool {
    constant.as_deref() == Some("_platform_index")
}

/// Returns a string in a dictionary.
pub(super) fn string_entry(entries: &[(String, Attribute)], key: &str) -> Option<String> {
    entries.iter().find_map(|(name, value)| match value {
        Attribute::String(value) if name == key => Some(value.clone()),
        _ => None,
    })
}

/// Returns one string of the attributes of each input or output of a function.
fn information(operation: &Operation, list: &str, key: &str, count: usize) -> Vec<Option<String>> {
    let mut names = vec![None; count];
    if let Some(Attribute::List(entries)) = operation.attribute(&[list]) {
        for (name, entry) in names.iter_mut().zip(entries) {
            let Attribute::Dictionary(entry) = entry else { continue };
            *name = string_entry(entry, key);
        }
    }
    names
}

/// A module.
#[derive(Clone, Debug, Default)]
pub(super) struct Syntax {
    pub(super) name: Option<String>,
    pub(super) functions: Vec<Function>,
}
