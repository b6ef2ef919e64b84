//! Expressions as text, line for line as Nx prints them.
//!
//! ```text
//! parameter a:0                            f32[3]
//! parameter c:1                            f32
//! b = exp a                                f32[3]
//! d = multiply b, c                        f32[3]
//! e = sum d, axes: nil, keep_axes: false   f32
//! ```
//!
//! Nodes are named by letters in the order in which a depth-first walk from the root finishes
//! them, operands first. Inputs and literal tensors are listed before the operations; numbers
//! stand in the place where they are used. What is surprising:
//!
//! * The branches of a `cond` are shown as ordinary lines before it, although they are programs
//!   of their own: their parameters are replaced by the operands, and equal lines appear once.
//!   The regions of other ops are not shown, nor the values that they capture; bodies of blocks are,
//!   in place of the blocks, where [`Blocks::Body`] asks for them.
//! * Metadata without a text for inspection is invisible: the node is named by its operand.
//! * A limit counts from the root, so the lines next to the result are kept. The nodes beyond get
//!   a letter but no line, and are not visited: the time and memory for a limited text do not
//!   depend on the size of the graph.

mod line;
mod walk;

use std::fmt;

use crate::graph::{ExprId, Graph, Program};
use walk::Walk;

/// How expressions are printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PrintOptions {
    /// The most nodes that get a line; numbers, which get none, do not count.
    pub limit: Option<usize>,
    /// How composites are shown.
    pub blocks: Blocks,
}

/// How composites are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Blocks {
    /// By their name and configuration, in one line.
    #[default]
    Name,
    /// By what their default bodies compute.
    Body,
}

/// The lines of one or several expressions, which share their names.
///
/// A root that is a number gives the number as a line.
///
/// ```
/// use nxla_expr::{Graph, TensorType, print};
/// use nxla_tensor::DType;
///
/// let mut graph = Graph::new();
/// let x = graph.parameter(0, TensorType::new(DType::F32, [4]));
/// let y = graph.exp(x)?;
/// let lines = print::lines(&graph, &[y], &print::PrintOptions::default());
/// assert_eq!(lines, ["parameter a:0   f32[4]", "b = exp a       f32[4]"]);
/// # Ok::<(), nxla_expr::Error>(())
/// ```
pub fn lines(graph: &Graph, roots: &[ExprId], options: &PrintOptions) -> Vec<String> {
    let mut walk = Walk::new(graph, options);
    let mut numbers = Vec::new();
    for &root in roots {
        numbers.extend(walk.print(root));
    }
    aligned(walk).chain(numbers).collect()
}

/// The lines of several expressions, which share their names, and how the lines name each of them.
///
/// ```
/// use nxla_expr::{Graph, TensorType, print};
/// use nxla_tensor::DType;
///
/// let mut graph = Graph::new();
/// let x = graph.parameter(0, TensorType::new(DType::F32, [4]));
/// let (y, z) = (graph.exp(x)?, graph.sin(x)?);
/// let (lines, names) = print::named(&graph, &[z, y, x], &print::PrintOptions::default());
/// assert_eq!(lines, ["parameter a:0   f32[4]", "b = sin a       f32[4]", "c = exp a       f32[4]"]);
/// assert_eq!(names, ["b", "c", "a"]);
/// # Ok::<(), nxla_expr::Error>(())
/// ```
pub fn named(
    graph: &Graph,
    roots: &[ExprId],
    options: &PrintOptions,
) -> (Vec<String>, Vec<String>) {
    let mut walk = Walk::new(graph, options);
    let names = roots.iter().map(|&root| walk.name(root)).collect();
    (aligned(walk).collect(), names)
}

/// The lines of a walk, with their types below each other.
fn aligned(walk: Walk<'_>) -> impl Iterator<Item = String> {
    let rows: Vec<Row> = walk.finish();
    let width = rows.iter().map(|row| row.text.chars().count()).max().unwrap_or(0);
    rows.into_iter().map(move |row| row.aligned(width))
}

/// One line before alignment.
struct Row {
    text: String,
    /// The type column; empty for the line that stands for those beyond the limit.
    ty: String,
}

impl Row {
    fn aligned(self, width: usize) -> String {
        let Self { text, ty } = self;
        if ty.is_empty() { text } else { format!("{text:width$}   {ty}") }
    }
}

/// One expression as a block of text with its type on top, for `Display`.
///
/// ```
/// use nxla_expr::{Graph, TensorType, print::ExprText};
/// use nxla_tensor::DType;
///
/// let mut graph = Graph::new();
/// let x = graph.parameter(0, TensorType::new(DType::F32, [4]));
/// let y = graph.exp(x)?;
/// let text = ExprText::new(&graph, y).to_string();
/// assert_eq!(
///     text,
///     "#nxla.Expr<\n  f32[4]\n  \n  parameter a:0   f32[4]\n  b = exp a       f32[4]\n>"
/// );
/// # Ok::<(), nxla_expr::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ExprText<'g> {
    graph: &'g Graph,
    root: ExprId,
    options: PrintOptions,
    header: Option<&'g str>,
}

impl<'g> ExprText<'g> {
    /// The text of the whole expression.
    pub fn new(graph: &'g Graph, root: ExprId) -> Self {
        Self { graph, root, options: PrintOptions::default(), header: None }
    }

    /// The same text with something else in place of the type on top.
    #[must_use]
    pub fn with_header(self, header: &'g str) -> Self {
        Self { header: Some(header), ..self }
    }

    /// The same text with other options.
    #[must_use]
    pub fn with_options(self, options: PrintOptions) -> Self {
        Self { options, ..self }
    }
}

impl fmt::Display for ExprText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.header {
            Some(header) => write!(f, "#nxla.Expr<\n  {header}\n  \n")?,
            None => write!(f, "#nxla.Expr<\n  {}\n  \n", self.graph.ty(self.root))?,
        }
        for line in lines(self.graph, &[self.root], &self.options) {
            writeln!(f, "  {line}")?;
        }
        f.write_str(">")
    }
}

impl fmt::Display for Program {
    /// The lines of all outputs, see [`lines`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = lines(self.graph(), self.outputs(), &PrintOptions::default());
        lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

#[cfg(test)]
mod tests;
