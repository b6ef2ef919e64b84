//! StableHLO modules that XLA runs as they are, without a graph.

use std::sync::Arc;

use nxla_eval::Interrupt;
use nxla_expr::{Digest, TensorType};

use super::{NAME, ProgramInfo, Target, XlaExecutable, compile_text, settings, target_of};
use crate::cache::{CacheKey, CompilerKey, executables};
use crate::compiler::{Executable, RunContext, compiler_named};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::options::{Options, Setting, Settings};
use crate::tensor::RawTensor;

/// The setting that disables the pass of XLA which ends the process for a loop whose counter is neither
/// `s32` nor `s64`. Programs that nxla lowers have no such loops; imported modules may. On a CPU these
/// modules only lose XLA's notes about the numbers of iterations.
const WITHOUT_FATAL_PASS: (&str, &str) =
    ("xla_disable_hlo_passes", "while-loop-trip-count-annotator");

/// A module with the types of the inputs of its function `@main`.
#[derive(Clone, Debug)]
pub struct Imported {
    text: Arc<str>,
    digest: Digest,
    inputs: Vec<TensorType>,
}

impl Imported {
    /// Reads the types of the inputs of a module. XLA reads the other parts in the first run.
    ///
    /// # Errors
    /// Returns an error for a module without a function `@main` on tensors with static shapes.
    pub fn new(text: &str) -> Result<Self> {
        let inputs = nxla_import::stablehlo::input_types(text)?;
        let digest = Digest(*blake3::hash(text.as_bytes()).as_bytes());
        Ok(Self { text: text.into(), digest, inputs })
    }

    /// Returns the module in textual form.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the types of the inputs.
    pub fn inputs(&self) -> &[TensorType] {
        &self.inputs
    }

    /// Finds or compiles the executable for a device.
    ///
    /// # Errors
    /// Returns an error if the options name another compiler than XLA, and errors of the plugin.
    pub fn compile(
        &self,
        options: &Options,
        operand_device: Option<&Device>,
        interrupt: Option<&Interrupt<'_>>,
    ) -> Result<Arc<dyn Executable>> {
        if let Some(choice) = &options.compiler
            && choice.name() != NAME
        {
            let why = format!("compiler: must be {NAME:?} for a StableHLO module; got {choice:?}");
            return Err(Error::Options(why));
        }
        if !options.hooks.is_empty() || options.stages.is_some() {
            let why = "hooks, stages: not supported for a StableHLO module";
            return Err(Error::Options(why.into()));
        }
        let device =
            options.device.as_ref().or(operand_device).filter(|device| !device.is_host()).cloned();
        let key = CacheKey {
            digest: self.digest,
            compiler: CompilerKey(compiler_named(NAME)?),
            settings: options.settings.clone(),
            device: device.clone(),
            hooks: Vec::new(),
            functions: Vec::new(),
            donated: Vec::new(),
            stages: None,
        };
        let (this, settings) = (self.clone(), options.settings.clone());
        let compile = move || this.compile_for(&settings, device.as_ref());
        executables().get_or_compile(&key, compile, interrupt)
    }

    fn compile_for(
        &self,
        settings: &Settings,
        device: Option<&Device>,
    ) -> Result<Arc<dyn Executable>> {
        settings::check(settings)?;
        let target = target_of(settings, device)?;
        let settings = with_import_defaults(settings, &target);
        let executable = compile_text(&target, &self.text, &settings)?;
        if executable.num_devices() > 1 {
            let why = "a StableHLO module must be for one device; got a module for several devices";
            return Err(Error::Usage(why.into()));
        }
        let outputs = executable.outputs().len();
        // Every loop counts as long: the module has no cost estimate.
        let loops = self.text.contains("stablehlo.while");
        let info = ProgramInfo::imported_module(&self.inputs, outputs, loops);
        Ok(Arc::new(XlaExecutable::new(target, executable, info)))
    }

    /// Runs the module on the device of its inputs, or on the device in the options.
    ///
    /// # Errors
    /// Returns the errors of [`Imported::compile`], an error for inputs of other types, and errors of the
    /// run.
    pub fn run(
        &self,
        inputs: &[&RawTensor],
        options: &Options,
        interrupt: Option<&Interrupt<'_>>,
    ) -> Result<Vec<RawTensor>> {
        let operand_device = options.common_device("import_stablehlo", inputs.iter().copied())?;
        let executable = self.compile(options, operand_device.as_ref(), interrupt)?;
        executable.run(inputs, &RunContext { interrupt, ..RunContext::default() })
    }
}

/// Adds the defaults for imported modules to settings. The caller's choice of XLA's passes has
/// precedence.
fn with_import_defaults(settings: &Settings, target: &Target) -> Settings {
    let mut settings = settings.clone();
    if target.is_cpu() {
        let (name, pass) = WITHOUT_FATAL_PASS;
        settings.entry(name.into()).or_insert_with(|| Setting::Text(pass.into()));
    }
    settings
}
