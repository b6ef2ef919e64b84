//! Graphs and the device that several benchmarks use.
#![forbid(unsafe_code)]

use nxla::graph::{ExprId, Graph, Result};
use nxla::pjrt::Client;
use nxla::xla::target;
use nxla::{DType, Number, Program, Settings, TensorType};

/// Lengths of the chains. The short chain fits into the caches of a processor, the long one does
/// not.
pub const LENGTHS: [usize; 3] = [1_000, 10_000, 1_000_000];

/// The type of the values of the chains.
pub fn scalar() -> TensorType {
    TensorType::scalar(DType::F32)
}

/// A graph with one parameter and a chain of `nodes` distinct nodes above it.
///
/// Each link is `x * 1.5 + tanh(x)`: two ops that share an operand, and a third that joins them.
///
/// # Errors
/// Returns the error of [`Graph::make`], which accepts every chain.
pub fn chain(nodes: usize) -> Result<(Graph, ExprId, ExprId)> {
    let mut graph = Graph::new();
    let input = graph.parameter(0, scalar());
    let output = extend(&mut graph, input, nodes)?;
    Ok((graph, input, output))
}

/// Adds a chain of `nodes` nodes to `x`.
///
/// # Errors
/// Returns the error of [`Graph::make`], which accepts every chain.
pub fn extend(graph: &mut Graph, mut x: ExprId, nodes: usize) -> Result<ExprId> {
    for _ in 0..nodes / 3 {
        let factor = graph.weak_number(Number::Float(1.5), x)?;
        let scaled = graph.multiply(x, factor)?;
        let bounded = graph.tanh(x)?;
        x = graph.add(scaled, bounded)?;
    }
    for _ in 0..nodes % 3 {
        x = graph.sin(x)?;
    }
    Ok(x)
}

/// The chain as a program of one input and one output.
///
/// # Errors
/// Returns the error of [`Program::new`], which accepts every chain.
pub fn chain_program(nodes: usize) -> Result<Program> {
    let (graph, _, output) = chain(nodes)?;
    Program::new(&graph, vec![scalar()], &[output])
}

/// Returns the client that programs run on, or `None` without an installed plugin. A call copies
/// tensors of any other client.
pub fn client() -> Option<Client> {
    Some(target(&Settings::new()).ok()?.client)
}
