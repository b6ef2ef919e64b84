//! The syntax tree of a module, which the readers of text and of bytecode produce.
//!
//! Regions have one block, as in all operations of StableHLO. Values are numbered within a function.

use nxla_expr::TensorType;
use nxla_tensor::HostTensor;

/// The number of a value within its function.
pub(super) type ValueId = usize;

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
    Word(String),
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
    /// The line of the text, or the number of the operation in bytecode.
    pub(super) line: usize,
}

impl Operation {
    /// Returns the attribute of the first of these names that exists.
    pub(super) fn attribute(&self, names: &[&str]) -> Option<&Attribute> {
        let named = |name: &&str| self.attributes.iter().find(|(key, _)| key == name);
        names.iter().find_map(named).map(|(_, value)| value)
    }
}

/// A region with one block.
#[derive(Clone, Debug, Default)]
pub(super) struct Region {
    pub(super) parameters: Vec<ValueId>,
    pub(super) operations: Vec<Operation>,
}

/// A function.
#[derive(Clone, Debug)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) inputs: Vec<Type>,
    /// The user's name of each input, if the file has one.
    pub(super) input_names: Vec<Option<String>>,
    pub(super) outputs: Vec<Type>,
    /// The user's name of each output, if the file has one.
    pub(super) output_names: Vec<Option<String>>,
    pub(super) body: Region,
    /// The number of values.
    pub(super) values: usize,
    pub(super) line: usize,
}

/// A module.
#[derive(Clone, Debug, Default)]
pub(super) struct Syntax {
    pub(super) name: Option<String>,
    pub(super) functions: Vec<Function>,
}
