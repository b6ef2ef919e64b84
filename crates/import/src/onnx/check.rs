//! Checks of a model before it is traced: operator sets, and operators without a counterpart.

use super::OPSETS;
use super::error::Fault;
use super::ops;
use super::proto::{Model, Node, Value};
use super::tensors::dtype_of;
use crate::error::{Place, Unsupported};

/// Returns what has no counterpart: operator sets, nodes that are neither an operator of the table
/// nor a function, and inputs and outputs that are not tensors.
pub(super) fn unsupported_parts(model: &Model) -> Vec<Unsupported> {
    let mut list = Vec::new();
    let named = |name: &str| Place::Named(name.to_owned());
    let sets = model.functions.iter().map(|function| &function.opsets);
    for (domain, version) in sets.chain([&model.opsets]).flatten() {
        if domain.is_empty() && !OPSETS.contains(version) {
            let (first, last) = (OPSETS.start(), OPSETS.end());
            let why = format!("version must be from {first} to {last}; got {version}");
            let (op, place) = ("operator set".into(), named(&model.graph.name));
            list.push(Unsupported { op, place, why });
        }
    }
    let functions = model.functions.iter().map(|function| &function.nodes);
    for nodes in functions.chain([&model.graph.nodes]) {
        each_node(nodes, &mut |node| {
            let is_function = called_function(model, node).is_some();
            if let (false, Err(why)) = (is_function, ops::find(node.domain(), &node.operator)) {
                let (op, place) = (node.qualified_name(), named(&node.label()));
                list.push(Unsupported { op, place, why });
            }
        });
    }
    let graph = &model.graph;
    let values = graph.inputs.iter().map(|info| ("input", info));
    for (noun, info) in values.chain(graph.outputs.iter().map(|info| ("output", info))) {
        let why = match (info.other, info.data_type) {
            (Some(kind), _) => format!("must be a tensor; got a value of the kind {kind}"),
            (None, 0) => continue,
            (None, data_type) => match dtype_of(data_type) {
                Err(Fault::Unsupported(why)) => why,
                Ok(_) | Err(_) => continue,
            },
        };
        list.push(Unsupported { op: noun.into(), place: named(&info.name), why });
    }
    list
}

/// Returns the index of the function of the model that a node calls.
pub(super) fn called_function(model: &Model, node: &Node) -> Option<usize> {
    model.functions.iter().position(|function| {
        function.name == node.operator
            && function.overload == node.overload
            && function.domain == node.domain
    })
}

/// Visits nodes, including nodes of graphs in attributes.
pub(super) fn each_node<'m>(nodes: &'m [Node], visit: &mut dyn FnMut(&'m Node)) {
    let mut waiting: Vec<&'m [Node]> = vec![nodes];
    while let Some(nodes) = waiting.pop() {
        for node in nodes {
            visit(node);
            for attribute in &node.attributes {
                if let Value::Graph(graph) = &attribute.value {
                    waiting.push(&graph.nodes);
                }
            }
        }
    }
}
