//! Numerical functions over tensors: traced into an expression graph that is printed,
//! differentiated, split into stages, interpreted in-process, or compiled by XLA.
//!
//! ```
//! use nxla::{Expr, Tensor, jit, value_and_grad};
//!
//! let loss = |[w, x]: [Expr; 2]| ((w * x).sin() - 0.5).pow(2).sum();
//! let step = jit(value_and_grad(loss));
//! let w = Tensor::from(vec![1.0f32, 2.0, 3.0]);
//! let x = Tensor::from(vec![0.1f32, 0.2, 0.3]);
//! let (value, [dw, _dx]) = step.call([&w, &x])?;
//! assert_eq!(value.shape().rank(), 0);
//! assert_eq!(dw.shape()[..], [3]);
//! # Ok::<(), nxla::Error>(())
//! ```
//!
//! The default compiler is the evaluator, which needs nothing installed. `jit(f).compiler("xla")`
//! runs the same function through XLA, once a PJRT plugin is found (`pip install xla-cpu-pjrt`
//! brings one for the CPU; see [`xla`]).
//!
//! # Where things are
//!
//! [`Tensor`] is data, on the host or on a device. [`Expr`] is a value inside a [`Trace`].
//! [`Jit`] traces a function for each new signature, hands the [`Program`] to a [`Compiler`], and
//! keeps what it gets. [`Stages`] runs a split program. The layers below are re-exported as
//! modules for those who write passes or compilers of their own.
#![forbid(unsafe_code)]

mod apply;
mod background;
mod cache;
mod compiled;
mod compiler;
mod containers;
mod current;
pub mod debug;
mod error;
mod evaluator;
mod expr;
mod function;
mod jit;
mod operand;
mod ops;
mod options;
mod stages;
pub mod stream;
mod tensor;
mod trace;
mod transform;
pub mod vectors;
pub mod xla;

pub use apply::{AtOnce, Captured, Ids, build_entries, either, number_tensor, resolve, trace_of};
pub use cache::{CacheKey, CacheReport, ExecutableCache, executables};
pub use compiled::Compiled;
pub use compiler::{
    Backend, CompileRequest, Compiler, Executable, RunContext, compiler_named, compiler_names,
    register_compiler,
};
pub use containers::{Arguments, Container, Function, Leaves, Outputs, Tree};
pub use current::{Tracing, current_compiler, tracing_for};
pub use error::{Error, ErrorClass, Result};
pub use evaluator::Evaluator;
pub use expr::Expr;
pub use function::{compile_program, compile_program_watched};
pub use jit::{Jit, jit};
pub use operand::{Operand, Value, View};
pub use ops::*;
pub use options::{
    Options, OptionsGuard, Setting, Settings, default_options, global_default_options,
    has_default_options, set_default_options, set_global_default_options, with_default_options,
};
pub use stages::Stages;
pub use stream::{Receiver, Sender, Stream, stream, stream_with};
pub use tensor::{Device, DeviceTensor, Tensor};
pub use trace::{Gradient, Trace};
pub use transform::{Loss, grad, value_and_grad};
pub use vectors::{VectorAxis, Vectors, vmap};

pub use nxla_eval as eval;
pub use nxla_expr as graph;
pub use nxla_expr::Padding;
pub use nxla_expr::build::{Choice, Covariance, Draw, Norm, OuterPadding};
pub use nxla_expr::{Digest, Program, TensorType};
pub use nxla_grad as gradient;
pub use nxla_pjrt as pjrt;
pub use nxla_split as split;
pub use nxla_stablehlo as stablehlo;
pub use nxla_tensor as host;
pub use nxla_tensor::{DType, HostTensor, Number, Scalar, Shape};
