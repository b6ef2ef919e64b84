//! Executables of programs: found by what they compute, compiled if need be.

use std::sync::Arc;

use nxla_eval::Interrupt;
use nxla_expr::{Detached, HostFn, Program};

use crate::cache::{CacheKey, executables};
use crate::compiler::{CompileRequest, Compiler, Executable, RunContext, compiler_named};
use crate::error::Result;
use crate::options::{Options, Settings};
use crate::tensor::Tensor;

/// Compiles a program, or finds the executable of an equal one.
///
/// Hooks are no part of that: an executable is shared by programs whose hooks have other
/// functions, and what this gives calls the functions of this very program.
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
    compile_program_watched(program, options, donated, None)
}

/// Like [`compile_program`], for callers that can be interrupted: `interrupt` is asked some twenty
/// times a second while a slow compiler is waited for. The compiler goes on when the wait ends, and
/// the executable is there for the next who asks.
///
/// # Errors
/// As for [`compile_program`], and if `interrupt` answers `true`.
pub fn compile_program_watched(
    program: &Arc<Program>,
    options: &Options,
    donated: &[bool],
    interrupt: Option<&Interrupt<'_>>,
) -> Result<Arc<dyn Executable>> {
    let compiler = compiler_named(options.compiler.as_deref())?;
    let listens = |name: &str| options.hooks.contains_key(name);
    let Detached { program: detached, functions, pattern } = program.detach_hooks(&listens);
    let late = compiler.resolves_hooks();
    let address = |function: &Arc<dyn HostFn>| Arc::as_ptr(function).cast::<()>() as usize;
    let key = CacheKey {
        digest: program.digest(),
        compiler: compiler.name().into(),
        settings: options.settings.clone(),
        hooks: pattern,
        functions: if late { Vec::new() } else { functions.iter().map(address).collect() },
        donated: donated.to_vec(),
    };
    let watch = interrupt.filter(|_| compiler.compiles_elsewhere());
    let job = Job {
        compiler,
        program: if late { detached } else { program.clone() },
        settings: options.settings.clone(),
        listeners: options.hooks.keys().cloned().collect(),
        donated: donated.to_vec(),
    };
    let executable = executables().get_or_compile(&key, move || job.compile(), watch)?;
    if !late || functions.is_empty() {
        return Ok(executable);
    }
    Ok(Arc::new(WithHooks { executable, functions }))
}

/// Something to compile, on whichever thread.
struct Job {
    compiler: Arc<dyn Compiler>,
    program: Arc<Program>,
    settings: Settings,
    listeners: Vec<Arc<str>>,
    donated: Vec<bool>,
}

impl Job {
    fn compile(self) -> Result<Arc<dyn Executable>> {
        self.compiler.compile(&CompileRequest {
            program: &self.program,
            settings: &self.settings,
            listeners: &self.listeners,
            donated: &self.donated,
        })
    }
}

/// A shared executable with the functions that one program brings along for its hooks.
struct WithHooks {
    executable: Arc<dyn Executable>,
    functions: Vec<Arc<dyn HostFn>>,
}

impl Executable for WithHooks {
    fn run(&self, inputs: &[&Tensor], context: &RunContext<'_>) -> Result<Vec<Tensor>> {
        self.executable.run(inputs, &RunContext { own_hooks: &self.functions, ..*context })
    }

    fn byte_size(&self) -> usize {
        self.executable.byte_size()
    }
}
