//! Helpers of the tests.

pub(crate) mod models;
pub(crate) mod readers;
pub(crate) mod wire;

/// Makes corrupt copies of files, the same ones in each run.
pub(crate) struct Damage {
    state: u64,
}

impl Damage {
    pub(crate) fn new() -> Damage {
        Damage { state: 1 }
    }

    /// Returns a number below the limit; zero for a limit of zero.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.state >> 33).unwrap() % limit.max(1)
    }

    /// Returns a copy in which up to three short pieces are replaced by other pieces of the file.
    pub(crate) fn copy(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut damaged = bytes.to_vec();
        for _ in 0..=self.below(3) {
            let (from, to) = (self.below(bytes.len()), self.below(damaged.len()));
            let length = self.below(12);
            let piece = bytes[from..bytes.len().min(from + length)].to_vec();
            let end = damaged.len().min(to + self.below(12));
            damaged.splice(to..end, piece);
        }
        damaged
    }
}
