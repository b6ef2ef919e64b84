//! Parallel execution of the parts of a task, on the caller's thread pool with the feature
//! `parallel`.

#[cfg(feature = "parallel")]
use rayon::prelude::*;

/// Runs the task for each part.
#[cfg(feature = "parallel")]
pub(crate) fn each<I: Send>(parts: Vec<I>, task: impl Fn(I) + Send + Sync) {
    if parts.len() == 1 {
        parts.into_iter().for_each(task);
    } else {
        parts.into_par_iter().with_max_len(1).for_each(task);
    }
}

/// Runs the task for each part sequentially.
#[cfg(not(feature = "parallel"))]
pub(crate) fn each<I: Send>(parts: Vec<I>, task: impl Fn(I) + Send + Sync) {
    parts.into_iter().for_each(task);
}
