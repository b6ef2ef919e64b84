//! Stages that are ranges of the node sequence: by number of operations, time or memory.

use nxla_expr::AtLine;

use crate::error::SplitError;
use crate::memory::StageMemory;
use crate::partition::Sequence;

/// The maximum distance of a cut from its balanced position, as a fraction of a stage's time.
const SLACK: f64 = 0.1;

/// Returns the starts of stages with `count` operations each.
pub(super) fn every(sequence: &Sequence<'_>, count: usize) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut ops = 0;
    for position in 0..sequence.len() {
        if ops == count {
            starts.push(position);
            ops = 0;
        }
        ops += usize::from(sequence.counts(position));
    }
    starts
}

/// Returns the starts of stages with at most `count` and at least half as many operations. Each
/// stage ends where the fewest bytes cross.
pub(super) fn at_most(sequence: &Sequence<'_>, count: usize) -> Vec<usize> {
    let crossing = sequence.crossing_bytes();
    let ops: Vec<usize> =
        (0..sequence.len()).filter(|&position| sequence.counts(position)).collect();
    let mut starts = Vec::new();
    let mut first = 0;
    while ops.len() - first > count {
        let shortest = first + count.div_ceil(2);
        // Of equally good positions, take the last, so that stages are as large as possible.
        let best = (shortest..=first + count)
            .rev()
            .min_by_key(|&next| crossing[ops[next]])
            .expect("a stage has at least one operation");
        starts.push(ops[best]);
        first = best;
    }
    starts
}

/// Returns the starts of `count` stages with similar estimated times.
pub(super) fn balance(sequence: &Sequence<'_>, count: usize) -> Vec<usize> {
    let crossing = sequence.crossing_bytes();
    // The time until each position, and the total time.
    let mut until = vec![0.0];
    for seconds in sequence.seconds() {
        until.push(until[until.len() - 1] + seconds);
    }
    let stage = until[sequence.len()] / to_f64(count);
    let mut starts = Vec::new();
    let mut after = 1;
    for cut in 1..count {
        let even = stage * to_f64(cut);
        let from = until.partition_point(|&time| time < even - SLACK * stage).max(after);
        let to = until.partition_point(|&time| time <= even + SLACK * stage);
        // A single node may take longer than a stage should; the cut is then after the node.
        let places = from..to.max(from + 1).min(sequence.len());
        let Some(best) = places.min_by_key(|&position| crossing[position]) else { break };
        starts.push(best);
        after = best + 1;
    }
    starts
}

#[expect(clippy::cast_precision_loss, reason = "counts of stages are small")]
fn to_f64(count: usize) -> f64 {
    count as f64
}

/// Returns the starts of stages that need at most `bytes` bytes of memory.
pub(super) fn within(sequence: &Sequence<'_>, bytes: u64) -> Result<Vec<usize>, SplitError> {
    let mut starts = Vec::new();
    let mut memory = StageMemory::new(sequence);
    let mut start = 0;
    for position in 0..sequence.len() {
        if memory.add(position) <= bytes {
            continue;
        }
        if position > start {
            starts.push(position);
            start = position;
            memory.begin(position);
            if memory.add(position) <= bytes {
                continue;
            }
        }
        return Err(too_large(sequence, position, bytes));
    }
    Ok(starts)
}

fn too_large(sequence: &Sequence<'_>, position: usize, bytes: u64) -> SplitError {
    let (graph, id) = (sequence.graph(), sequence.nodes[position]);
    let mut alone = StageMemory::new(sequence);
    alone.begin(position);
    let needed = alone.add(position);
    let line = graph.line(id);
    SplitError::Policy(format!(
        "policy: a stage has at most {bytes} bytes, but {} of type {}{} with its operands \
         needs {needed}",
        graph.op(id).name(),
        graph.ty(id),
        AtLine(line.as_ref())
    ))
}
