//! The kernel's limit on memory maps, which compiled programs use up.
//!
//! A CPU plugin maps the machine code of each program in many small parts: about three for each
//! kernel of it, so some tens for a program of forty operations and thousands for a large one. When
//! a process reaches Linux's limit of maps (65,530 by default), the plugin ends the process during a
//! compilation. Therefore compilations are rejected shortly before the limit.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::Error;

/// The divisor of the limit that is kept free for a program under compilation.
const RESERVE: usize = 16;

/// Checks that the process has enough maps for another program. On systems that do not report the
/// number of maps, the check always passes.
pub(crate) fn check() -> Result<(), Error> {
    /// The programs for which the maps that were free at the last count suffice. Counting takes as long as compiling a
    /// small program if there are many maps.
    static PROGRAMS: AtomicUsize = AtomicUsize::new(0);
    let take = |programs: usize| programs.checked_sub(1);
    if PROGRAMS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
        return Ok(());
    }
    let limit = std::fs::read_to_string("/proc/sys/vm/max_map_count").ok();
    let Some(limit) = limit.and_then(|text| text.trim().parse().ok()) else { return Ok(()) };
    let Ok(maps) = std::fs::read("/proc/self/maps") else { return Ok(()) };
    let more = programs_after(maps.iter().filter(|&&byte| byte == b'\n').count(), limit)?;
    PROGRAMS.store(more, Ordering::Relaxed);
    Ok(())
}

/// Returns how many more programs can be compiled after the next one without exceeding the limit.
fn programs_after(maps: usize, limit: usize) -> Result<usize, Error> {
    let reserve = (limit / RESERVE).max(1);
    match limit.saturating_sub(maps).saturating_sub(1) / reserve {
        0 => Err(Error::MapsExhausted { maps, limit }),
        programs => Ok(programs - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_sixteenth_of_memory_maps_is_reserved() {
        assert_eq!(programs_after(1_000, 65_530), Ok(14));
        assert_eq!(programs_after(57_000, 65_530), Ok(1));
        assert_eq!(programs_after(60_000, 65_530), Ok(0));
        let error = programs_after(61_500, 65_530).unwrap_err();
        assert_eq!(error, Error::MapsExhausted { maps: 61_500, limit: 65_530 });
        assert!(error.to_string().contains("vm.max_map_count"), "{error}");
    }
}
