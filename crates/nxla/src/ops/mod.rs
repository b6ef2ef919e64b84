//! Functions on expressions, one file per family.

mod elementwise;
