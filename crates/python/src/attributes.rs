//! The attributes of a node as a Python dict.
//!
//! Compilers written in Python read the dict, so its keys are a public interface: the fields of
//! [`Op`]. Values are numbers, tuples, dtypes, tensors and expressions.

use std::sync::Arc;

use nxla_runtime::default_options;
use nxla_runtime::graph::{
    ArgReduce, Block, Cond, Conv, Dot, Factorization, HookOp, Metadata, Op, Padding, Program,
    Reduce, SliceAttributes, SortAttributes, Start, Transform, TriangularSolve, While,
    WindowAttributes,
};
use nxla_runtime::host::DType;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};

use crate::dtype::PyDType;
use crate::errors::exception;
use crate::notes;
use crate::program::PyExpression;
use crate::template::{LeafType, PyTemplate};
use crate::tensor::{PyTensor, python_number};

/// A dict under construction, and the name of the op.
struct Entries<'py>(Bound<'py, PyDict>, &'static str);

impl<'py> Entries<'py> {
    fn set(&self, name: &str, value: impl IntoPyObject<'py>) -> PyResult<()> {
        self.0.set_item(name, value)
    }

    fn sizes(&self, name: &str, values: &[usize]) -> PyResult<()> {
        self.set(name, PyTuple::new(self.0.py(), values)?)
    }

    fn pairs(&self, name: &str, values: &[(i64, i64)]) -> PyResult<()> {
        self.set(name, PyTuple::new(self.0.py(), values)?)
    }

    fn dtype(&self, dtype: DType) -> PyResult<()> {
        self.set("dtype", PyDType(dtype))
    }

    fn program(&self, name: &str, program: &Arc<Program>) -> PyResult<()> {
        self.set(name, PyExpression::of_region(program.clone(), self.1))
    }
}

/// The attributes of an op.
pub(crate) fn of<'py>(py: Python<'py>, op: &Op) -> PyResult<Bound<'py, PyDict>> {
    let entries = Entries(PyDict::new(py), op.name());
    let set = &entries;
    match op {
        Op::Unary(_) | Op::Binary(_) | Op::Select | Op::Clip | Op::Eye(_) | Op::Cholesky => {}
        Op::Iota(iota) => set.set("axis", iota.axis)?,
        Op::AsType(dtype) | Op::Bitcast(dtype) => set.dtype(*dtype)?,
        Op::Reshape(reshape) => set.sizes("shape", &reshape.shape)?,
        Op::Broadcast(broadcast) => {
            set.sizes("shape", &broadcast.shape)?;
            set.sizes("axes", &broadcast.axes)?;
        }
        Op::Squeeze(axes)
        | Op::Transpose(axes)
        | Op::Reverse(axes)
        | Op::Gather(axes)
        | Op::IndexedAdd(axes)
        | Op::IndexedPut(axes) => set.sizes("axes", axes)?,
        Op::Pad(padding) => pad(set, padding)?,
        Op::Concatenate(axis) => set.set("axis", axis)?,
        Op::Stack(stack) => set.set("axis", stack.axis)?,
        Op::Reduce(_, reduce) => reduction(set, reduce)?,
        Op::ArgReduce(_, reduce) => arg_reduction(set, reduce)?,
        Op::ReduceFun(fun) => {
            reduction(set, &fun.reduce)?;
            set.program("function", &fun.function)?;
        }
        Op::Window(_, windows) | Op::WindowScatter(_, windows) => window(set, windows)?,
        Op::WindowFun(fun) => {
            window(set, &fun.window)?;
            set.program("function", &fun.function)?;
        }
        Op::Dot(product) => dot(set, product)?,
        Op::Conv(product) => conv(set, product)?,
        Op::Slice(range) => slice(set, range)?,
        Op::PutSlice(first) => starts(set, first)?,
        Op::Sort(order) => sort(set, order)?,
        Op::Argsort(order, dtype) => {
            sort(set, order)?;
            set.dtype(*dtype)?;
        }
        Op::Fft(fft) => {
            set.set("length", fft.length)?;
            set.set("axis", fft.axis)?;
        }
        Op::TriangularSolve(solve) => triangular_solve(set, solve)?,
        Op::Factorize(factorization) => factorization_choice(set, *factorization)?,
        Op::Parameter(parameter) => set.set("index", parameter.index)?,
        Op::Constant(constant) => {
            set.set("value", python_number(py, constant.literal(), constant.ty.dtype)?)?;
        }
        Op::Tensor(literal) => {
            set.set("value", PyTensor::wrap(py, (*literal.0).clone().into())?)?;
        }
        Op::Metadata(notes) => metadata(set, notes)?,
        Op::Elem(index) => set.set("index", index)?,
        Op::Cond(branches) => cond(set, branches)?,
        Op::While(repeat) => while_loop(set, repeat)?,
        Op::Hook(hook) => {
            set.set("name", hook.name.as_deref())?;
            set.set("function", shower(py, hook)?)?;
            if let Some(types) = &hook.results {
                let templates =
                    types.iter().map(|ty| Bound::new(py, PyTemplate(LeafType::of(ty.clone()))));
                set.set("results", templates.collect::<PyResult<Vec<_>>>()?)?;
            }
        }
        Op::Block(composite) => block(set, composite)?,
    }
    Ok(entries.0)
}

fn pad(set: &Entries<'_>, padding: &[Padding]) -> PyResult<()> {
    let axes = padding.iter().map(|axis| (axis.low, axis.high, axis.interior));
    set.set("config", PyTuple::new(set.0.py(), axes.collect::<Vec<_>>())?)
}

fn reduction(set: &Entries<'_>, reduce: &Reduce) -> PyResult<()> {
    match &reduce.axes {
        Some(axes) => set.sizes("axes", axes)?,
        None => set.set("axes", None::<usize>)?,
    }
    set.set("keep_axes", reduce.keep_axes)
}

fn arg_reduction(set: &Entries<'_>, reduce: &ArgReduce) -> PyResult<()> {
    set.set("axis", reduce.axis)?;
    set.set("keep_axis", reduce.keep_axis)?;
    set.set("tie_break", if reduce.tie_high { "high" } else { "low" })?;
    set.dtype(reduce.dtype)
}

fn window(set: &Entries<'_>, window: &WindowAttributes) -> PyResult<()> {
    set.sizes("dimensions", &window.dimensions)?;
    set.sizes("strides", &window.strides)?;
    set.pairs("padding", &window.padding)?;
    set.sizes("dilations", &window.dilations)
}

fn dot(set: &Entries<'_>, dot: &Dot) -> PyResult<()> {
    set.sizes("left_contract", &dot.left_contract)?;
    set.sizes("left_batch", &dot.left_batch)?;
    set.sizes("right_contract", &dot.right_contract)?;
    set.sizes("right_batch", &dot.right_batch)
}

fn conv(set: &Entries<'_>, conv: &Conv) -> PyResult<()> {
    set.sizes("strides", &conv.strides)?;
    set.pairs("padding", &conv.padding)?;
    set.sizes("input_dilation", &conv.input_dilation)?;
    set.sizes("kernel_dilation", &conv.kernel_dilation)?;
    set.set("feature_groups", conv.feature_groups)?;
    set.set("batch_groups", conv.batch_groups)?;
    set.sizes("input_permutation", &conv.input_permutation)?;
    set.sizes("kernel_permutation", &conv.kernel_permutation)?;
    set.sizes("output_permutation", &conv.output_permutation)
}

fn slice(set: &Entries<'_>, slice: &SliceAttributes) -> PyResult<()> {
    starts(set, &slice.starts)?;
    set.sizes("lengths", &slice.lengths)?;
    set.sizes("strides", &slice.strides)
}

/// Adds one start for each axis; a start that is an operand becomes None.
fn starts(set: &Entries<'_>, starts: &[Start]) -> PyResult<()> {
    let starts = starts.iter().map(|start| match start {
        Start::Static(index) => Some(*index),
        Start::Dynamic => None,
    });
    set.set("starts", PyTuple::new(set.0.py(), starts.collect::<Vec<_>>())?)
}

fn sort(set: &Entries<'_>, sort: &SortAttributes) -> PyResult<()> {
    set.set("axis", sort.axis)?;
    set.set("descending", sort.descending)?;
    set.set("stable", sort.stable)
}

fn factorization_choice(set: &Entries<'_>, factorization: Factorization) -> PyResult<()> {
    match factorization {
        Factorization::Lu | Factorization::Eigh => Ok(()),
        Factorization::Qr { complete } => {
            set.set("mode", if complete { "complete" } else { "reduced" })
        }
        Factorization::Svd { full } => set.set("full_matrices", full),
    }
}

fn triangular_solve(set: &Entries<'_>, solve: &TriangularSolve) -> PyResult<()> {
    set.set("lower", solve.lower)?;
    set.set("left_side", solve.left_side)?;
    let transform = match solve.transform {
        Transform::None => "none",
        Transform::Transpose => "transpose",
        Transform::Conjugate => "conjugate",
    };
    set.set("transform", transform)
}

fn metadata(set: &Entries<'_>, metadata: &Metadata) -> PyResult<()> {
    set.set("inspect", metadata.inspect.as_deref())?;
    set.set("stop_grad", metadata.stop_grad)?;
    set.set("notes", notes::dict_of(set.0.py(), &metadata.notes)?)?;
    if let Some(custom) = &metadata.custom_grad {
        // The following operands are used only by the derivative.
        set.set("outputs", custom.outputs)?;
        set.set("inputs", custom.inputs)?;
        set.program("gradient", &custom.program)?;
    }
    Ok(())
}

fn cond(set: &Entries<'_>, cond: &Cond) -> PyResult<()> {
    let clauses = cond.clauses.iter().map(|(predicate, body)| {
        let predicate = PyExpression::of_region(predicate.clone(), set.1);
        (predicate, PyExpression::of_region(body.clone(), set.1))
    });
    set.set("clauses", PyTuple::new(set.0.py(), clauses.collect::<Vec<_>>())?)?;
    set.program("otherwise", &cond.otherwise)
}

fn while_loop(set: &Entries<'_>, repeat: &While) -> PyResult<()> {
    set.set("state", repeat.state)?;
    set.set("gradient", repeat.replay.method.name())?;
    set.set("gradient_bytes", repeat.replay.bytes)?;
    set.program("condition", &repeat.condition)?;
    set.program("body", &repeat.body)
}

fn block(set: &Entries<'_>, block: &Block) -> PyResult<()> {
    set.set("name", block.name())?;
    let attributes = PyDict::new(set.0.py());
    for (name, value) in block.attributes() {
        attributes.set_item(&*name, value)?;
    }
    set.set("attributes", attributes)?;
    set.program("body", &block.body)
}

/// A function that calls the listener of a hook: the function of the current run for the hook's
/// name, or else the hook's own function.
fn shower<'py>(py: Python<'py>, hook: &HookOp) -> PyResult<Bound<'py, PyCFunction>> {
    let hook = hook.clone();
    let show = move |args: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| -> PyResult<()> {
        let name = hook.name.as_deref();
        let installed = name.and_then(|name| default_options().hooks.get(name).cloned());
        let Some(listener) = hook.listener(installed.as_ref(), &[]) else { return Ok(()) };
        let tensors = args.iter().map(|tensor| {
            let tensor = tensor.cast::<PyTensor>()?;
            tensor.get().host(args.py())
        });
        let tensors = tensors.collect::<PyResult<Vec<_>>>()?;
        let called = listener.call(&tensors);
        called.map_err(|error| exception(nxla_runtime::Error::Hook { name: None, error }))
    };
    PyCFunction::new_closure(py, None, None, show)
}
