//! Donation between stages: a stage reuses the memory of values that no later stage needs.

use nxla_expr::{Digest, Op};
use nxla_split::{StageGraph, StageId, ValueSource};
use rustc_hash::FxHashMap;

use crate::donation::{RunDonation, unusable_donations};

/// For each stage the arguments donated to it, and the arguments that its executable would also
/// reuse.
///
/// Stages with the same program share an executable, which can reuse every argument that is donated
/// to one of them. For example, the caller keeps the argument of the first layer of a model, and
/// the arguments of the other layers are results of earlier layers.
pub(super) struct StageDonations {
    /// A stage keeps the arguments that are needed after it.
    stages: Vec<RunDonation>,
}

impl StageDonations {
    /// Computes the donations from the values between stages and the donated inputs of the graph.
    pub(super) fn of(graph: &StageGraph, donated: &[bool]) -> Self {
        let donatable = stage_donations(graph, donated);
        let mut reused: FxHashMap<Digest, Vec<bool>> = FxHashMap::default();
        for (stage, donatable) in graph.stages().iter().zip(&donatable) {
            let all = reused
                .entry(stage.program.digest())
                .or_insert_with(|| vec![false; donatable.len()]);
            all.iter_mut().zip(donatable).for_each(|(reused, donatable)| *reused |= donatable);
        }
        let stages = graph.stages().iter().zip(donatable).map(|(stage, donatable)| {
            let reused = &reused[&stage.program.digest()];
            let marks = if reused.contains(&true) { reused.clone() } else { Vec::new() };
            let kept =
                (0..marks.len()).filter(|&input| marks[input] && !donatable[input]).collect();
            RunDonation { marks, kept }
        });
        Self { stages: stages.collect() }
    }

    /// Returns the donation to a stage.
    pub(super) fn of_stage(&self, stage: StageId) -> &RunDonation {
        &self.stages[stage.index()]
    }
}

/// Returns for each stage and argument whether the stage may reuse its memory: no other stage needs the
/// argument, a result of the stage can use the memory, and the argument is a donated input or the
/// result of another stage.
fn stage_donations(graph: &StageGraph, donated: &[bool]) -> Vec<Vec<bool>> {
    let mut uses: FxHashMap<ValueSource, usize> = FxHashMap::default();
    let arguments = graph.stages().iter().flat_map(|stage| &stage.arguments);
    for &source in arguments.chain(graph.outputs()) {
        *uses.entry(source).or_default() += 1;
    }
    let may_donate = |source: &ValueSource| match source.stage {
        None => donated.get(source.index) == Some(&true),
        // A value that a stage returns unchanged may be an input of the whole program.
        Some(stage) => {
            let program = &graph.stage(stage).program;
            !matches!(program.graph().op(program.outputs()[source.index]), Op::Parameter(_))
        }
    };
    let is_donated = |source: &ValueSource| uses[source] == 1 && may_donate(source);
    let stages = graph.stages().iter().map(|stage| {
        let mut donatable: Vec<bool> = stage.arguments.iter().map(is_donated).collect();
        for input in unusable_donations(&stage.program, &donatable) {
            donatable[input] = false;
        }
        donatable
    });
    stages.collect()
}

#[cfg(test)]
mod tests {
    use nxla_expr::{Graph, Program, TensorType};
    use nxla_split::{Decision, split};
    use nxla_tensor::DType;

    use super::*;
    use crate::error::Result;

    /// Three equal layers in sequence on an input that the caller keeps.
    fn equal_layers() -> Result<StageGraph> {
        let vector = TensorType::new(DType::F32, [3]);
        let mut graph = Graph::new();
        let [w, mut x] = [0, 1].map(|index| graph.parameter(index, vector.clone()));
        for _ in 0..3 {
            let y = graph.multiply(x, w)?;
            x = graph.sin(y)?;
        }
        let program = Program::new(&graph, vec![vector; 2], &[x])?;
        Ok(split(&program, |node| match node.op.name() {
            "sin" => Decision::After,
            _ => Decision::None,
        })?)
    }

    #[test]
    fn equal_stages_share_donations_except_kept_inputs() -> Result<()> {
        let graph = equal_layers()?;
        let [first, second, third] = [0, 1, 2].map(|stage| graph.stages()[stage].id);
        let donations = StageDonations::of(&graph, &[false, false]);
        for stage in [first, second, third] {
            assert_eq!(donations.of_stage(stage).marks, [false, true]);
        }
        assert_eq!(donations.of_stage(first).kept, [1]);
        assert!(
            donations.of_stage(second).kept.is_empty() && donations.of_stage(third).kept.is_empty()
        );
        // A donated input is donated to its stage too, unless several stages use it.
        let donations = StageDonations::of(&graph, &[true, true]);
        assert_eq!(donations.of_stage(first).marks, [false, true]);
        assert!(donations.of_stage(first).kept.is_empty());
        Ok(())
    }
}
