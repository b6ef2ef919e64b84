//! Policies: rules that cut any program into stages.

mod layers;
mod marks;
mod ranges;
mod training;

use std::fmt;

use nxla_expr::Program;

use crate::error::SplitError;
use crate::partition::Sequence;
use crate::stage::StageGraph;

/// The maximum number of operations of a program that compiles as quickly whole as in stages; see
/// `docs/performance.md`.
const WHOLE: usize = 1000;
/// The number of operations per stage when a program is cut for faster compilation. Smaller stages
/// gain nothing, and larger ones are slow, because compile times grow faster than linearly.
const COMPILED_AT_ONCE: usize = 250;

/// The minimum number of nodes of a layer.
const SHORTEST_LAYER: usize = 4;

/// A rule that cuts any program.
///
/// All policies except [`Policy::Marks`] cut the program in the order in which its outputs need its
/// nodes. An independent branch is therefore contiguous and can run in parallel with another one.
///
/// # Examples
/// ```
/// use nxla_expr::{Graph, Program, TensorType};
/// use nxla_split::Policy;
/// use nxla_tensor::DType;
///
/// let mut graph = Graph::new();
/// let ty = TensorType::scalar(DType::F32);
/// let x = graph.parameter(0, ty.clone());
/// let mut y = x;
/// for _ in 0..10 {
///     y = graph.sin(y)?;
/// }
/// let program = Program::new(&graph, vec![ty], &[y])?;
/// let stages = Policy::EveryOps(4).split(&program)?;
/// assert_eq!(stages.stages().len(), 3);
/// // Two of them compute the same.
/// assert_eq!(stages.stages()[0].digest(), stages.stages()[1].digest());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Policy {
    /// Each stage but the last has this number of operations.
    EveryOps(usize),
    /// Stages have at most this number of operations; cuts are where few bytes cross.
    AtMostOps(usize),
    /// The number of stages, which have similar estimated times; cuts are where few bytes cross.
    Balanced(usize),
    /// Stages need at most this number of bytes while they run, including arguments and outputs.
    Memory(u64),
    /// A stage ends at each annotation with one of these strings, or at each annotation if the list
    /// is empty. The annotation is the name of the stage.
    Marks(Vec<String>),
    /// A stage for each repetition of a repeated subgraph, such as the layers of a model. Equal
    /// layers have equal programs, which are compiled once.
    Layers,
    /// The forward pass, the backward pass and the update of a training step.
    Training,
    /// One stage for a program that compiles quickly as a whole; otherwise layers, or small stages.
    Auto,
}

impl Policy {
    /// Cuts a program.
    ///
    /// # Errors
    /// Returns an error for sizes of zero, for a node that exceeds the memory limit, for a missing
    /// mark, and for [`Policy::Training`] without a gradient.
    pub fn split(&self, program: &Program) -> Result<StageGraph, SplitError> {
        let sequence = Sequence::new(program);
        match self {
            Policy::EveryOps(count) => {
                sequence.cut_at(ranges::every(&sequence, positive(self, *count)?))
            }
            Policy::AtMostOps(count) => {
                sequence.cut_at(ranges::at_most(&sequence, positive(self, *count)?))
            }
            Policy::Balanced(count) => {
                sequence.cut_at(ranges::balance(&sequence, positive(self, *count)?))
            }
            Policy::Memory(bytes) => sequence.cut_at(ranges::within(&sequence, *bytes)?),
            Policy::Marks(notes) => marks::split(program, notes),
            Policy::Layers => sequence.assemble(&layers::parts(&sequence, SHORTEST_LAYER)),
            Policy::Training => training::split(&sequence),
            Policy::Auto => auto(&sequence),
        }
    }
}

fn positive(policy: &Policy, count: usize) -> Result<usize, SplitError> {
    match count {
        0 => Err(SplitError::Policy(format!("policy: number must be positive; got {policy}"))),
        count => Ok(count),
    }
}

fn auto(sequence: &Sequence<'_>) -> Result<StageGraph, SplitError> {
    if sequence.len() <= WHOLE {
        return sequence.cut_at(Vec::new());
    }
    let layered = sequence.assemble(&layers::parts(sequence, COMPILED_AT_ONCE / 2))?;
    let largest = layered.stages().iter().map(|stage| stage.program.graph().len()).max();
    // Without repetitions, or with large ones, the size decides.
    match largest {
        Some(largest) if largest <= WHOLE => Ok(layered),
        _ => sequence.cut_at(ranges::at_most(sequence, COMPILED_AT_ONCE)),
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Policy::EveryOps(count) => write!(f, "every_ops({count})"),
            Policy::AtMostOps(count) => write!(f, "at_most_ops({count})"),
            Policy::Balanced(count) => write!(f, "balanced({count})"),
            Policy::Memory(bytes) => write!(f, "memory({bytes})"),
            Policy::Marks(notes) => {
                let notes: Vec<String> = notes.iter().map(|note| format!("{note:?}")).collect();
                write!(f, "marks({})", notes.join(", "))
            }
            Policy::Layers => f.write_str("layers()"),
            Policy::Training => f.write_str("training()"),
            Policy::Auto => f.write_str("auto()"),
        }
    }
}
