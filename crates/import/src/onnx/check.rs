//! Checks of a model before it is traced: operator sets, and operators without a counterpart.

use std::collections::BTreeSet;

use super::OPSETS;
use super::error::{at_name, unsupported};
use super::ops;
use super::proto::{Graph, Model, Node, Value};
use crate::error::{ImportError, Place, Unsupported};

/// Checks the operator sets, and that each node is an operator of the table or a function.
pub(super) fn check(model: &Model) -> Result<(), ImportError> {
    let sets = model.functions.iter().map(|function| &function.opsets);
    for (domain, version) in sets.chain([&model.opsets]).flatten() {
        if domain.is_empty() && !OPSETS.contains(version) {
            let (first, last) = (OPSETS.start(), OPSETS.end());
            let why =
                format!("operator set: must be from version {first} to {last}; got {version}");
            return Err(at_name(&model.graph.name, why));
        }
    }
    let mut list = Vec::new();
    let functions = model.functions.iter().map(|function| &function.nodes);
    for nodes in functions.chain([&model.graph.nodes]) {
        each_node(nodes, &mut |node| {
            let is_function = function_of(model, node).is_some();
            if let (false, Err(why)) = (is_function, ops::find(node.domain(), &node.operator)) {
                let (op, place) = (node.qualified(), Place::Named(node.label()));
                list.push(Unsupported { op, place, why });
            }
        });
    }
    if list.is_empty() { Ok(()) } else { Err(unsupported(list)) }
}

/// Returns the function of the model that a node calls.
pub(super) fn function_of<'m>(model: &'m Model, node: &Node) -> Option<&'m super::proto::Function> {
    model.functions.iter().find(|function| {
        function.name == node.operator
            && function.overload == node.overload
            && function.domain == node.domain
    })
}

/// Visits nodes, including nodes of graphs in attributes.
fn each_node<'m>(nodes: &'m [Node], visit: &mut dyn FnMut(&'m Node)) {
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

/// Returns the names of initializers that determine shapes, and must therefore be constants.
pub(super) fn structural_inputs(graph: &Graph) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    each_node(&graph.nodes, &mut |node| {
        let first = match node.operator.as_str() {
            "Resize" | "Upsample" | "Dropout" | "Pad" => 1,
            "OneHot" => 1,
            "Range" => 0,
            _ => return,
        };
        names.extend(node.inputs.iter().skip(first).map(String::as_str));
    });
    names
}
