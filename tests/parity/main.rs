//! Tests that the evaluator agrees with the reference implementation and with XLA, for every op, every
//! dtype and random operands.
//!
//! Each family has a file whose `strategy` draws cases of its ops: shapes of rank 0 to 6 with axes of
//! size 0 and 1, all accepted dtypes, and all numbers in the range of `tolerance`. The matches have no
//! `_`, so a new op does not compile until it has a strategy and a tolerance. XLA compiles every dtype
//! of every op; `exclusions` lists the exceptions, with tests that they are still needed.
//!
//! Each run draws the same cases. `NXLA_PARITY_SEED=7` draws other cases, `NXLA_PARITY_ROUNDS=20` more.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod case;
mod chains;
#[path = "../../crates/nxla/tests/common/mod.rs"]
mod common;
mod compositions;
mod contract;
mod control;
mod create;
mod edge_cases;
mod elementwise;
mod exclusions;
mod index;
mod linalg;
mod movement;
mod reduce;
#[path = "../ops/samples.rs"]
mod samples;
mod simplification;
mod tolerance;
mod values;
mod window;

use std::collections::BTreeSet;
use std::env;

use case::{Case, Other, contains_op, differences};
use nxla::DType;
use nxla::graph::{Family, Op};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use samples::{Draft, Sample};
use tolerance::Tolerance;

/// The number of cases in one program, which share the cost of a compilation.
const BATCH: usize = 48;

/// The number of simplifications of a case that differs.
const SHRINKS: usize = 60;

/// Returns the strategy that draws cases of an op.
fn strategy(op: &Op, dtype: DType) -> BoxedStrategy<Case> {
    match op {
        nxla::graph::family_ops!(create) => create::strategy(op, dtype),
        nxla::graph::family_ops!(elementwise) => elementwise::strategy(op, dtype),
        nxla::graph::family_ops!(movement) => movement::strategy(op, dtype),
        nxla::graph::family_ops!(reduce) => reduce::strategy(op, dtype),
        nxla::graph::family_ops!(window) => window::strategy(op, dtype),
        nxla::graph::family_ops!(contract) => contract::strategy(op, dtype),
        nxla::graph::family_ops!(index) => index::strategy(op, dtype),
        nxla::graph::family_ops!(linalg) => linalg::strategy(op, dtype),
        nxla::graph::family_ops!(control) => control::strategy(op, dtype),
    }
}

/// An op of the table, and the dtypes that its type rule takes.
struct Entry {
    name: &'static str,
    op: Op,
    dtypes: Vec<DType>,
}

/// The ops of a family, from the samples that there are of every op.
fn table(family: Family) -> Vec<Entry> {
    let entry = |sample: &Sample| {
        let mut op = None;
        let mut takes = |&dtype: &DType| {
            let mut draft = Draft::new(dtype);
            let is_taken = (sample.build)(&mut draft).is_ok();
            let mut ops = draft.graph.ids().map(|id| draft.graph.op(id));
            op = op.take().or_else(|| ops.find(|op| op.name() == sample.op).cloned());
            is_taken
        };
        let dtypes = DType::ALL.into_iter().filter(|dtype| takes(dtype)).collect();
        Entry { name: sample.op, op: op.expect("a sample has its op"), dtypes }
    };
    samples::all().iter().map(entry).filter(|entry| entry.op.family() == family).collect()
}

/// A number from the environment.
fn setting(name: &str, default: u64) -> u64 {
    env::var(name).map_or(default, |text| text.parse().expect("a setting is a number"))
}

/// Draws for a family: the same ones for the same seed.
fn runner(family: Family) -> TestRunner {
    let mut seed = [family as u8; 32];
    seed[..8].copy_from_slice(&setting("NXLA_PARITY_SEED", 0).to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    TestRunner::new_with_rng(Config { failure_persistence: None, ..Config::default() }, rng)
}

/// A drawn case, which can be simplified.
struct Drawn<'t> {
    entry: &'t Entry,
    dtype: DType,
    tree: Box<dyn ValueTree<Value = Case>>,
    tolerance: Tolerance,
    other: Other,
}

/// Compares every op of a family for every dtype.
fn check(family: Family, other: Other) {
    let table = table(family);
    let mut runner = runner(family);
    let mut compared = BTreeSet::new();
    let mut reports = Vec::new();
    for _ in 0..setting("NXLA_PARITY_ROUNDS", 1) {
        let mut drawn = draw(&table, &mut runner, other);
        let real =
            drawn.iter().filter(|drawn| contains_op(&drawn.tree.current(), drawn.entry.name));
        compared.extend(real.map(|drawn| drawn.entry.name));
        reports.extend(drawn.chunks_mut(BATCH).flat_map(check_batch));
    }
    let missing: Vec<&str> =
        table.iter().map(|entry| entry.name).filter(|name| !compared.contains(name)).collect();
    assert!(missing.is_empty(), "simplified away in every case: {missing:?}");
    assert!(reports.is_empty(), "{} differences\n{}", reports.len(), reports.join("\n"));
}

/// A case of every op for every dtype that it takes.
fn draw<'t>(table: &'t [Entry], runner: &mut TestRunner, other: Other) -> Vec<Drawn<'t>> {
    let uses = DType::ALL.into_iter().flat_map(|dtype| {
        let takes = move |entry: &&Entry| entry.dtypes.contains(&dtype);
        table.iter().filter(takes).map(move |entry| (entry, dtype))
    });
    uses.map(|(entry, dtype)| {
        let tree = strategy(&entry.op, dtype).new_tree(runner).unwrap();
        let tolerance = tolerance::of(&entry.op, dtype).for_backend(other);
        Drawn { entry, dtype, tree, tolerance, other }
    })
    .collect()
}

/// Compares cases in one program, and returns the differences in their simplest form.
fn check_batch(batch: &mut [Drawn<'_>]) -> Vec<String> {
    let cases: Vec<Case> = batch.iter().map(|drawn| drawn.tree.current()).collect();
    let tolerances = batch.iter().map(|drawn| drawn.tolerance);
    let together: Vec<(&Case, Tolerance)> = cases.iter().zip(tolerances).collect();
    let other = batch[0].other;
    let found = match differences(&together, other) {
        Ok(found) => found,
        // At least one case of the batch is rejected.
        Err(refused) => vec![Some(refused); batch.len()],
    };
    let differing = batch.iter_mut().zip(found);
    differing.filter_map(|(drawn, found)| Some(report(drawn, &found?))).collect()
}

/// Returns the fault of a case that runs in a separate program.
fn fault(drawn: &Drawn<'_>) -> Option<(Case, String)> {
    let case = drawn.tree.current();
    let found = match differences(&[(&case, drawn.tolerance)], drawn.other) {
        Ok(mut found) => found.remove(0)?,
        Err(refused) => refused,
    };
    Some((case, found))
}

fn report(drawn: &mut Drawn<'_>, together: &str) -> String {
    let (name, dtype) = (drawn.entry.name, drawn.dtype);
    let Some(mut simplest) = fault(drawn) else {
        let case = drawn.tree.current();
        return format!("{name} of {dtype}, only among others: {together}\n  {case:?}");
    };
    let mut is_simpler = drawn.tree.simplify();
    for _ in 0..SHRINKS {
        if !is_simpler {
            break;
        }
        is_simpler = match fault(drawn) {
            Some(fault) => {
                simplest = fault;
                drawn.tree.simplify()
            }
            None => drawn.tree.complicate(),
        };
    }
    let (case, found) = simplest;
    format!("{name} of {dtype}: {found}\n  {case:?}")
}

macro_rules! families {
    ($($test:ident: $family:ident)*) => {
        /// Against the definitions: these need no plugin.
        mod reference {
            use super::{Family, Other, check};
            $(
                #[test]
                fn $test() {
                    check(Family::$family, Other::Reference);
                }
            )*
        }

        mod xla {
            use super::{Family, Other, check, common::require_plugin};
            $(
                #[test]
                fn $test() {
                    require_plugin!();
                    check(Family::$family, Other::Xla);
                }
            )*
        }
    };
}
families! {
    create: Create
    elementwise: Elementwise
    movement: Movement
    reduce: Reduce
    window: Window
    contract: Contract
    index: Index
    linalg: Linalg
    control: Control
}
