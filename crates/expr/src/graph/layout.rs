//! How a tensor is divided over a mesh of devices, in words.

use std::fmt::Write;

/// For each axis of a tensor the axes of the mesh along which it is divided, the outermost first.
/// Axes beyond those are not divided.
pub type Layout = Vec<Vec<String>>;

/// What the text of [`Metadata::inspect`](super::Metadata::inspect) begins with to say how a value is
/// divided. After it comes the layout as Shardy writes it: `[{"data"}, {}]`.
pub const SHARDING_NOTE: &str = "sharding ";

/// The layout of a tensor of so many axes, as Shardy writes it.
///
/// ```
/// let layout = vec![vec!["data".to_owned()]];
/// assert_eq!(nxla_expr::layout_text(&layout, 2), r#"[{"data"}, {}]"#);
/// ```
pub fn layout_text(layout: &[Vec<String>], rank: usize) -> String {
    let mut text = String::from("[");
    for axis in 0..rank {
        let along = layout.get(axis).map_or(&[][..], Vec::as_slice);
        let names: Vec<String> = along.iter().map(|name| format!("\"{name}\"")).collect();
        let separator = if axis > 0 { ", " } else { "" };
        let _ = write!(text, "{separator}{{{}}}", names.join(", "));
    }
    text.push(']');
    text
}

/// The note that says how a value of so many axes is divided.
///
/// ```
/// let layout = vec![vec!["data".to_owned()]];
/// assert_eq!(nxla_expr::sharding_note(&layout, 1), r#"sharding [{"data"}]"#);
/// ```
pub fn sharding_note(layout: &[Vec<String>], rank: usize) -> String {
    format!("{SHARDING_NOTE}{}", layout_text(layout, rank))
}
