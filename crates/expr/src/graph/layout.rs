//! Layouts: the notation for the sharding of a tensor over a mesh of devices.

use std::fmt::Write;

/// For each axis of a tensor, the mesh axes along which it is divided, the outermost first. Missing
/// entries denote axes that are not divided.
pub type Layout = Vec<Vec<String>>;

/// The prefix of [`Metadata::inspect`](super::Metadata::inspect) for a sharding annotation. The
/// layout follows in Shardy notation: `[{"data"}, {}]`.
pub const SHARDING_NOTE: &str = "sharding ";

/// Formats the layout of a tensor with `rank` axes in Shardy notation.
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

/// Returns the annotation for the layout of a value with `rank` axes.
///
/// ```
/// let layout = vec![vec!["data".to_owned()]];
/// assert_eq!(nxla_expr::sharding_note(&layout, 1), r#"sharding [{"data"}]"#);
/// ```
pub fn sharding_note(layout: &[Vec<String>], rank: usize) -> String {
    format!("{SHARDING_NOTE}{}", layout_text(layout, rank))
}
