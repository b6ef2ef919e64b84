//! Finding repeated subgraphs: the layers of a model, in the forward and the backward pass.
//!
//! A program is treated as a sequence of letters that encode the function of each node without its
//! operands. Repeated layers are a range of this sequence in which letter `i` equals letter `i + p`
//! for the length `p` of a layer. Candidates for `p` are the distances between equal letters. The
//! correct distance is by far the most frequent one for letters that occur once per layer. Finally,
//! the cuts within a layer are moved to positions where the fewest bytes cross.
//!
//! A value that all layers share, such as a mask, is computed in the first layer, because equal
//! nodes are merged. The first layer is then longer than the others; its additional nodes are moved
//! to the stage before it if possible.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHasher};

use crate::partition::Sequence;

/// The number of candidates for the length of a layer that are tried.
const CANDIDATES: usize = 12;
/// The number of equally good start positions that are tried.
const TRIED: usize = 64;

/// Returns the part of each node, such that each repetition is a separate part. Repetitions with
/// fewer than `shortest` nodes are combined.
pub(super) fn parts(sequence: &Sequence<'_>, shortest: usize) -> Vec<u32> {
    let text = Text {
        sequence,
        letters: letters(sequence),
        crossing: sequence.crossing_bytes(),
        shortest,
    };
    let mut starts = Vec::new();
    let mut moved = Vec::new();
    let mut stretches: Vec<Range<usize>> = std::iter::once(0..sequence.len()).collect();
    while let Some(stretch) = stretches.pop() {
        let Some(found) = text.repetition(stretch.clone()) else { continue };
        let mut first = found.start;
        if let Some(longer) = found.longer_first {
            first = longer.start;
            moved.extend(longer.shared);
        }
        starts.push(first);
        starts.extend((0..=found.count).map(|index| found.start + found.length * index));
        stretches.push(stretch.start..first);
        stretches.push(found.start + found.length * found.count..stretch.end);
    }
    number_parts(sequence.len(), starts, &moved)
}

/// Returns for each node the code of its function.
fn letters(sequence: &Sequence<'_>) -> Vec<u64> {
    let graph = sequence.graph();
    let letter = |id| {
        let mut hasher = FxHasher::default();
        graph.op(id).hash(&mut hasher);
        graph.ty(id).hash(&mut hasher);
        for &operand in graph.operands(id) {
            graph.ty(operand).hash(&mut hasher);
        }
        hasher.finish()
    };
    sequence.nodes.iter().map(|&id| letter(id)).collect()
}

/// Consecutive repetitions.
struct Repetition {
    /// The start of the first repetition of regular length.
    start: usize,
    /// The length of each repetition.
    length: usize,
    /// The number of repetitions.
    count: usize,
    /// A longer repetition before the regular ones.
    longer_first: Option<LongerFirst>,
}

/// A layer with more nodes than the following layers.
struct LongerFirst {
    /// The start of the layer.
    start: usize,
    /// The positions of the additional nodes.
    shared: Vec<usize>,
}

/// A program as a sequence of letters.
struct Text<'s> {
    sequence: &'s Sequence<'s>,
    letters: Vec<u64>,
    /// The bytes that cross each position.
    crossing: Vec<u64>,
    shortest: usize,
}

impl Text<'_> {
    /// Returns the repetition that covers most of a range, if any covers two layers.
    fn repetition(&self, stretch: Range<usize>) -> Option<Repetition> {
        let text = &self.letters[stretch.clone()];
        let candidates = lengths(text).into_iter().filter_map(|length| {
            let (start, same) = longest_run(text, length)?;
            Some((same + length, length, start))
        });
        // Of several lengths with equal coverage, the shortest is the layer itself.
        let (covered, length, start) =
            candidates.max_by_key(|&(covered, length, _)| (covered, usize::MAX - length))?;
        let length = length * self.shortest.div_ceil(length);
        let first = stretch.start + start;
        let covered = first..first + covered;
        if covered.len() < 2 * length {
            return None;
        }
        let candidates = self.cheapest(covered.clone(), length).into_iter().map(|start| {
            let count = (covered.end - start) / length;
            let longer_first = self.longer_first(start, length, stretch.start);
            Repetition { start, length, count, longer_first }
        });
        candidates.max_by_key(|found| {
            (found.count + usize::from(found.longer_first.is_some()), usize::MAX - found.start)
        })
    }

    /// Returns the start positions of the first repetition for which the fewest bytes cross the
    /// borders.
    fn cheapest(&self, covered: Range<usize>, length: usize) -> Vec<usize> {
        let bytes_at = |start: usize| {
            let borders = (start..=covered.end).step_by(length);
            let (sum, count) = borders.fold((0_u64, 0_u64), |(sum, count), border| {
                (sum.saturating_add(self.crossing[border]), count + 1)
            });
            sum / count.max(1)
        };
        let places: Vec<(usize, u64)> =
            (covered.start..covered.start + length).map(|start| (start, bytes_at(start))).collect();
        let fewest = places.iter().map(|&(_, bytes)| bytes).min();
        let best = places.into_iter().filter(|&(_, bytes)| Some(bytes) == fewest);
        best.map(|(start, _)| start).take(TRIED).collect()
    }

    /// Looks for a longer layer before the first regular layer.
    fn longer_first(&self, first: usize, length: usize, from: usize) -> Option<LongerFirst> {
        let layer = &self.letters[first..first + length];
        let mut shared = Vec::new();
        let mut left = layer.len();
        let mut start = first;
        while left > 0 {
            start = start.checked_sub(1).filter(|&start| start >= from)?;
            if self.letters[start] == layer[left - 1] {
                left -= 1;
            } else {
                shared.push(start);
            }
            if shared.len() > layer.len() / 2 {
                return None;
            }
        }
        shared.reverse();
        // Nodes can be moved before the layer only if they need no node of the layer.
        let movable = shared.iter().all(|&position| {
            let mut operands = self.sequence.operands(position);
            operands.all(|operand| operand < start || shared.binary_search(&operand).is_ok())
        });
        movable.then_some(LongerFirst { start, shared })
    }
}

/// Returns the most frequent distances between a letter and its next occurrence.
fn lengths(text: &[u64]) -> Vec<usize> {
    let mut last: FxHashMap<u64, usize> = FxHashMap::default();
    let mut votes: BTreeMap<usize, usize> = BTreeMap::new();
    for (position, &letter) in text.iter().enumerate() {
        if let Some(before) = last.insert(letter, position) {
            *votes.entry(position - before).or_default() += 1;
        }
    }
    // Longer distances have a higher weight: a layer has fewer letters that occur once than twice.
    let mut lengths: Vec<usize> = votes.keys().copied().collect();
    lengths.sort_by_key(|length| std::cmp::Reverse(length.saturating_mul(votes[length])));
    lengths.truncate(CANDIDATES);
    lengths
}

/// Returns the start and length of the longest range whose letters equal those at `distance` after
/// them, if it is at least `distance` long.
fn longest_run(text: &[u64], distance: usize) -> Option<(usize, usize)> {
    let (mut start, mut best) = (0, (0, 0));
    for position in 0..text.len().saturating_sub(distance) {
        if text[position] != text[position + distance] {
            start = position + 1;
        } else if position + 1 - start > best.1 {
            best = (start, position + 1 - start);
        }
    }
    (best.1 >= distance).then_some(best)
}

/// Numbers the parts that start at these positions; moved nodes belong to the preceding part.
fn number_parts(count: usize, mut starts: Vec<usize>, moved: &[usize]) -> Vec<u32> {
    starts.sort_unstable();
    starts.dedup();
    let mut parts = Vec::with_capacity(count);
    // Part 0 contains the nodes that are moved to the front.
    let mut part = 1;
    let mut next = starts.into_iter().skip_while(|&start| start == 0).peekable();
    for position in 0..count {
        if next.next_if_eq(&position).is_some() {
            part += 1;
        }
        parts.push(part);
    }
    for &position in moved {
        parts[position] -= 1;
    }
    parts
}
