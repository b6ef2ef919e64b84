//! Jitted functions: traced once for each signature, compiled, and run.

use std::fmt;
use std::marker::PhantomData;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

use nxla_eval::Interrupt;
use nxla_expr::{Node, Program, TensorType};
use nxla_runtime::{
    self as runtime, CallMode, CompilerChoice, Conflict, Device, Donations, Error, Explanation,
    Inputs, Options, Purpose, Result, Setting, Tracing, VectorAxes,
};
use nxla_split::{Decision, Policy, SplitError, StageGraph, split};
use nxla_tensor::HostTensor;
use smallvec::SmallVec;

use crate::compiled::Compiled;
use crate::containers::{
    AnyStatic, Arguments, Container, Function, Leaves, Structure, Tree, container_of_tensors,
    leaves_of, leaves_of_arguments,
};
use crate::donation::{Donation, UnusableDonation, argument_paths, donated_inputs};
use crate::expr::Expr;
use crate::ops::HookResult;
use crate::stages::Stages;
use crate::tensor::Tensor;

/// Wraps a function of expressions so that it runs on tensors.
///
/// The function has one to twelve [containers](crate::Container) of expressions as arguments and
/// returns one. It is traced at the first call, and again for each new signature: dtypes, shapes
/// and names of the arguments, lengths of lists, static values, compiler and settings.
///
/// ```
/// use nxla::{Expr, Tensor, jit};
///
/// let norm = jit(|x: Expr| (&x * &x).sum().sqrt());
/// let length = norm.call(Tensor::from(vec![3.0f32, 4.0]))?;
/// assert_eq!(length.item::<f64>()?, 5.0);
///
/// let line = jit(|(slope, offset): (Expr, Expr), x: Expr| slope * x + offset);
/// let parameters = (Tensor::from(2.0f32), Tensor::from(1.0f32));
/// assert_eq!(line.call((&parameters, 3.0f32))?.item::<f64>()?, 7.0);
/// # Ok::<(), nxla::Error>(())
/// ```
pub fn jit<F, Inputs>(function: F) -> Jit<F, Inputs>
where
    F: Function<Inputs>,
{
    Jit {
        function,
        core: new_core(Options::default(), None),
        conflict: None,
        count: F::COUNT,
        donated: Vec::new(),
        unusable: UnusableDonation::default(),
        interrupt: None,
        inputs: PhantomData,
    }
}

/// Wraps a function of a method that computes with tensors, which also runs while another function
/// is traced.
pub(crate) fn jit_separately<F, Inputs>(function: F) -> Jit<F, Inputs>
where
    F: Function<Inputs>,
{
    jit(function).on_conflict(Conflict::Force)
}

/// A callback that returns whether to cancel.
pub(crate) type InterruptFn = dyn Fn() -> bool + Send + Sync;

/// The runtime's record of a function, with its static values and the structures of its results.
type Core = runtime::JitFunction<AnyStatic, Structure>;

/// A compiled signature.
pub(crate) type Entry = runtime::Entry<Structure>;

fn new_core(options: Options, conflict: Option<Conflict>) -> Core {
    let conflict = conflict.unwrap_or_else(|| Conflict::without_loss(&options));
    Core::new("call", options, conflict)
}

/// A function created by [`jit`].
///
/// ```
/// use nxla::{Expr, Tensor, jit};
///
/// let double = jit(|x: Expr| x * 2);
/// assert_eq!(double.call(4)?.item::<i32>()?, 8);
/// assert_eq!(double.call(Tensor::from([1.5f32]))?.to_vec::<f32>()?, [3.0]);
/// # Ok::<(), nxla::Error>(())
/// ```
pub struct Jit<F, Inputs> {
    function: F,
    pub(crate) core: Core,
    /// The choice of [`Jit::on_conflict`].
    conflict: Option<Conflict>,
    /// The number of arguments.
    count: usize,
    /// The arguments, and parts of arguments, whose memory results may reuse.
    donated: Vec<Donation>,
    unusable: UnusableDonation,
    pub(crate) interrupt: Option<Arc<InterruptFn>>,
    inputs: PhantomData<fn(Inputs)>,
}

/// Describes arguments to the runtime.
pub(crate) fn call_of(arguments: Leaves<Tensor>) -> runtime::Call<AnyStatic> {
    let mut call = runtime::Call::default();
    arguments.items.into_iter().for_each(|tensor| call.tensor(tensor.into_inner()));
    arguments.structure.describe(&mut call);
    call
}

/// Describes the first arguments by their types, and the others with their values.
pub(crate) fn call_of_types(
    types: &[TensorType],
    tensors: impl IntoIterator<Item = runtime::RawTensor>,
    structure: &Structure,
) -> runtime::Call<AnyStatic> {
    let mut call = runtime::Call::default();
    types.iter().for_each(|ty| call.template(ty, &VectorAxes::NONE));
    tensors.into_iter().for_each(|tensor| call.tensor(tensor));
    structure.describe(&mut call);
    call
}

/// Describes arguments by their types.
pub(crate) fn template_of(types: &Leaves<TensorType>) -> runtime::Call<AnyStatic> {
    call_of_types(&types.items, [], &types.structure)
}

impl<F, Inputs> Jit<F, Inputs> {
    /// Sets the compiler, by name or as an object.
    ///
    /// ```
    /// use nxla::{Expr, jit};
    ///
    /// let double = jit(|x: Expr| x * 2).compiler("evaluator");
    /// assert_eq!(double.call(4)?.item::<i32>()?, 8);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn compiler(self, compiler: impl Into<CompilerChoice>) -> Self {
        self.with(|options| options.compiler(compiler))
    }

    /// Sets an option of the compiler.
    ///
    /// ```
    /// use nxla::{Expr, jit};
    ///
    /// let wrong = jit(|x: Expr| x * 2).compiler("evaluator").set("speed", 11);
    /// assert!(wrong.call(4).unwrap_err().to_string().contains("no option \"speed\""));
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn set(self, name: &str, value: impl Into<Setting>) -> Self {
        self.with(|options| options.set(name, value))
    }

    /// Sets the device.
    ///
    /// ```
    /// use nxla::{Device, Expr, jit};
    ///
    /// let double = jit(|x: Expr| x * 2).device(Device::HOST);
    /// assert_eq!(double.call(4)?.device(), Device::HOST);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn device(self, device: Device) -> Self {
        self.with(|options| options.device(device))
    }

    /// Attaches a host function to the hooks with a name. The function gets the values in the container
    /// that its argument declares; a list takes all remaining values. A hook that shows another number
    /// of values is an error of the call, and so is a container with two lists, map keys or static
    /// values, which a number of values does not determine.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicI32, Ordering};
    /// use nxla::{Expr, Tensor, jit, named_hook};
    ///
    /// let seen = Arc::new(AtomicI32::new(0));
    /// let sum = seen.clone();
    /// let add = move |(x, [y, z]): (Tensor, [Tensor; 2])| {
    ///     let total = x.item::<i32>()? + y.item::<i32>()? + z.item::<i32>()?;
    ///     sum.fetch_add(total, Ordering::Relaxed);
    ///     Ok::<_, nxla::Error>(())
    /// };
    /// let f = jit(|x: Expr| named_hook((x.clone(), [&x * 2, &x * 3]), "multiples").0);
    /// f.hook("multiples", add).call(4)?;
    /// assert_eq!(seen.load(Ordering::Relaxed), 24);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn hook<C, R>(self, name: &str, function: impl Fn(C) -> R + Send + Sync + 'static) -> Self
    where
        C: Tree<Tensor>,
        R: HookResult,
    {
        let host = move |values: &[HostTensor]| {
            let container = Leaves::container_of(values.iter().cloned().map(Tensor::from));
            let container: C = container.ok_or_else(|| {
                let count = values.len();
                format!("container: must hold the {count} values that the hook shows")
            })?;
            function(container).into_result()
        };
        self.with(|options| options.hook(name, host))
    }

    /// Returns the options of this function.
    pub(crate) fn options(&self) -> &Options {
        self.core.options()
    }

    /// Returns whether arguments are donated.
    pub(crate) fn donates(&self) -> bool {
        !self.donated.is_empty()
    }

    /// Returns the mode of a call on this thread.
    pub(crate) fn call_mode(&self) -> Result<CallMode> {
        self.core.call_mode()
    }

    fn with(self, change: impl FnOnce(Options) -> Options) -> Self {
        let options = change(self.core.options().clone());
        Self { core: new_core(options, self.conflict), ..self }
    }

    /// Chooses what happens while another function is traced on the thread. With
    /// [`Conflict::Reuse`], [`Jit::join`] makes the function part of that trace; it is the default of a
    /// function without options. With [`Conflict::Force`], [`Jit::call`] runs the function separately
    /// on tensors. [`Conflict::Raise`] refuses both; it is the default of a function with options,
    /// which joining would lose.
    ///
    /// ```
    /// use nxla::{Conflict, Expr, jit};
    ///
    /// let inner = jit(|x: Expr| x * 2).on_conflict(Conflict::Force);
    /// let outer = jit(move |x: Expr| inner.call(4).map(|eight| x + eight));
    /// assert_eq!(outer.call(1)?.item::<i32>()?, 9);
    /// let refuses = jit(|x: Expr| x * 2).on_conflict(Conflict::Raise);
    /// assert!(jit(move |x: Expr| refuses.join(x)).call(1).is_err());
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn on_conflict(self, conflict: Conflict) -> Self {
        let core = new_core(self.core.options().clone(), Some(conflict));
        Self { core, conflict: Some(conflict), ..self }
    }

    /// Lets results reuse the memory of arguments, by index, or of parts of arguments, by path; see
    /// [`Donation`]. A call without such an argument is an error.
    ///
    /// A call first checks its settings and arguments. An accepted call takes the donated tensors on
    /// devices that the function uses, even if the run fails; a rejected call donates nothing. The same
    /// tensor must not be passed again in another argument: the error names both arguments. Tensors on
    /// the host are never donated.
    ///
    /// ```
    /// use nxla::{Expr, Tensor, jit};
    ///
    /// let step = jit(|state: [Expr; 2], x: Expr| state.map(|each| each + &x)).donate([0]);
    /// let state = [Tensor::from([1.0f32, 2.0]), Tensor::from([3.0f32, 4.0])];
    /// let [first, second] = step.call((state, 1.0f32))?;
    /// assert_eq!((first.to_vec::<f32>()?, second.to_vec::<f32>()?), (vec![2.0, 3.0], vec![4.0, 5.0]));
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn donate<D: Into<Donation>>(self, arguments: impl IntoIterator<Item = D>) -> Self {
        let core = new_core(self.core.options().clone(), self.conflict);
        Self { core, donated: arguments.into_iter().map(Into::into).collect(), ..self }
    }

    /// Sets the handling of unusable donations.
    ///
    /// ```
    /// use nxla::{Expr, Tensor, UnusableDonation, jit};
    ///
    /// let sum = jit(|x: Expr| x.sum()).donate([0]).on_unusable_donation(UnusableDonation::Raise);
    /// let error = sum.call(Tensor::from([1.0f32, 2.0])).unwrap_err().to_string();
    /// assert!(error.starts_with("donate: no result can reuse the memory of 0 (f32[2])"));
    /// ```
    #[must_use]
    pub fn on_unusable_donation(self, unusable: UnusableDonation) -> Self {
        let core = new_core(self.core.options().clone(), self.conflict);
        Self { core, unusable, ..self }
    }

    /// Sets a callback that is polled while a call compiles or runs: at each step of the evaluator,
    /// and about twenty times per second while XLA compiles or runs a program with loops or hooks.
    /// If the callback returns `true`, the call ends with
    /// [`EvalError::Interrupted`](nxla_eval::EvalError::Interrupted); XLA continues in the
    /// background. The callback is not polled for programs that run asynchronously.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicBool, Ordering};
    /// use nxla::{Expr, jit, while_loop};
    ///
    /// let stop = Arc::new(AtomicBool::new(false));
    /// let asked = stop.clone();
    /// let forever = jit(|x: Expr| while_loop(x, |_| Expr::of(true), |x| x + 1))
    ///     .interrupt(move || asked.load(Ordering::Relaxed));
    /// let timer = std::thread::spawn(move || {
    ///     std::thread::sleep(std::time::Duration::from_millis(20));
    ///     stop.store(true, Ordering::Relaxed);
    /// });
    /// assert!(forever.call(0).unwrap_err().to_string().contains("interrupted"));
    /// # timer.join().expect("it does not panic");
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn interrupt(self, asked: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { interrupt: Some(Arc::new(asked)), ..self }
    }

    /// Returns the wrapped function.
    ///
    /// ```
    /// use nxla::{Expr, jit};
    ///
    /// let double = jit(|x: Expr| x * 2);
    /// let again = jit(move |x: Expr| double.function()(x) + 1);
    /// assert_eq!(again.call(4)?.item::<i32>()?, 9);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    pub fn function(&self) -> &F {
        &self.function
    }
}

/// A jitted function with a type that can be named: of a container, or a tuple of several, and of
/// the returned container. [`Jit::boxed`] creates one.
///
/// ```
/// use nxla::prelude::*;
/// use nxla::BoxedJit;
///
/// struct Model {
///     predict: BoxedJit<(Expr, Expr), Expr>,
/// }
///
/// let model = Model { predict: jit(|weights: Expr, x: Expr| weights.dot(x)).boxed() };
/// let weights = Tensor::from([1.0f32, 2.0]);
/// assert_eq!(model.predict.call((&weights, &weights))?.item::<f32>()?, 5.0);
/// # Ok::<(), nxla::Error>(())
/// ```
pub type BoxedJit<Arguments, Results> =
    Jit<Box<dyn Fn(Arguments) -> Result<Results> + Send + Sync>, (Arguments,)>;

impl<F: Function<Types>, Types> Jit<F, Types> {
    /// Returns the same function with a type that can be named, for example in a struct field.
    /// Options, donations and compiled programs are preserved.
    ///
    /// ```
    /// use nxla::{BoxedJit, Expr, jit};
    ///
    /// let functions: [BoxedJit<Expr, Expr>; 2] =
    ///     [jit(|x: Expr| x + 1).boxed(), jit(|x: Expr| x * 2).boxed()];
    /// assert_eq!(functions[0].call(4)?.item::<i32>()?, 5);
    /// assert_eq!(functions[1].call(4)?.item::<i32>()?, 8);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    pub fn boxed(self) -> BoxedJit<F::Arguments, F::Results>
    where
        F: Send + Sync + 'static,
        F::Arguments: 'static,
        F::Results: 'static,
    {
        let Self { function, core, conflict, count, donated, unusable, interrupt, .. } = self;
        Jit {
            function: Box::new(move |arguments| function.invoke(arguments)),
            core,
            conflict,
            count,
            donated,
            unusable,
            interrupt,
            inputs: PhantomData,
        }
    }

    /// Makes the function part of the trace under way, on values of that trace. [`Jit::on_conflict`]
    /// has to allow it.
    ///
    /// ```
    /// use nxla::{Expr, jit};
    ///
    /// let double = jit(|x: Expr| x * 2);
    /// let again = jit(move |x: Expr| double.join(x).map(|x| x + 1));
    /// assert_eq!(again.call(4)?.item::<i32>()?, 9);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`Error::Usage`] if no function is traced on the thread, or if the function refuses to
    /// join; and what the function returns.
    pub fn join(&self, arguments: F::Arguments) -> Result<F::Results> {
        if self.call_mode()? == CallMode::Inline {
            return self.function.invoke(arguments);
        }
        let why = if runtime::is_tracing() {
            "on_conflict: must be Conflict::Reuse to join a trace; got Conflict::Force"
        } else {
            "must be called in a trace; use call for tensors"
        };
        Err(Error::Usage(format!("join: {why}")))
    }

    /// Traces the function for arguments of these types (or of the types of these tensors) without
    /// compiling it. Returns the program, and the large tensors that the function captures, which
    /// are its last inputs.
    ///
    /// ```
    /// use nxla::{DType, Expr, TensorType, jit};
    ///
    /// let f = jit(|x: Expr| x.sin().negate());
    /// let (program, _) = f.trace(TensorType::new(DType::F32, [3]))?;
    /// assert!(program.to_string().contains("negate"));
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the error of the function with its source line.
    pub fn trace(
        &self,
        types: impl Arguments<F::Arguments, TensorType>,
    ) -> Result<(Arc<Program>, Vec<Tensor>)> {
        let leaves = leaves_of_arguments(types);
        let options = self.core.options_in_force();
        let traced = self.trace_call(&template_of(&leaves), leaves.structure, &options)?;
        Ok((traced.program, traced.captured.into_iter().map(Tensor::from).collect()))
    }

    /// Compiles the function for arguments of these types only (or of the types of these tensors).
    ///
    /// ```
    /// use nxla::{DType, Expr, Tensor, TensorType, jit};
    ///
    /// let double = jit(|x: Expr| x * 2).compile(TensorType::new(DType::F32, [2]))?;
    /// assert_eq!(double.call(Tensor::from(vec![1.0f32, 2.5]))?.to_vec::<f32>()?, [2.0, 5.0]);
    /// let error = double.call(Tensor::from(vec![1, 2])).unwrap_err();
    /// assert_eq!(error.to_string(), "call: argument: must be f32[2]; got s32[2]");
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of the function and of its compilation.
    pub fn compile(
        &self,
        types: impl Arguments<F::Arguments, TensorType>,
    ) -> Result<Compiled<F::Arguments, F::Results>> {
        let leaves = leaves_of_arguments(types);
        let options = self.core.options_in_force().into_owned();
        let structure = leaves.structure.clone();
        let call = template_of(&leaves);
        let (entry, _) = self.entry(call, Purpose::Compile, &structure, &options)?;
        Ok(Compiled::new(entry, leaves, options, self.interrupt.clone()))
    }

    /// Explains which backend runs the next call with these arguments, why, and the estimated time.
    ///
    /// The function is compiled if necessary, but it does not run.
    ///
    /// ```
    /// use nxla::{Expr, jit};
    ///
    /// let double = jit(|x: Expr| x * 2).compiler("evaluator");
    /// let explanation = double.explain(4)?;
    /// assert_eq!(explanation.backend, "evaluator");
    /// assert_eq!(explanation.reason, "the options name the compiler or the device");
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of the function and of its compilation.
    pub fn explain(&self, arguments: impl Arguments<F::Arguments, Tensor>) -> Result<Explanation> {
        let leaves = leaves_of_arguments(arguments);
        let options = self.core.options_in_force();
        let structure = leaves.structure.clone();
        let (entry, inputs) = self.entry(call_of(leaves), Purpose::Jit, &structure, &options)?;
        let inputs: SmallVec<[&runtime::RawTensor; 8]> = inputs.iter().collect();
        entry.explain(&inputs, &options, as_interrupt(self.interrupt.as_deref()))
    }

    /// Traces the function for arguments of these types, and splits it into stages by a policy: by
    /// number of operations, time, memory, marks or layers.
    ///
    /// ```
    /// use nxla::split::Policy;
    /// use nxla::{DType, Expr, TensorType, jit};
    ///
    /// let f = jit(|x: Expr| x.sin().cos().tanh());
    /// let stages = f.stages(&TensorType::scalar(DType::F32), &Policy::Balanced(3))?;
    /// assert_eq!(stages.graph().stages().len(), 3);
    /// assert_eq!(stages.run(0.5f32)?.item::<f32>()?, f.call(0.5f32)?.item::<f32>()?);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the error of the function, or an error if the policy cannot split it.
    pub fn stages(
        &self,
        types: impl Arguments<F::Arguments, TensorType>,
        policy: &Policy,
    ) -> Result<Stages<F::Arguments, F::Results>> {
        self.cut(types, |program| policy.split(program))
    }

    /// Traces the function for arguments of these types, and splits it into stages as `decide`
    /// requests; see [`Stages`].
    ///
    /// ```
    /// use nxla::split::Decision;
    /// use nxla::{DType, Expr, TensorType, jit};
    ///
    /// let f = jit(|x: Expr| (x * 2).abs());
    /// let stages = f.split(&TensorType::scalar(DType::S32), |node| match node.op.name() {
    ///     "abs" => Decision::Before,
    ///     _ => Decision::None,
    /// })?;
    /// assert_eq!(stages.graph().stages().len(), 2);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the error of the function.
    pub fn split(
        &self,
        types: impl Arguments<F::Arguments, TensorType>,
        decide: impl FnMut(Node<'_>) -> Decision,
    ) -> Result<Stages<F::Arguments, F::Results>> {
        self.cut(types, |program| split(program, decide))
    }

    fn cut(
        &self,
        types: impl Arguments<F::Arguments, TensorType>,
        cut: impl FnOnce(&Program) -> Result<StageGraph, SplitError>,
    ) -> Result<Stages<F::Arguments, F::Results>> {
        let leaves = leaves_of_arguments(types);
        let options = self.core.options_in_force();
        options.check(&Options::default())?;
        let traced = self.trace_call(&template_of(&leaves), leaves.structure.clone(), &options)?;
        let core = runtime::StageRunner::new(cut(&traced.program)?, &options);
        Ok(Stages::new(core, leaves, traced, self.interrupt.clone()))
    }

    /// Traces the function for a call.
    pub(crate) fn trace_call(
        &self,
        call: &runtime::Call<AnyStatic>,
        structure: Structure,
        options: &Options,
    ) -> Result<runtime::TracedFunction<Structure>> {
        let (mut tracing, parameters) = Tracing::begin(None, call, options)?;
        let parameters = parameters.into_iter().map(Expr::from);
        let mut arguments = Leaves::new(parameters, structure);
        let invoked = panic::catch_unwind(AssertUnwindSafe(|| {
            self.function.invoke(F::Arguments::rebuild(&mut arguments))
        }));
        tracing.leave();
        // An earlier error of an operator is the cause of a later failure, including a panic: after
        // the error, shapes differ from the shapes that the function expects.
        let failure = || tracing.trace().take_failure();
        match invoked {
            Ok(Ok(results)) => {
                let leaves = leaves_of(&results);
                tracing.finish(&leaves.items, leaves.structure)
            }
            Ok(Err(error)) => Err(failure().unwrap_or(error)),
            Err(panicked) => Err(failure().unwrap_or_else(|| panic::resume_unwind(panicked))),
        }
    }

    /// Calls the function: `call(x)` for one argument, `call((x, y))` for two. For a container,
    /// pass the same container of tensors, or a reference to one.
    ///
    /// ```
    /// use nxla::{Expr, Tensor, jit};
    ///
    /// let f = jit(|x: Expr, [a, b]: [Expr; 2]| a * x + b);
    /// let x = Tensor::from([1.0f32, 2.0]);
    /// assert_eq!(f.call((&x, [3.0f32, 1.0]))?.to_vec::<f32>()?, [4.0, 7.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of the function, its compilation and its run.
    pub fn call<A>(&self, arguments: A) -> Result<<F::Results as Container>::Tensors>
    where
        A: Arguments<F::Arguments, Tensor>,
    {
        let leaves = leaves_of_arguments(arguments);
        if self.call_mode()? == CallMode::Inline {
            let why = "call: a call returns tensors and cannot become part of the current trace; use \
                       join there, or on_conflict(Conflict::Force) to run the function separately";
            return Err(Error::Usage(why.into()));
        }
        let options = self.core.options_in_force();
        let interrupt = as_interrupt(self.interrupt.as_deref());
        let (entry, inputs) = match self.recent(&leaves, &options) {
            Some(entry) => {
                let items = leaves.items.into_iter();
                (entry, items.map(Tensor::into_inner).collect::<Inputs>())
            }
            None => {
                let structure = leaves.structure.clone();
                self.entry(call_of(leaves), Purpose::Jit, &structure, &options)?
            }
        };
        let inputs: SmallVec<[&runtime::RawTensor; 8]> = inputs.iter().collect();
        let results = entry.run(None, &inputs, &options, interrupt)?;
        Ok(container_of_tensors(results, entry.results()))
    }

    /// Returns the entry of the previous call if the signature is the same. A container with lists
    /// needs the full signature.
    fn recent(&self, leaves: &Leaves<Tensor>, options: &Options) -> Option<Arc<Entry>> {
        if !leaves.structure.is_empty() {
            return None;
        }
        let tensors: SmallVec<[&runtime::RawTensor; 8]> =
            leaves.items.iter().map(|tensor| &**tensor).collect();
        self.core.recent(&tensors, options)
    }

    /// Returns the entry of a call, and its tensors.
    pub(crate) fn entry(
        &self,
        call: runtime::Call<AnyStatic>,
        purpose: Purpose,
        structure: &Structure,
        options: &Options,
    ) -> Result<(Arc<Entry>, Inputs)> {
        if let Some(entry) = self.core.find(&call, purpose, options)? {
            return Ok((entry, call.into_inputs()));
        }
        options.check(&Options::default())?;
        let traced = self.trace_call(&call, structure.clone(), options)?;
        let donated = self.donated_inputs(&call, structure, &traced.program)?;
        let interrupt = as_interrupt(self.interrupt.as_deref());
        self.core.compile(call, traced, purpose, donated, options, interrupt)
    }

    /// Returns the donated inputs.
    fn donated_inputs(
        &self,
        call: &runtime::Call<AnyStatic>,
        structure: &Structure,
        program: &Program,
    ) -> Result<Donations> {
        if self.donated.is_empty() {
            return Ok(Donations::default());
        }
        let types = Leaves::new(call.types(), structure.clone());
        let paths = argument_paths::<F::Arguments>(self.count, &types)?;
        donated_inputs(&self.donated, self.unusable, &paths, program)
    }
}

/// Converts a cancellation callback to the type of the runtime.
pub(crate) fn as_interrupt(function: Option<&InterruptFn>) -> Option<&Interrupt<'static>> {
    function.map(|function| function as &Interrupt<'static>)
}

impl<F, Inputs> fmt::Debug for Jit<F, Inputs> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let function = std::any::type_name::<F>();
        f.debug_struct("Jit")
            .field("function", &function)
            .field("options", self.core.options())
            .finish_non_exhaustive()
    }
}
