//! Initializers that are constants or weights. The trace must know the values that determine shapes,
//! and the running statistics of a batch normalization are not trained by gradients, so these are
//! constants. Packed integers are weights.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::check::{called_function, each_node};
use super::proto::{Model, Node, Value};

/// Returns the inputs of a node that are constants: values that the trace must know, and running
/// statistics, unless the node also returns new ones. Other nodes compute with all of their inputs.
fn constant_inputs(node: &Node) -> &'static [usize] {
    match node.operator.as_str() {
        "BatchNormalization" if node.output_count() == 1 => &[3, 4],
        "BlackmanWindow" | "ConstantOfShape" | "HammingWindow" | "HannWindow" | "Loop"
        | "NonZero" => &[0],
        "Range" => &[0, 1, 2],
        "MelWeightMatrix" => &[0, 1, 2, 3, 4],
        "AffineGrid" | "CenterCropPad" | "Compress" | "CumProd" | "CumSum" | "Expand"
        | "OneHot" | "ReduceL1" | "ReduceL2" | "ReduceLogSum" | "ReduceLogSumExp" | "ReduceMax"
        | "ReduceMean" | "ReduceMin" | "ReduceProd" | "ReduceSum" | "ReduceSumSquare"
        | "Reshape" | "SequenceAt" | "SequenceErase" | "Split" | "SplitToSequence" | "Squeeze"
        | "Tile" | "TopK" | "Trilu" | "Unsqueeze" | "Upsample" => &[1],
        "Col2Im" | "DFT" | "Dropout" => &[1, 2],
        "Resize" => &[1, 2, 3],
        "Slice" => &[1, 2, 3, 4],
        "Pad" | "STFT" => &[1, 3],
        "MaxUnpool" | "SequenceInsert" => &[2],
        _ => &[],
    }
}

/// A number of a value or of a node.
type Id = usize;

/// The index of a function, or `None` for the graph of the model. The same name can mean different
/// values in two scopes.
type Scope = Option<usize>;

/// The dependences between the values of a model. The calls of a function share the values of the
/// function, so the size is linear in the file.
#[derive(Default)]
struct Dependences<'m> {
    values: FxHashMap<(Scope, &'m str), Id>,
    /// The values and nodes that each value or node is computed from.
    sources: Vec<Vec<Id>>,
    /// The values that are constants.
    constants: Vec<Id>,
}

impl<'m> Dependences<'m> {
    fn add(&mut self) -> Id {
        self.sources.push(Vec::new());
        self.sources.len() - 1
    }

    fn value(&mut self, scope: Scope, name: &'m str) -> Id {
        // The empty name stands for each missing input or output.
        if name.is_empty() {
            return self.add();
        }
        if let Some(&id) = self.values.get(&(scope, name)) {
            return id;
        }
        let id = self.add();
        self.values.insert((scope, name), id);
        id
    }

    fn values(&mut self, scope: Scope, names: &'m [String]) -> Vec<Id> {
        names.iter().map(|name| self.value(scope, name)).collect()
    }

    fn node(&mut self, model: &'m Model, scope: Scope, node: &'m Node) {
        let inputs = self.values(scope, &node.inputs);
        let outputs = self.values(scope, &node.outputs);
        if let Some(index) = called_function(model, node) {
            let function = &model.functions[index];
            let parameters = self.values(Some(index), &function.inputs);
            let results = self.values(Some(index), &function.outputs);
            self.connect(inputs, parameters);
            self.connect(results, outputs);
            return;
        }
        let is_default = node.domain().is_empty();
        // A shape does not depend on the elements.
        if is_default && matches!(node.operator.as_str(), "Shape" | "Size") {
            return;
        }
        if is_default {
            let read = constant_inputs(node).iter();
            self.constants.extend(read.filter_map(|&index| inputs.get(index)));
        }
        let own = self.add();
        self.sources[own] = inputs;
        for output in outputs {
            self.sources[output].push(own);
        }
        // Each result of a body may depend on each input, and in a loop also on each other result.
        for attribute in &node.attributes {
            if let Value::Graph(body) = &attribute.value {
                for info in &body.inputs {
                    let parameter = self.value(scope, &info.name);
                    self.sources[parameter].push(own);
                }
                for info in &body.outputs {
                    let result = self.value(scope, &info.name);
                    self.sources[own].push(result);
                }
            }
        }
    }

    /// Adds a source to each value of a list.
    fn connect(&mut self, sources: Vec<Id>, values: Vec<Id>) {
        for (source, value) in sources.into_iter().zip(values) {
            self.sources[value].push(source);
        }
    }

    /// Returns the inverse of the sources.
    fn users(&self) -> Vec<Vec<Id>> {
        let mut users = vec![Vec::new(); self.sources.len()];
        for (value, sources) in self.sources.iter().enumerate() {
            for &source in sources {
                users[source].push(value);
            }
        }
        users
    }
}

/// Returns a flag for each value: whether a path of edges leads to the value.
fn reachable(mut waiting: Vec<Id>, edges: &[Vec<Id>]) -> Vec<bool> {
    let mut is_reached = vec![false; edges.len()];
    while let Some(id) = waiting.pop() {
        if !std::mem::replace(&mut is_reached[id], true) {
            waiting.extend(&edges[id]);
        }
    }
    is_reached
}

/// Returns the names of the initializers that are constants.
pub(super) fn constant_initializers(model: &Model) -> BTreeSet<&str> {
    let mut all = Dependences::default();
    each_node(&model.graph.nodes, &mut |node| all.node(model, None, node));
    for (index, function) in model.functions.iter().enumerate() {
        each_node(&function.nodes, &mut |node| all.node(model, Some(index), node));
    }
    let names = model.graph.initializers.iter().map(|(name, _)| name.as_str());
    let mut initialized: BTreeSet<&str> = names.collect();
    let inputs = model.graph.inputs.iter().map(|info| info.name.as_str());
    let inputs = inputs.filter(|name| !initialized.contains(name));
    let inputs = inputs.filter_map(|name| all.values.get(&(None, name)).copied()).collect();
    // An operand with one source among the inputs has no known value.
    let is_data = reachable(inputs, &all.users());
    let constants = all.constants.iter().copied().filter(|&id| !is_data[id]).collect();
    let is_needed = reachable(constants, &all.sources);
    initialized.retain(|name| all.values.get(&(None, *name)).is_some_and(|&id| is_needed[id]));
    initialized
}

/// Returns the names of initializers of the model that hold integers with a scale for each block.
pub(super) fn packed_initializers(model: &Model) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    each_node(&model.graph.nodes, &mut |node| {
        let operands: &[usize] = match (node.domain(), node.operator.as_str()) {
            ("com.microsoft", "MatMulNBits") => &[1, 3],
            ("com.microsoft", "GatherBlockQuantized") => &[0, 3],
            _ => &[],
        };
        names.extend(
            operands.iter().filter_map(|&index| node.inputs.get(index)).map(String::as_str),
        );
    });
    names
}
