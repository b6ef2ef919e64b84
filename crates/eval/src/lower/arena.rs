//! Allocation of arena offsets and slots.

use rustc_hash::FxHashMap;

use crate::context::LINE;
use crate::execute::code::Span;

/// The arena during lowering. A dead span is reused for the same number of cache lines, because a loop has many
/// tensors of one size.
#[derive(Default)]
pub(super) struct Arena {
    len: usize,
    free: FxHashMap<usize, Vec<usize>>,
    /// The number of values in each span that will be free again, and its length.
    counts: FxHashMap<u32, (u32, usize)>,
}

impl Arena {
    /// Bytes of the arena.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// A span that is never reused.
    pub(super) fn take_pinned(&mut self, bytes: usize) -> Span {
        let at = self.len;
        self.len += whole_lines(bytes);
        Span::new(at, bytes)
    }

    /// A span for one value.
    pub(super) fn take(&mut self, bytes: usize) -> Span {
        let lines = whole_lines(bytes);
        let free = self.free.get_mut(&lines).and_then(Vec::pop);
        let span = match free {
            Some(at) => Span::new(at, bytes),
            None => self.take_pinned(bytes),
        };
        self.counts.insert(span.at, (1, lines));
        span
    }

    /// Adds a value to a span.
    pub(super) fn retain(&mut self, at: u32) {
        if let Some((count, _)) = self.counts.get_mut(&at) {
            *count += 1;
        }
    }

    /// Removes a value from a span, unless the span is pinned.
    pub(super) fn release(&mut self, at: u32) {
        let Some((count, lines)) = self.counts.get_mut(&at) else { return };
        *count -= 1;
        if *count == 0 {
            self.free.entry(*lines).or_default().push(at as usize);
            self.counts.remove(&at);
        }
    }
}

/// Bytes in whole cache lines, at least one line.
fn whole_lines(bytes: usize) -> usize {
    bytes.max(1).next_multiple_of(LINE)
}

/// The slots during lowering.
#[derive(Default)]
pub(super) struct Slots {
    /// The number of values in each slot.
    counts: Vec<u32>,
    free: Vec<usize>,
}

impl Slots {
    /// The number of slots.
    pub(super) fn len(&self) -> usize {
        self.counts.len()
    }

    /// A slot for one value.
    pub(super) fn take(&mut self) -> usize {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.counts.push(0);
            self.counts.len() - 1
        });
        self.counts[slot] = 1;
        slot
    }

    /// A slot that no other value uses. A value that is computed before a loop needs one, because
    /// earlier instructions of the loop may use the slots that are free now.
    pub(super) fn take_pinned(&mut self) -> usize {
        self.counts.push(1);
        self.counts.len() - 1
    }

    /// Adds a value to a slot.
    pub(super) fn retain(&mut self, slot: usize) {
        self.counts[slot] += 1;
    }

    /// Removes a value from a slot.
    pub(super) fn release(&mut self, slot: usize) {
        let count = &mut self.counts[slot];
        *count -= 1;
        if *count == 0 {
            self.free.push(slot);
        }
    }
}
