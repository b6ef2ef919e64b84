//! Programs as StableHLO text, to be looked at or run elsewhere.

use std::sync::Arc;

use nxla_expr::{Graph, HookOp, Program};
use nxla_stablehlo::{LowerError, LowerOptions, LoweredModule, lower};
use nxla_tensor::HostTensor;

use super::{NAME, lower_for_target, settings, target_of};
use crate::auto::xla_settings;
use crate::compiler::CompileRequest;
use crate::error::{Error, Result};
use crate::options::{Options, Settings};

/// Returns a program as a StableHLO module.
///
/// The module is the one that XLA compiles for the device in the options. With `portable`, it has no
/// calls of functions of this process, so that other processes can run it. Settings of other
/// compilers are ignored.
///
/// # Errors
/// Returns an error for a form of an op that StableHLO lacks, a portable module of a program whose
/// hooks have listeners, a missing plugin, or an unknown setting.
pub fn stablehlo_text(
    program: &Arc<Program>,
    options: &Options,
    donated: &[bool],
    portable: bool,
) -> Result<LoweredModule> {
    let compiler = options.compiler.as_ref().map_or(NAME, |compiler| compiler.name());
    let settings = match compiler {
        NAME => options.settings.clone(),
        "auto" => xla_settings(&options.settings),
        _ => Settings::new(),
    };
    let listeners: Vec<Arc<str>> = options.hooks.keys().cloned().collect();
    let request = CompileRequest {
        program,
        settings: &settings,
        listeners: &listeners,
        donated,
        device: options.device.as_ref().filter(|device| !device.is_host()),
    };
    settings::check(request.settings)?;
    if !portable {
        return lower_for_target(&request, &target_of(request.settings, request.device)?);
    }
    let active = |hook: &HookOp| request.listens(hook);
    let options = LowerOptions {
        active_hooks: &active,
        donated: request.donated,
        precision: settings::precision(request.settings)?,
        ..LowerOptions::default()
    };
    lower(program, &options).map_err(|error| match error {
        LowerError::HostCalls { hook, line } => LowerError::PortableHook { hook, line }.into(),
        other => other.into(),
    })
}

/// A program whose last inputs are literals.
///
/// # Errors
/// Returns an error for more literals than inputs.
pub fn with_literals(program: &Program, literals: &[HostTensor]) -> Result<Arc<Program>> {
    let (inputs, found) = (program.inputs().len(), literals.len());
    let count = inputs.checked_sub(found).ok_or_else(|| {
        Error::Usage(format!("literals: must be at most {inputs}, one for each input; got {found}"))
    })?;
    let mut graph = Graph::new();
    let inputs = program.inputs()[..count].to_vec();
    let mut arguments = Vec::with_capacity(program.inputs().len());
    for (index, ty) in inputs.iter().enumerate() {
        arguments.push(graph.parameter(index, ty.clone()));
    }
    for literal in literals {
        arguments.push(graph.tensor(literal.clone())?);
    }
    let outputs = program.inline(&mut graph, &arguments)?;
    Ok(Arc::new(Program::new(&graph, inputs, &outputs)?))
}
