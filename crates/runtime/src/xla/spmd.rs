//! Programs over several devices: XLA divides them, and each device has its part of each tensor.
//!
//! A mesh arranges devices along named axes. A layout says for each axis of a tensor along which
//! axes of the mesh it is divided; where it names none, every device has all of it. Shapes in the
//! program are those of whole tensors. What a run takes and gives are the parts, device by device.

use nxla_expr::{Program, TensorType};
use nxla_pjrt::{self as pjrt, Buffer, CompileOptions, ExecuteOptions};
use nxla_stablehlo::{Layout, LowerOptions, Partition, lower};
use nxla_tensor::{Names, Shape};

use super::client::{Target, target};
use super::{compile_with, settings};
use crate::analysis::Analysis;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::options::{Options, Setting, Settings};
use crate::profile::{self, Work};
use crate::tensor::{DeviceTensor, Tensor};

/// Devices along named axes, those of the last axis beside each other.
#[derive(Clone, Debug)]
pub struct Mesh {
    axes: Vec<(String, usize)>,
    client: pjrt::Client,
    devices: Vec<usize>,
}

impl Mesh {
    /// A mesh of devices of one client.
    ///
    /// # Errors
    /// Names that are none or occur twice; another number of devices than the axes have places; a
    /// device twice, or devices of two clients.
    pub fn new(axes: Vec<(String, usize)>, devices: &[Device]) -> Result<Self> {
        let wrong = |why: String| Err(Error::Options(format!("mesh: {why}")));
        for (place, (name, size)) in axes.iter().enumerate() {
            let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if name.is_empty() || !name.chars().all(is_letter) {
                return wrong(format!("{name:?} is no name of an axis: letters, digits and _ are"));
            }
            if axes[..place].iter().any(|(other, _)| other == name) {
                return wrong(format!("there are two axes {name:?}"));
            }
            if *size == 0 {
                return wrong(format!("the axis {name:?} has no device"));
            }
        }
        let places: usize = axes.iter().map(|(_, size)| size).product();
        if places != devices.len() {
            return wrong(format!("{places} devices are needed, got {}", devices.len()));
        }
        let Some(client) = devices.first().and_then(Device::client) else {
            return wrong("the host is no device for it; nx.devices() lists others".into());
        };
        let mut indices = Vec::with_capacity(devices.len());
        for device in devices {
            if device.client() != Some(client) {
                return wrong(format!("{} and {device} are of two clients", devices[0]));
            }
            if indices.contains(&device.index()) {
                return wrong(format!("{device} is there twice"));
            }
            indices.push(device.index());
        }
        Ok(Self { axes, client: client.clone(), devices: indices })
    }

    /// Names and sizes of the axes.
    pub fn axes(&self) -> &[(String, usize)] {
        &self.axes
    }

    /// The devices, in their order.
    ///
    /// # Errors
    /// None for a mesh that was made.
    pub fn devices(&self) -> Result<Vec<Device>> {
        self.devices.iter().map(|&index| Device::of(&self.client, index)).collect()
    }

    fn size_of(&self, axis: &str) -> Result<usize> {
        let found = self.axes.iter().find(|(name, _)| name == axis);
        found.map(|(_, size)| *size).ok_or_else(|| {
            let names: Vec<&str> = self.axes.iter().map(|(name, _)| name.as_str()).collect();
            let names = names.join(", ");
            Error::Options(format!("the mesh has no axis {axis:?}; it has {names}"))
        })
    }

    /// The shape of a part of a tensor.
    ///
    /// # Errors
    /// A layout that does not fit the mesh or the shape.
    pub fn part(&self, shape: &Shape, layout: &Layout) -> Result<Shape> {
        if layout.len() > shape.rank() {
            let (axes, rank) = (layout.len(), shape.rank());
            let why = format!("a layout of {axes} axes is for a tensor of {rank}, {shape}");
            return Err(Error::Options(why));
        }
        let mut seen: Vec<&str> = Vec::new();
        let mut sizes: Vec<usize> = shape.iter().copied().collect();
        for (axis, along) in layout.iter().enumerate() {
            for name in along {
                if seen.contains(&name.as_str()) {
                    let why = format!("a layout names the axis {name:?} of the mesh twice");
                    return Err(Error::Options(why));
                }
                seen.push(name);
                let count = self.size_of(name)?;
                if !sizes[axis].is_multiple_of(count) {
                    return Err(Error::Options(format!(
                        "axis {axis} of {shape} cannot be divided along {name:?} into {count} \
                         equal parts"
                    )));
                }
                sizes[axis] /= count;
            }
        }
        Ok(Shape::from(sizes))
    }
}

/// So many devices of one client: of the default one, or for a plugin that makes as many devices for
/// the CPU as it is told, of one that has them.
///
/// # Errors
/// Fewer devices than that; no plugin.
pub fn mesh_devices(count: usize, settings: &Settings) -> Result<Vec<Device>> {
    let mut found = target(settings)?;
    if found.client.devices().len() < count && found.is_cpu() {
        let mut settings = settings.clone();
        let wanted = i64::try_from(count).unwrap_or(i64::MAX);
        settings.insert("cpu_device_count".into(), Setting::Int(wanted));
        found = target(&settings)?;
    }
    let there = found.client.devices().len();
    if there < count {
        let platform = found.client.platform_name();
        let why =
            format!("mesh: {count} devices are needed, the platform {platform:?} has {there}");
        return Err(Error::Options(why));
    }
    (0..count).map(|index| Device::of(&found.client, index)).collect()
}

/// A program, divided over a mesh and compiled.
pub struct Divided {
    mesh: Mesh,
    text: String,
    executable: pjrt::Executable,
    used_inputs: Vec<usize>,
    /// What each device is given of each input.
    parts: Vec<TensorType>,
    names: Vec<Option<Names>>,
}

impl Divided {
    /// Divides and compiles a program whose inputs have these layouts. Without layouts of the outputs,
    /// XLA chooses them.
    ///
    /// # Errors
    /// Layouts that do not fit; a hook that somebody listens to; what the plugin says.
    pub fn compile(
        program: &Program,
        options: &Options,
        mesh: &Mesh,
        inputs: &[Layout],
        outputs: Option<&[Layout]>,
    ) -> Result<Self> {
        settings::check(&options.settings)?;
        let parts = parts_of(mesh, program.inputs().iter(), inputs)?;
        let wanted = match outputs {
            Some(outputs) => Some(parts_of(mesh, program.output_types(), outputs)?),
            None => None,
        };
        let partition = Partition { axes: &mesh.axes, inputs, outputs };
        let module = lower(
            program,
            &LowerOptions {
                locations: true,
                precision: settings::precision(&options.settings)?,
                partition: Some(partition),
                ..LowerOptions::default()
            },
        )?;
        let home = Target::of(&mesh.client, mesh.devices[0]);
        let devices = mesh.client.devices();
        let compile_options = CompileOptions {
            num_partitions: mesh.devices.len(),
            device_ids: mesh.devices.iter().map(|&index| devices[index].id()).collect(),
            shardy: true,
            overrides: settings::flags(&options.settings, &home),
            ..CompileOptions::default()
        };
        let executable = compile_with(&home, &module.text, &compile_options, &options.settings)?;
        if let Some(wanted) = wanted {
            check_parts(&executable, &wanted)?;
        }
        let names = program.output_types().map(|ty| ty.names.clone()).collect();
        let (mesh, text, used_inputs) = (mesh.clone(), module.text, module.used_inputs);
        Ok(Self { mesh, text, executable, used_inputs, parts, names })
    }

    /// The text that was compiled, before XLA has divided it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Which inputs a run needs.
    pub fn used_inputs(&self) -> &[usize] {
        &self.used_inputs
    }

    /// What the plugin tells of it.
    ///
    /// # Errors
    /// As for [`Analysis`].
    pub fn analysis(&self) -> Result<Analysis> {
        super::analysis::analysis(&self.executable)
    }

    /// Runs it on the parts of all inputs: a list for each device of the mesh. Parts that are elsewhere
    /// are copied. Gives a list of results for each device.
    ///
    /// # Errors
    /// Another number of lists than devices, or parts of other types; what goes wrong in the run.
    pub fn run(&self, parts: &[Vec<Tensor>]) -> Result<Vec<Vec<Tensor>>> {
        let _span = profile::span(Work::Run, "run on a mesh");
        if parts.len() != self.mesh.devices.len() {
            let (found, expected) = (parts.len(), self.mesh.devices.len());
            return Err(wrong(format!("parts for {found} devices, the mesh has {expected}")));
        }
        let mut lists: Vec<Vec<Buffer>> = Vec::with_capacity(parts.len());
        for (list, &device) in parts.iter().zip(&self.mesh.devices) {
            lists.push(self.placed(list, device)?);
        }
        let lists: Vec<Vec<&Buffer>> = lists.iter().map(|list| list.iter().collect()).collect();
        let arguments: Vec<&[&Buffer]> = lists.iter().map(Vec::as_slice).collect();
        let results = self.executable.execute_on_all(&arguments, &ExecuteOptions::default())?;
        let wrap = |list: Vec<Buffer>| -> Result<Vec<Tensor>> {
            let named = list.into_iter().zip(&self.names).map(|(buffer, names)| {
                Ok(Tensor::Device(DeviceTensor::new(buffer).with_names(names.clone())?))
            });
            named.collect()
        };
        results.into_iter().map(wrap).collect()
    }

    /// What a device needs of its list, there.
    fn placed(&self, list: &[Tensor], device: usize) -> Result<Vec<Buffer>> {
        if list.len() != self.parts.len() {
            let (found, expected) = (list.len(), self.parts.len());
            return Err(wrong(format!("{found} parts for a device, the program takes {expected}")));
        }
        let client = &self.mesh.client;
        let place = |&input: &usize| {
            let (part, expected) = (list[input].data(), &self.parts[input]);
            if part.dtype() != expected.dtype || *part.shape() != expected.shape {
                let found = part.ty();
                return Err(wrong(format!("part of input {input}: {found}, expected {expected}")));
            }
            match part.buffer() {
                Some(buffer) if buffer.client() == client && buffer.device().index() == device => {
                    Ok(buffer.clone())
                }
                _ => part.copy_in(client, device),
            }
        };
        self.used_inputs.iter().map(place).collect()
    }
}

fn wrong(why: String) -> Error {
    Error::Arguments { function: "program on a mesh".into(), why }
}

/// What a device has of tensors of these types.
fn parts_of<'a>(
    mesh: &Mesh,
    types: impl Iterator<Item = &'a TensorType>,
    layouts: &[Layout],
) -> Result<Vec<TensorType>> {
    let types: Vec<&TensorType> = types.collect();
    if types.len() != layouts.len() {
        let (found, expected) = (layouts.len(), types.len());
        return Err(wrong(format!("{found} layouts for {expected} tensors")));
    }
    let part = |(ty, layout): (&TensorType, &Layout)| {
        Ok(TensorType { shape: mesh.part(&ty.shape, layout)?, ..ty.clone() })
    };
    types.into_iter().zip(layouts).map(part).collect()
}

/// XLA has to give what the layouts of the outputs say.
fn check_parts(executable: &pjrt::Executable, wanted: &[TensorType]) -> Result<()> {
    let given = executable.outputs();
    let fits =
        |((dtype, shape), ty): (&(_, Shape), &TensorType)| *dtype == ty.dtype && *shape == ty.shape;
    if given.len() == wanted.len() && given.iter().zip(wanted).all(fits) {
        return Ok(());
    }
    let given: Vec<String> = given.iter().map(|(dtype, shape)| format!("{dtype}{shape}")).collect();
    Err(Error::Internal(format!("XLA gives results divided otherwise: {}", given.join(", "))))
}
