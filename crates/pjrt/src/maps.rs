//! The kernel's limit on memory maps, which compiled programs use up.
//!
//! A CPU plugin maps the machine code of each program in many small parts: about three for each
//! kernel of it, so some tens for a program of forty operations and thousands for a large one. When
//! a process reaches Linux's limit of maps (65,530 by default), the plugin ends the process during a
//! compilation. Therefore compilations are rejected shortly before the limit.

use crate::error::Error;

/// The divisor of the limit that is kept free for a program under compilation.
const RESERVE: usize = 16;

/// Checks that the process has enough maps for another program. On systems that do not report the
/// number of maps, the check always passes.
pub(crate) fn check() -> Result<(), Error> {
    let limit = std::fs::read_to_string("/proc/sys/vm/max_map_count").ok();
    let Some(limit) = limit.and_then(|text| text.trim().parse().ok()) else { return Ok(()) };
    let Ok(maps) = std::fs::read("/proc/self/maps") else { return Ok(()) };
    enough(maps.iter().filter(|&&byte| byte == b'\n').count(), limit)
}

fn enough(maps: usize, limit: usize) -> Result<(), Error> {
    if maps + limit / RESERVE < limit {
        return Ok(());
    }
    Err(Error::MapsExhausted { maps, limit })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_sixteenth_of_memory_maps_is_reserved() {
        assert_eq!(enough(60_000, 65_530), Ok(()));
        let error = enough(61_500, 65_530).unwrap_err();
        assert_eq!(error, Error::MapsExhausted { maps: 61_500, limit: 65_530 });
        assert!(error.to_string().contains("vm.max_map_count"), "{error}");
    }
}
