//! Jitted functions: traced once for each signature, compiled, and run.

use std::fmt;
use std::marker::PhantomData;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

use nxla_eval::Interrupt;
use nxla_expr::{HostFn, Node, Program, TensorType};
use nxla_runtime::{
    self as runtime, CompilerChoice, Conflict, Device, Error, Explanation, Inputs, Options,
    Purpose, Result, Setting, Tracing, Vectors, Way,
};
use nxla_split::{Decision, Policy, SplitError, StageGraph, split};
use smallvec::SmallVec;

use crate::compiled::Compiled;
use crate::containers::{
    Arguments, Container, Fixed, Function, Leaves, Structure, Tree, leaves_of,
};
use crate::donation::{Donation, UnusableDonation, argument_paths, donated_inputs};
use crate::expr::Expr;
use crate::stages::Stages;
use crate::tensor::Tensor;

/// Wraps a function of expressions so that it runs on tensors, compiled.
///
/// The function takes one to twelve [containers](crate::Container) of expressions and gives one.
/// Nothing happens until the first call. Each new signature (dtypes, shapes and names of the
/// arguments, lengths of lists, fixed values, compiler and settings) traces the function once.
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
        core: new_core(Options::default(), Conflict::Force),
        count: F::COUNT,
        donated: Vec::new(),
        unusable: UnusableDonation::default(),
        interrupt: None,
        inputs: PhantomData,
    }
}

/// A question whether to stop.
pub(crate) type Asked = dyn Fn() -> bool + Send + Sync;

/// What the runtime keeps of a function: its fixed values, and what the types of its results do not
/// tell of them.
type Core = runtime::Function<Fixed, Structure>;

/// A compiled signature.
pub(crate) type Entry = runtime::Entry<Structure>;

fn new_core(options: Options, conflict: Conflict) -> Core {
    Core::new("call", options, conflict)
}

/// A function made by [`jit`].
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
    core: Core,
    /// The number of arguments.
    count: usize,
    /// The arguments, and parts of them, whose memory results may take over.
    donated: Vec<Donation>,
    unusable: UnusableDonation,
    interrupt: Option<Arc<Asked>>,
    inputs: PhantomData<fn(Inputs)>,
}

/// Describes arguments to the runtime.
pub(crate) fn call_of(arguments: Leaves<Tensor>) -> runtime::Call<Fixed> {
    let mut call = runtime::Call::default();
    arguments.items.into_iter().for_each(|tensor| call.tensor(tensor.into_inner()));
    arguments.structure.describe(&mut call);
    call
}

/// Describes the types of the first arguments to the runtime, and the others as they are.
pub(crate) fn call_of_types(
    types: &[TensorType],
    tensors: impl IntoIterator<Item = runtime::Tensor>,
    structure: &Structure,
) -> runtime::Call<Fixed> {
    let mut call = runtime::Call::default();
    types.iter().for_each(|ty| call.template(ty, &Vectors::NONE));
    tensors.into_iter().for_each(|tensor| call.tensor(tensor));
    structure.describe(&mut call);
    call
}

/// Describes the types of arguments to the runtime.
pub(crate) fn template_of(types: &Leaves<TensorType>) -> runtime::Call<Fixed> {
    call_of_types(&types.items, [], &types.structure)
}

impl<F, Inputs> Jit<F, Inputs> {
    /// Runs on another compiler than the default: by its name, or itself.
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

    /// With a setting of the compiler.
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

    /// On this device.
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

    /// With a host function for the hooks of this name.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    /// use nxla::{HostTensor, named_hook};
    /// use nxla::{Expr, jit};
    ///
    /// let calls = Arc::new(AtomicUsize::new(0));
    /// let counted = calls.clone();
    /// let count = move |_: &[HostTensor]| {
    ///     counted.fetch_add(1, Ordering::Relaxed);
    ///     Ok(())
    /// };
    /// let f = jit(|x: Expr| named_hook(x * 2, "doubled")).hook("doubled", count);
    /// f.call(4)?;
    /// assert_eq!(calls.load(Ordering::Relaxed), 1);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn hook(self, name: &str, function: impl HostFn + 'static) -> Self {
        self.with(|options| options.hook(name, function))
    }

    /// The options of its own.
    pub(crate) fn options(&self) -> &Options {
        self.core.options()
    }

    /// Whether memory of arguments may be taken over.
    pub(crate) fn donates(&self) -> bool {
        !self.donated.is_empty()
    }

    /// How to go on with a call on this thread.
    pub(crate) fn way(&self) -> Result<Way> {
        self.core.way()
    }

    fn with(self, change: impl FnOnce(Options) -> Options) -> Self {
        let options = change(self.core.options().clone());
        Self { core: new_core(options, self.core.conflict()), ..self }
    }

    /// What a call does while another function is traced on the thread: [`Conflict::Force`], which
    /// is the default, runs it by itself; [`Conflict::Raise`] refuses. A call gives tensors, so it
    /// cannot join the trace ([`Conflict::Reuse`] refuses as well): call the function itself.
    ///
    /// ```
    /// use nxla::{Conflict, Expr, jit};
    ///
    /// let inner = jit(|x: Expr| x * 2).on_conflict(Conflict::Raise);
    /// let outer = jit(move |x: Expr| inner.call(4).map(|four| x + four));
    /// assert!(outer.call(1).is_err());
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn on_conflict(self, conflict: Conflict) -> Self {
        Self { core: new_core(self.core.options().clone(), conflict), ..self }
    }

    /// Lets results take over the memory of arguments, by position, or of parts of arguments, by
    /// path; see [`Donation`]. An argument that is not in the call is an error of the call. Where a
    /// device takes memory over, the tensors that were passed are gone after the call.
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
        let core = new_core(self.core.options().clone(), self.core.conflict());
        Self { core, donated: arguments.into_iter().map(Into::into).collect(), ..self }
    }

    /// Chooses what happens when the memory of a donated tensor is of no use.
    ///
    /// ```
    /// use nxla::{Expr, Tensor, UnusableDonation, jit};
    ///
    /// let sum = jit(|x: Expr| x.sum()).donate([0]).on_unusable_donation(UnusableDonation::Raise);
    /// let error = sum.call(Tensor::from([1.0f32, 2.0])).unwrap_err().to_string();
    /// assert!(error.starts_with("donate: no result can take over the memory of 0 (f32[2])"));
    /// ```
    #[must_use]
    pub fn on_unusable_donation(self, unusable: UnusableDonation) -> Self {
        let core = new_core(self.core.options().clone(), self.core.conflict());
        Self { core, unusable, ..self }
    }

    /// With a question that is asked now and then while a call compiles or runs: at each step of the
    /// evaluator, some twenty times a second while XLA compiles or runs a program with loops or
    /// hooks. If the answer is `true`, the call ends with [`EvalError::Interrupted`](nxla_eval::EvalError::Interrupted); what XLA does
    /// then goes on in the background. Programs that run asynchronously are not waited for, so
    /// nothing is asked about them.
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

    /// The function itself.
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

/// A jitted function whose type can be written: of a container, or a tuple of several, and of the
/// container that it returns. [`Jit::boxed`] makes one.
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
    /// The same function with a type that can be written, as the field of a struct needs one. It keeps
    /// its options, its donations, and the programs that it has compiled.
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
        let Self { function, core, count, donated, unusable, interrupt, inputs: PhantomData } =
            self;
        Jit {
            function: Box::new(move |arguments| function.invoke(arguments)),
            core,
            count,
            donated,
            unusable,
            interrupt,
            inputs: PhantomData,
        }
    }

    /// Traces the function for arguments of these types (or of the types of these tensors),
    /// without compiling it. Gives the program, and the large tensors that the function mentions,
    /// which are its last inputs.
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
    /// Whatever is wrong with the function, with its line.
    pub fn trace(
        &self,
        types: impl Arguments<F::Arguments, TensorType>,
    ) -> Result<(Program, Vec<Tensor>)> {
        let mut leaves = Leaves::default();
        types.append(&mut leaves);
        let options = self.core.options_in_force();
        let traced = self.traced(&template_of(&leaves), leaves.structure, &options)?;
        let program = Arc::unwrap_or_clone(traced.program);
        Ok((program, traced.captured.into_iter().map(Tensor::from).collect()))
    }

    /// Compiles the function for arguments of these types (or of the types of these tensors), and
    /// for no others.
    ///
    /// ```
    /// use nxla::{DType, Expr, Tensor, TensorType, jit};
    ///
    /// let double = jit(|x: Expr| x * 2).compile(TensorType::new(DType::F32, [2]))?;
    /// assert_eq!(double.call(Tensor::from(vec![1.0f32, 2.5]))?.to_vec::<f32>()?, [2.0, 5.0]);
    /// let error = double.call(Tensor::from(vec![1, 2])).unwrap_err();
    /// assert_eq!(error.to_string(), "call: argument is s32[2], compiled for f32[2]");
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Whatever is wrong with the function or its compilation.
    pub fn compile(
        &self,
        types: impl Arguments<F::Arguments, TensorType>,
    ) -> Result<Compiled<F::Arguments, F::Results>> {
        let mut leaves = Leaves::default();
        types.append(&mut leaves);
        let options = self.core.options_in_force().into_owned();
        let structure = leaves.structure.clone();
        let call = template_of(&leaves);
        let (entry, _) = self.entry(call, Purpose::Compile, &structure, &options)?;
        Ok(Compiled::new(entry, leaves, options, self.interrupt.clone()))
    }

    /// Explains which backend runs the next call with these arguments, why, and in what time.
    ///
    /// The function is compiled if it has not been for such arguments, and nothing runs.
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
    /// Whatever is wrong with the function or its compilation.
    pub fn explain(&self, arguments: impl Arguments<F::Arguments, Tensor>) -> Result<Explanation> {
        let mut leaves = Leaves::default();
        arguments.append(&mut leaves);
        let options = self.core.options_in_force();
        let structure = leaves.structure.clone();
        let (entry, inputs) = self.entry(call_of(leaves), Purpose::Jit, &structure, &options)?;
        let inputs: SmallVec<[&runtime::Tensor; 8]> = inputs.iter().collect();
        entry.explain(&inputs, &options, asked(self.interrupt.as_deref()))
    }

    /// Traces the function for arguments of these types, and cuts it into stages by a policy: by the
    /// number of operations, by time, memory, marks or layers.
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
    /// Returns the error of the function, and an error if the policy cannot cut it.
    pub fn stages(
        &self,
        types: impl Arguments<F::Arguments, TensorType>,
        policy: &Policy,
    ) -> Result<Stages<F::Arguments, F::Results>> {
        self.cut(types, |program| policy.split(program))
    }

    /// Traces the function for arguments of these types, and cuts it into stages where `decide` says
    /// so; see [`Stages`].
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
    /// Whatever is wrong with the function.
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
        let mut leaves = Leaves::default();
        types.append(&mut leaves);
        let options = self.core.options_in_force();
        options.check(&Options::default())?;
        let traced = self.traced(&template_of(&leaves), leaves.structure.clone(), &options)?;
        let core = runtime::Stages::new(cut(&traced.program)?, &options);
        Ok(Stages::new(core, leaves, traced, self.interrupt.clone()))
    }

    /// Traces the function for a call.
    pub(crate) fn traced(
        &self,
        call: &runtime::Call<Fixed>,
        structure: Structure,
        options: &Options,
    ) -> Result<runtime::Traced<Structure>> {
        let (mut tracing, parameters) = Tracing::begin(call, options)?;
        let parameters = parameters.into_iter().map(Expr::from);
        let mut arguments = Leaves::new(parameters, structure);
        let invoked = panic::catch_unwind(AssertUnwindSafe(|| {
            self.function.invoke(F::Arguments::rebuild(&mut arguments))
        }));
        tracing.leave();
        // What an operator found earlier is the cause of what came out in the end, be it a panic:
        // after a mistake shapes are not what the function takes them for.
        let failure = || tracing.trace().failure();
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
    /// Whatever is wrong with the function, its compilation or its run.
    pub fn call<A>(&self, arguments: A) -> Result<<F::Results as Container>::Tensors>
    where
        A: Arguments<F::Arguments, Tensor>,
    {
        let mut leaves = Leaves::default();
        arguments.append(&mut leaves);
        if self.way()? == Way::Join {
            let why = "call: a typed call gives tensors and cannot join the trace under way; call \
                       the function itself there";
            return Err(Error::Usage(why.into()));
        }
        let options = self.core.options_in_force();
        let interrupt = asked(self.interrupt.as_deref());
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
        let inputs: SmallVec<[&runtime::Tensor; 8]> = inputs.iter().collect();
        let results = entry.run(&inputs, &options, interrupt)?.into_iter().map(Tensor::from);
        Ok(Tree::rebuild(&mut Leaves::new(results, entry.results().clone())))
    }

    /// What the call before led to, if this one is like it. A container with lists needs more than
    /// a look at its tensors.
    fn recent(&self, leaves: &Leaves<Tensor>, options: &Options) -> Option<Arc<Entry>> {
        if !leaves.structure.is_empty() {
            return None;
        }
        let tensors: SmallVec<[&runtime::Tensor; 8]> =
            leaves.items.iter().map(|tensor| &**tensor).collect();
        self.core.recent(&tensors, options)
    }

    /// What a call leads to, and its tensors.
    pub(crate) fn entry(
        &self,
        mut call: runtime::Call<Fixed>,
        purpose: Purpose,
        structure: &Structure,
        options: &Options,
    ) -> Result<(Arc<Entry>, Inputs)> {
        if let Some(entry) = self.core.find(&mut call, purpose, options)? {
            return Ok((entry, call.into_inputs()));
        }
        options.check(&Options::default())?;
        let traced = self.traced(&call, structure.clone(), options)?;
        let donated = self.donated_inputs(&call, structure, &traced.program)?;
        let interrupt = asked(self.interrupt.as_deref());
        self.core.compile(call, traced, purpose, &donated, options, interrupt)
    }

    /// For each input, whether its memory may be taken over.
    fn donated_inputs(
        &self,
        call: &runtime::Call<Fixed>,
        structure: &Structure,
        program: &Program,
    ) -> Result<Vec<bool>> {
        if self.donated.is_empty() {
            return Ok(Vec::new());
        }
        let types = Leaves::new(call.types(), structure.clone());
        let paths = argument_paths::<F::Arguments>(self.count, &types)?;
        donated_inputs(&self.donated, self.unusable, &paths, program)
    }
}

/// A question as the runtime asks it.
pub(crate) fn asked(asked: Option<&Asked>) -> Option<&Interrupt<'static>> {
    asked.map(|asked| asked as &Interrupt<'static>)
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
