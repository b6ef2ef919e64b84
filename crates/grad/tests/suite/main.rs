//! The tests of the derivatives, in one binary, since linking takes longer than running them.

mod common;
mod control;
mod elementwise;
mod factorize;
mod forward;
mod residuals;
mod reverse;
mod structured;
