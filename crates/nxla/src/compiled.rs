//! Functions that are compiled for fixed argument types.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use nxla_expr::{Program, TensorType};
use nxla_runtime::{self as runtime, Options};

use crate::Result;
use crate::containers::{Arguments, Container, Leaves, container_of_tensors, leaves_of_arguments};
use crate::jit::{Entry, InterruptFn, as_interrupt};
use crate::tensor::Tensor;

/// A function compiled for fixed argument types; created by [`Jit::compile`](crate::Jit::compile).
///
/// Unlike a [`Jit`](crate::Jit), a call never traces or compiles: arguments of other types are an
/// error. Clones share the compiled program.
///
/// ```
/// use nxla::{DType, Expr, Tensor, TensorType, jit};
///
/// let f = jit(|x: Expr| x * 2).compile(TensorType::new(DType::S32, [2]))?;
/// assert_eq!(f.call(Tensor::from([1, 2]))?.to_vec::<i32>()?, [2, 4]);
/// assert!(f.call(Tensor::from([1, 2, 3])).is_err());
/// # Ok::<(), nxla::Error>(())
/// ```
pub struct Compiled<Inputs, Results> {
    entry: Arc<Entry>,
    types: Leaves<TensorType>,
    options: Options,
    interrupt: Option<Arc<InterruptFn>>,
    containers: PhantomData<fn(Inputs) -> Results>,
}

impl<Inputs, Results> Clone for Compiled<Inputs, Results> {
    fn clone(&self) -> Self {
        Self {
            entry: self.entry.clone(),
            types: self.types.clone(),
            options: self.options.clone(),
            interrupt: self.interrupt.clone(),
            containers: PhantomData,
        }
    }
}

impl<Inputs, Results> Compiled<Inputs, Results> {
    pub(crate) fn new(
        entry: Arc<Entry>,
        types: Leaves<TensorType>,
        options: Options,
        interrupt: Option<Arc<InterruptFn>>,
    ) -> Self {
        Self { entry, types, options, interrupt, containers: PhantomData }
    }

    /// Returns the program. Large tensors that the function captures are its last inputs.
    ///
    /// ```
    /// use nxla::{DType, Expr, TensorType, jit};
    ///
    /// let f = jit(|x: Expr| x.sin()).compile(TensorType::scalar(DType::F32))?;
    /// assert_eq!(f.program().inputs(), [TensorType::scalar(DType::F32)]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    pub fn program(&self) -> &Program {
        self.entry.program()
    }
}

impl<Inputs: Container, Results: Container> Compiled<Inputs, Results> {
    /// Runs the function on tensors, as [`Jit::call`](crate::Jit::call) does. Missing axis names in
    /// arguments or types are compatible with any names.
    ///
    /// ```
    /// use nxla::{DType, Expr, TensorType, jit};
    ///
    /// let f = jit(|x: Expr| x * 2).compile(TensorType::scalar(DType::S32))?;
    /// assert_eq!(f.call(4)?.item::<i32>()?, 8);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error in a trace, for arguments of other types or on another device, and the errors
    /// of the run.
    pub fn call(&self, arguments: impl Arguments<Inputs, Tensor>) -> Result<Results::Tensors> {
        runtime::refuse_trace(self.program().name().unwrap_or("call"))?;
        let leaves = leaves_of_arguments(arguments);
        self.types.check::<Inputs>(&leaves, "call", "argument")?;
        let inputs: Vec<&runtime::RawTensor> =
            leaves.items.iter().map(|tensor| &**tensor).collect();
        let interrupt = as_interrupt(self.interrupt.as_deref());
        let results = self.entry.run(None, &inputs, &self.options, interrupt)?;
        Ok(container_of_tensors(results, self.entry.results()))
    }
}

impl<Inputs, Results> fmt::Debug for Compiled<Inputs, Results> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compiled")
            .field("types", &self.types.items)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
