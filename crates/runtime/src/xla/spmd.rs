//! Programs over several devices: XLA divides them, and each device has its part of each tensor.
//!
//! Shapes in the program are shapes of whole tensors. Inputs and results of a run are the parts,
//! device by device.

use nxla_expr::{AtLine, Layout, Program, TensorType};
use nxla_pjrt::{self as pjrt, Buffer, CompileOptions, ExecuteOptions};
use nxla_stablehlo::{LowerError, LowerOptions, Partition, lower};
use nxla_tensor::{HostTensor, Names, Shape};
use std::fmt;

use super::client::{Target, target};
use super::{compile_with, settings};
use crate::analysis::Analysis;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::mesh::{Mesh, Sharding};
use crate::options::{Options, Setting, Settings};
use crate::profile::{self, Work};
use crate::tensor::{DeviceTensor, RawTensor};

/// `count` devices of one client: the default client, or for a plugin with a setting for the number
/// of CPU devices, a client with `count` devices.
///
/// # Errors
/// Returns an error for too few devices or a missing plugin.
pub(crate) fn mesh_devices(count: usize) -> Result<Vec<Device>> {
    let mut found = target(&Settings::new())?;
    if found.client.devices().len() < count && found.is_cpu() {
        let wanted = Setting::Int(i64::try_from(count).unwrap_or(i64::MAX));
        found = target(&Settings::from([("cpu_device_count".into(), wanted)]))?;
    }
    let there = found.client.devices().len();
    if there < count {
        let platform = found.client.platform_name();
        let why = format!(
            "mesh: axes: product of the sizes must be at most {there}, the number of \
                     devices of {platform:?}; got {count}"
        );
        return Err(Error::Options(why));
    }
    (0..count).map(|index| Device::of(&found.client, index)).collect()
}

/// A program, divided over a mesh and compiled.
pub struct Divided {
    /// The name of the function, for errors.
    function: String,
    mesh: Mesh,
    text: String,
    executable: pjrt::LoadedExecutable,
    used_inputs: Vec<usize>,
    /// The type of each input's part on a device.
    parts: Vec<TensorType>,
    names: Vec<Option<Names>>,
    /// The types of the results' parts without elements, which XLA does not divide.
    empty: Vec<Option<TensorType>>,
}

impl fmt::Debug for Divided {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Divided")
            .field("mesh", &self.mesh)
            .field("parts", &self.parts)
            .finish_non_exhaustive()
    }
}

impl Divided {
    /// Divides and compiles a program whose inputs are divided so. Without shardings of the
    /// outputs, XLA chooses them. Errors start with the name of the function.
    ///
    /// # Errors
    /// Returns errors of the plugin and an error for shardings that do not fit the types or a hook
    /// with a function.
    pub fn compile(
        function: &str,
        program: &Program,
        options: &Options,
        mesh: &Mesh,
        inputs: &[Sharding],
        outputs: Option<&[Sharding]>,
    ) -> Result<Self> {
        settings::check(&options.settings)?;
        let parts = parts_of(function, mesh, program.inputs().iter(), inputs)?;
        let wanted =
            outputs.map(|outputs| parts_of(function, mesh, program.output_types(), outputs));
        let wanted = wanted.transpose()?;
        let inputs = layouts(inputs);
        let outputs = outputs.map(layouts);
        let partition =
            Partition { axes: mesh.axes(), inputs: &inputs, outputs: outputs.as_deref() };
        let (client, devices) = mesh.client_and_devices();
        let first = Target::of(client, devices[0]);
        let module = lower(
            program,
            &LowerOptions {
                materialize_by_calls: first.is_cpu(),
                scatters_in_order: first.is_cpu(),
                locations: true,
                precision: settings::precision(&options.settings)?,
                partition: Some(partition),
                ..LowerOptions::default()
            },
        )
        .map_err(|error| explain_host_call(function, error))?;
        let compile_options = CompileOptions {
            num_partitions: devices.len(),
            device_ids: devices.iter().map(|&index| client.devices()[index].id()).collect(),
            shardy: true,
            overrides: settings::flags(&options.settings, &first),
        };
        let executable = compile_with(&first, &module.text, &compile_options, &options.settings)?;
        if let Some(wanted) = &wanted {
            check_parts(&executable, wanted)?;
        }
        let names: Vec<_> = program.output_types().map(|ty| ty.names.clone()).collect();
        let empty = match wanted {
            Some(wanted) => wanted.into_iter().map(|ty| is_empty(&ty).then_some(ty)).collect(),
            None => vec![None; names.len()],
        };
        let (mesh, text, used_inputs) = (mesh.clone(), module.text, module.used_inputs);
        let function = function.to_owned();
        Ok(Self { function, mesh, text, executable, used_inputs, parts, names, empty })
    }

    /// The text that was compiled, before XLA has divided it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The indices of inputs that a run needs.
    pub fn used_inputs(&self) -> &[usize] {
        &self.used_inputs
    }

    /// The plugin's figures for cost and memory.
    ///
    /// # Errors
    /// Returns the errors of [`Analysis`].
    pub fn analysis(&self) -> Result<Analysis> {
        super::analysis::analysis(&self.executable)
    }

    /// Runs it on the parts of all inputs: a list for each device of the mesh. Parts that are
    /// elsewhere are copied. Returns a list of results for each device.
    ///
    /// # Errors
    /// Returns errors of the run, and an error for a wrong number of lists, or parts of wrong
    /// types.
    pub fn run(&self, parts: &[Vec<RawTensor>]) -> Result<Vec<Vec<RawTensor>>> {
        let _span = profile::span(Work::Run, "run on a mesh");
        let (client, devices) = self.mesh.client_and_devices();
        if parts.len() != devices.len() {
            let (found, expected) = (parts.len(), devices.len());
            return Err(wrong(
                &self.function,
                format!("parts: must be {expected}, one for each device of the mesh; got {found}"),
            ));
        }
        let mut lists: Vec<Vec<Buffer>> = Vec::with_capacity(parts.len());
        for (list, &device) in parts.iter().zip(devices) {
            lists.push(self.upload_inputs(list, client, device)?);
        }
        let lists: Vec<Vec<&Buffer>> = lists.iter().map(|list| list.iter().collect()).collect();
        let arguments: Vec<&[&Buffer]> = lists.iter().map(Vec::as_slice).collect();
        let results = self.executable.execute_on_all(&arguments, &ExecuteOptions::default())?;
        let wrap = |(list, &device): (Vec<Buffer>, &usize)| -> Result<Vec<RawTensor>> {
            let parts = list.into_iter().zip(self.names.iter().zip(&self.empty));
            let named = parts.map(|(buffer, (names, empty))| {
                let buffer = match empty {
                    Some(ty) => {
                        let none = HostTensor::zeros(ty.dtype, ty.shape.clone())?;
                        RawTensor::from(none).copy_in(client, device)?
                    }
                    None => buffer,
                };
                Ok(RawTensor::Device(DeviceTensor::new(buffer).with_names(names.clone())?))
            });
            named.collect()
        };
        results.into_iter().zip(devices).map(wrap).collect()
    }

    /// Copies the inputs that the program needs from a list to a device.
    fn upload_inputs(
        &self,
        list: &[RawTensor],
        client: &pjrt::Client,
        device: usize,
    ) -> Result<Vec<Buffer>> {
        if list.len() != self.parts.len() {
            let (found, expected) = (list.len(), self.parts.len());
            return Err(wrong(
                &self.function,
                format!(
                    "parts: must be {expected} for each device, one for each input; got {found}"
                ),
            ));
        }
        let upload = |&input: &usize| {
            let (part, expected) = (list[input].data(), &self.parts[input]);
            if part.dtype() != expected.dtype || *part.shape() != expected.shape {
                let found = part.ty();
                return Err(wrong(
                    &self.function,
                    format!("part of input {input}: must be {expected}; got {found}"),
                ));
            }
            match part.buffer() {
                Some(buffer) if buffer.client() == client && buffer.device().index() == device => {
                    Ok(buffer.clone())
                }
                _ => part.copy_in(client, device),
            }
        };
        self.used_inputs.iter().map(upload).collect()
    }
}

/// Replaces the error for a hook, which does not depend on the plugin.
fn explain_host_call(function: &str, error: LowerError) -> Error {
    let LowerError::HostCalls { hook, line } = error else { return error.into() };
    let line = AtLine(line.as_ref());
    let why = format!(
        "function: must not contain a hook with a function, print_value or runtime_call, because a \
         program over a mesh cannot call the host; got {hook}{line}; return the value instead"
    );
    Error::Arguments { function: function.into(), why }
}

fn wrong(function: &str, why: String) -> Error {
    Error::Arguments { function: function.into(), why }
}

/// The types of a device's parts of tensors.
fn parts_of<'a>(
    function: &str,
    mesh: &Mesh,
    types: impl Iterator<Item = &'a TensorType>,
    shardings: &[Sharding],
) -> Result<Vec<TensorType>> {
    let types: Vec<&TensorType> = types.collect();
    if types.len() != shardings.len() {
        let (found, expected) = (shardings.len(), types.len());
        return Err(wrong(
            function,
            format!("shardings: must be {expected}, one for each tensor; got {found}"),
        ));
    }
    if let Some(other) = shardings.iter().find(|sharding| sharding.mesh() != mesh) {
        return Err(wrong(function, format!("shardings: must use the mesh {mesh}; got {other:?}")));
    }
    let part = |(ty, sharding): (&TensorType, &Sharding)| {
        Ok(TensorType { shape: sharding.part(&ty.shape)?, ..ty.clone() })
    };
    types.into_iter().zip(shardings).map(part).collect()
}

fn layouts(shardings: &[Sharding]) -> Vec<Layout> {
    shardings.iter().map(|sharding| sharding.layout().clone()).collect()
}

fn is_empty(ty: &TensorType) -> bool {
    ty.shape.size() == 0
}

/// Checks that XLA's results have the layouts of the outputs. XLA may return a result without elements
/// undivided.
fn check_parts(executable: &pjrt::LoadedExecutable, wanted: &[TensorType]) -> Result<()> {
    let given = executable.outputs();
    let fits = |((dtype, shape), ty): (&(_, Shape), &TensorType)| {
        *dtype == ty.dtype && (*shape == ty.shape || is_empty(ty) && shape.size() == 0)
    };
    if given.len() == wanted.len() && given.iter().zip(wanted).all(fits) {
        return Ok(());
    }
    let given: Vec<String> = given.iter().map(|(dtype, shape)| format!("{dtype}{shape}")).collect();
    Err(Error::Internal(format!("XLA divided the results differently: {}", given.join(", "))))
}
