//! The reader of StableHLO modules.
//!
//! [`Module::from_bytes`] reads the textual form of MLIR with the dialects `func`, `stablehlo` and `chlo`,
//! portable artifacts, which are bytecode of MLIR, and exports of JAX, which hold a portable artifact.
//! Functions are inlined. An operation that is more general than the ops of graphs (gathers, scatters,
//! sorts, reductions of several operands) becomes a composition.

mod attributes;
mod build;
mod bytecode;
mod export;
mod forms;
mod lexer;
mod literal;
mod syntax;
mod text;
mod types;

pub use export::{ExportSignature, ExportTree};
use nxla_expr::{Program, TensorType};
use nxla_tensor::HostTensor;

use crate::{ImportError, ImportErrorKind, Result};
use syntax::Position;

/// The name of the format in errors.
const FORMAT: &str = "StableHLO";

/// The deepest nesting of types, attributes, regions and calls.
const MAX_DEPTH: usize = 64;

fn malformed_at(position: Position, why: impl Into<String>) -> ImportError {
    let kind = ImportErrorKind::Malformed { place: position.into(), why: why.into() };
    ImportError { format: FORMAT, kind }
}

fn malformed_line(line: usize, why: impl Into<String>) -> ImportError {
    malformed_at(Position::Line(line), why)
}

/// A module whose main function became a program.
///
/// ```
/// use nxla_import::stablehlo::{Module, ReadOptions};
///
/// let module = Module::from_bytes(
///     b"func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
///        %0 = stablehlo.sine %x : tensor<3xf32>
///        return %0 : tensor<3xf32>
///      }",
///     &ReadOptions::default(),
/// )?;
/// assert_eq!(module.program().inputs()[0].to_string(), "f32[3]");
/// # Ok::<(), nxla_import::ImportError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Module {
    program: Program,
    input_names: Vec<Option<String>>,
    output_names: Vec<Option<String>>,
    weights: Vec<HostTensor>,
    signature: Option<ExportSignature>,
}

/// The treatment of constant tensors of floats with different elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Weights {
    /// Constants are literals of the program.
    #[default]
    Constants,
    /// Constants are inputs of the program, after the inputs of the main function.
    Inputs,
}

/// Options of [`Module::from_bytes`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ReadOptions {
    /// The treatment of constants.
    pub weights: Weights,
    /// The platform, if JAX exported the function for several platforms. Without a choice, it is
    /// `cpu`, or the first platform.
    pub platform: Option<String>,
}

/// Returns the types of the inputs of the function `@main` of a module in textual form. The operations
/// of the module may be of any dialect, because they are not read.
///
/// ```
/// use nxla_import::stablehlo::input_types;
///
/// let text = "func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> { any.operation }";
/// assert_eq!(input_types(text)?[0].to_string(), "f32[3]");
/// # Ok::<(), nxla_import::ImportError>(())
/// ```
///
/// # Errors
/// Returns an error with a line if the module has no function `@main`, and if an input of the function
/// is not a tensor with a static shape.
pub fn input_types(text: &str) -> Result<Vec<TensorType>> {
    text::main_inputs(text)
}

impl Module {
    /// Reads a file: a portable artifact in bytecode, a module in textual form, or a function that
    /// `jax.export` serialized.
    ///
    /// # Errors
    /// Returns an error with a line or byte for a damaged file, an error that lists all unsupported
    /// operations, and an error for a platform that the file does not name.
    pub fn from_bytes(bytes: &[u8], options: &ReadOptions) -> Result<Self> {
        let (weights, platform) = (options.weights, options.platform.as_deref());
        if bytes.starts_with(bytecode::MAGIC) {
            let platform = export::platform_index(&[], platform)?;
            return build::main_function(&bytecode::read(bytes, 0)?, weights, platform);
        }
        // An export of JAX is never valid UTF-8, because it holds the first bytes of bytecode.
        if let Ok(text) = std::str::from_utf8(bytes) {
            let platform = export::platform_index(&[], platform)?;
            return build::main_function(&text::read(text)?, weights, platform);
        }
        let (module, origin) = export::module(bytes)?;
        let platform = export::platform_index(&export::platforms(bytes)?, platform)?;
        let mut module = build::main_function(&bytecode::read(module, origin)?, weights, platform)?;
        let inputs = module.program.inputs().len() - module.weights.len();
        // Exports with symbolic sizes or effects have inputs and outputs beyond the leaves.
        module.signature = export::signature(bytes)?.filter(|signature| {
            let leaves = signature.inputs.leaves();
            signature.kept.len() == inputs
                && signature.kept.iter().all(|&leaf| leaf < leaves)
                && signature.outputs.leaves() == module.program.outputs().len()
        });
        Ok(module)
    }

    /// Returns the containers of the arguments and of the result of a function that JAX exported. The
    /// signature is missing for other files, and if a container is of a class.
    pub fn signature(&self) -> Option<&ExportSignature> {
        self.signature.as_ref()
    }

    /// Returns the values of the inputs that were constants, see [`Weights::Inputs`].
    pub fn weights(&self) -> &[HostTensor] {
        &self.weights
    }

    /// Returns the main function.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Returns the names of the inputs in the file.
    pub fn input_names(&self) -> &[Option<String>] {
        &self.input_names
    }

    /// Returns the names of the outputs in the file.
    pub fn output_names(&self) -> &[Option<String>] {
        &self.output_names
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
mod tests;
