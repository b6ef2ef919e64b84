//! Attributes for programs over several devices, in the notation of Shardy.

use nxla_expr::{Layout, Metadata, SHARDING_NOTE, layout_text};
use nxla_tensor::Shape;

use crate::context::Cx;
use crate::options::Partition;
use crate::writer::Value;

/// Returns the attributes of a module for a mesh, and the mesh operation at the start of the
/// module.
pub(crate) fn header(partition: &Partition<'_>) -> (String, String) {
    let partitions: usize = partition.axes.iter().map(|(_, size)| size).product();
    let attributes =
        format!("mhlo.num_partitions = {partitions} : i32, mhlo.num_replicas = 1 : i32");
    let axes: Vec<String> =
        partition.axes.iter().map(|(name, size)| format!("\"{name}\"={size}")).collect();
    (attributes, format!("sdy.mesh @mesh = <[{}]>", axes.join(", ")))
}

/// The attribute of a parameter or a result.
pub(crate) fn attribute(layout: &Layout, shape: &Shape) -> String {
    format!("sdy.sharding = #sdy.sharding<@mesh, {}>", layout_text(layout, shape.rank()))
}

/// Adds a sharding constraint to a value whose metadata has a sharding.
pub(crate) fn constrain(cx: &mut Cx<'_>, metadata: &Metadata, value: Value) -> Value {
    let note = metadata.inspect.as_deref().and_then(|note| note.strip_prefix(SHARDING_NOTE));
    match (note, &cx.options.partition) {
        (Some(layout), Some(_)) => cx.writer.constrain(value, layout),
        _ => value,
    }
}
