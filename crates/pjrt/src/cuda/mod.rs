//! CUDA devices: copies between their memory and the host, and the factorizations of cuSOLVER.
//!
//! Both are used by the handlers of custom calls, and work in the order of the stream of a call.
//! The libraries are installed with the hardware or as wheels. They are loaded when the first
//! program needs them, and are not needed to build.

mod driver;
mod factorize;
mod scratch;
mod solver;

pub(crate) use driver::{Primary, RawStream, Stream};
pub(crate) use factorize::factorize;
pub(crate) use solver::is_installed;
