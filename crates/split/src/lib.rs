//! Cutting a program into stages that run one after another, side by side, or elsewhere.
//!
//! [`split`] visits the nodes of a [`Program`] and asks where to cut. What comes back is a
//! [`StageGraph`]: programs of their own, and for each of their inputs where it comes from.
//! Nothing is computed twice: a value that an earlier stage computes and a later one needs is an
//! output of the earlier one.
//!
//! A [`Policy`] cuts a whole program by a rule: by number, time or memory of the stages, at marks, at
//! layers that repeat themselves, at the passes of a training step.
//!
//! The modules follow the steps: `cut` decides which stage owns which node (`partition`, if a policy
//! has decided about all of them), `wire` finds the values that cross, `assemble` builds the programs;
//! `plan` and [`Schedule`] say in which order they run, and where their values go. `cost` and `memory`
//! estimate what stages take, and `simulate` how long a cluster takes with them.
//!
//! # Where the cuts are
//!
//! The caller is asked about every node that an output or a hook needs, depth first from the
//! outputs, operands before users, each node once. Parameters, parts of tuples (`elem`) and the
//! insides of regions are not asked about; literals are. At a node, [`Decision`] says where the
//! stage that is being built ends, and so which values it gives: these are its first outputs, in
//! operand order. Values that turn out to be needed later as well are appended.
//!
//! # Differences from Nx
//!
//! The rules are those of `Nx.Defn.Graph.split`, and stages are numbered and wired alike, with
//! these exceptions:
//!
//! * A node that two stages need is computed by the first, which hands it on, not by both. Only
//!   literals and annotations, which cost nothing, are made where they are needed.
//! * A value crosses a boundary once, even if the node at the boundary has it twice as an operand
//!   (`x * x`), and is not handed through a stage that does not need it.
//! * Operands in lists (`concatenate`, `stack`, dynamic starts of slices, a function's captures)
//!   and operands of blocks and hooks are operands like any other.
//! * What a conditional captures are its operands, and they are asked about.
//! * Stages form a graph, not a chain; hooks keep their order by [`Stage::follows`].
#![forbid(unsafe_code)]

mod assemble;
mod bytes;
mod cost;
mod cut;
mod error;
mod explain;
mod memory;
mod partition;
mod plan;
mod policy;
mod schedule;
mod simulate;
mod stage;
mod wire;

use nxla_expr::{Node, Program};

pub use cost::{Cost, Speed, cost_of, seconds_of};
pub use error::SplitError;
pub use policy::Policy;
pub use schedule::{Schedule, ScheduleError, Task};
pub use simulate::{Cluster, Run, Timeline};
pub use stage::{Edge, Source, Stage, StageGraph, StageId};

/// Where to cut at a node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Decision {
    /// A stage ends with the operands of the node: those that no earlier stage provides are its
    /// outputs, and the node itself comes later. If all are provided, or there are none, the node
    /// becomes the output of the stage, as with `After`; but a loop stays where it is. A
    /// conditional is cut out whole, as with `After`.
    Before,
    /// A stage ends with the node, which is its output: one for each part if it has several.
    After,
    /// `Before`, then `After`: the node gets a stage for itself.
    Both,
    /// No cut.
    #[default]
    None,
}

/// Cuts a program where `decide` says so.
///
/// # Errors
/// None for programs that keep their graph's invariants.
///
/// # Examples
/// ```
/// use nxla_expr::{Graph, Op, Program, TensorType, UnaryOp};
/// use nxla_split::{Decision, Source, split};
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
/// assert_eq!(first.arguments, [Source::input(0)]);
/// assert_eq!(second.arguments, [Source::input(1), Source::output(first.id, 0)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn split(
    program: &Program,
    mut decide: impl FnMut(Node<'_>) -> Decision,
) -> Result<StageGraph, SplitError> {
    try_split(program, |node| Ok(decide(node)))
}

/// Cuts a program where `decide` says so, which also gets what its last call gave, beginning with
/// `init`. Gives the last such value as well.
///
/// # Errors
/// None for programs that keep their graph's invariants.
pub fn split_with<A>(
    program: &Program,
    init: A,
    mut decide: impl FnMut(Node<'_>, A) -> (Decision, A),
) -> Result<(StageGraph, A), SplitError> {
    try_split_with(program, init, |node, state| Ok(decide(node, state)))
}

/// Like [`split`], with a `decide` that can fail.
///
/// # Errors
/// The first error of `decide`, which is not called again.
pub fn try_split<E: From<SplitError>>(
    program: &Program,
    decide: impl FnMut(Node<'_>) -> Result<Decision, E>,
) -> Result<StageGraph, E> {
    let cut = cut::cut(program, decide)?;
    Ok(assemble::assemble(program, &cut)?)
}

/// Like [`split_with`], with a `decide` that can fail.
///
/// # Errors
/// The first error of `decide`, which is not called again.
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
