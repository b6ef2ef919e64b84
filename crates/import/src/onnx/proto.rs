//! The messages of an ONNX file that import needs.
//!
//! Unknown fields are skipped, as the protocol buffer specification requires.

use nxla_tensor::HostTensor;

use super::error::{Built, Fault};
use super::tensors::{External, read_tensor};
use super::wire::{Field, Message};
use crate::error::ImportError;

/// The nesting depth of graphs in attributes, beyond which a file is rejected.
const NESTING: usize = 32;

/// A tensor of the file, or the reason why its dtype or its storage is not supported.
pub(super) type Stored = Built<HostTensor>;

/// The version of each operator domain; the default domain is the empty string.
pub(super) type Opsets = Vec<(String, i64)>;

/// `ModelProto`.
#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    pub(super) opsets: Opsets,
    pub(super) graph: Graph,
    pub(super) functions: Vec<Function>,
}

/// `GraphProto`.
#[derive(Clone, Debug, Default)]
pub(super) struct Graph {
    pub(super) name: String,
    pub(super) nodes: Vec<Node>,
    pub(super) initializers: Vec<(String, Stored)>,
    pub(super) inputs: Vec<ValueInfo>,
    pub(super) outputs: Vec<ValueInfo>,
}

/// `FunctionProto`.
#[derive(Clone, Debug, Default)]
pub(super) struct Function {
    pub(super) domain: String,
    pub(super) name: String,
    pub(super) overload: String,
    pub(super) inputs: Vec<String>,
    pub(super) outputs: Vec<String>,
    pub(super) defaults: Vec<Attribute>,
    pub(super) nodes: Vec<Node>,
    pub(super) opsets: Opsets,
}

/// `NodeProto`.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) operator: String,
    pub(super) domain: String,
    pub(super) overload: String,
    pub(super) inputs: Vec<String>,
    pub(super) outputs: Vec<String>,
    pub(super) attributes: Vec<Attribute>,
}

impl Node {
    /// Returns the name for messages: the name of the node, or the name of an output.
    pub(super) fn label(&self) -> String {
        let named = std::iter::once(&self.name).chain(&self.outputs);
        let name = named.into_iter().find(|name| !name.is_empty());
        name.map_or("", |name| name.as_str()).to_owned()
    }

    /// Returns the number of outputs up to the last one with a name.
    pub(super) fn output_count(&self) -> usize {
        self.outputs.iter().rposition(|name| !name.is_empty()).map_or(0, |last| last + 1)
    }

    /// Returns the domain, in which `ai.onnx` is another name of the default domain.
    pub(super) fn domain(&self) -> &str {
        if self.domain == "ai.onnx" { "" } else { &self.domain }
    }

    /// Returns the operator with its domain.
    pub(super) fn qualified_name(&self) -> String {
        match self.domain() {
            "" => self.operator.clone(),
            domain => format!("{domain}.{}", self.operator),
        }
    }
}

/// `AttributeProto`.
#[derive(Clone, Debug)]
pub(super) struct Attribute {
    pub(super) name: String,
    /// The attribute of the enclosing function that provides the value.
    pub(super) reference: Option<String>,
    pub(super) value: Value,
}

/// The value of an attribute.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Int(i64),
    Float(f32),
    Text(String),
    Tensor(Stored),
    Graph(Box<Graph>),
    Ints(Vec<i64>),
    Floats(Vec<f32>),
    Texts(Vec<String>),
    /// A kind of value that no supported operator has.
    Other,
}

/// `ValueInfoProto` of a tensor.
#[derive(Clone, Debug, Default)]
pub(super) struct ValueInfo {
    pub(super) name: String,
    /// The kind of a value that is not a tensor.
    pub(super) other: Option<&'static str>,
    /// The ONNX data type; 0 if the file does not declare it.
    pub(super) data_type: i64,
    /// The sizes, if the rank is declared.
    pub(super) shape: Option<Vec<Dim>>,
}

/// The size of an axis.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Dim {
    /// A fixed size.
    Size(usize),
    /// A size that the caller chooses, equal for all axes of the same name.
    Named(String),
    /// A size that the caller chooses.
    Any,
}

/// Reads messages, and the tensors that they refer to.
pub(super) struct Reader<'e> {
    external: &'e mut dyn External,
    depth: usize,
}

impl<'e> Reader<'e> {
    pub(super) fn new(external: &'e mut dyn External) -> Self {
        Self { external, depth: 0 }
    }

    pub(super) fn model(&mut self, mut from: Message<'_>) -> Result<Model, ImportError> {
        let (mut model, mut has_graph) = (Model::default(), false);
        while let Some((number, field)) = from.field()? {
            match number {
                7 => {
                    model.graph = self.graph(field.message(&from)?)?;
                    has_graph = true;
                }
                8 => model.opsets.push(opset(field.message(&from)?)?),
                25 => {
                    let function = self.function(field.message(&from)?)?;
                    model.functions.push(function);
                }
                _ => {}
            }
        }
        if !has_graph {
            return Err(from.error("the file has no graph, so it is not an ONNX model"));
        }
        Ok(model)
    }

    fn graph(&mut self, mut from: Message<'_>) -> Result<Graph, ImportError> {
        if self.depth == NESTING {
            return Err(from.error(format!("graphs are nested more than {NESTING} deep")));
        }
        self.depth += 1;
        let mut graph = Graph::default();
        while let Some((number, field)) = from.field()? {
            match number {
                1 => graph.nodes.push(self.node(field.message(&from)?)?),
                2 => graph.name = field.text(&from)?,
                5 => graph.initializers.push(read_tensor(field.message(&from)?, self.external)?),
                11 => graph.inputs.push(value_info(field.message(&from)?)?),
                12 => graph.outputs.push(value_info(field.message(&from)?)?),
                15 => {
                    let name = sparse_name(field.message(&from)?, self.external)?;
                    let why = Fault::Unsupported("sparse tensors are not supported".into());
                    graph.initializers.push((name, Err(why)));
                }
                _ => {}
            }
        }
        self.depth -= 1;
        Ok(graph)
    }

    fn node(&mut self, mut from: Message<'_>) -> Result<Node, ImportError> {
        let mut node = Node::default();
        while let Some((number, field)) = from.field()? {
            match number {
                1 => node.inputs.push(field.text(&from)?),
                2 => node.outputs.push(field.text(&from)?),
                3 => node.name = field.text(&from)?,
                4 => node.operator = field.text(&from)?,
                5 => node.attributes.push(self.attribute(field.message(&from)?)?),
                7 => node.domain = field.text(&from)?,
                8 => node.overload = field.text(&from)?,
                _ => {}
            }
        }
        Ok(node)
    }

    fn function(&mut self, mut from: Message<'_>) -> Result<Function, ImportError> {
        let mut function = Function::default();
        while let Some((number, field)) = from.field()? {
            match number {
                1 => function.name = field.text(&from)?,
                4 => function.inputs.push(field.text(&from)?),
                5 => function.outputs.push(field.text(&from)?),
                7 => function.nodes.push(self.node(field.message(&from)?)?),
                9 => function.opsets.push(opset(field.message(&from)?)?),
                10 => function.domain = field.text(&from)?,
                11 => function.defaults.push(self.attribute(field.message(&from)?)?),
                13 => function.overload = field.text(&from)?,
                _ => {}
            }
        }
        Ok(function)
    }

    fn attribute(&mut self, mut from: Message<'_>) -> Result<Attribute, ImportError> {
        let (mut name, mut reference, mut kind) = (String::new(), None, 0);
        let (mut single, mut other) = (None, false);
        let (mut ints, mut floats, mut texts) = (Vec::new(), Vec::new(), Vec::new());
        while let Some((number, field)) = from.field()? {
            match (number, field) {
                (1, field) => name = field.text(&from)?,
                (2, Field::Fixed32(bits)) => single = Some(Value::Float(f32::from_bits(bits))),
                (3, field) => single = Some(Value::Int(field.integer(&from)?)),
                (4, field) => single = Some(Value::Text(lossy(field.message(&from)?))),
                (5, field) => {
                    let (_, tensor) = read_tensor(field.message(&from)?, self.external)?;
                    single = Some(Value::Tensor(tensor));
                }
                (6, field) => {
                    single = Some(Value::Graph(Box::new(self.graph(field.message(&from)?)?)));
                }
                (7, field) => field.floats(&from, &mut floats)?,
                (8, field) => field.integers(&from, &mut ints)?,
                (9, field) => texts.push(lossy(field.message(&from)?)),
                (20, field) => kind = field.integer(&from)?,
                (21, field) => reference = Some(field.text(&from)?),
                (10 | 11 | 14 | 15 | 22 | 23, _) => other = true,
                _ => {}
            }
        }
        let ints: Vec<i64> = ints.into_iter().map(u64::cast_signed).collect();
        // Writers leave out a number that is 0 and a list that is empty; the kind tells which.
        let value = match (single, kind) {
            (Some(value), _) => value,
            (None, 1) => Value::Float(0.0),
            (None, 2) => Value::Int(0),
            (None, 3) => Value::Text(String::new()),
            (None, 6) => Value::Floats(floats),
            (None, 7) => Value::Ints(ints),
            (None, 8) => Value::Texts(texts),
            (None, _) if !ints.is_empty() => Value::Ints(ints),
            (None, _) if !floats.is_empty() => Value::Floats(floats),
            (None, _) if !texts.is_empty() && !other => Value::Texts(texts),
            (None, _) => Value::Other,
        };
        Ok(Attribute { name, reference: reference.filter(|name| !name.is_empty()), value })
    }
}

fn lossy(message: Message<'_>) -> String {
    String::from_utf8_lossy(message.bytes).into_owned()
}

fn opset(mut from: Message<'_>) -> Result<(String, i64), ImportError> {
    let (mut domain, mut version) = (String::new(), 1);
    while let Some((number, field)) = from.field()? {
        match number {
            1 => domain = field.text(&from)?,
            2 => version = field.integer(&from)?,
            _ => {}
        }
    }
    if domain == "ai.onnx" {
        domain.clear();
    }
    Ok((domain, version))
}

fn sparse_name(mut from: Message<'_>, external: &mut dyn External) -> Result<String, ImportError> {
    let mut name = String::new();
    while let Some((number, field)) = from.field()? {
        if number == 1 {
            (name, _) = read_tensor(field.message(&from)?, external)?;
        }
    }
    Ok(name)
}

fn value_info(mut from: Message<'_>) -> Result<ValueInfo, ImportError> {
    let mut info = ValueInfo::default();
    while let Some((number, field)) = from.field()? {
        match number {
            1 => info.name = field.text(&from)?,
            2 => {
                let mut ty = field.message(&from)?;
                while let Some((number, field)) = ty.field()? {
                    info.other = match number {
                        1 => {
                            (info.data_type, info.shape) = tensor_type(field.message(&ty)?)?;
                            None
                        }
                        4 => Some("sequence"),
                        5 => Some("map"),
                        7 => Some("opaque value"),
                        8 => Some("sparse tensor"),
                        9 => Some("optional value"),
                        _ => continue,
                    };
                }
            }
            _ => {}
        }
    }
    Ok(info)
}

fn tensor_type(mut from: Message<'_>) -> Result<(i64, Option<Vec<Dim>>), ImportError> {
    let (mut data_type, mut shape) = (0, None);
    while let Some((number, field)) = from.field()? {
        match number {
            1 => data_type = field.integer(&from)?,
            2 => {
                let (mut dims, mut sizes) = (field.message(&from)?, Vec::new());
                while let Some((number, field)) = dims.field()? {
                    if number == 1 {
                        sizes.push(dim(field.message(&dims)?)?);
                    }
                }
                shape = Some(sizes);
            }
            _ => {}
        }
    }
    Ok((data_type, shape))
}

fn dim(mut from: Message<'_>) -> Result<Dim, ImportError> {
    let mut dim = Dim::Any;
    while let Some((number, field)) = from.field()? {
        match number {
            // Exporters write -1, and sometimes 0, for a size that they do not know.
            1 => {
                dim = match usize::try_from(field.integer(&from)?) {
                    Ok(size) if size > 0 => Dim::Size(size),
                    Ok(_) | Err(_) => Dim::Any,
                }
            }
            2 => {
                let name = field.text(&from)?;
                dim = if name.is_empty() { Dim::Any } else { Dim::Named(name) };
            }
            _ => {}
        }
    }
    Ok(dim)
}
