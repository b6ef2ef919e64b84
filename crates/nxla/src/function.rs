//! Jitted functions: traced once for each signature, compiled, and run.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use nxla_expr::{ExprId, Graph, HostFn, Op, Program, TensorType};
use smallvec::SmallVec;

use crate::cache::{CacheKey, executables};
use crate::compiler::{CompileRequest, Executable, RunContext, compiler_named};
use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::options::{Options, Setting, Settings, default_options, has_default_options};
use crate::outputs::{Outputs, Structure};
use crate::tensor::Tensor;
use crate::trace::Trace;

/// Wraps a function of expressions so that it runs on tensors, compiled.
///
/// Nothing happens until the first call. Each new signature (dtypes, shapes and names of the
/// arguments, compiler and settings) traces the function once.
///
/// ```
/// use nxla::{Expr, Tensor, jit};
///
/// let norm = jit(|[x]: [Expr; 1]| (&x * &x).sum().sqrt());
/// let length = norm.call([&Tensor::from(vec![3.0f32, 4.0])])?;
/// assert_eq!(length.item()?.as_f64(), 5.0);
/// # Ok::<(), nxla::Error>(())
/// ```
pub fn jit<F, R, const N: usize>(function: F) -> Jit<F, N>
where
    F: Fn([Expr; N]) -> R,
    R: Outputs,
{
    Jit {
        function,
        options: Options::default(),
        entries: RwLock::default(),
        recent: Mutex::default(),
    }
}

/// A function made by [`jit`].
pub struct Jit<F, const N: usize> {
    function: F,
    options: Options,
    entries: RwLock<HashMap<Signature, Arc<Entry>>>,
    /// What the last call under the function's own options led to.
    recent: Mutex<Option<Arc<Entry>>>,
}

#[derive(PartialEq, Eq, Hash)]
struct Signature {
    types: SmallVec<[TensorType; 4]>,
    compiler: Option<Arc<str>>,
    settings: Settings,
    listeners: Vec<Arc<str>>,
}

struct Entry {
    executable: Arc<dyn Executable>,
    structure: Structure,
    program: Arc<Program>,
}

impl Entry {
    fn takes(&self, args: &[&Tensor]) -> bool {
        args.iter().zip(self.program.inputs()).all(|(tensor, ty)| tensor.is_of(ty))
    }
}

impl<F, const N: usize> Jit<F, N> {
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

    /// Traces the function for arguments of these types, without compiling it.
    ///
    /// # Errors
    /// Whatever is wrong with the function, with its line.
    pub fn trace<R>(&self, types: [TensorType; N]) -> Result<(Program, Structure)>
    where
        F: Fn([Expr; N]) -> R,
        R: Outputs,
    {
        let trace = Trace::new();
        let mut parameters = Vec::with_capacity(N);
        for ty in types {
            parameters.push(trace.parameter(ty)?);
        }
        let mut parameters = parameters.into_iter();
        let parameters = std::array::from_fn(|_| parameters.next().expect("one for each type"));
        let mut leaves = Vec::new();
        let structure = {
            let _entered = trace.enter();
            (self.function)(parameters).flatten(&mut leaves)
        };
        Ok((trace.finish(&leaves)?, structure))
    }

    /// Calls the function.
    ///
    /// # Errors
    /// Whatever is wrong with the function, its compilation or its run; a call from inside a
    /// traced function.
    pub fn call<R>(&self, args: [&Tensor; N]) -> Result<R::Tensors>
    where
        F: Fn([Expr; N]) -> R,
        R: Outputs,
    {
        if Trace::is_entered() {
            let why = "a jitted function cannot be called while another function is traced; call \
                       the plain function instead";
            return Err(Error::Usage(why.into()));
        }
        let (entry, options) = match self.recent(&args) {
            Some(entry) => (entry, Cow::Borrowed(&self.options)),
            None => {
                let options = self.options.over(&default_options());
                let entry = self.entry(args.map(Tensor::ty), &options)?;
                if !has_default_options() {
                    *self.last() = Some(entry.clone());
                }
                (entry, Cow::Owned(options))
            }
        };
        let context = RunContext { hooks: Some(&options.hooks), interrupt: None };
        let results = entry.executable.run(&args, &context)?;
        Ok(R::rebuild(&entry.structure, &mut results.into_iter()))
    }

    fn last(&self) -> MutexGuard<'_, Option<Arc<Entry>>> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the call before led to, if this one is like it. Nearly all calls of a loop are, and
    /// need no signature.
    fn recent(&self, args: &[&Tensor; N]) -> Option<Arc<Entry>> {
        let last = self.last();
        let entry = last.as_ref()?;
        (entry.takes(args) && !has_default_options()).then(|| entry.clone())
    }

    fn entry<R>(&self, types: [TensorType; N], options: &Options) -> Result<Arc<Entry>>
    where
        F: Fn([Expr; N]) -> R,
        R: Outputs,
    {
        let signature = Signature {
            types: types.iter().cloned().collect(),
            compiler: options.compiler.clone(),
            settings: options.settings.clone(),
            listeners: options.hooks.keys().cloned().collect(),
        };
        let known = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = known.get(&signature) {
            return Ok(entry.clone());
        }
        drop(known);
        let (program, structure) = self.trace(types)?;
        let program = Arc::new(program);
        let executable = compile_program(&program, options, &[])?;
        let entry = Arc::new(Entry { executable, structure, program });
        let mut known = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        Ok(known.entry(signature).or_insert(entry).clone())
    }
}

/// Compiles a program, or finds the executable of an equal one.
///
/// `donated` marks inputs whose memory the outputs may take over; it is empty or has one entry
/// for each input.
///
/// # Errors
/// An unknown compiler or setting; what the compiler says of the program.
pub fn compile_program(
    program: &Arc<Program>,
    options: &Options,
    donated: &[bool],
) -> Result<Arc<dyn Executable>> {
    let compiler = compiler_named(options.compiler.as_deref())?;
    let listeners: Vec<Arc<str>> = options.hooks.keys().cloned().collect();
    let mut own_hooks = Vec::new();
    collect_hooks(program.graph(), &mut own_hooks);
    let key = CacheKey {
        digest: program.digest(),
        compiler: compiler.name().into(),
        settings: options.settings.clone(),
        listeners: if own_hooks.is_empty() { Vec::new() } else { listeners.clone() },
        own_hooks,
        donated: donated.to_vec(),
    };
    executables().get_or_compile(&key, || {
        let settings = &options.settings;
        compiler.compile(&CompileRequest { program, settings, listeners: &listeners, donated })
    })
}

/// The functions that hooks bring along, as addresses (0 for none), regions included. The
/// executable keeps the functions alive, so an address means the same for as long as it is a key.
fn collect_hooks(graph: &Graph, found: &mut Vec<usize>) {
    for id in graph.ids() {
        hooks_of(graph, id, found);
    }
}

fn hooks_of(graph: &Graph, id: ExprId, found: &mut Vec<usize>) {
    let op = graph.op(id);
    if let Op::Hook(hook) = op {
        let address = |function: &Arc<dyn HostFn>| Arc::as_ptr(function).cast::<()>() as usize;
        found.push(hook.default.as_ref().map_or(0, address));
    }
    // Regions nest only as deep as the user's control flow is written.
    for region in op.regions() {
        collect_hooks(region.graph(), found);
    }
}
