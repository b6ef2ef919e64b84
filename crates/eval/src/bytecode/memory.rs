//! Which places of the memory are taken.

use rustc_hash::FxHashMap;

use super::Span;
use crate::memory::LINE;

/// Places are handed out while code is written. One that is dead is handed out again for the same number
/// of lines; a loop has many tensors of one size.
#[derive(Default)]
pub(super) struct Memory {
    len: usize,
    free: FxHashMap<usize, Vec<usize>>,
    /// By how many values each place is held that will be free again.
    holders: FxHashMap<u32, (u32, usize)>,
}

impl Memory {
    /// Bytes of all of it.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// A place that nobody writes to but who asked, at any time.
    pub(super) fn pinned(&mut self, bytes: usize) -> Span {
        let at = self.len;
        self.len += lines(bytes);
        Span::new(at, bytes)
    }

    /// A place that is held by one value.
    pub(super) fn take(&mut self, bytes: usize) -> Span {
        let lines = lines(bytes);
        let free = self.free.get_mut(&lines).and_then(Vec::pop);
        let span = match free {
            Some(at) => Span::new(at, bytes),
            None => self.pinned(bytes),
        };
        self.holders.insert(span.at, (1, lines));
        span
    }

    /// Another value is at a place.
    pub(super) fn hold(&mut self, at: u32) {
        if let Some((count, _)) = self.holders.get_mut(&at) {
            *count += 1;
        }
    }

    /// A value is not at a place any more. Those that are pinned stay what they are.
    pub(super) fn release(&mut self, at: u32) {
        let Some((count, lines)) = self.holders.get_mut(&at) else { return };
        *count -= 1;
        if *count == 0 {
            self.free.entry(*lines).or_default().push(at as usize);
            self.holders.remove(&at);
        }
    }
}

/// So many bytes in whole lines, at least one.
fn lines(bytes: usize) -> usize {
    bytes.max(1).next_multiple_of(LINE)
}
