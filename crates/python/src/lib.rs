//! The compiled module `nxla._core`: classes and functions that the Python package wraps.
//!
//! The module contains no policy. Functions convert their arguments, call the runtime, and convert
//! errors to exceptions. Functions that do no more are public, with their docs and defaults here.
//! `python/nxla` contains the functions that need Python containers.

mod ahead;
mod apply;
mod arrays;
mod attributes;
mod build;
mod call;
mod callable;
mod compiled;
mod compilers;
mod containers;
mod debug;
mod derivative;
mod device;
mod difference;
mod dlpack;
mod dtype;
mod errors;
mod exchange;
mod expected;
mod expr;
mod files;
mod function;
mod gradient;
mod graph;
mod hooks;
mod import;
mod interrupt;
mod lazy;
mod live;
mod method;
mod names;
mod nested;
mod node;
mod notes;
mod numbers;
mod numpy;
mod onnx;
mod operands;
mod ops;
mod options;
mod parts;
mod policy;
mod profile;
mod program;
mod shutdown;
mod signature;
mod source;
mod spmd;
mod stream;
mod strides;
mod template;
mod tensor;
mod tracebacks;
mod value;

use pyo3::prelude::*;

/// The compiled part of `nxla`.
#[pymodule(gil_used = false)]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    errors::register(module)?;
    dtype::register(module)?;
    device::register(module)?;
    tensor::register(module)?;
    expr::register(module)?;
    program::register(module)?;
    template::register(module)?;
    lazy::register(module)?;
    function::register(module)?;
    method::register(module)?;
    call::register(module)?;
    compiled::register(module)?;
    gradient::register(module)?;
    derivative::register(module)?;
    node::register(module)?;
    graph::register(module)?;
    policy::register(module)?;
    stream::register(module)?;
    build::register(module)?;
    options::register(module)?;
    shutdown::register(module)?;
    debug::register(module)?;
    ahead::register(module)?;
    import::register(module)?;
    onnx::register(module)?;
    files::register(module)?;
    live::register(module)?;
    profile::register(module)?;
    spmd::register(module)?;
    numbers::register(module)?;
    operands::register(module)?;
    compilers::register(module)?;
    containers::register(module)?;
    parts::register(module)?;
    source::register(module)?;
    tracebacks::register(module)?;
    ops::register(module)?;
    // The names that `from nxla._core import *` imports.
    let classes = [
        "Compiled",
        "DType",
        "Expr",
        "Expression",
        "Function",
        "Lazy",
        "Node",
        "Stage",
        "StageGraph",
        "Template",
        "Tensor",
    ];
    let public: Vec<&str> = classes.into_iter().chain(ops::public_names()).collect();
    module.setattr("__all__", public)
}
