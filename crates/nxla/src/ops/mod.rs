//! Functions on expressions, one file per family. What has no method here is reached through the
//! graph: `expr.trace().build(|graph| …)`.

mod contract;
mod elementwise;
mod movement;
mod reduce;
