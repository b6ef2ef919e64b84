//! Stages and their connections.

use std::fmt;
use std::sync::Arc;

use nxla_expr::{Program, TensorType};
use rustc_hash::FxHashSet;

use crate::dependencies::StageDependencies;
use crate::error::SplitError;

/// The number of a stage. The order of numbers is an order in which stages can run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StageId(u32);

impl StageId {
    /// Returns the index in [`StageGraph::stages`].
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns the stage number for an index.
    pub fn from_index(index: usize) -> Self {
        Self(u32::try_from(index).expect("a program has fewer than 2^32 nodes, so stages"))
    }
}

impl fmt::Display for StageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stage {}", self.0)
    }
}

impl fmt::Debug for StageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The source of a value. Inputs sort before outputs of stages.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ValueSource {
    /// The stage that computes the value; `None` for an input of the original program.
    pub stage: Option<StageId>,
    /// The index among the outputs of the stage, or among the inputs.
    pub index: usize,
}

impl ValueSource {
    /// Creates the source of an input of the original program.
    pub fn input(index: usize) -> Self {
        Self { stage: None, index }
    }

    /// Creates the source of an output of a stage.
    pub fn output(stage: StageId, index: usize) -> Self {
        Self { stage: Some(stage), index }
    }
}

impl fmt::Display for ValueSource {
    /// Writes `in0` for an input, `s2.1` for an output of a stage.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.stage {
            None => write!(f, "in{}", self.index),
            Some(stage) => write!(f, "s{}.{}", stage.0, self.index),
        }
    }
}

/// A stage: a program and the sources of its inputs.
///
/// A stage refers to other stages only by number, so it can be serialized (see [`Stage::to_bytes`])
/// and run by any executor. Stages that compute the same function have equal programs, so an
/// executor can cache compiled programs by digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// The stage number.
    pub id: StageId,
    /// The program of the stage.
    pub program: Arc<Program>,
    /// The source of each input of the program; the sources are distinct.
    pub arguments: Vec<ValueSource>,
    /// A stage that must run before this stage although no value comes from it: both have hooks.
    pub follows: Option<StageId>,
    /// The name: the annotation at its end, or the pass of a training step.
    pub name: Option<Arc<str>>,
}

impl Stage {
    /// Returns the stages that must run before this one, in increasing order.
    pub fn dependencies(&self) -> Vec<StageId> {
        let sources = self.arguments.iter().filter_map(|source| source.stage);
        let mut stages: Vec<StageId> = sources.chain(self.follows).collect();
        stages.sort_unstable();
        stages.dedup();
        stages
    }
}

/// A value that a stage takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Edge {
    /// The source of the value.
    pub source: ValueSource,
    /// The stage that takes the value.
    pub stage: StageId,
    /// The index among the arguments of the stage.
    pub argument: usize,
    /// The size of the value.
    pub bytes: u64,
}

/// The stages of a program: an acyclic graph in an order in which it can run.
///
/// After [`split`](crate::split), the last stage returns all outputs of the original program and
/// passes outputs of earlier stages through. After a policy, each output comes from the stage that
/// computes it.
#[derive(Clone, Debug)]
pub struct StageGraph {
    inputs: Vec<TensorType>,
    stages: Vec<Stage>,
    outputs: Vec<ValueSource>,
    pub(crate) dependencies: Arc<StageDependencies>,
}

impl StageGraph {
    /// Assembles stages that are known to fit together.
    pub(crate) fn from_parts(
        inputs: Vec<TensorType>,
        stages: Vec<Stage>,
        outputs: Vec<ValueSource>,
    ) -> Self {
        let dependencies = Arc::new(StageDependencies::new(inputs.len(), &stages, &outputs));
        Self { inputs, stages, outputs, dependencies }
    }

    /// Assembles stages that were built or received separately.
    ///
    /// # Errors
    /// Returns an error if the stages do not fit together, see [`StageGraph::verify`].
    pub fn new(
        inputs: Vec<TensorType>,
        stages: Vec<Stage>,
        outputs: Vec<ValueSource>,
    ) -> Result<Self, SplitError> {
        verify(&inputs, &stages, &outputs)?;
        Ok(Self::from_parts(inputs, stages, outputs))
    }

    /// Sets the names of the stages, from the first stage on.
    pub(crate) fn name(&mut self, names: impl IntoIterator<Item = Arc<str>>) {
        for (stage, name) in self.stages.iter_mut().zip(names) {
            stage.name = Some(name);
        }
    }

    /// Returns the stages, in an order in which they can run.
    pub fn stages(&self) -> &[Stage] {
        &self.stages
    }

    /// Returns the stage with this number.
    pub fn stage(&self, id: StageId) -> &Stage {
        &self.stages[id.index()]
    }

    /// Returns the types of the inputs of the original program. A stage takes only the inputs that
    /// it needs.
    pub fn inputs(&self) -> &[TensorType] {
        &self.inputs
    }

    /// Returns the sources of the outputs of the original program.
    pub fn outputs(&self) -> &[ValueSource] {
        &self.outputs
    }

    /// Returns the type of a source.
    pub fn type_of(&self, source: ValueSource) -> &TensorType {
        match source.stage {
            None => &self.inputs[source.index],
            Some(stage) => {
                let program = &self.stage(stage).program;
                program.graph().tensor_type(program.outputs()[source.index])
            }
        }
    }

    /// Returns every value that a stage takes, by stage and argument.
    pub fn edges(&self) -> impl Iterator<Item = Edge> {
        self.stages.iter().flat_map(move |stage| {
            stage.arguments.iter().enumerate().map(move |(argument, &source)| Edge {
                source,
                stage: stage.id,
                argument,
                bytes: bytes_of(self.type_of(source)),
            })
        })
    }

    /// Returns the stages that must run before this one, in increasing order.
    pub fn dependencies(&self, id: StageId) -> Vec<StageId> {
        self.stage(id).dependencies()
    }

    /// Returns the stages by the length of the longest path to them. Stages of one level are
    /// independent and can run at the same time.
    pub fn levels(&self) -> Vec<Vec<StageId>> {
        let mut level_of = vec![0; self.stages.len()];
        let mut levels: Vec<Vec<StageId>> = Vec::new();
        for stage in &self.stages {
            let before = stage.dependencies();
            let level = before.iter().map(|id| level_of[id.index()] + 1).max().unwrap_or(0);
            level_of[stage.id.index()] = level;
            if level == levels.len() {
                levels.push(Vec::new());
            }
            levels[level].push(stage.id);
        }
        levels
    }

    /// Checks that the stages fit together and that each program satisfies the invariants of its
    /// graph.
    ///
    /// # Errors
    /// Returns the first violation.
    pub fn verify(&self) -> Result<(), SplitError> {
        verify(&self.inputs, &self.stages, &self.outputs)?;
        for stage in &self.stages {
            nxla_expr::verify::verify_program(&stage.program)
                .map_err(|violations| SplitError::structure(stage.id, violations.to_string()))?;
        }
        Ok(())
    }
}

/// Returns the size of a tensor in bytes.
pub(crate) fn bytes_of(ty: &TensorType) -> u64 {
    ty.byte_size() as u64
}

fn verify(
    inputs: &[TensorType],
    stages: &[Stage],
    outputs: &[ValueSource],
) -> Result<(), SplitError> {
    for (index, stage) in stages.iter().enumerate() {
        let fail = |why: String| Err(SplitError::structure(stage.id, why));
        if stage.id.index() != index {
            return fail(format!("is at position {index}"));
        }
        if let Some(before) = stage.follows.filter(|&before| before >= stage.id) {
            return fail(format!("follows {before}, which is not before it"));
        }
        let (found, expected) = (stage.arguments.len(), stage.program.inputs().len());
        if found != expected {
            return fail(format!("has {found} arguments for {expected} inputs"));
        }
        let distinct: FxHashSet<ValueSource> = stage.arguments.iter().copied().collect();
        if distinct.len() != found {
            return fail("takes the same value twice".into());
        }
        for (&source, expected) in stage.arguments.iter().zip(stage.program.inputs()) {
            match source_type(inputs, &stages[..index], source) {
                Some(ty) if ty == expected => {}
                Some(ty) => return fail(format!("input {source}: expected {expected}; got {ty}")),
                None => return fail(format!("takes {source}, which no earlier stage returns")),
            }
        }
    }
    for (output, &source) in outputs.iter().enumerate() {
        if source_type(inputs, stages, source).is_none() {
            return Err(SplitError::Output {
                output,
                why: format!("{source}, which no stage returns"),
            });
        }
    }
    Ok(())
}

/// Returns the type of a source, if the source exists.
fn source_type<'a>(
    inputs: &'a [TensorType],
    stages: &'a [Stage],
    source: ValueSource,
) -> Option<&'a TensorType> {
    match source.stage {
        None => inputs.get(source.index),
        Some(stage) => {
            let program = &stages.get(stage.index())?.program;
            Some(program.graph().tensor_type(*program.outputs().get(source.index)?))
        }
    }
}
