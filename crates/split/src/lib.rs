//! Splitting a program into stages that run sequentially, in parallel, or on other machines.
//!
//! [`split`] visits the nodes of a [`Program`] and asks the caller where to cut. The result is a
//! [`StageGraph`]: separate programs with the sources of their inputs. No value is computed twice:
//! a value that an earlier stage computes and a later stage needs is an output of the earlier
//! stage.
//!
//! A [`Policy`] cuts a whole program by a rule: by the number of operations, the time or the memory
//! of the stages, at marks, at repeated layers, or at the passes of a training step.
//!
//! The modules follow the steps. `cut` assigns nodes to stages (`partition` for the result of a
//! policy), `wire` finds the values that cross, and `assemble` builds the programs. `schedule` and
//! `dependencies` determine the order of stages and the lifetime of values. `cost` and `memory`
//! estimate stages, and `simulate` predicts the time on a cluster.
//!
//! # Cuts
//!
//! The callback is called once for every node that an output or a hook needs, depth first from the
//! outputs, operands before users. It is not called for parameters, elements of tuples (`elem`) and
//! nodes inside regions, but for literals. The [`Decision`] at a node determines where the current
//! stage ends, and thus its first outputs, in operand order. Values that later stages need too are
//! appended to the outputs.
//!
//! # Differences from Nx
//!
//! The rules follow `Nx.Defn.Graph.split`, and stages have the same numbers and connections, with
//! these exceptions:
//!
//! * A node that two stages need is computed by the first stage, which passes it on, instead of by
//!   both. Only constants and their annotations, which cost nothing, are copied.
//! * A value crosses a boundary once, even if it is an operand twice (`x * x`), and it does not
//!   pass through a stage that does not need it.
//! * Operands in lists (`concatenate`, `stack`, dynamic starts of slices, captures) and operands of
//!   blocks and hooks are treated like other operands.
//! * The captures of a conditional are its operands, and the callback is called for them.
//! * Stages form a graph, not a chain; [`Stage::follows`] preserves the order of hooks.
#![forbid(unsafe_code)]

mod assemble;
mod bytes;
mod cost;
mod cut;
mod dependencies;
mod error;
mod explain;
mod lists;
mod memory;
mod partition;
mod policy;
mod schedule;
mod simulate;
mod stage;
mod wire;

use nxla_expr::{Node, Program};

pub use cost::{Cost, Estimate, Speed, cost_of, estimate_of};
pub use error::SplitError;
pub use policy::Policy;
pub use schedule::{ScheduleError, StageScheduler, Task};
pub use simulate::{Cluster, Run, Timeline};
pub use stage::{Edge, Stage, StageGraph, StageId, ValueSource};

/// The position of a cut relative to a node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Decision {
    /// A stage ends with the operands of the node: operands that no earlier stage provides are its
    /// outputs, and the node belongs to a later stage. If all operands are provided, or there are
    /// none, the node becomes the output of the stage, as with `After`, except for a loop. A
    /// conditional becomes a stage as a whole, as with `After`.
    Before,
    /// A stage ends with the node, whose results are its outputs.
    After,
    /// `Before`, then `After`: the node has its own stage.
    Both,
    /// No cut.
    #[default]
    None,
}

/// Cuts a program as `decide` requests.
///
/// # Errors
/// Returns an error for a program that violates the invariants of its graph.
///
/// # Examples
/// ```
/// use nxla_expr::{Graph, Op, Program, TensorType, UnaryOp};
/// use nxla_split::{Decision, ValueSource, split};
/// use nxla_tensor::DType;
///
/// // cos(sin(-x)) + y
/// let mut graph = Graph::new();
/// let inputs = vec![TensorType::scalar(DType::S32); 2];
/// let x = graph.parameter(0, inputs[0].clone());
/// let y = graph.parameter(1, inputs[1].clone());
/// let negated = graph.negate(x)?;
/// let sine = graph.sin(negated)?;
/// let cosine = graph.cos(sine)?;
/// let sum = graph.add(cosine, y)?;
/// let program = Program::new(&graph, inputs, &[sum])?;
///
/// let stages = split(&program, |node| match node.op {
///     Op::Unary(UnaryOp::Cos) => Decision::Before,
///     _ => Decision::None,
/// })?;
/// let [first, second] = stages.stages() else { panic!("one cut makes two stages") };
/// assert_eq!(first.arguments, [ValueSource::input(0)]);
/// assert_eq!(second.arguments, [ValueSource::input(1), ValueSource::output(first.id, 0)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn split(
    program: &Program,
    mut decide: impl FnMut(Node<'_>) -> Decision,
) -> Result<StageGraph, SplitError> {
    try_split(program, |node| Ok(decide(node)))
}

/// Cuts a program as `decide` requests. `decide` also receives the value that its previous call
/// returned, starting with `init`; the last value is returned too.
///
/// # Errors
/// Returns an error for a program that violates the invariants of its graph.
pub fn split_with<A>(
    program: &Program,
    init: A,
    mut decide: impl FnMut(Node<'_>, A) -> (Decision, A),
) -> Result<(StageGraph, A), SplitError> {
    try_split_with(program, init, |node, state| Ok(decide(node, state)))
}

/// Does the same as [`split`] with a fallible `decide`.
///
/// # Errors
/// Returns the first error of `decide`, which is not called again.
pub fn try_split<E: From<SplitError>>(
    program: &Program,
    decide: impl FnMut(Node<'_>) -> Result<Decision, E>,
) -> Result<StageGraph, E> {
    let cut = cut::cut(program, decide)?;
    Ok(assemble::assemble(program, &cut)?)
}

/// Does the same as [`split_with`] with a fallible `decide`.
///
/// # Errors
/// Returns the first error of `decide`, which is not called again.
pub fn try_split_with<A, E: From<SplitError>>(
    program: &Program,
    init: A,
    mut decide: impl FnMut(Node<'_>, A) -> Result<(Decision, A), E>,
) -> Result<(StageGraph, A), E> {
    let mut state = Some(init);
    let graph = try_split(program, |node| {
        let before = state.take().expect("every call puts a state back, or is the last");
        let (decision, after) = decide(node, before)?;
        state = Some(after);
        Ok::<_, E>(decision)
    })?;
    Ok((graph, state.expect("every call puts a state back, or is the last")))
}
