//! ONNX models of one operator: a writer of the messages, and their results.

use nxla_expr::{ExprId, Graph, Program, TensorType};
use nxla_import::onnx::{Model, NoExternal};
use nxla_tensor::{DType, HostTensor};

use super::wire::varint;

/// The data types of ONNX, by dtype.
const DATA_TYPES: [(DType, u64); 9] = [
    (DType::F32, 1),
    (DType::U8, 2),
    (DType::S32, 6),
    (DType::S64, 7),
    (DType::F16, 10),
    (DType::F64, 11),
    (DType::BF16, 16),
    (DType::F8E4M3FN, 17),
    (DType::F8E5M2, 19),
];

/// Returns a field that holds an integer.
fn integer(number: u64, value: u64) -> Vec<u8> {
    [varint(number << 3), varint(value)].concat()
}

/// Returns a field that holds bytes.
fn bytes(number: u64, content: &[u8]) -> Vec<u8> {
    [&varint(number << 3 | 2)[..], &varint(content.len() as u64), content].concat()
}

/// Returns the number of a dtype in ONNX.
pub(crate) fn data_type(dtype: DType) -> u64 {
    DATA_TYPES.iter().find(|(known, _)| *known == dtype).unwrap().1
}

/// The value of an attribute.
pub(crate) enum Attribute<'a> {
    Int(i64),
    Ints(&'a [i64]),
    Text(&'a str),
}

impl Attribute<'_> {
    fn message(&self, name: &str) -> Vec<u8> {
        let (value, kind) = match self {
            Attribute::Int(value) => (integer(3, value.cast_unsigned()), 2),
            Attribute::Ints(values) => {
                (values.iter().flat_map(|value| integer(8, value.cast_unsigned())).collect(), 7)
            }
            Attribute::Text(text) => (bytes(4, text.as_bytes()), 3),
        };
        [bytes(1, name.as_bytes()), value, integer(20, kind)].concat()
    }
}

/// An operator with its attributes, and the version of the operator set. The name of an operator of
/// another domain starts with the domain and a colon.
pub(crate) struct Node<'a> {
    pub(crate) op: &'a str,
    pub(crate) attributes: &'a [(&'a str, Attribute<'a>)],
    pub(crate) outputs: usize,
    pub(crate) version: u64,
}

impl Node<'_> {
    /// Returns the model of the operator: the constants are its last inputs.
    fn model(&self, inputs: &[HostTensor], constants: &[HostTensor]) -> Vec<u8> {
        let (domain, op) = self.op.split_once(':').unwrap_or(("", self.op));
        let mut node = [bytes(4, op.as_bytes()), bytes(7, domain.as_bytes())].concat();
        let mut graph = Vec::new();
        for (at, input) in inputs.iter().enumerate() {
            let name = format!("x{at}");
            node.extend(bytes(1, name.as_bytes()));
            let dims = input.shape().iter().flat_map(|&size| bytes(1, &integer(1, size as u64)));
            let dims: Vec<u8> = dims.collect();
            let ty = [integer(1, data_type(input.dtype())), bytes(2, &dims)].concat();
            let value = [bytes(1, name.as_bytes()), bytes(2, &bytes(1, &ty))].concat();
            graph.extend(bytes(11, &value));
        }
        for (at, constant) in constants.iter().enumerate() {
            let name = format!("c{at}");
            node.extend(bytes(1, name.as_bytes()));
            let mut tensor: Vec<u8> =
                constant.shape().iter().flat_map(|&size| integer(1, size as u64)).collect();
            tensor.extend(integer(2, data_type(constant.dtype())));
            tensor.extend(bytes(8, name.as_bytes()));
            tensor.extend(bytes(9, constant.bytes()));
            graph.extend(bytes(5, &tensor));
        }
        for at in 0..self.outputs {
            let name = format!("y{at}");
            node.extend(bytes(2, name.as_bytes()));
            graph.extend(bytes(12, &bytes(1, name.as_bytes())));
        }
        for (name, attribute) in self.attributes {
            node.extend(bytes(5, &attribute.message(name)));
        }
        graph.extend(bytes(1, &node));
        let domain = [bytes(1, domain.as_bytes()), integer(2, self.version)].concat();
        [integer(1, 10), bytes(8, &domain), bytes(7, &graph)].concat()
    }

    /// Returns the results of the operator.
    pub(crate) fn results(
        &self,
        inputs: &[HostTensor],
        constants: &[HostTensor],
    ) -> Vec<HostTensor> {
        self.try_results(inputs, constants).unwrap_or_else(|error| panic!("{}: {error}", self.op))
    }

    /// Returns the results of the operator, or an error.
    pub(crate) fn try_results(
        &self,
        inputs: &[HostTensor],
        constants: &[HostTensor],
    ) -> Result<Vec<HostTensor>, String> {
        run(&self.model(inputs, constants), inputs)
    }

    /// Returns the gradients of the sum of the first result with respect to the inputs.
    pub(crate) fn gradients(
        &self,
        inputs: &[HostTensor],
        constants: &[HostTensor],
    ) -> Vec<HostTensor> {
        let model = Model::read(&self.model(inputs, constants), &mut NoExternal).unwrap();
        gradients(&model, inputs)
    }

    /// Returns the error of the operator for a first input of a type that no tensor can have.
    pub(crate) fn error_for_type(&self, first: &TensorType, constants: &[HostTensor]) -> String {
        // An axis of size 0 in a file is an axis of any size.
        let declared = HostTensor::zeros(first.dtype, vec![0; first.rank()]).unwrap();
        let model = self.model(&[declared], constants);
        let model = Model::read(&model, &mut NoExternal).unwrap();
        trace(&model, std::slice::from_ref(first)).unwrap_err()
    }
}

/// Returns the types of tensors.
fn types_of(tensors: &[HostTensor]) -> Vec<TensorType> {
    tensors.iter().map(|x| TensorType::new(x.dtype(), x.shape().clone())).collect()
}

/// Returns the program of a model for inputs of these types.
fn trace(model: &Model, inputs: &[TensorType]) -> Result<Program, String> {
    let weights: Vec<HostTensor> = model.weights().iter().map(|(_, value)| value.clone()).collect();
    let evaluate =
        |program: &Program| nxla_reference::run(program, &[]).map_err(|error| error.to_string());
    let program = model.program(&types_of(&weights), inputs, &evaluate);
    program.map_err(|error| error.to_string())
}

/// Returns the results of a model.
pub(crate) fn run(model: &[u8], inputs: &[HostTensor]) -> Result<Vec<HostTensor>, String> {
    let model = Model::read(model, &mut NoExternal).map_err(|error| error.to_string())?;
    let program = trace(&model, &types_of(inputs))?;
    let weights = model.weights().iter().map(|(_, value)| value.clone());
    let all: Vec<HostTensor> = weights.chain(inputs.iter().cloned()).collect();
    nxla_reference::run(&program, &all).map_err(|error| error.to_string())
}

/// Returns the gradients of the sum of a model's first result with respect to its inputs.
fn gradients(model: &Model, inputs: &[HostTensor]) -> Vec<HostTensor> {
    let weights: Vec<HostTensor> = model.weights().iter().map(|(_, value)| value.clone()).collect();
    let program = trace(model, &types_of(inputs)).unwrap();
    let all = [&weights[..], inputs].concat();
    let mut graph = Graph::new();
    let parameters = types_of(&all).into_iter().enumerate();
    let parameters: Vec<ExprId> = parameters.map(|(at, ty)| graph.parameter(at, ty)).collect();
    let results = program.inline(&mut graph, &parameters).unwrap();
    let sum = graph.sum(results[0], None, false).unwrap();
    let found = nxla_grad::gradients(&mut graph, sum, &parameters[weights.len()..]).unwrap();
    let program = Program::new(&graph, types_of(&all), &found).unwrap();
    nxla_reference::run(&program, &all).unwrap()
}
