//! What runs programs: data on the host and on devices, traces under way, compilers and their
//! executables, options, and everything that happens between a call and its results.
//!
//! It works on untyped leaves: tensors, and nodes of traces. What containers they come in, and how
//! the function that is traced is called, is left to a shell. There are two: the crate `nxla`, for
//! Rust's types and closures, and the bindings of the Python package.
#![forbid(unsafe_code)]

mod apply;
mod background;
mod cache;
mod compiler;
mod current;
pub mod debug;
mod error;
mod evaluator;
mod expr;
mod function;
mod operand;
mod options;
mod stages;
mod tensor;
mod trace;
pub mod vectors;
pub mod xla;

pub use apply::{AtOnce, Captured, Ids, build_entries, either, number_tensor, resolve, trace_of};
pub use cache::{CacheKey, CacheReport, ExecutableCache, executables};
pub use compiler::{
    Backend, CompileRequest, Compiler, Executable, RunContext, compiler_named, compiler_names,
    register_compiler,
};
pub use current::{Tracing, current_compiler, tracing_for};
pub use error::{Error, ErrorClass, Result};
pub use evaluator::Evaluator;
pub use expr::Expr;
pub use function::{compile_program, compile_program_watched};
pub use operand::{Operand, Value, View, position};
pub use options::{
    Options, OptionsGuard, Setting, Settings, default_options, global_default_options,
    has_default_options, set_default_options, set_global_default_options, with_default_options,
};
pub use stages::Stages;
pub use tensor::{Device, DeviceTensor, Tensor};
pub use trace::{Entered, Gradient, Trace};
pub use vectors::{VectorAxis, Vectors};

pub use nxla_eval as eval;
pub use nxla_expr as graph;
pub use nxla_expr::{Digest, Program, TensorType};
pub use nxla_grad as gradient;
pub use nxla_pjrt as pjrt;
pub use nxla_split as split;
pub use nxla_stablehlo as stablehlo;
pub use nxla_tensor as host;
pub use nxla_tensor::{DType, HostTensor, Number, Scalar, Shape};
