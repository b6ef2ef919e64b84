//! StableHLO text from elsewhere, as something that runs.

use std::sync::Arc;

use nxla_eval::Interrupt;
use nxla_expr::{Digest, TensorType};
use nxla_tensor::{DType, Shape};

use super::{NAME, What, XlaExecutable, compile_text, settings, target_of};
use crate::cache::{CacheKey, CompilerKey, executables};
use crate::compiler::{Executable, RunContext, compiler_named};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::options::{Options, Settings};
use crate::tensor::RawTensor;

/// A module with the types of the parameters of its function `@main`.
#[derive(Clone, Debug)]
pub struct Imported {
    text: Arc<str>,
    digest: Digest,
    inputs: Vec<TensorType>,
}

impl Imported {
    /// Reads the signature of a module. The rest of it is read by XLA, when it is first run.
    ///
    /// # Errors
    /// Returns an error for a module without a function `@main` on tensors with static shapes.
    pub fn new(text: &str) -> Result<Self> {
        let inputs =
            parameters(text).map_err(|why| Error::Format { format: "StableHLO".into(), why })?;
        let digest = Digest(*blake3::hash(text.as_bytes()).as_bytes());
        Ok(Self { text: text.into(), digest, inputs })
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The types of the arguments.
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
        place: Option<&Device>,
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
        let device = options.device.as_ref().or(place).filter(|device| !device.is_host()).cloned();
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
        let settings = settings::of_foreign_text(settings, &target);
        let executable = compile_text(&target, &self.text, &settings)?;
        if executable.num_devices() > 1 {
            let why = "a StableHLO module must be for one device; got a module for several devices";
            return Err(Error::Usage(why.into()));
        }
        let outputs = executable.outputs().len();
        // Every loop counts as long: the module has no cost estimate.
        let loops = self.text.contains("stablehlo.while");
        let what = What::text(&self.inputs, outputs, loops);
        Ok(Arc::new(XlaExecutable::new(target, executable, what)))
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
        let place = options.place_of("import_stablehlo", inputs.iter().copied())?;
        let executable = self.compile(options, place.as_ref(), interrupt)?;
        executable.run(inputs, &RunContext { interrupt, ..RunContext::default() })
    }
}

/// The types of the parameters of `@main`.
fn parameters(text: &str) -> Result<Vec<TensorType>, String> {
    if text.as_bytes().starts_with(b"ML\xefR") {
        return Err("this is bytecode; convert it to text first".into());
    }
    let (_, rest) = text.split_once("@main(").ok_or("the module must have a function @main")?;
    let list =
        &rest[..end_of(rest, b"(<[{", b")>]}").ok_or("the parameters of @main have no end")?];
    let mut types = Vec::new();
    let mut rest = list;
    while !rest.trim().is_empty() {
        let end = next_comma(rest);
        let (parameter, more) = rest.split_at(end);
        types.push(parameter_type(parameter)?);
        rest = more.strip_prefix(',').unwrap_or(more);
    }
    Ok(types)
}

/// The type in `%name: tensor<2xf32> {attributes}`.
fn parameter_type(parameter: &str) -> Result<TensorType, String> {
    let wrong = |why: &str| format!("parameter {:?} {why}", parameter.trim());
    let (_, ty) = parameter.split_once(": ").ok_or_else(|| wrong("has no type"))?;
    let inner = ty.trim_start().strip_prefix("tensor<");
    let inner = inner.ok_or_else(|| wrong("is not a tensor"))?;
    let end = end_of(inner, b"<", b">").ok_or_else(|| wrong("has an unterminated type"))?;
    let mut dims = Vec::new();
    let mut rest = &inner[..end];
    while rest.starts_with(|c: char| c.is_ascii_digit() || c == '?') {
        let (dim, more) = rest.split_once('x').ok_or_else(|| wrong("has no element type"))?;
        dims.push(dim.parse::<usize>().map_err(|_| wrong("has a dynamic size"))?);
        rest = more;
    }
    let dtype = element(rest).ok_or_else(|| wrong("has elements of an unknown type"))?;
    Ok(TensorType::new(dtype, Shape::from(dims)))
}

/// The end of a list after its opening bracket. Strings may contain brackets.
fn end_of(text: &str, open: &[u8], close: &[u8]) -> Option<usize> {
    let mut depth = 0_usize;
    let mut bytes = text.bytes().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'"' => skip_string(&mut bytes),
            _ if open.contains(&byte) => depth += 1,
            // The arrow of a type is not a bracket.
            b'>' if at > 0 && text.as_bytes()[at - 1] == b'-' => {}
            _ if close.contains(&byte) && depth == 0 => return Some(at),
            _ if close.contains(&byte) => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The end of the first item of a list.
fn next_comma(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut bytes = text.bytes().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'"' => skip_string(&mut bytes),
            b'(' | b'<' | b'[' | b'{' => depth += 1,
            b')' | b'>' | b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => return at,
            _ => {}
        }
    }
    text.len()
}

fn skip_string(bytes: &mut impl Iterator<Item = (usize, u8)>) {
    while let Some((_, byte)) = bytes.next() {
        match byte {
            b'\\' => drop(bytes.next()),
            b'"' => return,
            _ => {}
        }
    }
}

/// The dtype of a name of MLIR.
fn element(name: &str) -> Option<DType> {
    Some(match name.trim() {
        "i1" => DType::Pred,
        "ui2" => DType::U2,
        "ui4" => DType::U4,
        "ui8" => DType::U8,
        "ui16" => DType::U16,
        "ui32" => DType::U32,
        "ui64" => DType::U64,
        "i2" => DType::S2,
        "i4" => DType::S4,
        "i8" => DType::S8,
        "i16" => DType::S16,
        "i32" => DType::S32,
        "i64" => DType::S64,
        "f8E5M2" => DType::F8E5M2,
        "f8E4M3FN" => DType::F8E4M3FN,
        "bf16" => DType::BF16,
        "f16" => DType::F16,
        "f32" => DType::F32,
        "f64" => DType::F64,
        "complex<f32>" => DType::C64,
        "complex<f64>" => DType::C128,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn types(parameters: &str) -> Result<String, Error> {
        let text = format!("module {{ func.func public @main({parameters}) -> () {{ return }} }}");
        let types =
            Imported::new(&text)?.inputs.iter().map(ToString::to_string).collect::<Vec<_>>();
        Ok(types.join(" "))
    }

    #[test]
    fn the_signature_is_read() {
        for (parameters, expected) in [
            ("", ""),
            ("%arg0: tensor<f32>", "f32"),
            (
                "%a: tensor<2x0x3xbf16> {a = \")\"}, %b: tensor<4xcomplex<f64>>",
                "bf16[2][0][3] c128[4]",
            ),
            (
                "%a: tensor<2xi1> loc(\"x, (y\"), %b: tensor<1xui8> {s = #sdy.sharding<@m, [{}, {}]>}",
                "pred[2] u8[1]",
            ),
        ] {
            assert_eq!(types(parameters).unwrap(), expected, "{parameters}");
        }
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for (parameters, why) in [
            ("%a: tensor<?xf32>", "a dynamic size"),
            ("%a: tensor<2xfoo>", "an unknown type"),
            ("%a: !stablehlo.token", "is not a tensor"),
            ("%a", "has no type"),
        ] {
            let error = types(parameters).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
        assert!(Imported::new("module {}").unwrap_err().to_string().contains("@main"));
    }
}
