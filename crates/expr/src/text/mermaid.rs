//! Expressions as Mermaid flowcharts.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::graph::{ExprId, Graph};
use crate::text::picture::Picture;

/// Returns the flowchart of an expression: one box per node with its op and type, colored by
/// family.
///
/// Scalar constants are shown inside their users, and regions are not drawn. Of a large graph, only
/// the nodes nearest to the roots are drawn.
///
/// ```
/// use nxla_expr::{Graph, TensorType, mermaid::to_mermaid};
/// use nxla_tensor::DType;
///
/// let mut graph = Graph::new();
/// let x = graph.parameter(0, TensorType::new(DType::F32, [4]));
/// let y = graph.exp(x)?;
/// let text = to_mermaid(&graph, &[y]);
/// assert!(text.starts_with("flowchart TD\n  n0[\"parameter 0<br>f32[4]\"]:::input\n"));
/// assert!(text.contains("\n  n0 --> n1\n"));
/// # Ok::<(), nxla_expr::Error>(())
/// ```
pub fn to_mermaid(graph: &Graph, roots: &[ExprId]) -> String {
    let Picture { nodes, edges } = Picture::new(graph, roots);
    let mut text = String::from("flowchart TD\n");
    for (index, node) in nodes.iter().enumerate() {
        let lines: Vec<String> = node.lines.iter().map(|line| escape(line)).collect();
        let (open, close) = if node.is_root { ("[[", "]]") } else { ("[", "]") };
        let (label, class) = (lines.join("<br>"), node.kind.name());
        line(&mut text, format_args!("n{index}{open}\"{label}\"{close}:::{class}"));
    }
    for (from, to) in edges {
        line(&mut text, format_args!("n{from} --> n{to}"));
    }
    let kinds: BTreeSet<_> = nodes.iter().map(|node| node.kind).collect();
    for kind in kinds {
        let (name, fill) = (kind.name(), kind.fill());
        line(&mut text, format_args!("classDef {name} fill:{fill},stroke:#5b6778,color:#1c2430"));
    }
    text
}

fn line(text: &mut String, content: std::fmt::Arguments<'_>) {
    writeln!(text, "  {content}").expect("a string takes all that is written");
}

/// Escapes the characters with a meaning in Mermaid or HTML.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '#' | '&' | ';' | '<' | '>' | '`' | '\\' => {
                write!(escaped, "#{};", u32::from(c)).expect("a string takes all that is written");
            }
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use nxla_tensor::{DType, Scalar};

    use super::*;
    use crate::graph::TensorType;

    #[test]
    fn draws_roots_inputs_and_constants() {
        let mut graph = Graph::new();
        let x = graph.parameter(0, TensorType::new(DType::F32, [2, 3]));
        let two = graph.scalar_constant(Scalar::Float(2.0), DType::F32).unwrap();
        let y = graph.multiply(x, two).unwrap();
        let z = graph.subtract(y, x).unwrap();
        let expected = "flowchart TD
  n0[\"parameter 0<br>f32[2][3]\"]:::input
  n1[\"multiply 2.0, ·<br>f32[2][3]\"]:::elementwise
  n2[[\"subtract<br>f32[2][3]\"]]:::elementwise
  n0 --> n1
  n1 --> n2
  n0 --> n2
  classDef input fill:#ffffff,stroke:#5b6778,color:#1c2430
  classDef elementwise fill:#d3e5fb,stroke:#5b6778,color:#1c2430
";
        assert_eq!(to_mermaid(&graph, &[z]), expected);
    }

    #[test]
    fn labels_are_escaped() {
        assert_eq!(escape("a\"]; click <b>`\n"), "a#34;]#59; click #60;b#62;#96; ");
    }

    #[test]
    fn large_graphs_are_truncated() {
        let mut graph = Graph::new();
        let mut x = graph.parameter(0, TensorType::scalar(DType::F32));
        for _ in 0..5000 {
            x = graph.sin(x).unwrap();
        }
        let text = to_mermaid(&graph, &[x]);
        assert!(text.contains("n0[\"… 4801 more nodes\"]:::more\n"), "{text}");
        assert!(text.contains("  n0 --> n1\n"));
        assert_eq!(text.matches(" --> ").count(), 200);
    }
}
