//! Tests that `docs/ops.md` lists all ops, their backends and their dtypes.
//!
//! The table is generated. The test builds each op for each dtype that its type rule accepts, runs it
//! on the evaluator, writes it as StableHLO, and differentiates it. The Python names come from
//! `docs/names.md`. The test fails if the file differs; with `NXLA_BLESS=1` it writes the file.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod round_trip;
mod samples;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{env, fs};

use nxla::graph::{BinaryOp, ExprId, Op, UnaryOp};
use nxla::runtime::RawTensor;
use nxla::stablehlo::{LowerOptions, lower};
use nxla::{DType, HostTensor, Options, Program, RunContext, compile_program, gradient, host};
use samples::{Draft, Sample};

const HEADER: &str = "\
# Ops

This table lists the ops of graphs. Every other function of Python and Rust is a composition of ops. The first column
contains the names of ops in printed expressions, which are the names of Nx; [names.md](names.md) lists the Python
names.

The column `dtypes` lists the accepted dtypes: `all`, `real` (all except complex), `integers` (including `pred` unless
stated otherwise), `floats`, `complex`, or single dtypes. The columns `evaluator` and `XLA` list the accepted dtypes that
the backend runs. An op is differentiable if the derivative for its operands is not zero everywhere; `no`
means that a derivative is an error. `quotient` is listed as `zero`, because integers have no derivative, and
`nx.grad` through it is an error.

A test writes this file from measured facts: `NXLA_BLESS=1 cargo test -p nxla-tests --test ops`.
";

/// The measured properties of an op.
struct Facts {
    op: &'static str,
    family: String,
    accepted: Vec<DType>,
    evaluated: Vec<DType>,
    lowered: Vec<DType>,
    derivative: Derivative,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Derivative {
    Zero,
    Given,
    Refused,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

#[test]
fn op_table_matches_measured_facts() {
    let samples = samples::all();
    let facts: Vec<Facts> = samples.iter().map(measure).collect();
    let text = page(&facts);
    let path = root().join("docs/ops.md");
    if env::var_os("NXLA_BLESS").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    let stale: Vec<String> = text
        .lines()
        .filter(|line| !written.lines().any(|other| other == *line))
        .map(str::to_owned)
        .collect();
    assert!(written == text, "docs/ops.md is stale; run with NXLA_BLESS=1.\n{}", stale.join("\n"));
}

/// Each variant of `Op` has a sample, so that no op is missing from the table.
#[test]
fn every_op_has_a_sample() {
    let source = fs::read_to_string(root().join("crates/expr/src/graph/op.rs")).unwrap();
    let file = syn::parse_file(&source).unwrap();
    let variants: BTreeSet<String> = file
        .items
        .iter()
        .find_map(|item| match item {
            syn::Item::Enum(item) if item.ident == "Op" => Some(item),
            _ => None,
        })
        .unwrap()
        .variants
        .iter()
        .map(|variant| variant.ident.to_string())
        .collect();
    let mut sampled = BTreeSet::new();
    for sample in samples::all() {
        // A dtype for which the op is the identity is skipped.
        let debug_text = DType::ALL.iter().find_map(|&dtype| {
            let mut draft = Draft::new(dtype);
            (sample.build)(&mut draft).ok()?;
            find_op(&draft, sample.op).map(|op| format!("{op:?}"))
        });
        let debug_text = debug_text.unwrap_or_else(|| panic!("no {} in its sample", sample.op));
        sampled.insert(debug_text.split(['(', ' ']).next().unwrap().to_owned());
    }
    assert_eq!(sampled, variants);
}

fn measure(sample: &Sample) -> Facts {
    let (mut accepted, mut evaluated, mut lowered) = (Vec::new(), Vec::new(), Vec::new());
    let mut family = None;
    for &dtype in &DType::ALL {
        let mut draft = Draft::new(dtype);
        let Ok(output) = (sample.build)(&mut draft) else { continue };
        accepted.push(dtype);
        family = family.or(find_op(&draft, sample.op).map(Op::family));
        let program = Program::new(&draft.graph, draft.types.clone(), &[output]).unwrap();
        let program = Arc::new(program);
        if evaluates(&program) {
            evaluated.push(dtype);
        }
        if lower(&program, &LowerOptions { host_calls: true, ..LowerOptions::default() }).is_ok() {
            lowered.push(dtype);
        }
    }
    let family = family.unwrap_or_else(|| panic!("{} takes no dtype", sample.op));
    let family = format!("{family:?}").to_lowercase();
    let derivative = derivative(sample, &accepted);
    Facts { op: sample.op, family, accepted, evaluated, lowered, derivative }
}

/// The op of this name in a graph.
fn find_op<'d>(draft: &'d Draft, name: &str) -> Option<&'d Op> {
    draft.graph.ids().map(|id| draft.graph.op(id)).find(|op| op.name() == name)
}

fn evaluates(program: &Arc<Program>) -> bool {
    let options = Options::new().compiler("evaluator");
    let ones = |ty: &nxla::TensorType| RawTensor::Host(ones(ty));
    let inputs: Vec<RawTensor> = program.inputs().iter().map(ones).collect();
    let inputs: Vec<&RawTensor> = inputs.iter().collect();
    compile_program(program, &options, &[])
        .and_then(|executable| executable.run(&inputs, &RunContext::default()))
        .is_ok()
}

/// A matrix of ones has no triangular factor, so the diagonal is larger.
fn ones(ty: &nxla::TensorType) -> HostTensor {
    let mut tensor = HostTensor::zeros(ty.dtype, ty.shape.clone()).unwrap();
    let columns = ty.shape.last().copied().unwrap_or(1);
    host::match_dtype!(ty.dtype, T => {
        for (index, element) in tensor.make_mut::<T>().unwrap().iter_mut().enumerate() {
            let number = if index % (columns + 1) == 0 { 3.0 } else { 1.0 };
            let scalar = host::Scalar::Float(number).cast(ty.dtype);
            *element = <T as host::Element>::from_scalar(scalar);
        }
    });
    tensor
}

/// The derivative rules for real and complex operands together.
fn derivative(sample: &Sample, accepted: &[DType]) -> Derivative {
    let smooth = [DType::F32, DType::C64].into_iter().filter(|dtype| accepted.contains(dtype));
    smooth.map(|dtype| derivative_of(sample, dtype)).max().unwrap_or(Derivative::Zero)
}

fn derivative_of(sample: &Sample, dtype: DType) -> Derivative {
    let mut draft = Draft::new(dtype);
    let output = (sample.build)(&mut draft).unwrap();
    let smooth = |id: &ExprId| !draft.graph.dtype(*id).is_integer();
    let wrt: Vec<ExprId> = draft.inputs.iter().copied().filter(smooth).collect();
    match gradient::gradients(&mut draft.graph, output, &wrt) {
        Err(_) => Derivative::Refused,
        Ok(found) if found.iter().all(|&id| is_zero(&draft, id)) => Derivative::Zero,
        Ok(_) => Derivative::Given,
    }
}

fn is_zero(draft: &Draft, id: ExprId) -> bool {
    matches!(draft.graph.op(id), Op::Constant(constant) if constant.value.is_zero())
}

/// Dtypes by the words that the page explains.
fn words(dtypes: &[DType]) -> String {
    let groups: [(&str, fn(DType) -> bool); 4] = [
        ("pred", DType::is_pred),
        ("integers", |dtype| dtype.is_integer() && !dtype.is_pred()),
        ("floats", DType::is_float),
        ("complex", DType::is_complex),
    ];
    let mut parts: Vec<String> = Vec::new();
    for (name, belongs) in groups {
        let all: Vec<DType> = DType::ALL.into_iter().filter(|dtype| belongs(*dtype)).collect();
        let some: Vec<&str> =
            all.iter().filter(|dtype| dtypes.contains(dtype)).map(|dtype| dtype.name()).collect();
        match some.len() {
            0 => {}
            length if length == all.len() => parts.push(name.to_owned()),
            _ => parts.push(some.join(" ")),
        }
    }
    let text = parts.join(", ");
    match text.as_str() {
        "" => "none".to_owned(),
        "pred, integers, floats, complex" => "all".to_owned(),
        "pred, integers, floats" => "real".to_owned(),
        "pred, integers" => "integers".to_owned(),
        "integers" => "integers but pred".to_owned(),
        _ => text
            .strip_prefix("pred, integers, ")
            .map_or(text.clone(), |rest| format!("integers, {rest}")),
    }
}

/// The Python name of each Nx function, from the table of names. The row of an element-wise op that Nx
/// lacks contains its name.
fn python_names() -> BTreeMap<String, String> {
    let text = fs::read_to_string(root().join("docs/names.md")).unwrap();
    let mut names = BTreeMap::new();
    // Functions of EXLA's modules are not ops, even if an op has the same name.
    let is_row = |line: &&str| line.starts_with("| `") && !line.starts_with("| `EXLA.");
    for line in text.lines().filter(is_row) {
        let mut cells = line.trim_matches('|').split('|').map(str::trim);
        let (Some(nx), Some(python)) = (cells.next(), cells.next()) else { continue };
        let nx = nx.trim_matches('`').rsplit('.').next().unwrap_or_default();
        let nx = nx.split('/').next().unwrap_or_default().to_owned();
        names.entry(nx).or_insert_with(|| python.to_owned());
    }
    let unary = UnaryOp::ALL.iter().map(|op| (op.name(), op.public_name()));
    let binary = BinaryOp::ALL.iter().map(|op| (op.name(), op.public_name()));
    for (op, public) in unary.chain(binary) {
        names.entry(op.to_owned()).or_insert_with(|| format!("`nx.{public}`"));
    }
    names
}

fn page(facts: &[Facts]) -> String {
    let names = python_names();
    let mut text = HEADER.to_owned();
    let mut family = "";
    for fact in facts {
        if family != fact.family {
            family = &fact.family;
            let _ = write!(
                text,
                "\n## {family}\n| op | Python | dtypes | evaluator | XLA | differentiable |\n\
                 |---|---|---|---|---|---|\n"
            );
        }
        let python = names.get(fact.op).map_or("", String::as_str);
        let among =
            |some: &[DType]| if some == fact.accepted { "yes".to_owned() } else { words(some) };
        let derivative = match fact.derivative {
            Derivative::Given => "yes",
            Derivative::Zero => "zero",
            Derivative::Refused => "no",
        };
        let (accepted, evaluated) = (words(&fact.accepted), among(&fact.evaluated));
        let lowered = among(&fact.lowered);
        let op = fact.op;
        let _ = writeln!(
            text,
            "| `{op}` | {python} | {accepted} | {evaluated} | {lowered} | {derivative} |"
        );
    }
    text
}
