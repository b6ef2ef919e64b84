//! Human-readable descriptions of stages: a table and a drawing.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::{self, Write};

use nxla_expr::svg::{SvgNode, layered_svg};
use nxla_expr::{Digest, Op, Program, TensorType};
use rustc_hash::FxHashMap;

use crate::cost::{Speed, cost_of};
use crate::memory::peak_bytes;
use crate::simulate::Cluster;
use crate::stage::{Edge, Stage, StageGraph, StageId, ValueSource, bytes_of};

/// The maximum number of list entries that are printed.
const LISTED: usize = 6;

/// Returns whether a node computes a value, unlike parameters, names, annotations and constants.
fn computes(op: &Op) -> bool {
    !matches!(
        op,
        Op::Parameter(_) | Op::Constant(_) | Op::Tensor(_) | Op::Elem(_) | Op::Metadata(_)
    )
}

fn op_count(program: &Program) -> usize {
    let graph = program.graph();
    graph.ids().filter(|&id| computes(graph.op(id))).count()
}

/// Formats the first entries of a list and the number of further entries.
fn format_list(entries: impl ExactSizeIterator<Item = String>) -> String {
    let more = entries.len().saturating_sub(LISTED);
    let mut text = entries.take(LISTED).collect::<Vec<_>>().join(", ");
    if more > 0 {
        write!(text, ", … {more} more").expect("writing to a string cannot fail");
    }
    text
}

/// Formats a size with its unit and three digits.
fn bytes_text(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let power = ((bytes.ilog2() / 10) as usize).min(UNITS.len());
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    let scaled = bytes as f64 / (1_u64 << (10 * power)) as f64;
    format!("{} {}", three_digits(scaled), UNITS[power - 1])
}

fn three_digits(number: f64) -> String {
    let decimals = if number < 9.995 { 2 } else { usize::from(number < 99.95) };
    format!("{number:.decimals$}")
}

impl fmt::Display for StageGraph {
    /// Writes the table of [`StageGraph::explain`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.explain())
    }
}

impl StageGraph {
    /// Returns a table with a row for each stage: the numbers of operations and of floating-point
    /// operations, the arguments (`in0` is an input, `s2.1` an output of stage 2), the outputs, the
    /// bytes of both, and the peak memory. A stage with the program of an earlier stage, which is
    /// compiled once, refers to it. The last lines estimate the total time, and the speedup with
    /// several workers that exchange data at no cost.
    ///
    /// ```text
    /// stage  ops  flops  inputs     bytes  outputs  bytes  peak  same  after
    ///     0    2     11  in0          4 B  f32        4 B  12 B
    ///     1    2     11  in1, s0.0    8 B  f32        4 B  16 B
    /// 2 stages on 2 levels, 4 operations, 4 B between stages
    /// about 10.0 µs; on 2 workers 1.0 times as fast, on 4 workers 1.0
    /// ```
    pub fn explain(&self) -> String {
        let header = [
            "stage", "ops", "flops", "inputs", "bytes", "outputs", "bytes", "peak", "same", "after",
        ];
        let mut rows = vec![header.map(String::from)];
        let mut first: FxHashMap<Digest, StageId> = FxHashMap::default();
        for stage in self.stages() {
            let earlier = *first.entry(stage.digest()).or_insert(stage.id);
            rows.push(self.row(stage, (earlier != stage.id).then_some(earlier)));
        }
        let mut text = String::new();
        for line in align_columns(&rows) {
            text.push_str(&line);
            text.push('\n');
        }
        text.push_str(&self.summary());
        text.push('\n');
        text.push_str(&self.estimate());
        text.push('\n');
        text
    }

    /// Draws the stages: a box for the inputs and for each stage, with its most frequent operations
    /// and its output types. The border is thick if the stage has hooks. Arrows show the
    /// transferred bytes, or an order that only hooks require.
    pub fn to_svg(&self) -> String {
        let mut nodes = vec![input_box(self.inputs())];
        nodes.extend(self.stages().iter().map(stage_box));
        let mut crossing: BTreeMap<(usize, usize), u64> = BTreeMap::new();
        for Edge { source, stage, bytes, .. } in self.edges() {
            *crossing.entry((box_of(source.stage), box_of(Some(stage)))).or_default() += bytes;
        }
        let values =
            crossing.iter().map(|(&(from, to), &bytes)| (from, to, Some(bytes_text(bytes))));
        let mut edges: Vec<_> = values.collect();
        for stage in self.stages() {
            let to = box_of(Some(stage.id));
            let order = stage.follows.map(|before| (box_of(Some(before)), to));
            let order = order.filter(|pair| !crossing.contains_key(pair));
            edges.extend(order.map(|(from, to)| (from, to, Some("hooks".to_owned()))));
        }
        layered_svg(&nodes, &edges)
    }

    fn row(&self, stage: &Stage, earlier: Option<StageId>) -> [String; 10] {
        let program = &stage.program;
        let taken = program.inputs().iter().map(bytes_of).sum();
        let given = program.output_types().map(bytes_of).sum();
        let outputs = program.outputs().iter();
        [
            match &stage.name {
                Some(name) => format!("{} {name}", stage.id.index()),
                None => stage.id.index().to_string(),
            },
            op_count(program).to_string(),
            count_text(cost_of(program).flops),
            format_list(stage.arguments.iter().map(ValueSource::to_string)),
            bytes_text(taken),
            format_list(outputs.map(|&id| program.graph().tensor_type(id).to_string())),
            bytes_text(given),
            bytes_text(peak_bytes(program)),
            earlier.map_or_else(String::new, |stage| stage.to_string()),
            stage.follows.map_or_else(String::new, |before| before.to_string()),
        ]
    }

    fn summary(&self) -> String {
        let ops: usize = self.stages().iter().map(|stage| op_count(&stage.program)).sum();
        let inner = self.edges().filter(|edge| edge.source.stage.is_some());
        let bytes = inner.map(|edge| edge.bytes).sum();
        format!(
            "{} on {}, {}, {} between stages",
            pluralize(self.stages().len(), "stage"),
            pluralize(self.levels().len(), "level"),
            pluralize(ops, "operation"),
            bytes_text(bytes),
        )
    }

    /// Formats the estimated time of the stages, sequentially and in parallel.
    fn estimate(&self) -> String {
        let seconds = self.seconds(&Speed::default());
        let alone: f64 = seconds.iter().sum();
        let faster = |workers: usize| {
            let cluster = Cluster { workers, bandwidth: f64::INFINITY, latency: 0.0 };
            alone / self.simulate(&cluster, &seconds).makespan
        };
        format!(
            "about {}; on 2 workers {:.1} times as fast, on 4 workers {:.1}",
            seconds_text(alone),
            faster(2),
            faster(4)
        )
    }
}

/// Formats a time with its unit.
fn seconds_text(seconds: f64) -> String {
    match seconds {
        ..1e-3 => format!("{:.1} µs", seconds * 1e6),
        ..1.0 => format!("{:.1} ms", seconds * 1e3),
        _ => format!("{seconds:.1} s"),
    }
}

/// Formats a number of operations with three digits.
fn count_text(count: u64) -> String {
    const UNITS: [&str; 6] = ["k", "M", "G", "T", "P", "E"];
    if count < 1000 {
        return count.to_string();
    }
    let power = count.ilog10() / 3;
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    let scaled = count as f64 / 10_f64.powi(i32::try_from(power).expect("at most six") * 3);
    format!("{} {}", three_digits(scaled), UNITS[power as usize - 1])
}

/// Returns the index of the box of a stage, or of the inputs.
fn box_of(stage: Option<StageId>) -> usize {
    stage.map_or(0, |stage| stage.index() + 1)
}

fn input_box(inputs: &[TensorType]) -> SvgNode {
    let types = format_list(inputs.iter().map(TensorType::to_string));
    SvgNode { fill: "#e8eef7".into(), ..SvgNode::new(["inputs".to_owned(), types]) }
}

fn stage_box(stage: &Stage) -> SvgNode {
    let program = &stage.program;
    let graph = program.graph();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for id in graph.ids().filter(|&id| computes(graph.op(id))) {
        *counts.entry(graph.op(id).name()).or_default() += 1;
    }
    let mut ops: Vec<(&str, usize)> = counts.into_iter().collect();
    ops.sort_by_key(|&(_, count)| Reverse(count));
    let ops = format_list(ops.into_iter().map(|(name, count)| match count {
        1 => name.to_owned(),
        count => format!("{name} × {count}"),
    }));
    let given = format_list(program.outputs().iter().map(|&id| graph.tensor_type(id).to_string()));
    let title = match &stage.name {
        Some(name) => format!("{} ({name})", stage.id),
        None => stage.id.to_string(),
    };
    let tooltip =
        format!("{}, digest {}", pluralize(op_count(program), "operation"), stage.digest());
    SvgNode {
        tooltip: Some(tooltip),
        emphasis: !program.effects().is_empty(),
        ..SvgNode::new([title, ops, given])
    }
}

fn pluralize(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// Aligns the columns of a table: numbers to the right, lists to the left.
fn align_columns<const N: usize>(rows: &[[String; N]]) -> Vec<String> {
    const LEFT: [&str; 4] = ["inputs", "outputs", "same", "after"];
    let width =
        |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let line = |row: &[String; N]| {
        let cells: [String; N] = std::array::from_fn(|column| {
            let (cell, width) = (&row[column], widths[column]);
            let left = LEFT.contains(&rows[0][column].as_str());
            if left { format!("{cell:width$}") } else { format!("{cell:>width$}") }
        });
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}
