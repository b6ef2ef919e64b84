//! Lists of lists in two vectors.

/// Lists whose entries follow each other.
#[derive(Clone, Debug)]
pub(crate) struct Lists<T> {
    /// The position of the first entry of each list, and the number of entries.
    starts: Vec<usize>,
    entries: Vec<T>,
}

impl<T> Lists<T> {
    /// Creates `count` lists from entries with the numbers of their lists. The entries of a list keep their order.
    pub(crate) fn group(
        count: usize,
        entries: impl IntoIterator<Item = (usize, T)> + Clone,
    ) -> Self {
        let mut starts = vec![0; count + 1];
        for (list, _) in entries.clone() {
            starts[list + 1] += 1;
        }
        for list in 0..count {
            starts[list + 1] += starts[list];
        }
        let mut next = starts.clone();
        // Every entry is replaced by the entry that belongs there.
        let mut sorted: Vec<T> = entries.clone().into_iter().map(|(_, entry)| entry).collect();
        for (list, entry) in entries {
            sorted[next[list]] = entry;
            next[list] += 1;
        }
        Self { starts, entries: sorted }
    }

    /// Returns one list.
    pub(crate) fn of(&self, list: usize) -> &[T] {
        &self.entries[self.starts[list]..self.starts[list + 1]]
    }

    /// Returns the entries of all lists.
    pub(crate) fn entries(&self) -> &[T] {
        &self.entries
    }
}
