//! Host functions inside a trace: hooks, which receive values, and runtime calls, which also return
//! values.

use std::io::Write;
use std::panic::Location;
use std::sync::Arc;

use nxla_expr::{Compute, HostError, HostFn, TensorType};
use nxla_tensor::HostTensor;

use super::control::{exprs, replace_leaves};
use crate::containers::{
    Arguments, Container, Leaves, Structure, Tree, difference, leaves_of, leaves_of_arguments,
    trace_of,
};
use crate::expr::Expr;
use crate::tensor::Tensor;
use crate::vectors::VectorAxes;
use crate::{Error, Result};

mod sealed {
    use nxla_expr::HostError;

    /// Restricts [`super::HookResult`] to `()` and results of `()`.
    pub trait Sealed {}

    impl Sealed for () {}
    impl<E: Into<HostError>> Sealed for Result<(), E> {}
}

/// The result of a hook's function: `()`, or an error that ends the program.
///
/// ```
/// use nxla::{Expr, Tensor, hook, jit};
///
/// let checked = jit(|x: Expr| {
///     hook(x, |x: Tensor| match x.item::<f64>() {
///         Ok(x) if x < 0.0 => Err("it is negative"),
///         _ => Ok(()),
///     })
/// });
/// assert_eq!(checked.call(1.0)?.item::<f64>()?, 1.0);
/// assert!(checked.call(-1.0).unwrap_err().to_string().contains("it is negative"));
/// # Ok::<(), nxla::Error>(())
/// ```
pub trait HookResult: sealed::Sealed {
    /// Converts the value to a result.
    ///
    /// # Errors
    /// Returns the error of the function.
    fn into_result(self) -> Result<(), HostError>;
}

impl HookResult for () {
    fn into_result(self) -> Result<(), HostError> {
        Ok(())
    }
}

impl<E: Into<HostError>> HookResult for Result<(), E> {
    fn into_result(self) -> Result<(), HostError> {
        self.map_err(Into::into)
    }
}

/// Passes a container of values to a host function whenever they are computed, and returns the
/// values. Hooks run in program order, even if their results are unused.
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use nxla::{Expr, Tensor, fori, hook, jit};
///
/// static SEEN: AtomicU32 = AtomicU32::new(0);
/// let f = jit(|x: Expr| {
///     fori(0, 3, x, |i, x| {
///         hook(i, |i: Tensor| drop(SEEN.fetch_add(1, Ordering::Relaxed)));
///         x * 2
///     })
/// });
/// assert_eq!(f.call(1)?.item::<f64>()?, 8.0);
/// assert_eq!(SEEN.load(Ordering::Relaxed), 3);
/// # Ok::<(), nxla::Error>(())
/// ```
#[doc(alias = "debug_callback")]
#[track_caller]
pub fn hook<C, R>(value: C, function: impl Fn(C::Tensors) -> R + Send + Sync + 'static) -> C
where
    C: Container,
    R: HookResult,
{
    let shown = shown_as(&value, function);
    with_hook(value, None, Some(shown))
}

/// Returns the host function that passes values in containers like this one.
fn shown_as<C, R>(
    value: &C,
    function: impl Fn(C::Tensors) -> R + Send + Sync + 'static,
) -> Arc<dyn HostFn>
where
    C: Container,
    R: HookResult,
{
    let leaves = leaves_of(value);
    let vectors: Vec<VectorAxes> = leaves.items.iter().map(|leaf| leaf.vectors().clone()).collect();
    let structure = leaves.structure;
    Arc::new(move |values: &[HostTensor]| {
        let values = values.iter().cloned().map(Tensor::from).zip(&vectors);
        let values = values.map(|(data, vectors)| data.with_vectors(vectors.clone()));
        let values: Vec<Tensor> = values.collect::<Result<_>>()?;
        let mut leaves = Leaves::new(values, structure.clone());
        function(Tree::rebuild(&mut leaves)).into_result()
    })
}

/// Passes a container of values to the listener that the caller of the program attaches under a
/// name ([`Jit::hook`](crate::Jit::hook), [`Options::hook`](crate::Options::hook)), if any, and
/// returns the values.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicBool, Ordering};
/// use nxla::{Expr, Tensor, jit, named_hook};
///
/// let called = Arc::new(AtomicBool::new(false));
/// let calls = called.clone();
/// let listen = move |shown: Tensor| calls.store(shown.shape().rank() == 0, Ordering::Relaxed);
/// let f = jit(|x: Expr| named_hook(x * 2, "doubled")).hook("doubled", listen);
/// assert_eq!(f.call(4)?.item::<i32>()?, 8);
/// assert!(called.load(Ordering::Relaxed));
/// # Ok::<(), nxla::Error>(())
/// ```
#[track_caller]
pub fn named_hook<C: Container>(value: C, name: &str) -> C {
    with_hook(value, Some(name), None)
}

/// Does the same as [`named_hook`], with a function that is called if the caller attaches no
/// listener.
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use nxla::{Expr, Tensor, jit, named_hook_or};
///
/// static LOUD: AtomicU32 = AtomicU32::new(0);
/// fn halved(x: Expr) -> Expr {
///     named_hook_or(x / 2, "half", |_: Tensor| drop(LOUD.fetch_add(1, Ordering::Relaxed)))
/// }
/// assert_eq!(jit(halved).call(3f32)?.item::<f64>()?, 1.5);
/// let quiet = jit(halved).hook("half", |_: Tensor| ());
/// assert_eq!(quiet.call(3f32)?.item::<f64>()?, 1.5);
/// assert_eq!(LOUD.load(Ordering::Relaxed), 1);
/// # Ok::<(), nxla::Error>(())
/// ```
#[track_caller]
pub fn named_hook_or<C, R>(
    value: C,
    name: &str,
    function: impl Fn(C::Tensors) -> R + Send + Sync + 'static,
) -> C
where
    C: Container,
    R: HookResult,
{
    let shown = shown_as(&value, function);
    with_hook(value, Some(name), Some(shown))
}

#[track_caller]
fn with_hook<C: Container>(value: C, name: Option<&str>, function: Option<Arc<dyn HostFn>>) -> C {
    replace_leaves(value, Location::caller(), |graph, ids| Ok(graph.hook(ids, name, function)?))
}

/// Prints values with a label to the standard output whenever they are computed, and returns the
/// values.
///
/// ```
/// use nxla::print_value;
/// use nxla::{Expr, jit};
///
/// let f = jit(|x: Expr| print_value(x * 2, "doubled"));
/// assert_eq!(f.call(4)?.item::<i32>()?, 8);
/// # Ok::<(), nxla::Error>(())
/// ```
#[track_caller]
pub fn print_value<C: Container>(value: C, label: &str) -> C {
    let label = label.to_owned();
    let function = move |values: &[HostTensor]| {
        let mut out = std::io::stdout().lock();
        let mut print = |value: &HostTensor| writeln!(out, "{label}: {value}");
        Ok(values.iter().try_for_each(&mut print)?)
    };
    with_hook(value, None, Some(Arc::new(function)))
}

/// Calls a host function with a container of values whenever they are computed, and returns its
/// results: tensors of the types in `results`.
///
/// Like a hook, a call is never merged, dropped, or moved past a hook. A derivative that flows
/// through the call is an error: apply [`stop_grad`](crate::Expr::stop_grad) to the arguments, or
/// define a derivative with [`custom_jvp`](crate::custom_jvp) or
/// [`custom_grad`](crate::custom_grad).
///
/// ```
/// use nxla::{DType, Error, Expr, Tensor, TensorType, jit, runtime_call};
///
/// let f = jit(|x: Expr| -> Expr {
///     let half = |x: Tensor| Ok::<_, Error>(Tensor::from(x.item::<f64>()? as f32 / 2.0));
///     runtime_call(x, TensorType::scalar(DType::F32), half) + 1
/// });
/// assert_eq!(f.call(5)?.item::<f64>()?, 3.5);
/// # Ok::<(), nxla::Error>(())
/// ```
#[doc(alias = "pure_callback")]
#[doc(alias = "io_callback")]
#[track_caller]
pub fn runtime_call<C, R, E>(
    value: C,
    results: impl Arguments<R, TensorType>,
    function: impl Fn(C::Tensors) -> Result<R::Tensors, E> + Send + Sync + 'static,
) -> R
where
    C: Container,
    R: Container,
    E: Into<HostError>,
{
    let location = Location::caller();
    let (leaves, types) = (leaves_of(&value), leaves_of_arguments(results));
    let (count, structure) = (types.items.len(), types.structure.clone());
    let trace = trace_of(&leaves.items);
    let ids = trace.attempt(location, || {
        if leaves.items.iter().any(|leaf| !leaf.vectors().is_empty()) {
            let why = "arguments: must not have vectorized axes; devectorize them first".into();
            return Err(Error::Vectors { function: "runtime_call".into(), why });
        }
        let ids = trace.ids(&leaves.items)?;
        let call = host_function::<C, R, E>(function, leaves.structure.clone(), types.clone());
        trace.build(|graph| graph.runtime_call(&ids, types.items.to_vec(), call))
    });
    let results: Vec<Expr> = match ids {
        Some(ids) => exprs(&trace, ids.into_iter().map(|id| (id, VectorAxes::NONE))).collect(),
        None => vec![Expr::new_failed(&trace); count],
    };
    R::rebuild(&mut Leaves::new(results, structure))
}

/// Returns a function of containers as a function of leaves.
fn host_function<C, R, E>(
    function: impl Fn(C::Tensors) -> Result<R::Tensors, E> + Send + Sync + 'static,
    structure: Structure,
    expected: Leaves<TensorType>,
) -> Arc<dyn HostFn>
where
    C: Container,
    R: Container,
    E: Into<HostError>,
{
    Arc::new(Compute(move |values: &[HostTensor]| {
        let values = values.iter().cloned().map(Tensor::from);
        let values = Tree::rebuild(&mut Leaves::new(values, structure.clone()));
        let found = function(values).map_err(Into::into)?;
        let results = leaves_of(&found);
        if results.structure != expected.structure {
            let expected: R = expected.container()?;
            let difference = difference::<Expr, Tensor>(&expected, &found, ("", "result"));
            return Err(format!("must return the declared structure; got {difference}").into());
        }
        Ok(results.items.iter().map(|tensor| tensor.to_host()).collect::<crate::Result<_>>()?)
    }))
}
