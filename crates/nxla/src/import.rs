//! Programs of other systems as functions of expressions: StableHLO modules and ONNX models.
//!
//! [`Module::from_bytes`](stablehlo::Module::from_bytes) reads StableHLO, and
//! [`call_program`](crate::call_program) applies its program to expressions. [`onnx::load`] reads
//! ONNX, and [`onnx::apply`] applies the model.
//!
//! ```
//! use nxla::import::stablehlo::{Module, ReadOptions};
//! use nxla::{Expr, Tensor, call_program, jit};
//!
//! let text = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
//!   %0 = stablehlo.multiply %x, %x : tensor<2xf32>
//!   return %0 : tensor<2xf32>
//! }";
//! let module = Module::from_bytes(text.as_bytes(), &ReadOptions::default())?;
//! let square = jit(move |x: Expr| call_program(module.program(), &[x]));
//! assert_eq!(square.call(Tensor::from([2.0f32, 3.0]))?[0].to_vec::<f32>()?, [4.0, 9.0]);
//! # Ok::<(), nxla::Error>(())
//! ```
//!
//! Damaged input is an error with a position, and unsupported input is one error that lists all
//! unsupported operations. The module needs the feature `import`.

pub use nxla_import::{ImportError, ImportErrorKind, Place, Result, Unsupported, stablehlo};

pub mod onnx {
    //! ONNX models as functions of expressions.

    use std::panic::Location;
    use std::path::Path;

    use nxla_expr::{ExprId, Graph};
    use nxla_runtime::{Operand, build_onnx, called_once, load_onnx, read_onnx};

    pub use nxla_import::onnx::{
        Dim, Evaluate, External, Model, NoExternal, OPSETS, ValueInfo, operators,
    };

    use crate::apply::build_ids;
    use crate::program::results_or_failed;
    use crate::{Expr, Result, Tensor};

    /// Reads an ONNX model from a file. Weights in other files are read from its folder.
    ///
    /// ```
    /// use nxla::import::onnx;
    /// use nxla::{Expr, Tensor, jit};
    ///
    /// # let path = std::env::temp_dir().join(format!("nxla-onnx-{}.onnx", std::process::id()));
    /// # std::fs::write(&path, b"\x08\x08:H\n\x0e\n\x01x\n\x01w\x12\x01y\"\x03Mul\x12\x01g*\x11\
    /// #     \x08\x02\x10\x01B\x01wJ\x08\x00\x00\x00@\x00\x00@@Z\x0f\n\x01x\x12\n\n\x08\x08\x01\
    /// #     \x12\x04\n\x02\x08\x02b\x0f\n\x01y\x12\n\n\x08\x08\x01\x12\x04\n\x02\x08\x02B\x04\n\
    /// #     \x00\x10\x11").expect("the folder exists");
    /// let model = onnx::load(&path)?; // y = x * w, with w = [2, 3]
    /// let weights = onnx::weights(&model);
    /// let f = jit(move |x: Expr| onnx::apply(&model, &weights, &[x]));
    /// assert_eq!(f.call(Tensor::from([1.0f32, 1.0]))?[0].to_vec::<f32>()?, [2.0, 3.0]);
    /// # std::fs::remove_file(&path).expect("it has been written");
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if a file cannot be read, an error with a position for a damaged model, and
    /// one error that lists all unsupported operators.
    pub fn load(file: impl AsRef<Path>) -> Result<Model> {
        load_onnx(file.as_ref())
    }

    /// Reads an ONNX model from bytes that contain all weights.
    ///
    /// ```
    /// use nxla::ErrorClass;
    /// use nxla::import::onnx;
    ///
    /// let error = onnx::read(b"not a model").unwrap_err();
    /// assert_eq!(error.class(), ErrorClass::Format);
    /// ```
    ///
    /// # Errors
    /// Returns an error with a position for a damaged model, and one error that lists all unsupported
    /// operators.
    pub fn read(bytes: &[u8]) -> Result<Model> {
        read_onnx(bytes)
    }

    /// Returns the values of the weights in the order of [`Model::weights`], which also returns their
    /// names. The packed integers of a quantized model are among them, but they cannot be trained.
    ///
    /// ```
    /// # let bytes = b"\x08\x08:H\n\x0e\n\x01x\n\x01w\x12\x01y\"\x03Mul\x12\x01g*\x11\
    /// #     \x08\x02\x10\x01B\x01wJ\x08\x00\x00\x00@\x00\x00@@Z\x0f\n\x01x\x12\n\n\x08\x08\x01\
    /// #     \x12\x04\n\x02\x08\x02b\x0f\n\x01y\x12\n\n\x08\x08\x01\x12\x04\n\x02\x08\x02B\x04\n\
    /// #     \x00\x10\x11";
    /// let model = nxla::import::onnx::read(bytes)?;
    /// assert_eq!(model.weights()[0].0, "w");
    /// assert_eq!(nxla::import::onnx::weights(&model)[0].to_vec::<f32>()?, [2.0, 3.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn weights(model: &Model) -> Vec<Tensor> {
        model.weights().iter().map(|(_, value)| value.clone().into()).collect()
    }

    /// Applies a model to weights and inputs, and returns its outputs. The weights are in the order of
    /// [`weights`]; as arguments of the traced function, they can be trained.
    ///
    /// ```
    /// use nxla::import::onnx;
    /// use nxla::{Expr, Tensor, grad, jit};
    ///
    /// # let bytes = b"\x08\x08:H\n\x0e\n\x01x\n\x01w\x12\x01y\"\x03Mul\x12\x01g*\x11\
    /// #     \x08\x02\x10\x01B\x01wJ\x08\x00\x00\x00@\x00\x00@@Z\x0f\n\x01x\x12\n\n\x08\x08\x01\
    /// #     \x12\x04\n\x02\x08\x02b\x0f\n\x01y\x12\n\n\x08\x08\x01\x12\x04\n\x02\x08\x02B\x04\n\
    /// #     \x00\x10\x11";
    /// let model = onnx::read(bytes)?; // y = x * w, with w = [2, 3]
    /// let weights = onnx::weights(&model);
    /// let slopes = jit(move |weights: Vec<Expr>, x: Expr| {
    ///     let loss = |weights: Vec<Expr>| onnx::apply(&model, &weights, &[x.clone()])[0].sum();
    ///     grad(loss)(weights)
    /// });
    /// let slopes = slopes.call((&weights, Tensor::from([5.0f32, 7.0])))?;
    /// assert_eq!(slopes[0].to_vec::<f32>()?, [5.0, 7.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// The trace reports an error for weights or inputs that differ in number or type from the
    /// declared ones, and for a node that cannot be built for these types.
    #[must_use]
    #[track_caller]
    pub fn apply(model: &Model, weights: &[impl Operand], inputs: &[Expr]) -> Vec<Expr> {
        let (location, count) = (Location::caller(), weights.len());
        let inputs = inputs.iter().map(Operand::view);
        let operands: Vec<_> = weights.iter().map(Operand::view).chain(inputs).collect();
        let trace = &Expr::trace_of(&operands);
        let mut build = called_once(|graph: &mut Graph, ids: &[ExprId]| {
            let (weights, inputs) = ids.split_at(count);
            Ok(build_onnx(model, graph, weights, inputs)?.into_iter().collect())
        });
        let built = build_ids("onnx::apply", trace, location, &operands, &mut build);
        results_or_failed(trace, built, model.outputs().len())
    }
}
