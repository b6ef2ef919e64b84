//! Numerical functions over tensors: traced into an expression graph that can be printed,
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
//! The default compiler is the evaluator, which needs no installation. `jit(f).compiler("xla")`
//! runs the same function with XLA, if a PJRT plugin is installed (`pip install
//! fastatomstruct-xla-cpu` installs one for CPUs; see [`xla`]).
//!
//! # Derivatives
//!
//! Transformations of functions can be nested in any order. The
//! [guide](https://github.com/nxla/nxla/blob/main/docs/guide/derivatives.md) lists their cost.
//!
//! ```
//! use nxla::{Expr, Keep, Tensor, checkpoint, grad, hvp, jit, jvp};
//!
//! let f = |x: Expr| (x.sin() * &x).sum();
//! let derivatives = jit(move |x: Expr, v: Expr| {
//!     let (_, along) = jvp(f)(x.clone(), v.clone());
//!     let frugal = grad(checkpoint(f, Keep::Nothing))(x.clone());
//!     (along, hvp(f)(x, v), frugal)
//! });
//! let (x, v) = (Tensor::from(vec![0.0f32, 0.0]), Tensor::from(vec![1.0f32, 3.0]));
//! let (along, product, gradient) = derivatives.call((&x, &v))?;
//! assert_eq!((along.item::<f64>()?, product.to_vec::<f32>()?), (0.0, vec![2.0, 6.0]));
//! assert_eq!(gradient.to_vec::<f32>()?, [0.0, 0.0]);
//! # Ok::<(), nxla::Error>(())
//! ```
//!
//! # Structs
//!
//! Functions accept and return containers: tuples, arrays, lists, options, boxes, ordered maps, and
//! user-defined structs that are generic in their leaves. [`Tree`] has functions over the leaves.
//!
//! ```
//! use nxla::prelude::*;
//!
//! #[derive(Container)]
//! struct Line<T> {
//!     slope: T,
//!     offset: T,
//!     #[container(skip)]
//!     rate: f32,
//! }
//!
//! let step = jit(|line: Line<Expr>, x: Expr, y: Expr| {
//!     let loss = |l: Line<Expr>| (l.slope * &x + l.offset - &y).pow(2).mean();
//!     let slopes = grad(loss)(line.map(Expr::clone));
//!     line.zip(&slopes, |p, g| p - g * line.rate)
//! });
//! let mut line = Line { slope: Tensor::from(0f32), offset: Tensor::from(0f32), rate: 0.1 };
//! for _ in 0..200 {
//!     line = step.call((&line, Tensor::from([0f32, 1.0, 2.0]), Tensor::from([1f32, 3.0, 5.0])))?;
//! }
//! assert!((line.slope.item::<f32>()? - 2.0).abs() < 0.05);
//! # Ok::<(), nxla::Error>(())
//! ```
//!
//! # Errors
//!
//! Operators and methods of an expression never panic: the trace records the first error with its
//! source line, and the call returns it. [`Error::class`] returns the kind of an error, and
//! [`Error::user_error`] the error of a user-defined function.
//!
//! ```
//! use nxla::{ErrorClass, Expr, Tensor, jit};
//!
//! let error = jit(|x: Expr| x.at(3).sum()).call(Tensor::from([1, 2])).unwrap_err();
//! assert_eq!(error.class(), ErrorClass::Argument);
//! assert!(error.to_string().contains("must be inside axis 0 of size 2; got 3"));
//! ```
//!
//! # Threads and asynchronous code
//!
//! Tensors, jitted functions and streams can be used from any thread. On a device, results may
//! still be under computation when a call returns: reading waits, [`ready()`] and `tensor.await`
//! wait without blocking a thread in any executor, and [`on_ready`](runtime::RawTensor::on_ready)
//! calls a callback. A [`stream()`] keeps a state between chunks, and its two halves can be used by
//! two threads.
//!
//! # Placement
//!
//! [`Jit::compiler`] and [`Jit::device`] determine where a function runs. By default, it runs where
//! its arguments are, and its results stay there; [`devices`] lists the devices.
//!
//! # In debug builds
//!
//! The kernels of the evaluator are about thirty times slower without optimization. Two lines in
//! `Cargo.toml` optimize dependencies only:
//!
//! ```toml
//! [profile.dev.package."*"]
//! opt-level = 3
//! ```
//!
//! # Features
//!
//! These features are enabled by default. They do not change any types.
//!
//! * `xla`: the compiler `"xla"`, and the devices of its plugins. Without it, the compiler is an
//!   error that names the feature.
//! * `linalg`: fast matrix products and factorizations on the evaluator, by faer. Without it,
//!   products are slower, and factorizations are programs of simpler operations.
//! * `fft`: Fourier transforms on the evaluator. Without it, a run is an error that names the feature.
//! * `parallel`: multithreading in the evaluator.
//! * `simd`: kernels of the evaluator for AVX2 and AVX-512, selected by the machine at run time.
//!
//! These features add functions and modules:
//!
//! * `import`: programs of StableHLO and ONNX become expressions (module `import`).
//! * `ndarray`: conversions from and to arrays of the crate `ndarray`.
//! * `io`: files of NumPy and safetensors (module `io`).
//! * `serde`: `Serialize` and `Deserialize` for tensors and states of optimizers, and for programs as
//!   bytes.
//!
//! # Where things are
//!
//! [`prelude`] exports the items that most programs need. [`Tensor`] is data on the host or on a
//! device. [`Expr`] is a value inside a [`Trace`]. [`Jit`] traces a function for each new
//! signature, passes the [`Program`] to a [`Compiler`], and caches the executable. [`Stages`] runs
//! a split function. The modules [`graph`], [`split`] and [`runtime`] are the layers below, for
//! authors of passes, compilers and executors.
#![forbid(unsafe_code)]

// The derive macro refers to this crate by name.
extern crate self as nxla;

mod apply;
#[cfg(feature = "ndarray")]
mod arrays;
mod backend;
mod chain;
mod compiled;
mod containers;
mod donation;
mod expr;
#[cfg(feature = "import")]
pub mod import;
pub mod initializers;
#[cfg(feature = "io")]
pub mod io;
mod jit;
#[cfg(doc)]
pub mod names;
mod numbers;
mod ops;
pub mod optim;
mod partitions;
pub mod prelude;
mod program;
mod ready;
pub mod sharding;
mod stages;
pub mod stream;
mod tensor;
pub mod testing;
mod transform;
pub mod vectors;
#[cfg(feature = "serde")]
pub mod wire;

pub use backend::{backend_copy, backend_deallocate, backend_transfer};
pub use chain::Chain;
pub use compiled::Compiled;
pub use containers::{Arguments, Container, Function, Leaves, Outputs, StaticValue, Tree};
pub use donation::{Donation, UnusableDonation};
pub use expr::{Concrete, Expr};
pub use jit::{BoxedJit, Jit, jit};
pub use numbers::{IntoNames, Item};
pub use nxla_derive::Container;
pub use ops::{
    Arg, Axis, Convolution, HookResult, Index, Indices, Leftover, NewAxis, Over, Pool, Quantile,
    QuantileMethod, RunningNorm, Segment, Side, Slice, Sort, Triangular, When, Window, annotate,
    block, checkpoint, cond, custom_grad, custom_jvp, fori, fori_with, hook, if_, map, metadata,
    named_hook, named_hook_or, print_value, runtime_call, scan, scan_reverse, scan_times,
    scan_with, when, while_loop, while_loop_with,
};
pub use program::call_program;
pub use ready::{Ready, ready};
pub use sharding::{Mesh, ShardedFunction, ShardedTensor, Sharding};
pub use stages::Stages;
pub use stream::{AsyncReceiver, Receiver, Sender, Stream, stream, stream_with};
pub use tensor::Tensor;
pub use transform::{
    Loss, grad, hessian, hessian_diagonal, hvp, jacfwd, jacobian, jacrev, jvp, linearize,
    safe_where, value_and_grad, vjp,
};
pub use vectors::{VectorAxes, VectorAxis, vmap};

/// The untyped layer below this crate, for authors of compilers and executors.
pub mod runtime {
    pub use nxla_runtime::{
        Analysis, CompilerKey, Done, Mode, RawExpr, RawTensor, StageRunner, run_program,
    };
}

#[cfg(feature = "xla")]
pub use nxla_runtime::xla;
pub use nxla_runtime::{
    Auto, CacheKey, CacheReport, CompileRequest, Compiler, CompilerChoice, Conflict, Device,
    DeviceTensor, Error, ErrorClass, Evaluator, Executable, ExecutableCache, ExecutableHandle,
    ExecutionTarget, Explanation, ListsRequest, Operand, Options, OptionsGuard, Purpose, Result,
    RunContext, Setting, Settings, StageExecutor, StreamError, Trace, Value, View, compile_for,
    compile_program, compiler_named, compiler_names, current_compiler, debug, default_options,
    devices, executables, global_default_options, has_default_options, is_tracing, known_devices,
    register_compiler, run_on, set_default_options, set_global_default_options,
    with_default_options,
};
#[cfg(feature = "xla")]
#[doc(hidden)]
pub use nxla_runtime::{pjrt, stablehlo};

#[doc(hidden)]
pub use nxla_eval as eval;
pub use nxla_expr as graph;
pub use nxla_expr::build::{Choice, Covariance, Draw, FftNorm, Norm, OuterPadding};
pub use nxla_expr::{Digest, Program, TensorType};
pub use nxla_expr::{Keep, Padding, Replay, ReplayMethod};
#[doc(hidden)]
pub use nxla_grad as gradient;
pub use nxla_split as split;
#[doc(hidden)]
pub use nxla_tensor as host;
#[cfg(feature = "ndarray")]
pub use nxla_tensor::ndarray;
pub use nxla_tensor::{
    AxisName, Complex, DType, Element, HostTensor, Kind, ListElement, Names, Number, Scalar, Shape,
    bf16, f16,
};
