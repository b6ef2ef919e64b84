//! Jitted functions: traced once for each signature, compiled, and run.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use nxla_eval::Interrupt;
use nxla_expr::{HostFn, Program, TensorType};
use rustc_hash::FxHasher;
use smallvec::SmallVec;

use crate::Result;
use crate::Trace;
use crate::compile_program_watched;
use crate::compiled::Compiled;
use crate::containers::{Arguments, Container, Function, Leaves, Lengths, Tree, leaves_of};
use crate::expr::Expr;
use crate::tensor::Tensor;
use crate::vectors::Vectors;
use crate::{Executable, RunContext, runtime};
use crate::{Options, Setting, Settings, default_options, has_default_options};
use nxla_runtime::tracing_for;

/// Wraps a function of expressions so that it runs on tensors, compiled.
///
/// The function takes one to six [containers](crate::Container) of expressions and gives one.
/// Nothing happens until the first call. Each new signature (dtypes, shapes and names of the
/// arguments, lengths of lists, compiler and settings) traces the function once.
///
/// ```
/// use nxla::{Expr, Tensor, jit};
///
/// let norm = jit(|x: Expr| (&x * &x).sum().sqrt());
/// let length = norm.call(Tensor::from(vec![3.0f32, 4.0]))?;
/// assert_eq!(length.item()?.as_f64(), 5.0);
///
/// let line = jit(|(slope, offset): (Expr, Expr), x: Expr| slope * x + offset);
/// let parameters = (Tensor::from(2.0f32), Tensor::from(1.0f32));
/// assert_eq!(line.call((&parameters, 3.0f32))?.item()?.as_f64(), 7.0);
/// # Ok::<(), nxla::Error>(())
/// ```
pub fn jit<F, Inputs>(function: F) -> Jit<F, Inputs>
where
    F: Function<Inputs>,
{
    Jit {
        function,
        options: Options::default(),
        interrupt: None,
        entries: RwLock::default(),
        recent: Mutex::default(),
        inputs: PhantomData,
    }
}

/// A question whether to stop.
pub(crate) type Asked = dyn Fn() -> bool + Send + Sync;

/// A function made by [`jit`].
pub struct Jit<F, Inputs> {
    function: F,
    options: Options,
    interrupt: Option<Arc<Asked>>,
    /// By the hash of what they were compiled for, so that a call need not own its signature.
    entries: RwLock<HashMap<u64, SmallVec<[Arc<Entry>; 1]>>>,
    /// What the last call under the function's own options led to.
    recent: Mutex<Option<Arc<Entry>>>,
    inputs: PhantomData<fn(Inputs)>,
}

/// A compiled signature.
pub(crate) struct Entry {
    /// Those of the data, vectorized axes in front.
    pub(crate) types: Vec<TensorType>,
    vectors: Vec<Vectors>,
    pub(crate) lengths: Lengths,
    compiler: Option<Arc<str>>,
    settings: Settings,
    listeners: Vec<Arc<str>>,
    pub(crate) program: Arc<Program>,
    executable: Arc<dyn Executable>,
    /// Large tensors that the function mentions: inputs after the arguments.
    captured: Vec<runtime::Tensor>,
    /// The lengths of lists in the results.
    results: Lengths,
    /// The vectorized axes of each result.
    result_vectors: Vec<Vectors>,
}

/// A function, traced.
pub(crate) struct Traced {
    pub(crate) program: Program,
    /// Large tensors that the function mentions.
    pub(crate) captured: Vec<runtime::Tensor>,
    /// The lengths of lists in the results.
    pub(crate) lengths: Lengths,
    /// The vectorized axes of each result.
    pub(crate) vectors: Vec<Vectors>,
}

impl Entry {
    fn takes(&self, arguments: &Leaves<Tensor>) -> bool {
        let expected = self.types.iter().zip(&self.vectors);
        self.types.len() == arguments.items.len()
            && expected.zip(&arguments.items).all(|((ty, vectors), tensor)| {
                tensor.data().is_of(ty) && tensor.vectors() == vectors
            })
            && self.lengths == arguments.lengths
    }

    fn is_for(&self, arguments: &Leaves<Tensor>, options: &Options) -> bool {
        self.takes(arguments)
            && self.compiler == options.compiler
            && self.settings == options.settings
            && self.listeners.iter().eq(options.hooks.keys())
    }

    /// Runs the program on the leaves of arguments that it takes.
    pub(crate) fn run(
        &self,
        arguments: &Leaves<Tensor>,
        options: &Options,
        asked: Option<&Asked>,
    ) -> Result<(Vec<Tensor>, Lengths)> {
        let inputs: SmallVec<[&runtime::Tensor; 8]> =
            arguments.items.iter().map(|tensor| tensor.data()).chain(&self.captured).collect();
        let (hooks, interrupt) = (Some(&options.hooks), asked.map(|asked| asked as &Interrupt<'_>));
        let context = RunContext { hooks, interrupt, ..RunContext::default() };
        let results = self.executable.run(&inputs, &context)?.into_iter();
        let results = results.zip(&self.result_vectors);
        let results = results.map(|(data, vectors)| data.with_vectors(vectors.clone()).into());
        Ok((results.collect(), self.results.clone()))
    }
}

fn signature(arguments: &Leaves<Tensor>, options: &Options) -> u64 {
    let mut hasher = FxHasher::default();
    for tensor in &arguments.items {
        (tensor.dtype(), tensor.shape(), tensor.vectors()).hash(&mut hasher);
    }
    arguments.lengths.hash(&mut hasher);
    options.compiler.hash(&mut hasher);
    options.settings.hash(&mut hasher);
    hasher.write_usize(options.hooks.len());
    hasher.finish()
}

impl<F, Inputs> Jit<F, Inputs> {
    /// Runs on another compiler than the default.
    #[must_use]
    pub fn compiler(self, name: &str) -> Self {
        let options = self.options.clone().compiler(name);
        Self { options, recent: Mutex::default(), ..self }
    }

    /// With a setting of the compiler.
    #[must_use]
    pub fn set(self, name: &str, value: impl Into<Setting>) -> Self {
        let options = self.options.clone().set(name, value);
        Self { options, recent: Mutex::default(), ..self }
    }

    /// With a host function for the hooks of this name.
    #[must_use]
    pub fn hook(self, name: &str, function: impl HostFn + 'static) -> Self {
        let options = self.options.clone().hook(name, function);
        Self { options, recent: Mutex::default(), ..self }
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
    pub fn function(&self) -> &F {
        &self.function
    }
}

impl<F: Function<Inputs>, Inputs> Jit<F, Inputs> {
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
        let vectors = vec![Vectors::NONE; leaves.items.len()];
        let options = self.options.over(&default_options());
        let types = leaves.items.to_vec();
        let traced = self.trace_leaves(types, &vectors, leaves.lengths, &options)?;
        Ok((traced.program, traced.captured.into_iter().map(Tensor::from).collect()))
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
        let options = self.options.over(&default_options());
        let vectors = vec![Vectors::NONE; leaves.items.len()];
        let entry = self.compiled(leaves.items.to_vec(), vectors, leaves.lengths, &options)?;
        Ok(Compiled::new(entry, options, self.interrupt.clone()))
    }

    /// Traces the function for arguments of these types, the vectorized axes being in front.
    pub(crate) fn trace_leaves(
        &self,
        types: Vec<TensorType>,
        vectors: &[Vectors],
        lengths: Lengths,
        options: &Options,
    ) -> Result<Traced> {
        let trace = Trace::new();
        let mut parameters = Vec::with_capacity(types.len());
        for (ty, own) in types.into_iter().zip(vectors) {
            let id = trace.parameter(ty)?.id();
            parameters.push(Expr::with_vectors(trace.clone(), id, own.clone()));
        }
        let arguments = F::Arguments::rebuild(&mut Leaves::new(parameters, lengths));
        let results = {
            let (_compiler, _entered) = (tracing_for(options)?, trace.enter());
            self.function.invoke(arguments)
        };
        // What an operator found earlier is the cause of what came out in the end.
        let results = match results {
            Ok(results) => leaves_of(&results),
            Err(error) => return Err(trace.failure().unwrap_or(error)),
        };
        let vectors = results.items.iter().map(|result| result.vectors().clone()).collect();
        let program = trace.finish(&results.items)?;
        Ok(Traced { program, captured: trace.captured(), lengths: results.lengths, vectors })
    }

    /// Calls the function: `call(x)` for one argument, `call((x, y))` for two. For a container,
    /// pass the same container of tensors, or a reference to one.
    ///
    /// # Errors
    /// Whatever is wrong with the function, its compilation or its run.
    pub fn call<A>(&self, arguments: A) -> Result<<F::Results as Container>::Tensors>
    where
        A: Arguments<F::Arguments, Tensor>,
    {
        let mut leaves = Leaves::default();
        arguments.append(&mut leaves);
        let (results, lengths) = self.run(leaves)?;
        Ok(Tree::rebuild(&mut Leaves::new(results, lengths)))
    }

    /// Calls the function on the leaves of its arguments.
    pub(crate) fn run(&self, arguments: Leaves<Tensor>) -> Result<(Vec<Tensor>, Lengths)> {
        let own_options = !has_default_options();
        let recent = if own_options { self.recent(&arguments) } else { None };
        let (entry, options) = match recent {
            Some(entry) => (entry, Cow::Borrowed(&self.options)),
            None => {
                let options = self.options.over(&default_options());
                let entry = self.entry(&arguments, &options)?;
                if own_options {
                    *self.last() = Some(entry.clone());
                }
                (entry, Cow::Owned(options))
            }
        };
        entry.run(&arguments, &options, self.interrupt.as_deref())
    }

    fn asked(&self) -> Option<&Interrupt<'static>> {
        self.interrupt.as_deref().map(|asked| asked as &Interrupt<'static>)
    }

    fn last(&self) -> MutexGuard<'_, Option<Arc<Entry>>> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the call before led to, if this one is like it. Nearly all calls of a loop are, and
    /// need no signature.
    fn recent(&self, arguments: &Leaves<Tensor>) -> Option<Arc<Entry>> {
        let last = self.last();
        let entry = last.as_ref()?;
        entry.takes(arguments).then(|| entry.clone())
    }

    fn entry(&self, arguments: &Leaves<Tensor>, options: &Options) -> Result<Arc<Entry>> {
        let signature = signature(arguments, options);
        let find = |known: &[Arc<Entry>]| {
            known.iter().find(|entry| entry.is_for(arguments, options)).cloned()
        };
        let known = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = known.get(&signature).and_then(|entries| find(entries)) {
            return Ok(entry);
        }
        drop(known);
        let types: Vec<TensorType> =
            arguments.items.iter().map(|tensor| tensor.data().ty()).collect();
        let vectors: Vec<Vectors> =
            arguments.items.iter().map(|tensor| tensor.vectors().clone()).collect();
        let entry = self.compiled(types, vectors, arguments.lengths.clone(), options)?;
        let mut known = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        let entries = known.entry(signature).or_default();
        // Another thread may have been faster.
        Ok(find(entries).unwrap_or_else(|| {
            entries.push(entry.clone());
            entry
        }))
    }

    /// Traces and compiles, without a look at what there is.
    fn compiled(
        &self,
        types: Vec<TensorType>,
        vectors: Vec<Vectors>,
        lengths: Lengths,
        options: &Options,
    ) -> Result<Arc<Entry>> {
        let traced = self.trace_leaves(types.clone(), &vectors, lengths.clone(), options)?;
        let program = Arc::new(traced.program);
        let executable = compile_program_watched(&program, options, &[], self.asked())?;
        Ok(Arc::new(Entry {
            types,
            vectors,
            lengths,
            compiler: options.compiler.clone(),
            settings: options.settings.clone(),
            listeners: options.hooks.keys().cloned().collect(),
            program,
            executable,
            captured: traced.captured,
            results: traced.lengths,
            result_vectors: traced.vectors,
        }))
    }
}

impl<F, Inputs> fmt::Debug for Jit<F, Inputs> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let function = std::any::type_name::<F>();
        f.debug_struct("Jit")
            .field("function", &function)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
