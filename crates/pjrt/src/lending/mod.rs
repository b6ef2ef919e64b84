//! Large blocks of a plugin come from the pool of freed tensors.
//!
//! XLA takes memory for temporaries and results from the C library in every run, and gives it back.
//! The C library gets large blocks from the system each time, which costs a page fault for every
//! 4 KB: a third of a training step. So the plugin's own calls of the allocator are led here, and
//! only those: the rest of the process keeps its allocator.
//!
//! `NXLA_LEND_MEMORY=0` leaves a plugin with the C library.

mod allocator;
mod imports;
mod ledger;

use std::sync::Once;

use crate::plugin::Plugin;

/// Lends memory to a plugin from now on. Where its calls cannot be found nothing changes.
pub(crate) fn lend_to(plugin: &Plugin) {
    static FIRST: Once = Once::new();
    let wanted = std::env::var_os("NXLA_LEND_MEMORY").is_none_or(|value| value != "0");
    if wanted {
        // One plugin of a process is enough: most have no second.
        FIRST.call_once(|| allocator::lend_to(plugin));
    }
}
