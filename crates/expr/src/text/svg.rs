//! Graphs as SVG drawings, without external programs.
//!
//! [`layered_svg`] draws any directed graph: boxes in layers from top to bottom, downward arrows
//! and few crossings. [`to_svg`] draws an expression. The output is one self-contained element with
//! long labels as tooltips.

mod layout;

use std::borrow::Cow;
use std::fmt::Write;

use crate::graph::{ExprId, Graph};
use crate::text::picture::Picture;
use layout::{Drawing, Point, Size};

/// The maximum number of drawn boxes.
const LIMIT: usize = 400;
/// The width of a character of the 12 pixel monospace font, with a margin for wider characters.
const CHARACTER: f64 = 7.3;
const LINE_HEIGHT: f64 = 16.0;
/// The distance between a box and its label, on each side.
const INSET: Size = Size { width: 10.0, height: 6.0 };
/// The maximum length of a line in characters; the tooltip contains the full line.
const LONGEST_LINE: usize = 48;

/// A box of a drawing.
#[derive(Clone, PartialEq, Debug)]
pub struct SvgNode {
    /// The lines of the label, the first line in bold.
    pub lines: Vec<String>,
    /// The CSS color of the box.
    pub fill: Cow<'static, str>,
    /// The tooltip.
    pub tooltip: Option<String>,
    /// True if the border is thick.
    pub emphasis: bool,
}

impl SvgNode {
    /// Creates a plain white box.
    pub fn new(lines: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let lines = lines.into_iter().map(Into::into).collect();
        Self { lines, fill: "#ffffff".into(), tooltip: None, emphasis: false }
    }
}

/// Draws an expression: one box per node with its op and type, colored by family, with the user's
/// source line as tooltip and a thick border for roots.
///
/// Arrows go from operands to users, and reach a box in operand order from left to right. Scalar
/// constants are shown inside their users, and regions are not drawn. Of a large graph, only the
/// nodes nearest to the roots are drawn.
///
/// ```
/// use nxla_expr::{Graph, TensorType, svg::to_svg};
/// use nxla_tensor::DType;
///
/// let mut graph = Graph::new();
/// let x = graph.parameter(0, TensorType::new(DType::F32, [4]));
/// let y = graph.exp(x)?;
/// let svg = to_svg(&graph, &[y]);
/// assert!(svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>\n"));
/// assert!(svg.contains(">exp</tspan>"));
/// # Ok::<(), nxla_expr::Error>(())
/// ```
pub fn to_svg(graph: &Graph, roots: &[ExprId]) -> String {
    let picture = Picture::new(graph, roots);
    let nodes: Vec<SvgNode> = picture
        .nodes
        .into_iter()
        .map(|node| SvgNode {
            lines: node.lines,
            fill: node.kind.fill().into(),
            tooltip: node.line,
            emphasis: node.is_root,
        })
        .collect();
    let edges: Vec<_> = picture.edges.into_iter().map(|(from, to)| (from, to, None)).collect();
    layered_svg(&nodes, &edges)
}

/// Draws any directed graph, given as boxes and labeled arrows.
///
/// Arrows reach a box in the given order. Cycles are drawn with some upward arrows. Of more than
/// 400 boxes, the first are drawn, and an additional box shows the number of the others.
///
/// # Panics
/// Panics if an arrow refers to a box that does not exist.
pub fn layered_svg(nodes: &[SvgNode], edges: &[(usize, usize, Option<String>)]) -> String {
    for &(from, to, _) in edges {
        assert!(from < nodes.len() && to < nodes.len(), "no box {from} or {to}");
    }
    let more = nodes.len().saturating_sub(LIMIT);
    let mut boxes: Vec<Cow<'_, SvgNode>> = nodes.iter().take(LIMIT).map(Cow::Borrowed).collect();
    if more > 0 {
        boxes.push(Cow::Owned(SvgNode::new([format!("… {more} more nodes")])));
    }
    let mut drawn: Vec<(usize, usize, Option<&str>)> = Vec::new();
    for (from, to, label) in edges {
        let edge = ((*from).min(LIMIT), (*to).min(LIMIT), label.as_deref());
        // Arrows between boxes that are not drawn are omitted.
        if edge.0 != edge.1 || from == to && *from < LIMIT {
            drawn.push(edge);
        }
    }
    let sizes: Vec<Size> = boxes.iter().map(|node| size_of_box(node)).collect();
    let pairs: Vec<(usize, usize)> = drawn.iter().map(|&(from, to, _)| (from, to)).collect();
    let layout = Drawing::new(&sizes, &pairs);
    render(&boxes, &sizes, &drawn, &layout)
}

fn size_of_box(node: &SvgNode) -> Size {
    let longest = node.lines.iter().map(|line| line.chars().count().min(LONGEST_LINE)).max();
    #[expect(clippy::cast_precision_loss, reason = "a label has few characters and lines")]
    let (longest, lines) = (longest.unwrap_or(0) as f64, node.lines.len().max(1) as f64);
    Size {
        width: (longest * CHARACTER + 2.0 * INSET.width).max(40.0).round(),
        height: lines * LINE_HEIGHT + 2.0 * INSET.height,
    }
}

fn render(
    nodes: &[Cow<'_, SvgNode>],
    sizes: &[Size],
    edges: &[(usize, usize, Option<&str>)],
    layout: &Drawing,
) -> String {
    let Size { width, height } = layout.size;
    let mut svg = String::new();
    put(
        &mut svg,
        format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\" \
         font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, monospace\" font-size=\"12\">"
        ),
    );
    put(
        &mut svg,
        format_args!(
            "<defs><marker id=\"nxla-arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" \
         markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\">\
         <path d=\"M0 0L8 4L0 8z\" fill=\"#7a869a\"/></marker></defs>"
        ),
    );
    for (path, (_, _, label)) in layout.paths.iter().zip(edges) {
        put(
            &mut svg,
            format_args!(
                "<path d=\"{}\" fill=\"none\" stroke=\"#7a869a\" marker-end=\"url(#nxla-arrow)\"/>",
                curve(path)
            ),
        );
        if let Some(label) = label {
            put_label(&mut svg, label, path);
        }
    }
    for ((node, size), center) in nodes.iter().zip(sizes).zip(&layout.centers) {
        put_box(&mut svg, node, *size, *center);
    }
    svg.push_str("</svg>\n");
    svg
}

/// Returns a smooth curve through the points, vertical at each of them.
fn curve(points: &[Point]) -> String {
    let mut path = format!("M{:.1} {:.1}", points[0].x, points[0].y);
    for pair in points.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        let middle = f64::midpoint(from.y, to.y);
        write!(path, "C{:.1} {middle:.1} {:.1} {middle:.1} {:.1} {:.1}", from.x, to.x, to.x, to.y)
            .expect("a string takes all that is written");
    }
    path
}

fn put_label(svg: &mut String, label: &str, path: &[Point]) {
    let last = path.len() - 1;
    let (a, b) = (path[last / 2], path[last.div_ceil(2).max(last / 2 + 1).min(last)]);
    let (x, y) = (f64::midpoint(a.x, b.x), f64::midpoint(a.y, b.y));
    put(
        svg,
        format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" dominant-baseline=\"central\" \
         font-size=\"11\" fill=\"#4a5568\" stroke=\"#ffffff\" stroke-width=\"3\" \
         paint-order=\"stroke\">{}</text>",
            escape(&shorten(label))
        ),
    );
}

fn put_box(svg: &mut String, node: &SvgNode, size: Size, center: Point) {
    let (left, top) = (center.x - size.width / 2.0, center.y - size.height / 2.0);
    put(svg, format_args!("<g>"));
    if let Some(tooltip) = tooltip(node) {
        put(svg, format_args!("<title>{}</title>", escape(&tooltip)));
    }
    put(
        svg,
        format_args!(
            "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"6\" \
         fill=\"{}\" stroke=\"#5b6778\" stroke-width=\"{}\"/>",
            size.width,
            size.height,
            escape(&node.fill),
            if node.emphasis { 2.5 } else { 1.0 }
        ),
    );
    put(svg, format_args!("<text text-anchor=\"middle\" fill=\"#1c2430\">"));
    let mut y = top + INSET.height + LINE_HEIGHT / 2.0;
    for (index, line) in node.lines.iter().enumerate() {
        let weight = if index == 0 { " font-weight=\"600\"" } else { "" };
        put(
            svg,
            format_args!(
                "<tspan x=\"{:.1}\" y=\"{y:.1}\" dominant-baseline=\"central\"{weight}>{}</tspan>",
                center.x,
                escape(&shorten(line))
            ),
        );
        y += LINE_HEIGHT;
    }
    put(svg, format_args!("</text></g>"));
}

/// Returns the tooltip, with the lines that were cut.
fn tooltip(node: &SvgNode) -> Option<String> {
    let cut = node.lines.iter().filter(|line| line.chars().count() > LONGEST_LINE);
    let parts: Vec<&str> = cut.chain(&node.tooltip).map(String::as_str).collect();
    (!parts.is_empty()).then(|| parts.join("\n"))
}

fn shorten(line: &str) -> Cow<'_, str> {
    if line.chars().count() <= LONGEST_LINE {
        return line.into();
    }
    let kept: String = line.chars().take(LONGEST_LINE - 1).collect();
    format!("{kept}…").into()
}

fn put(svg: &mut String, content: std::fmt::Arguments<'_>) {
    writeln!(svg, "{content}").expect("a string takes all that is written");
}

/// Escapes XML; control characters, which XML cannot represent, become spaces.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push('\n'),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests;
