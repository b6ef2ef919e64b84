//! Splitting work into tasks for the threads of the pool.
//!
//! A task pays only if it takes several times as long as waking a thread. Without a pool, the parts of the
//! work run one after the other. A cancelled run skips the tasks that have not begun. The number of threads
//! never changes a result.

use super::ExecContext;
use super::limits::MIN_COST;

/// The minimum cost of a task: small enough to balance the threads, large enough to outweigh the
/// cost of starting it on another thread.
const TASK_COST: usize = MIN_COST / 4;

/// The factor by which the costs are smaller while the other threads poll for tasks. Measured by
/// `benches/python/kernels.py`.
const POLLING: usize = 8;

/// The cost of moving an element, in sixteenths of a nanosecond.
const MOVE_COST: usize = 2;

/// Returns true if element-wise code of this cost is ever split.
pub(crate) fn may_split(cost: usize) -> bool {
    cost >= MIN_COST / POLLING
}

impl ExecContext<'_> {
    /// A limit, which is smaller while the other threads poll.
    fn limit(&self, sleeping: usize) -> usize {
        if self.on_pool { sleeping / POLLING } else { sleeping }
    }

    /// Elements per task, a multiple of `block`, for element-wise work of this total cost; `None` if splitting
    /// does not pay.
    pub(crate) fn piece(&self, elements: usize, block: usize, cost: usize) -> Option<usize> {
        if cost < self.limit(MIN_COST) {
            return None;
        }
        // Two tasks for each thread unless the tasks are long. Each thread then processes the same
        // elements in every iteration of a loop, and finds them in its cache.
        let most = (2 * self.threads()).max(cost / (16 * TASK_COST));
        let tasks = (cost / self.limit(TASK_COST)).min(most);
        Some(elements.div_ceil(tasks).next_multiple_of(block).max(block))
    }

    /// Returns true if splitting pays for work that takes as long as moving this many elements.
    pub(crate) fn pays(&self, elements: usize) -> bool {
        let pays = elements.saturating_mul(MOVE_COST) >= self.limit(MIN_COST);
        pays && !self.is_alone && self.threads() > 1
    }

    /// Runs a task for each item, unless the run is cancelled.
    pub(crate) fn each<I: Send>(&self, items: Vec<I>, task: impl Fn(I) + Send + Sync) {
        self.each_with(items, || (), |(), item| task(item));
    }

    /// Runs a task for each item, unless the run is cancelled. Each thread initializes a state for its tasks.
    pub(crate) fn each_with<I: Send, W>(
        &self,
        items: Vec<I>,
        init: fn() -> W,
        task: impl Fn(&mut W, I) + Send + Sync,
    ) {
        self.share(items.into_iter(), init, &|state, item| {
            if !self.is_cancelled() {
                task(state, item);
            }
        });
    }

    /// Fills `out` in parts of whole rows of `row` elements. A row costs as much as moving `cost` elements.
    /// `fill` receives the number of the first row of a part, and the part.
    pub(crate) fn rows<T: Send>(
        &self,
        out: &mut [T],
        row: usize,
        cost: usize,
        fill: impl Fn(usize, &mut [T]) + Sync,
    ) {
        let count = out.len().checked_div(row).unwrap_or(0);
        let (rows, size) = if count > 1 && self.pays(count.saturating_mul(cost)) {
            let rows = (self.limit(TASK_COST) / MOVE_COST / cost.max(1)).max(1);
            (rows, rows * row)
        } else {
            (count, out.len())
        };
        self.fill_parts(out, size, &|index, out| fill(index * rows, out));
    }

    /// Fills `out` in parts of `piece` elements; the last part may be shorter. An element costs as much as
    /// moving `cost` elements. `fill` receives the position of a part, and the part.
    pub(crate) fn pieces<T: Send>(
        &self,
        out: &mut [T],
        piece: usize,
        cost: usize,
        fill: impl Fn(usize, &mut [T]) + Sync,
    ) {
        let is_split = out.len() > piece && self.pays(out.len().saturating_mul(cost));
        let size = if is_split { piece } else { out.len() };
        self.fill_parts(out, size, &|index, out| fill(index * piece, out));
    }

    /// Fills `out` in parts of `size` elements; the last part may be shorter. One part is filled on this
    /// thread.
    fn fill_parts<T: Send>(
        &self,
        out: &mut [T],
        size: usize,
        fill: &(dyn Fn(usize, &mut [T]) + Sync),
    ) {
        if out.len() <= size {
            if !out.is_empty() {
                fill(0, out);
            }
            return;
        }
        self.share(out.chunks_mut(size).enumerate(), || (), &|(), (index, out)| {
            if !self.is_cancelled() {
                fill(index, out);
            }
        });
    }

    /// The results of `count` tasks, in order.
    pub(crate) fn collect<R: Send>(
        &self,
        count: usize,
        task: &(dyn Fn(usize) -> R + Sync),
    ) -> Vec<R> {
        let mut results: Vec<Option<R>> = (0..count).map(|_| None).collect();
        let slots = results.iter_mut().enumerate();
        self.share(slots, || (), &|(), (index, slot)| *slot = Some(task(index)));
        results.into_iter().map(|result| result.expect("each task has run")).collect()
    }
}
