//! The trace of a model: names and their values, nodes in order, subgraphs and functions.

use std::rc::Rc;

use nxla_expr::{ExprId, Graph, Op};
use rustc_hash::FxHashMap;

use super::check::called_function;
use super::constants::{Constants, Evaluate, NodeValue, SMALL};
use super::error::{Built, Fault, at_name, invalid, unsupported};
use super::node::Call;
use super::ops::{self, Builder};
use super::proto::{self, Attribute, Function, Node, Opsets};
use crate::error::ImportError;

/// The nesting depth of function calls, beyond which a model is rejected.
const CALL_DEPTH: usize = 32;

/// The number of traced nodes, beyond which a model is rejected: functions that call each other can
/// multiply the nodes of a small file.
const TRACED_NODES: usize = 1 << 20;

/// A value of a model during the trace.
#[derive(Clone)]
pub(super) enum TracedValue {
    /// A tensor.
    Tensor(ExprId),
    /// The tensors of a sequence, whose length the trace knows.
    Sequence(Rc<[ExprId]>),
}

impl TracedValue {
    /// Returns the tensor.
    pub(super) fn tensor(self) -> Built<ExprId> {
        match self {
            TracedValue::Tensor(id) => Ok(id),
            TracedValue::Sequence(elements) => {
                unsupported(format!("must be a tensor; got a sequence of {}", elements.len()))
            }
        }
    }
}

/// The values of one graph by name, or the reasons why values are missing.
type Names<'m> = FxHashMap<&'m str, Built<TracedValue>>;

/// The state of a trace.
pub(super) struct Importer<'m, 'e> {
    model: &'m proto::Model,
    pub(super) graph: Graph,
    constants: Constants<'e>,
    /// The input and the axis of each result of `Softmax`.
    pub(super) softmaxes: FxHashMap<ExprId, (ExprId, i64)>,
    /// The names of the graphs around the current node, innermost last.
    scopes: Vec<Names<'m>>,
    /// The first scope that is visible: functions do not see the names of their callers.
    visible: usize,
    /// The attributes of the function that is being traced.
    attributes: Vec<(&'m str, &'m proto::Value)>,
    opsets: &'m Opsets,
    depth: usize,
    traced: usize,
}

impl<'m, 'e> Importer<'m, 'e> {
    pub(super) fn new(model: &'m proto::Model, graph: Graph, evaluate: &'e Evaluate<'e>) -> Self {
        Self {
            model,
            graph,
            constants: Constants::new(evaluate),
            softmaxes: FxHashMap::default(),
            scopes: Vec::new(),
            visible: 0,
            attributes: Vec::new(),
            opsets: &model.opsets,
            depth: 0,
            traced: 0,
        }
    }

    /// Traces the graph of the model with values for its weights and inputs, and returns its outputs.
    pub(super) fn run(
        &mut self,
        values: Vec<(&'m str, ExprId)>,
    ) -> Result<Vec<ExprId>, ImportError> {
        let bound = values.into_iter().map(|(name, id)| (name, Ok(TracedValue::Tensor(id))));
        self.scopes.push(bound.collect());
        let graph = &self.model.graph;
        let outputs = self.graph(graph)?;
        self.scopes.pop();
        let outputs = graph.outputs.iter().zip(outputs).map(|(info, output)| {
            output.tensor().map_err(|fault| fault.at_value("output", &info.name))
        });
        outputs.collect()
    }

    /// Traces a graph in the current scope and returns its outputs.
    fn graph(&mut self, graph: &'m proto::Graph) -> Result<Vec<TracedValue>, ImportError> {
        for (name, tensor) in &graph.initializers {
            if self.scopes.last().is_some_and(|names| names.contains_key(name.as_str())) {
                continue;
            }
            let bound = match tensor {
                Ok(tensor) => {
                    let literal = self.graph.tensor(tensor.clone());
                    let literal = literal.map_err(|error| at_name(name, error.to_string()))?;
                    Ok(TracedValue::Tensor(literal))
                }
                Err(why) => Err(why.clone()),
            };
            self.bind(name, bound);
        }
        for node in &graph.nodes {
            self.node(node)?;
        }
        let outputs = graph.outputs.iter().map(|info| {
            let found = self.lookup(&info.name);
            found.map_err(|fault| fault.at_value("output", &info.name))
        });
        outputs.collect()
    }

    /// Traces the graph of an attribute with values for its inputs and returns its outputs.
    pub(super) fn trace_subgraph(
        &mut self,
        graph: &'m proto::Graph,
        inputs: &[TracedValue],
    ) -> Result<Vec<TracedValue>, ImportError> {
        if graph.inputs.len() != inputs.len() {
            let (expected, found) = (inputs.len(), graph.inputs.len());
            let why = format!("graph must have {expected} inputs; got {found}");
            return Err(at_name(&graph.name, why));
        }
        self.count(&graph.name, 1)?;
        let names = graph.inputs.iter().map(|info| info.name.as_str());
        self.scopes.push(names.zip(inputs.iter().cloned().map(Ok)).collect());
        let outputs = self.graph(graph);
        self.scopes.pop();
        outputs
    }

    fn bind(&mut self, name: &'m str, value: Built<TracedValue>) {
        if let Some(names) = self.scopes.last_mut() {
            names.insert(name, value);
        }
    }

    fn lookup(&self, name: &str) -> Built<TracedValue> {
        let scopes = self.scopes[self.visible..].iter().rev();
        match scopes.filter_map(|names| names.get(name)).next() {
            Some(bound) => bound.clone(),
            None => invalid(format!("no node before this one computes {name:?}")),
        }
    }

    /// Counts nodes. A graph counts as a node: a graph without nodes can be the body of an endless loop.
    pub(super) fn count(&mut self, label: &str, nodes: usize) -> Result<(), ImportError> {
        self.traced = self.traced.saturating_add(nodes);
        if self.traced > TRACED_NODES {
            let why = format!(
                "model has more than {TRACED_NODES} nodes after functions and loops are expanded"
            );
            return Err(at_name(label, why));
        }
        Ok(())
    }

    fn node(&mut self, node: &'m Node) -> Result<(), ImportError> {
        self.count(&node.label(), 1)?;
        let at = |fault: Fault| fault.at(node);
        let mut inputs = Vec::with_capacity(node.inputs.len());
        for (index, name) in node.inputs.iter().enumerate() {
            inputs.push(match name.as_str() {
                "" => None,
                name => Some(
                    self.lookup(name).map_err(|fault| at(fault.of(&format!("input {index}"))))?,
                ),
            });
        }
        let outputs = match called_function(self.model, node) {
            Some(index) => self.call(node, &self.model.functions[index], &inputs)?,
            None => self.operator(node, inputs).map_err(at)?,
        };
        let (expected, found) = (node.output_count(), outputs.len());
        if found < expected {
            return Err(at(Fault::Unsupported(format!(
                "outputs: at most {found} are supported; got {expected}"
            ))));
        }
        for (name, output) in node.outputs.iter().zip(outputs) {
            if !name.is_empty() {
                let bound = match output {
                    TracedValue::Tensor(id) => {
                        TracedValue::Tensor(self.fold_constant(id).map_err(at)?)
                    }
                    sequence @ TracedValue::Sequence(_) => sequence,
                };
                self.bind(name, Ok(bound));
            }
        }
        Ok(())
    }

    fn operator(
        &mut self,
        node: &'m Node,
        inputs: Vec<Option<TracedValue>>,
    ) -> Built<Vec<TracedValue>> {
        let builder = ops::find(node.domain(), &node.operator).map_err(Fault::Unsupported)?;
        let version = self.version(node.domain());
        match builder {
            Builder::Tensors(build) => {
                let tensors = inputs.into_iter().enumerate().map(|(index, input)| {
                    let tensor = input.map(TracedValue::tensor).transpose();
                    tensor.map_err(|fault| fault.of(&format!("input {index}")))
                });
                let inputs = tensors.collect::<Built<_>>()?;
                let outputs = build(&mut Call { importer: self, node, inputs, version })?;
                Ok(outputs.into_iter().map(TracedValue::Tensor).collect())
            }
            Builder::Values(build) => {
                let tensors = inputs.iter().map(|input| match input {
                    Some(TracedValue::Tensor(id)) => Some(*id),
                    Some(TracedValue::Sequence(_)) | None => None,
                });
                let inputs_of_call = tensors.collect();
                build(&mut Call { importer: self, node, inputs: inputs_of_call, version }, &inputs)
            }
        }
    }

    /// Replaces a small known value by a literal, so that the arithmetic of shapes leaves no nodes.
    fn fold_constant(&mut self, id: ExprId) -> Built<ExprId> {
        let is_literal = matches!(self.graph.op(id), Op::Constant(_) | Op::Tensor(_));
        let is_small = self.graph.shape(id).checked_size().is_some_and(|size| size <= SMALL);
        if is_literal
            || !is_small
            || !self.graph.dtype(id).is_integer() && !self.graph.dtype(id).is_pred()
        {
            return Ok(id);
        }
        match self.value_of(id)? {
            NodeValue::Value(value) => Ok(self.graph.tensor(value)?),
            NodeValue::TooLarge | NodeValue::Data => Ok(id),
        }
    }

    /// Returns the value of a node, or the reason why the value is not known.
    pub(super) fn value_of(&mut self, id: ExprId) -> Built<NodeValue> {
        Ok(self.constants.value(&self.graph, id)?)
    }

    fn version(&self, domain: &str) -> i64 {
        let found = self.opsets.iter().find(|(name, _)| name == domain);
        found.map_or(1, |(_, version)| *version)
    }

    /// Traces a function of the model, and returns its outputs.
    fn call(
        &mut self,
        node: &'m Node,
        function: &'m Function,
        inputs: &[Option<TracedValue>],
    ) -> Result<Vec<TracedValue>, ImportError> {
        if self.depth == CALL_DEPTH {
            let why = format!("calls of functions are nested more than {CALL_DEPTH} deep");
            return Err(at_name(&function.name, why));
        }
        let attributes = function.defaults.iter().chain(&node.attributes);
        let attributes = attributes
            .filter_map(|attribute| Some((attribute.name.as_str(), self.resolve(attribute)?)));
        let attributes = attributes.collect();
        let absent = || invalid("the caller passes no value");
        let mut names = Names::default();
        for (index, name) in function.inputs.iter().enumerate() {
            let bound = inputs.get(index).cloned().flatten().map_or_else(absent, Ok);
            names.insert(name, bound);
        }
        let outer = (
            std::mem::replace(&mut self.attributes, attributes),
            std::mem::replace(&mut self.visible, self.scopes.len()),
            std::mem::replace(&mut self.opsets, &function.opsets),
        );
        self.scopes.push(names);
        self.depth += 1;
        let outputs = self.body(function);
        self.depth -= 1;
        self.scopes.pop();
        (self.attributes, self.visible, self.opsets) = outer;
        outputs
    }

    fn body(&mut self, function: &'m Function) -> Result<Vec<TracedValue>, ImportError> {
        for node in &function.nodes {
            self.node(node)?;
        }
        let outputs = function.outputs.iter().map(|name| {
            let found = self.lookup(name);
            found.map_err(|fault| {
                fault.of(&format!("output {name:?}")).at_value("function", &function.name)
            })
        });
        outputs.collect()
    }

    /// Returns the value of an attribute, which may refer to an attribute of the function.
    pub(super) fn resolve(&self, attribute: &'m Attribute) -> Option<&'m proto::Value> {
        match &attribute.reference {
            None => Some(&attribute.value),
            // The last entry wins: attributes of the call come after the defaults.
            Some(name) => {
                let found = self.attributes.iter().rev().find(|(own, _)| own == name);
                found.map(|(_, value)| *value)
            }
        }
    }
}
