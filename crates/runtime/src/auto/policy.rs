//! The policy of the compiler `auto`: which backend runs which calls of a program.
//!
//! The decision depends on the program, the settings and the device, and for each call on its
//! number. No clock is read, so that a program that runs again computes the same digits.

use std::fmt;

use nxla_expr::{BlockKind, Op, Program};
use nxla_split::{Estimate, estimate_of};

use crate::compiler::{Purpose, integer_setting};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::options::{AUTO_SETTINGS, COMPILE_ABOVE, COMPILE_AFTER, Settings};
use crate::thresholds;

/// The backend of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Choice {
    /// The evaluator runs every call.
    Evaluator,
    /// XLA runs every call.
    Xla,
    /// The evaluator runs this number of calls, and XLA the following calls.
    Tiers(u64),
}

/// Why a backend was chosen.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Reason {
    NoPlugin,
    Host,
    Small {
        seconds: f64,
        limit: f64,
    },
    Large {
        seconds: f64,
    },
    /// The program does not consist of loops of small steps.
    NoSmallStepLoops,
    UnknownLoops,
    OwnMemory(Device),
    AheadOfTime,
    NoEvaluatorCalls,
    /// The number of the call decides.
    Tiers,
}

/// A choice with its reason.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Decision {
    pub(super) choice: Choice,
    pub(super) reason: Reason,
}

/// The settings of `auto` itself.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(super) struct Limits {
    /// Seconds of estimated work up to which the evaluator runs a program.
    above: Option<f64>,
    after: Option<u64>,
}

impl Limits {
    /// # Errors
    /// Returns `Error::Options` if a setting is not a number of at least 0.
    pub(super) fn of(settings: &Settings) -> Result<Self> {
        let limit = |name| integer_setting("auto", settings, name, 0);
        let above = limit(COMPILE_ABOVE)?.map(seconds);
        Ok(Self { above, after: limit(COMPILE_AFTER)?.map(|calls| calls as u64) })
    }
}

/// Returns the settings of XLA among the settings of `auto`.
pub(crate) fn xla_settings(settings: &Settings) -> Settings {
    let mut settings = settings.clone();
    settings.retain(|name, _| !AUTO_SETTINGS.contains(&name.as_str()));
    settings
}

#[expect(clippy::cast_precision_loss, reason = "an estimate is compared with the limit")]
fn seconds(microseconds: usize) -> f64 {
    microseconds as f64 * 1e-6
}

/// Estimates the time of a program on the evaluator.
pub(crate) fn estimate(program: &Program) -> Estimate {
    estimate_of(program, &thresholds::EVALUATOR)
}

/// Chooses the backend of a program for a device; `None` if no plugin is installed.
///
/// # Errors
/// Returns `Error::Options` for `compile_above` on a device whose memory the evaluator cannot use.
pub(super) fn decide(
    program: &Program,
    limits: Limits,
    device: Option<&Device>,
    purpose: Purpose,
) -> Result<Decision> {
    let decided = |choice, reason| Ok(Decision { choice, reason });
    let Some(device) = device else { return decided(Choice::Evaluator, Reason::NoPlugin) };
    if device.is_host() {
        return decided(Choice::Evaluator, Reason::Host);
    }
    let shares_memory = device.is_cpu();
    if !shares_memory && limits.above.is_some_and(|limit| limit > 0.0) {
        return Err(Error::Options(format!(
            "option {COMPILE_ABOVE:?} of the compiler \"auto\": must not be set for {device}, \
             whose memory the evaluator cannot access"
        )));
    }
    let estimate = estimate(program);
    if shares_memory && let Some(reason) = evaluator_reason(program, estimate, limits, purpose) {
        return decided(Choice::Evaluator, reason);
    }
    match (purpose, limits.after, estimate.seconds()) {
        (Purpose::Compile, _, _) => decided(Choice::Xla, Reason::AheadOfTime),
        (_, Some(0), _) => decided(Choice::Xla, Reason::NoEvaluatorCalls),
        (_, Some(after), _) => decided(Choice::Tiers(after), Reason::Tiers),
        (_, None, _) if !shares_memory => decided(Choice::Xla, Reason::OwnMemory(device.clone())),
        (_, None, None) => decided(Choice::Xla, Reason::UnknownLoops),
        (_, None, Some(seconds)) if seconds > thresholds::XLA_FROM_FIRST_CALL_SECONDS => {
            decided(Choice::Xla, Reason::Large { seconds })
        }
        (_, None, Some(_)) => decided(Choice::Tiers(thresholds::COMPILE_AFTER), Reason::Tiers),
    }
}

/// Returns why the evaluator runs all calls of a program for a CPU, or `None` if XLA may run some.
fn evaluator_reason(
    program: &Program,
    estimate: Estimate,
    limits: Limits,
    purpose: Purpose,
) -> Option<Reason> {
    let limit = limits.above.unwrap_or_else(|| seconds(thresholds::COMPILE_ABOVE));
    let small = estimate.seconds().filter(|&seconds| limit > 0.0 && seconds <= limit);
    if let Some(seconds) = small {
        return Some(Reason::Small { seconds, limit });
    }
    let is_free = limits == Limits::default() && purpose != Purpose::Compile;
    (is_free && !repeats_small_steps(program, estimate)).then_some(Reason::NoSmallStepLoops)
}

/// Returns `true` if a program has loops and the overhead of nodes is most of its estimated time. XLA
/// compiles the steps of such loops to code without this overhead.
fn repeats_small_steps(program: &Program, estimate: Estimate) -> bool {
    estimate.overhead > estimate.work && has_loops(program, |kind| !kind.has_algorithm())
}

/// Returns the estimated seconds of a program that runs on XLA from the first call by default, if its
/// loops have known lengths.
pub(crate) fn slow_seconds(program: &Program) -> Option<f64> {
    let estimate = estimate(program);
    let slow =
        estimate.seconds().filter(|&seconds| seconds > thresholds::XLA_FROM_FIRST_CALL_SECONDS);
    slow.filter(|_| repeats_small_steps(program, estimate))
}

/// Returns `true` if a program or one of its regions has loops. Bodies of blocks are visited if
/// `enters` returns `true`.
pub(crate) fn has_loops(program: &Program, enters: fn(&BlockKind) -> bool) -> bool {
    let enters = |op: &Op| !matches!(op, Op::Block(block) if !enters(&block.kind));
    program.programs_inside(enters).any(|program| {
        let graph = program.graph();
        graph.ids().any(|id| matches!(graph.op(id), Op::While(_)))
    })
}

impl Decision {
    /// Explains the choice for a call of this number, counted from 1.
    pub(super) fn explain(&self, call: u64) -> String {
        match self.choice {
            Choice::Tiers(after) if call <= after => {
                format!(
                    "call {call} is one of the first {after}, which the evaluator runs (compile_after)"
                )
            }
            Choice::Tiers(after) => {
                format!("the evaluator has run the first {after} calls (compile_after)")
            }
            Choice::Evaluator | Choice::Xla => self.reason.to_string(),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = super::explain::Time;
        match self {
            Reason::NoPlugin => f.write_str("no XLA plugin is installed"),
            Reason::Host => f.write_str("the device is the host"),
            Reason::Small { seconds, limit } => {
                write!(f, "the estimate is at most {} (compile_above)", time(*limit))?;
                write!(f, ": {}", time(*seconds))
            }
            Reason::Large { seconds } => write!(
                f,
                "the estimate is above {}: {}",
                time(thresholds::XLA_FROM_FIRST_CALL_SECONDS),
                time(*seconds)
            ),
            Reason::NoSmallStepLoops => {
                f.write_str("loops of small steps do not take most of the estimated time")
            }
            Reason::UnknownLoops => {
                f.write_str("the program has a loop whose number of iterations is not known")
            }
            Reason::OwnMemory(device) => {
                write!(f, "the memory of the device {device} is not host memory")
            }
            Reason::AheadOfTime => f.write_str("the program is compiled ahead of its calls"),
            Reason::NoEvaluatorCalls => f.write_str("compile_after is 0"),
            Reason::Tiers => f.write_str("the number of the call decides (compile_after)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use nxla_expr::{ExprId, Graph, TensorType};
    use nxla_tensor::DType;

    use super::*;
    use crate::options::Setting;

    fn sine(elements: usize) -> Program {
        let ty = TensorType::new(DType::F32, [elements]);
        let mut graph = Graph::new();
        let x = graph.parameter(0, ty.clone());
        let y = graph.sin(x).unwrap();
        Program::new(&graph, vec![ty], &[y]).unwrap()
    }

    fn limits(above: Option<i64>, after: Option<i64>) -> Limits {
        let settings = [(COMPILE_ABOVE, above), (COMPILE_AFTER, after)];
        let settings = settings.into_iter().filter_map(|(name, value)| Some((name, value?)));
        Limits::of(&settings.map(|(name, value)| (name.to_owned(), value.into())).collect())
            .unwrap()
    }

    #[test]
    fn without_a_device_the_evaluator_runs_everything() {
        for device in [None, Some(&Device::HOST)] {
            for limits in [limits(None, None), limits(Some(0), Some(0))] {
                let found = decide(&sine(1 << 26), limits, device, Purpose::Jit).unwrap();
                assert_eq!(found.choice, Choice::Evaluator);
            }
        }
    }

    #[test]
    fn estimates_grow_with_the_program() {
        let seconds: Vec<f64> =
            [10, 1 << 20, 1 << 26].map(|size| estimate(&sine(size)).seconds().unwrap()).to_vec();
        assert!(seconds[0] < 1e-6 && seconds[0] < seconds[1] && seconds[1] < seconds[2]);
    }

    /// Builds `depth` nested conditionals; each one is in both branches of the next one.
    fn nest_conditionals(graph: &mut Graph, x: ExprId, depth: usize) -> ExprId {
        let mark = graph.mark();
        let predicate = graph.traced(mark, vec![x]);
        let inner = if depth == 1 { x } else { nest_conditionals(graph, x, depth - 1) };
        let sine = graph.sin(inner).unwrap();
        let on_true = graph.traced(mark, vec![sine]);
        let cosine = graph.cos(inner).unwrap();
        let on_false = graph.traced(mark, vec![cosine]);
        graph.cond(mark, vec![(predicate, on_true)], on_false).unwrap()[0]
    }

    #[test]
    fn shared_regions_are_searched_once() {
        // Without sharing, 2^40 regions would be visited.
        let ty = TensorType::scalar(DType::F32);
        let mut graph = Graph::new();
        let x = graph.parameter(0, ty.clone());
        let y = nest_conditionals(&mut graph, x, 40);
        let program = Program::new(&graph, vec![ty], &[y]).unwrap();
        assert!(!has_loops(&program, |_| true));
        assert!(decide(&program, limits(None, None), None, Purpose::Jit).is_ok());
    }

    #[test]
    fn settings_must_be_nonnegative_numbers() {
        for (name, value) in [(COMPILE_ABOVE, Setting::Int(-1)), (COMPILE_AFTER, true.into())] {
            let settings = Settings::from([(name.to_owned(), value)]);
            let error = Limits::of(&settings).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains("at least 0"), "{error}");
        }
        let all = [("precision", "high".into()), (COMPILE_AFTER, Setting::Int(1))];
        let all = all.map(|(name, value)| (name.to_owned(), value)).into();
        assert_eq!(xla_settings(&all).into_keys().collect::<Vec<_>>(), ["precision"]);
    }
}
