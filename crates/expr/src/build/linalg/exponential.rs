//! The matrix exponential.
//!
//! N. J. Higham, "The scaling and squaring method for the matrix exponential revisited" (2005), with the
//! approximant of degree 13.

use nxla_tensor::{DType, Scalar};

use super::super::formula::Formula;
use crate::graph::{ExprId, Graph, Replay, Result};

/// The degree of the Padé approximant.
const DEGREE: usize = 13;

/// The 1-norm up to which the approximant has the precision of `f64`.
const LARGEST_NORM: f64 = 5.371_920_351_148_152;

/// Returns the coefficients of the numerator of the approximant; the first one is 1.
fn coefficients() -> [f64; DEGREE + 1] {
    let mut found = [1.0; DEGREE + 1];
    for k in 1..=DEGREE {
        let ratio = (DEGREE - k + 1) as f64 / (k * (2 * DEGREE - k + 1)) as f64;
        found[k] = found[k - 1] * ratio;
    }
    found
}

impl Graph {
    /// Returns the exponential of square matrices. Integers become `f32`, and narrow floats are
    /// computed in `f64`. Names are dropped.
    ///
    /// # Errors
    /// Returns an error for matrices that are not square.
    pub fn expm(&mut self, a: ExprId) -> Result<ExprId> {
        let ty = self.tensor_type(a).clone();
        self.square_side(&ty)?;
        let dtype = ty.dtype.to_floating();
        let wide = if dtype.bits() < 32 { DType::F64 } else { dtype };
        let a = self.plain_as(a, wide)?;
        let exponential = if ty.shape.size() == 0 { a } else { self.scale_and_square(a)? };
        self.as_type(exponential, dtype)
    }

    /// Divides matrices by a power of two, so that the approximant is accurate, and squares its
    /// results as many times.
    fn scale_and_square(&mut self, a: ExprId) -> Result<ExprId> {
        let dtype = self.dtype(a);
        // The derivative does not depend on the power.
        let fixed = self.stop_grad(a)?;
        let magnitudes = self.abs(fixed)?;
        let columns = self.sum(magnitudes, Some(&[-2]), true)?;
        let norm = self.reduce_max(columns, Some(&[-1]), true)?;
        let formula = Formula::new(self);
        let [norm, matrices] = formula.terms([norm, a]);
        let norm = norm.is_finite().select(norm, 0.0);
        let power = (norm / LARGEST_NORM).max(1.0).log2().ceil();
        let scale = power.number(2.0).pow(-power).as_type(dtype);
        let [scaled, power] = formula.ids([matrices * scale, power])?;
        let approximant = self.pade_approximant(scaled)?;
        let steps = self.reduce_max(power, None, false)?;
        let steps = self.as_type(steps, DType::S32)?;
        let zero = self.scalar_constant(Scalar::Int(0), DType::S32)?;
        let square = |graph: &mut Graph, state: &[ExprId]| {
            let (step, x) = (state[0], state[1]);
            let product = graph.matrix_product(x, x)?;
            let formula = Formula::new(graph);
            let [step, x, product, power] = formula.terms([step, x, product, power]);
            let is_active = step.as_type(power.dtype()).less(power);
            Ok(formula.ids([step + step.one(), is_active.select(product, x)])?.to_vec())
        };
        let is_unfinished = |graph: &mut Graph, state: &[ExprId]| graph.less(state[0], steps);
        let initial = [zero, approximant];
        Ok(self.repeat_while(&initial, Replay::default(), is_unfinished, square)?[1])
    }

    /// Returns the exponential of matrices of a small norm.
    fn pade_approximant(&mut self, a: ExprId) -> Result<ExprId> {
        let ty = self.tensor_type(a).clone();
        let side = self.square_side(&ty)?;
        let one = self.eye([side, side], ty.dtype)?;
        let a2 = self.matrix_product(a, a)?;
        let a4 = self.matrix_product(a2, a2)?;
        let a6 = self.matrix_product(a4, a2)?;
        let c = coefficients();
        // The sum of every second term from a coefficient on.
        let half = |graph: &mut Graph, first: usize| {
            let formula = Formula::new(graph);
            let [one, a2, a4, a6] = formula.terms([one, a2, a4, a6]);
            let inner = c[first + 10] * a4 + c[first + 8] * a2 + c[first + 12] * a6;
            let outer = c[first + 6] * a6 + c[first + 4] * a4 + c[first + 2] * a2 + c[first] * one;
            let [a6, inner, outer] = formula.ids([a6, inner, outer])?;
            let product = graph.matrix_product(a6, inner)?;
            graph.add(product, outer)
        };
        let odd = half(self, 1)?;
        let odd = self.matrix_product(a, odd)?;
        let even = half(self, 0)?;
        let (denominator, numerator) = (self.subtract(even, odd)?, self.add(even, odd)?);
        self.solve(denominator, numerator)
    }
}
