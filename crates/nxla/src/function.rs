//! Executables of programs: found by what they compute, compiled if need be.

use std::sync::Arc;

use nxla_expr::{ExprId, Graph, HostFn, Op, Program};

use crate::cache::{CacheKey, executables};
use crate::compiler::{CompileRequest, Executable, compiler_named};
use crate::error::Result;
use crate::options::Options;

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
