//! The runtime: data on the host and on devices, traces, compilers and their executables, options,
//! and every step between a call and its results.
//!
//! It works on untyped leaves: tensors, and nodes of traces. A front end handles containers and
//! calls the traced function. Two front ends exist: the crate `nxla`, for Rust's types and
//! closures, and the bindings of the Python package.
//!
//! Users depend on the crate `nxla`. Items that only the front ends need are hidden from this
//! documentation, and change in any release.
//!
//! # Features
//!
//! `xla` adds the compiler of that name, and devices. `fft`, `linalg`, `parallel` and `simd` are
//! features of the evaluator. All are on by default. Types are the same without them; a call that
//! needs an absent feature returns an error that names it.
#![forbid(unsafe_code)]

mod analysis;
mod apply;
#[cfg(feature = "ndarray")]
mod arrays;
mod auto;
mod background;
mod cache;
mod compiler;
mod data;
pub mod debug;
mod derivative;
mod device;
mod donation;
mod eager;
mod error;
mod evaluator;
mod expr;
mod forks;
mod function;
mod grad;
mod mesh;
#[cfg(not(feature = "xla"))]
mod no_xla;
#[cfg(feature = "import")]
mod onnx;
mod operand;
mod options;
mod out_of_memory;
mod print;
mod profile;
mod program;
mod signal;
mod stages;
mod stream;
mod sync;
mod tensor;
mod thresholds;
mod trace;
mod tracers;
pub mod vectors;
#[cfg(feature = "xla")]
pub mod xla;

pub use analysis::Analysis;
#[doc(hidden)]
pub use apply::{
    Build, CapturedOperands, Ids, build_entries, called_once, common_dtype, compared_with,
    comparison_scalar, either, element, number_tensor, parameter, resolve, trace_of, try_element,
    vectorized_operands,
};
pub use auto::{Auto, Explanation};
pub use background::run_watched;
pub use cache::{CacheKey, CacheReport, CompilerKey, ExecutableCache, executables};
pub use compiler::{
    CompileRequest, Compiler, CompilerChoice, Executable, ListsRequest, Purpose, RunContext,
    compiler_named, compiler_names, register_compiler,
};
pub use data::Nested;
pub use derivative::Mode;
#[doc(hidden)]
pub use derivative::{Called, Differentiable, LinearMap, Linearized, differentiable};
pub use device::{Device, devices, known_devices};
#[doc(hidden)]
pub use donation::{Donations, covers_leaf, unusable_donations};
#[doc(hidden)]
pub use eager::EagerOp;
pub use error::{Error, ErrorClass, Result};
pub use evaluator::Evaluator;
pub use expr::RawExpr;
#[cfg(feature = "xla")]
#[doc(hidden)]
pub use forks::delay_forks;
#[doc(hidden)]
pub use function::{
    Call, CallMode, Entry, Inputs, JitFunction, ResultVectors, Signature, Static, TracedFunction,
    Tracing, inlining_all, refuse_trace,
};
pub use function::{Conflict, FunctionReport};
#[doc(hidden)]
pub use grad::{Differentiated, values_and_gradients};
pub use mesh::{Mesh, MeshAxes, Sharding};
#[cfg(not(feature = "xla"))]
use no_xla as xla;
#[cfg(not(feature = "xla"))]
pub use no_xla::pjrt;
#[cfg(feature = "import")]
pub use onnx::{build_onnx, load_onnx, read_onnx};
pub use operand::{Operand, Value, View, position};
pub use options::{
    ExecutionTarget, Options, OptionsGuard, Progress, Setting, Settings, default_options,
    global_default_options, graph_options, has_default_options, has_own_options, run_on,
    set_default_options, set_global_default_options, set_reassociate_floats, with_default_options,
};
pub use print::DeviceText;
#[doc(hidden)]
pub use profile::{Span, Work, finish_profile, is_profiled, span, span_with, start_profile};
pub use program::{ExecutableHandle, compile_for, compile_program, run_program};
#[doc(hidden)]
pub use signal::Signal;
#[doc(hidden)]
pub use stages::describe_lines;
pub use stages::{Done, StageExecutor, StageRunner};
pub use stream::StreamError;
#[doc(hidden)]
pub use stream::{
    Capacity, Deferred, Inspect, Outcome, Parts, RawStream, Step, Wait, abandon_streams,
    wait_until_streams_end,
};
pub use tensor::{DeviceTensor, RawTensor};
pub use thresholds::LITERAL_LIMIT_BYTES;
#[doc(hidden)]
pub use trace::Entered;
pub use trace::{Trace, current_compiler, is_tracing};
#[doc(hidden)]
pub use tracers::derivative_depth;
pub use vectors::{VectorAxes, VectorAxis};
#[doc(hidden)]
pub use xla::Divided;

pub use nxla_eval as eval;
pub use nxla_expr as graph;
pub use nxla_expr::{Digest, Program, TensorType};
pub use nxla_grad as gradient;
#[cfg(feature = "import")]
pub use nxla_import as import;
#[cfg(feature = "xla")]
pub use nxla_pjrt as pjrt;
pub use nxla_split as split;
#[cfg(feature = "xla")]
pub use nxla_stablehlo as stablehlo;
pub use nxla_tensor as host;
pub use nxla_tensor::{DType, HostTensor, Number, Scalar, Shape};

/// Resets the state of a child process, on its only thread: cache slots whose creating thread does not
/// exist are reset, and all streams end.
#[doc(hidden)]
pub fn after_fork_in_child() {
    executables().forget_makers();
    stream::orphan_streams();
}
