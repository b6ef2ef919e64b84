//! Expression text: one line per node.
//!
//! ```text
//! parameter a:0                            f32[3]
//! parameter c:1                            f32
//! b = exp a                                f32[3]
//! d = multiply b, c                        f32[3]
//! e = sum d, axes: nil, keep_axes: false   f32
//! ```
//!
//! Variables are letters in the order of a depth-first walk from the root, operands first. Inputs
//! and literal tensors are listed before the operations, and scalar constants are written inside
//! their users. Notable details:
//!
//! * The branches of a `cond` are written as ordinary lines before it, although they are separate
//!   programs: operands replace their parameters, and equal lines appear once. The regions of other
//!   ops and their captures are not written. Bodies of blocks are written instead of the blocks
//!   with [`Blocks::Body`].
//! * Metadata without an inspection string is not written: the node has the name of its operand.
//! * A limit counts from the root, so the lines next to the result remain. Nodes beyond the limit
//!   have a letter but no line, and they are not visited: time and memory for a limited text do not
//!   depend on the size of the graph.

mod line;
mod walk;

use std::fmt;

use crate::graph::{ExprId, Graph, Program};
use walk::Walk;

/// Options for printing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GraphPrintOptions {
    /// The maximum number of nodes with a line; scalar constants do not count.
    pub limit: Option<usize>,
    /// The form of blocks.
    pub blocks: Blocks,
}

/// The form in which blocks are printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Blocks {
    /// One line with the name and attributes.
    #[default]
    Name,
    /// The lines of the default body.
    Body,
}

/// Returns the lines of one or several expressions, which share variables.
///
/// A root that is a scalar constant is a line with its value.
///
/// ```
/// use nxla_expr::{Graph, TensorType, print};
/// use nxla_tensor::DType;
///
/// let mut graph = Graph::new();
/// let x = graph.parameter(0, TensorType::new(DType::F32, [4]));
/// let y = graph.exp(x)?;
/// let lines = print::lines(&graph, &[y], &print::GraphPrintOptions::default());
/// assert_eq!(lines, ["parameter a:0   f32[4]", "b = exp a       f32[4]"]);
/// # Ok::<(), nxla_expr::Error>(())
/// ```
pub fn lines(graph: &Graph, roots: &[ExprId], options: &GraphPrintOptions) -> Vec<String> {
    let mut walk = Walk::new(graph, options);
    let mut numbers = Vec::new();
    for &root in roots {
        numbers.extend(walk.print(root));
    }
    align_types(walk).chain(numbers).collect()
}

/// Returns the lines of several expressions, which share variables, and the variable of each
/// expression.
///
/// ```
/// use nxla_expr::{Graph, TensorType, print};
/// use nxla_tensor::DType;
///
/// let mut graph = Graph::new();
/// let x = graph.parameter(0, TensorType::new(DType::F32, [4]));
/// let (y, z) = (graph.exp(x)?, graph.sin(x)?);
/// let (lines, names) = print::lines_and_names(&graph, &[z, y, x], &print::GraphPrintOptions::default());
/// assert_eq!(lines, ["parameter a:0   f32[4]", "b = sin a       f32[4]", "c = exp a       f32[4]"]);
/// assert_eq!(names, ["b", "c", "a"]);
/// # Ok::<(), nxla_expr::Error>(())
/// ```
pub fn lines_and_names(
    graph: &Graph,
    roots: &[ExprId],
    options: &GraphPrintOptions,
) -> (Vec<String>, Vec<String>) {
    let mut walk = Walk::new(graph, options);
    let names = roots.iter().map(|&root| walk.name(root)).collect();
    (align_types(walk).collect(), names)
}

/// The rightmost column of aligned types. A longer line is followed by its type: otherwise one line with thousands of
/// operands would pad all others.
const RIGHTMOST: usize = 120;

/// Returns the lines of a walk with aligned types.
fn align_types(walk: Walk<'_>) -> impl Iterator<Item = String> {
    let rows: Vec<Row> = walk.finish();
    let longest = rows.iter().map(|row| row.text.chars().count()).max().unwrap_or(0);
    let width = longest.min(RIGHTMOST);
    rows.into_iter().map(move |row| row.align_types(width))
}

/// A line before alignment.
struct Row {
    text: String,
    /// The type column; empty for the line that represents the nodes beyond the limit.
    ty: String,
}

impl Row {
    fn align_types(self, width: usize) -> String {
        let Self { text, ty } = self;
        if ty.is_empty() { text } else { format!("{text:width$}   {ty}") }
    }
}

/// One expression as a block of lines with its type on top, for `Display`.
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
    options: GraphPrintOptions,
    header: Option<&'g str>,
}

impl<'g> ExprText<'g> {
    /// Creates the text of the whole expression.
    pub fn new(graph: &'g Graph, root: ExprId) -> Self {
        Self { graph, root, options: GraphPrintOptions::default(), header: None }
    }

    /// Replaces the type on top by `header`.
    #[must_use]
    pub fn with_header(self, header: &'g str) -> Self {
        Self { header: Some(header), ..self }
    }

    /// Sets the options.
    #[must_use]
    pub fn with_options(self, options: GraphPrintOptions) -> Self {
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
    /// Writes the lines of all outputs, see [`lines`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = lines(self.graph(), self.outputs(), &GraphPrintOptions::default());
        lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

#[cfg(test)]
mod tests;
