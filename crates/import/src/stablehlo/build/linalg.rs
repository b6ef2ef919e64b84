//! Factorizations, triangular systems, Fourier transforms, normalizations and the largest elements.

use nxla_expr::build::FftNorm;
use nxla_expr::{ExprId, Transform, TriangularSolve};
use nxla_tensor::{DType, Scalar};

use super::operand::{as_array, axes};
use super::{Builder, Fail, malformed, unsupported};
use crate::numbers::to_f64;
use crate::stablehlo::syntax::Operation;

impl Builder<'_> {
    pub(super) fn linalg(
        &mut self,
        name: &str,
        operation: &Operation,
        x: &[ExprId],
    ) -> Result<Option<Vec<ExprId>>, Fail> {
        Ok(Some(match name {
            "cholesky" => {
                let [a] = as_array(x)?;
                let lower = operation.flag(&["lower"]);
                vec![self.cholesky_of(a, lower)?]
            }
            "triangular_solve" => {
                let [a, b] = as_array(x)?;
                let (transform, is_adjoint) = match operation.text(&["transpose_a"]) {
                    Some("TRANSPOSE") => (Transform::Transpose, false),
                    Some("ADJOINT") => (Transform::Transpose, true),
                    _ => (Transform::None, false),
                };
                let options = TriangularSolve {
                    lower: operation.flag(&["lower"]),
                    left_side: operation.flag(&["left_side"]),
                    transform,
                };
                let unit = operation.flag(&["unit_diagonal"]);
                vec![self.triangular(a, b, options, is_adjoint, unit)?]
            }
            "fft" => {
                let [x] = as_array(x)?;
                vec![self.fourier(operation, x)?]
            }
            "chlo.top_k" => {
                let [x] = as_array(x)?;
                self.top_k(x, operation.size(&["k"])?)?
            }
            "batch_norm_inference" => {
                let [x, scale, offset, mean, variance] = as_array(x)?;
                vec![self.normalize(operation, x, [scale, offset, mean, variance])?]
            }
            "batch_norm_training" => {
                let [x, scale, offset] = as_array(x)?;
                let along = self.other_axes(operation, x)?;
                let mean = self.graph.mean(x, Some(&along), false)?;
                let variance = self.graph.variance(x, Some(&along), false, 0.0)?;
                let result = self.normalize(operation, x, [scale, offset, mean, variance])?;
                vec![result, mean, variance]
            }
            "batch_norm_grad" => {
                let operands = as_array(x)?;
                self.batch_norm_grad(operation, operands)?
            }
            _ => return Ok(None),
        }))
    }

    /// Returns the largest elements of the last axis and their indices; `k` may be 0 here.
    pub(super) fn top_k(&mut self, x: ExprId, k: usize) -> Result<Vec<ExprId>, Fail> {
        if k > 0 || self.graph.shape(x).rank() == 0 {
            let (values, indices) = self.graph.top_k(x, k)?;
            return Ok(vec![values, indices]);
        }
        let none = self.graph.slice_along_axis(x, 0, 0, -1, 1)?;
        let indices = self.graph.iota(self.graph.shape(none).clone(), Some(-1), DType::S32)?;
        Ok(vec![none, indices])
    }

    /// Returns the factor of the lower or of the upper triangle.
    pub(super) fn cholesky_of(&mut self, a: ExprId, lower: bool) -> Result<ExprId, Fail> {
        if lower {
            return Ok(self.graph.cholesky(a)?);
        }
        let adjoint = self.graph.adjoint(a)?;
        let factor = self.graph.cholesky(adjoint)?;
        Ok(self.graph.adjoint(factor)?)
    }

    /// Solves a triangular system. With `conjugates`, the matrix is conjugated in addition to the
    /// transform of `options`. With `unit`, the diagonal counts as ones.
    pub(super) fn triangular(
        &mut self,
        a: ExprId,
        b: ExprId,
        options: TriangularSolve,
        conjugates: bool,
        unit: bool,
    ) -> Result<ExprId, Fail> {
        let is_complex = self.graph.dtype(a).is_complex();
        let a = if conjugates && is_complex { self.graph.conjugate(a)? } else { a };
        let a = if unit {
            let dtype = self.graph.dtype(a);
            let Some(&side) = self.graph.shape(a).last() else {
                return malformed("the operand must be a matrix");
            };
            let eye = self.graph.eye([side, side], DType::Pred)?;
            let one = self.graph.scalar_constant(Scalar::one(dtype), dtype)?;
            self.graph.select(eye, one, a)?
        } else {
            a
        };
        Ok(self.graph.triangular_solve(a, b, options)?)
    }

    fn fourier(&mut self, operation: &Operation, x: ExprId) -> Result<ExprId, Fail> {
        let lengths = operation.sizes(&["fft_length", "length"])?;
        let keywords = operation.keywords();
        let kind = operation.text(&["fft_type", "type"]).or(keywords.first().copied());
        let rank = self.graph.shape(x).rank();
        let Some(first) = rank.checked_sub(lengths.len()).filter(|_| !lengths.is_empty()) else {
            return malformed("fft_length must have one entry per transformed axis");
        };
        let positions: Vec<usize> = (first..rank).collect();
        let along = axes(&positions);
        let mut x = x;
        match kind {
            Some("FFT") => {
                for (&axis, &length) in along.iter().zip(&lengths) {
                    x = self.graph.fft(x, Some(length), axis, FftNorm::Backward)?;
                }
            }
            Some("IFFT") => {
                for (&axis, &length) in along.iter().zip(&lengths) {
                    x = self.graph.ifft(x, Some(length), axis, FftNorm::Backward)?;
                }
            }
            Some("RFFT") => {
                x = self.graph.rfftn(x, Some(&lengths), Some(&along), FftNorm::Backward)?
            }
            Some("IRFFT") => {
                x = self.graph.irfftn(x, Some(&lengths), Some(&along), FftNorm::Backward)?
            }
            _ => return malformed("the type must be FFT, IFFT, RFFT or IRFFT"),
        }
        Ok(x)
    }

    /// Returns all axes but the axis of the features.
    fn other_axes(&self, operation: &Operation, x: ExprId) -> Result<Vec<i64>, Fail> {
        let feature = operation.size(&["feature_index"])?;
        let rank = self.graph.shape(x).rank();
        if feature >= rank {
            return malformed("feature_index is out of range");
        }
        let others: Vec<usize> = (0..rank).filter(|&axis| axis != feature).collect();
        Ok(axes(&others))
    }

    /// Broadcasts one value per feature.
    fn per_feature(
        &mut self,
        operation: &Operation,
        x: ExprId,
        value: ExprId,
    ) -> Result<ExprId, Fail> {
        let feature = operation.integer(&["feature_index"])?;
        let shape = self.graph.shape(x).clone();
        Ok(self.graph.broadcast(value, shape, Some(&[feature]))?)
    }

    fn inverse_deviation(
        &mut self,
        operation: &Operation,
        x: ExprId,
        variance: ExprId,
    ) -> Result<ExprId, Fail> {
        let epsilon = match operation.attribute(&["epsilon"]) {
            Some(crate::stablehlo::syntax::Attribute::Float(value)) => *value,
            _ => return malformed("epsilon must be a number"),
        };
        let epsilon = self.number(epsilon, self.graph.dtype(x))?;
        let sum = self.graph.add(variance, epsilon)?;
        let inverse = self.graph.rsqrt(sum)?;
        self.per_feature(operation, x, inverse)
    }

    fn normalize(
        &mut self,
        operation: &Operation,
        x: ExprId,
        [scale, offset, mean, variance]: [ExprId; 4],
    ) -> Result<ExprId, Fail> {
        let mean = self.per_feature(operation, x, mean)?;
        let scale = self.per_feature(operation, x, scale)?;
        let offset = self.per_feature(operation, x, offset)?;
        let inverse = self.inverse_deviation(operation, x, variance)?;
        let centered = self.graph.subtract(x, mean)?;
        let unit = self.graph.multiply(centered, inverse)?;
        let scaled = self.graph.multiply(unit, scale)?;
        Ok(self.graph.add(scaled, offset)?)
    }

    /// Builds the gradients of a normalization in training, by the formula of the specification.
    fn batch_norm_grad(
        &mut self,
        operation: &Operation,
        [x, scale, mean, variance, gradient]: [ExprId; 5],
    ) -> Result<Vec<ExprId>, Fail> {
        let along = self.other_axes(operation, x)?;
        let shape = self.graph.shape(x).clone();
        let features = self.graph.shape(mean).size().max(1);
        let count = self.number(to_f64(shape.size() / features), self.graph.dtype(x))?;
        let mean = self.per_feature(operation, x, mean)?;
        let inverse = self.inverse_deviation(operation, x, variance)?;
        let centered = self.graph.subtract(x, mean)?;
        let unit = self.graph.multiply(centered, inverse)?;
        let offset_gradient = self.graph.sum(gradient, Some(&along), false)?;
        let weighted = self.graph.multiply(gradient, unit)?;
        let scale_gradient = self.graph.sum(weighted, Some(&along), false)?;
        let sums = self.per_feature(operation, x, offset_gradient)?;
        let products = self.per_feature(operation, x, scale_gradient)?;
        let all = self.graph.multiply(gradient, count)?;
        let along_unit = self.graph.multiply(unit, products)?;
        let difference = self.graph.subtract(all, sums)?;
        let difference = self.graph.subtract(difference, along_unit)?;
        let scale = self.per_feature(operation, x, scale)?;
        let factor = self.graph.multiply(scale, inverse)?;
        let factor = self.graph.divide(factor, count)?;
        let operand = self.graph.multiply(factor, difference)?;
        if self.graph.dtype(operand) != self.graph.dtype(x) {
            return unsupported("the operands must be floats");
        }
        Ok(vec![operand, scale_gradient, offset_gradient])
    }
}
