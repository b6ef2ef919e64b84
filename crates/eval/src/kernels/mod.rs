//! Kernels: functions over slices, shapes and strides, in one file or folder per family of ops.
//!
//! Kernels know neither graphs nor schedules. The state of the run arrives in their first argument,
//! [`ExecContext`](crate::context::ExecContext).

pub(crate) mod block;
pub(crate) mod contract;
pub(crate) mod create;
pub(crate) mod elementwise;
pub(crate) mod finite;
pub(crate) mod index;
mod limits;
pub(crate) mod linalg;
pub(crate) mod matrix;
pub(crate) mod movement;
pub(crate) mod number;
pub(crate) mod ordered;
pub(crate) mod reduce;
pub(crate) mod strided;
pub(crate) mod vectors;
pub(crate) mod window;

pub(crate) use limits::BLOCK_ELEMENTS;

/// Binds a name to a type in an expression.
macro_rules! with_type {
    ($name:ident = $found:ty => $body:expr) => {{
        type $name = $found;
        $body
    }};
}
pub(crate) use with_type;
