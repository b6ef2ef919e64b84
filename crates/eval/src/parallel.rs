//! When and how work is spread over threads.
//!
//! A task is only worth handing to another thread when it takes far longer than the microseconds
//! that waking one costs. Where there are no threads, pieces are worked on one after the other. What
//! is asked to stop leaves out the pieces that have not begun, see [`Brake`].

use crate::threads::{Brake, Crew, crew, leads};

/// Elements below which work stays on the calling thread: moving them takes some 40 microseconds, and
/// handing a part to a thread that sleeps takes ten.
pub(crate) const MIN_ELEMENTS: usize = 1 << 18;

/// The same where the other threads look out for work: some five microseconds.
const MIN_ELEMENTS_ABOARD: usize = 1 << 15;

/// Elements of one task: small enough to balance, large enough to drown the cost of a task.
const TASK_ELEMENTS: usize = 1 << 17;

/// The same where the other threads look out for work.
const TASK_ELEMENTS_ABOARD: usize = 1 << 14;

/// Steps of element-wise code, see [`Code::cost`](crate::elementwise::Code), below which it stays on
/// the calling thread: some 20 to 40 microseconds. Handing a part to a thread that sleeps takes five to ten.
const MIN_STEPS: usize = 400_000;

/// The same where the other threads look out for work: some five microseconds.
const MIN_STEPS_ABOARD: usize = 80_000;

/// Steps of one task of element-wise code at least.
const TASK_STEPS: usize = 1 << 16;

/// The same where the other threads look out for work.
const TASK_STEPS_ABOARD: usize = 1 << 15;

/// Steps of a task that is cut: a tenth of a millisecond.
const LONG_TASK_STEPS: usize = 1 << 21;

/// What suits this thread.
fn either(elsewhere: usize, aboard: usize) -> usize {
    if leads() { aboard } else { elsewhere }
}

/// The crew, roused, if it is more than one thread.
fn hands() -> Option<&'static Crew> {
    crew().filter(|crew| crew.count() > 1).inspect(|crew| crew.rouse())
}

/// Into how many elements each, in whole blocks, work on so many elements is cut, if it takes so many
/// steps that it is worth spreading.
pub(crate) fn piece(elements: usize, block: usize, steps: usize) -> Option<usize> {
    if steps < either(MIN_STEPS, MIN_STEPS_ABOARD) {
        return None;
    }
    // Two tasks for each thread, unless they are long: each thread then meets the same elements in
    // every trip of a loop, which are in its cache.
    let most = (2 * threads()).max(steps / LONG_TASK_STEPS);
    let tasks = (steps / either(TASK_STEPS, TASK_STEPS_ABOARD)).min(most);
    Some(elements.div_ceil(tasks).next_multiple_of(block).max(block))
}

/// Whether element-wise code of so many steps may be spread.
pub(crate) fn is_spread(steps: usize) -> bool {
    steps >= MIN_STEPS_ABOARD
}

/// Whether work on so many elements is spread.
pub(crate) fn pays(elements: usize) -> bool {
    elements >= either(MIN_ELEMENTS, MIN_ELEMENTS_ABOARD) && threads() > 1
}

/// How many threads work together.
pub(crate) fn threads() -> usize {
    crew().map_or(1, Crew::count)
}

/// Does something where functions of rayon find our threads, if there are any.
pub(crate) fn within<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    match hands() {
        Some(crew) => crew.within(work),
        None => work(),
    }
}

/// Does something with each item, one task for each.
pub(crate) fn each<I: Send>(items: Vec<I>, task: impl Fn(I) + Send + Sync) {
    each_with(items, || (), |(), item| task(item));
}

/// Does something with each item, one task for each, which gets what its thread keeps for tasks.
pub(crate) fn each_with<I: Send, W>(
    items: Vec<I>,
    keep: fn() -> W,
    task: impl Fn(&mut W, I) + Send + Sync,
) {
    let brake = Brake::current();
    let task = |kept: &mut W, item| {
        if !brake.is_pulled() {
            task(kept, item);
        }
    };
    match hands() {
        Some(crew) => crew.each_with(items, keep, task),
        None => {
            let mut kept = keep();
            items.into_iter().for_each(|item| task(&mut kept, item));
        }
    }
}

/// Fills `out` in pieces of whole rows of `row` elements, each of which costs as much as moving
/// `cost` elements: `fill` gets the number of the first row and the rows.
pub(crate) fn rows<T: Send>(
    out: &mut [T],
    row: usize,
    cost: usize,
    fill: impl Fn(usize, &mut [T]) + Sync,
) {
    let count = out.len().checked_div(row).unwrap_or(0);
    if count > 1 && pays(count.saturating_mul(cost)) {
        let per_task = (either(TASK_ELEMENTS, TASK_ELEMENTS_ABOARD) / cost.max(1)).max(1);
        spread(out, per_task * row, &|index, out| fill(index * per_task, out));
    } else if count > 0 {
        fill(0, out);
    }
}

/// Fills `out` in pieces of `piece` elements, of which the last may be shorter; each element costs as
/// much as moving `cost` elements. `fill` gets the position of a piece and the piece.
pub(crate) fn pieces<T: Send>(
    out: &mut [T],
    piece: usize,
    cost: usize,
    fill: impl Fn(usize, &mut [T]) + Sync,
) {
    if out.len() > piece && pays(out.len().saturating_mul(cost)) {
        spread(out, piece, &|index, out| fill(index * piece, out));
    } else if !out.is_empty() {
        fill(0, out);
    }
}

/// Hands pieces of `size` elements to all threads.
fn spread<T: Send>(out: &mut [T], size: usize, fill: &(dyn Fn(usize, &mut [T]) + Sync)) {
    let brake = Brake::current();
    let fill = |(index, out): (usize, &mut [T])| {
        if !brake.is_pulled() {
            fill(index, out);
        }
    };
    match hands() {
        Some(crew) => crew.pieces(out, size, &fill),
        None => out.chunks_mut(size).enumerate().for_each(fill),
    }
}

/// The results of `count` tasks, in order.
pub(crate) fn collect<R: Send>(count: usize, task: &(dyn Fn(usize) -> R + Sync)) -> Vec<R> {
    match hands() {
        Some(crew) => crew.collect(count, task),
        None => (0..count).map(task).collect(),
    }
}
