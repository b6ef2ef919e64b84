//! Explanations: which backend runs a call, why, and in what time.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::tensor::RawTensor;

/// The backend of the next call of a function with given arguments, and the reason.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Explanation {
    /// The backend: `"evaluator"`, `"xla"`, or the name of a registered compiler.
    pub backend: String,
    /// Why this backend runs the call.
    pub reason: String,
    /// The estimated seconds of a call on the evaluator, by the cost model of stages; `None` if the
    /// program has a loop whose number of iterations is not known.
    pub estimated: Option<f64>,
    /// The least measured seconds of the first calls on each backend that has run any.
    pub measured: BTreeMap<String, f64>,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { backend, reason, estimated, measured } = self;
        write!(f, "{backend}: {reason}; estimated on the evaluator: ")?;
        match estimated {
            Some(seconds) => write!(f, "{}", Time(*seconds))?,
            None => f.write_str("unknown")?,
        }
        f.write_str("; measured: ")?;
        if measured.is_empty() {
            return f.write_str("no call yet");
        }
        for (position, (backend, seconds)) in measured.iter().enumerate() {
            let separator = if position > 0 { ", " } else { "" };
            write!(f, "{separator}{} on {backend}", Time(*seconds))?;
        }
        Ok(())
    }
}

/// Seconds, printed in the largest unit that leaves at least one digit before the point.
pub(super) struct Time(pub(super) f64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            seconds if seconds >= 1.0 => write!(f, "{seconds:.3} s"),
            seconds if seconds >= 1e-3 => write!(f, "{:.3} ms", seconds * 1e3),
            seconds => write!(f, "{:.3} µs", seconds * 1e6),
        }
    }
}

/// The number of runs of an executable that are measured: enough to exclude warm-up. Later runs do
/// not read the clock.
const MEASURED_RUNS: u32 = 8;

/// The least time of the first runs of an executable.
#[derive(Default)]
pub(crate) struct Timing {
    begun: AtomicU32,
    /// The duration in nanoseconds; 0 before the first run has ended.
    least: Arc<AtomicU64>,
}

impl Timing {
    /// Begins a run; returns `None` if it is not measured.
    pub(crate) fn begin(&self) -> Option<Instant> {
        // WebAssembly without an operating system has no clock: reading one panics.
        let has_clock = cfg!(not(all(target_family = "wasm", target_os = "unknown")));
        if !has_clock || self.begun.load(Ordering::Relaxed) >= MEASURED_RUNS {
            return None;
        }
        self.begun.fetch_add(1, Ordering::Relaxed);
        Some(Instant::now())
    }

    /// Ends a run, when its first result is ready.
    ///
    /// # Errors
    /// Returns the error of a device whose buffers cannot be polled.
    pub(crate) fn end(&self, begun: Instant, results: &[RawTensor]) -> Result<()> {
        match results.iter().find_map(RawTensor::buffer) {
            Some(buffer) if !buffer.is_ready()? => {
                let least = self.least.clone();
                Ok(buffer.on_ready(move |outcome| {
                    if outcome.is_ok() {
                        record_minimum(&least, begun.elapsed());
                    }
                })?)
            }
            Some(_) | None => {
                record_minimum(&self.least, begun.elapsed());
                Ok(())
            }
        }
    }

    /// Returns the least time in seconds.
    pub(crate) fn least(&self) -> Option<f64> {
        match self.least.load(Ordering::Relaxed) {
            0 => None,
            nanoseconds => Some(Duration::from_nanos(nanoseconds).as_secs_f64()),
        }
    }
}

fn record_minimum(least: &AtomicU64, time: Duration) {
    let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(1);
    let _ = least.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |before| {
        (before == 0 || time < before).then_some(time)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn explanations_are_printed_as_a_sentence() {
        let mut explanation = Explanation {
            backend: "xla".into(),
            reason: "the evaluator has run the first 2 calls (compile_after)".into(),
            estimated: Some(0.0125),
            measured: BTreeMap::new(),
        };
        assert_eq!(
            explanation.to_string(),
            "xla: the evaluator has run the first 2 calls (compile_after); estimated on the \
             evaluator: 12.500 ms; measured: no call yet"
        );
        explanation.measured = [("evaluator".into(), 0.011), ("xla".into(), 2.5e-5)].into();
        explanation.estimated = None;
        assert!(explanation.to_string().ends_with(
            "estimated on the evaluator: unknown; measured: 11.000 ms on evaluator, 25.000 µs on xla"
        ));
    }

    #[test]
    fn minimum_of_the_first_runs_is_kept() {
        let timing = Timing::default();
        assert_eq!(timing.least(), None);
        record_minimum(&timing.least, Duration::from_micros(5));
        record_minimum(&timing.least, Duration::from_micros(3));
        record_minimum(&timing.least, Duration::from_micros(9));
        assert_eq!(timing.least(), Some(3e-6));
        let measured = (0..20).filter_map(|_| timing.begin()).count();
        assert_eq!(measured, MEASURED_RUNS as usize);
    }
}
