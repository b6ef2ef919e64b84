//! Norms of vectors and matrices.

use nxla_tensor::{Number, Scalar, to_i64};

use super::super::composed::bits_of;
use super::super::formula::{Formula, Term};
use crate::graph::{Axes, ExprId, Graph, Op, ReduceOp, Result};

/// The norm that [`Graph::norm`] computes.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[non_exhaustive]
pub enum Norm {
    /// The root of the sum of squares: the Euclidean norm of vectors, the Frobenius norm of
    /// matrices.
    #[default]
    Euclid,
    /// For matrices, the root of the sum of squares.
    Frobenius,
    /// For vectors, the `p`-th root of the sum of `p`-th powers, or the number of nonzero elements
    /// for `p = 0`. For matrices, the largest (1) or smallest (-1) column sum, or the largest (2)
    /// or smallest (-2) singular value; other powers are not supported.
    Power(f64),
    /// For matrices, the sum of the singular values.
    Nuclear,
    /// For vectors the largest element, for matrices the largest row sum.
    Max,
    /// For vectors the smallest element, for matrices the smallest row sum.
    Min,
}

impl Graph {
    /// Returns a norm over one axis (of vectors) or two axes (of matrices), or over all axes for
    /// `None`. Norms use absolute values. The result is a real float. The norm of nothing is 0, or infinite if it is a
    /// smallest value.
    ///
    /// # Errors
    /// Returns an error unless there are one or two axes, or for a power that has no closed form
    /// for matrices.
    pub fn norm(
        &mut self,
        x: ExprId,
        norm: Norm,
        axes: Option<&[i64]>,
        keep_axes: bool,
    ) -> Result<ExprId> {
        let axes: Vec<i64> = match axes {
            Some(axes) => self.axes("norm", x, axes)?.into_iter().map(to_i64).collect(),
            None => self.all_axes(x),
        };
        let dtype = self.dtype(x).to_real();
        // Sums and the absolute value of the least integer would wrap.
        let x = self.as_type(x, self.dtype(x).to_floating())?;
        let size = self.abs(x)?;
        let result = match (norm, &axes[..]) {
            (Norm::Euclid, [_] | [_, _]) | (Norm::Frobenius, [_, _]) => {
                self.power_norm(size, 2.0, &axes)?
            }
            (Norm::Power(0.0), [_]) => {
                let zero = self.zero_like(size)?;
                let occupied = self.not_equal(size, zero)?;
                self.sum(occupied, Some(&axes), true)?
            }
            (Norm::Power(1.0), [_]) => self.sum(size, Some(&axes), true)?,
            (Norm::Power(power), [_]) => self.power_norm(size, power, &axes)?,
            (Norm::Max, [_]) => self.reduce_max(size, Some(&axes), true)?,
            (Norm::Min, [_]) => self.reduce_min(size, Some(&axes), true)?,
            (Norm::Power(1.0), &[rows, columns]) => {
                self.sum_norm(size, rows, columns, ReduceOp::Max)?
            }
            (Norm::Power(-1.0), &[rows, columns]) => {
                self.sum_norm(size, rows, columns, ReduceOp::Min)?
            }
            (Norm::Max, &[rows, columns]) => self.sum_norm(size, columns, rows, ReduceOp::Max)?,
            (Norm::Min, &[rows, columns]) => self.sum_norm(size, columns, rows, ReduceOp::Min)?,
            (Norm::Power(2.0), &[_, _]) => self.spectral_norm(x, &axes, ReduceOp::Max)?,
            (Norm::Power(-2.0), &[_, _]) => self.spectral_norm(x, &axes, ReduceOp::Min)?,
            (Norm::Nuclear, &[_, _]) => self.spectral_norm(x, &axes, ReduceOp::Sum)?,
            (Norm::Power(power), [_, _]) => {
                let why = format!("must be 1, -1, 2 or -2 for matrices; got {power}");
                return Err(self.invalid("norm", "power", why));
            }
            (Norm::Nuclear | Norm::Frobenius, [_]) => {
                let why = "must be two for the Frobenius and the nuclear norm; got 1";
                return Err(self.invalid("norm", "axes", why));
            }
            (
                Norm::Euclid
                | Norm::Frobenius
                | Norm::Power(_)
                | Norm::Max
                | Norm::Min
                | Norm::Nuclear,
                _,
            ) => {
                let why =
                    format!("must be one or two; got {} of {}", axes.len(), self.tensor_type(x));
                return Err(self.invalid("norm", "axes", why));
            }
        };
        let mut result = self.as_type(result, dtype)?;
        if self.shape(x).size() == 0 && self.shape(result).size() > 0 {
            let value = norm_of_nothing(norm, &axes, self.shape(x));
            result = self.constant(Scalar::Float(value), self.tensor_type(result).clone())?;
        }
        if keep_axes { Ok(result) } else { self.squeeze(result, Some(&axes)) }
    }

    /// Computes `sum(|x|^p)^(1/p)`. Dividing by about the element with the largest power first keeps
    /// the powers in range.
    fn power_norm(&mut self, size: ExprId, power: f64, axes: &[i64]) -> Result<ExprId> {
        let float = self.dtype(size).to_floating().at_least_f32();
        let formula = Formula::new(self);
        let size = formula.term(size).as_type(float);
        let extremum = if power < 0.0 { ReduceOp::Min } else { ReduceOp::Max };
        let leading = size.apply(|graph, size| graph.reduction(extremum, size, Some(axes), true));
        let scale = leading.apply(Graph::power_of_two);
        let scaled = size * (1.0 / scale);
        // Integer exponents become multiplications.
        let exponent = if power.fract() == 0.0 && power.abs() < 1e9 {
            Number::Int(power as i128)
        } else {
            Number::Float(power)
        };
        let sum = scaled.pow(exponent).sum(Some(axes), true);
        if power < 1.0 {
            // These functions have no minimum with a gradient of zero, and no derivative at zero.
            return (root(sum, power) * scale).id();
        }
        // The root has no derivative at zero, where the norm has its minimum; the gradient there is
        // zero.
        let is_zero = sum.equal(0.0);
        let norm = root(is_zero.select(1.0, sum), power) * scale;
        is_zero.select(0.0, norm).id()
    }

    /// Returns the largest power of two that does not exceed a positive value and has a normal
    /// inverse. Scaling by it is exact. It is a constant for derivatives, which do not depend on
    /// the scale.
    pub(crate) fn power_of_two(&mut self, x: ExprId) -> Result<ExprId> {
        let dtype = self.dtype(x);
        let limits = dtype.float_limits().expect("a size is a float");
        let mantissa = (1_i64 << limits.mantissa_bits) - 1;
        let exponent = (i64::MAX >> (64 - dtype.bits())) & !mantissa;
        let formula = Formula::new(self);
        let fixed = formula.term(x).apply(Graph::stop_grad);
        let bits = fixed.apply(|graph, x| graph.bitcast(x, bits_of(dtype))).bitwise_and(exponent);
        let power = bits.apply(|graph, bits| graph.bitcast(bits, dtype));
        power.clip(2.0 * limits.smallest_normal, limits.smallest_normal.recip()).id()
    }

    /// Returns the largest or smallest sum along one axis.
    fn sum_norm(
        &mut self,
        size: ExprId,
        summed: i64,
        searched: i64,
        extremum: ReduceOp,
    ) -> Result<ExprId> {
        let sums = self.sum(size, Some(&[summed]), true)?;
        self.reduction(extremum, sums, Some(&[searched]), true)
    }

    /// Reduces the singular values of the matrices in two axes, which remain with size 1.
    fn spectral_norm(&mut self, x: ExprId, axes: &[i64], op: ReduceOp) -> Result<ExprId> {
        let names = self.tensor_type(x).names.clone();
        let x = self.rename(x, None)?;
        let moved: Vec<usize> = self.axes("norm", x, axes)?;
        let rank = self.shape(x).rank();
        let order: Axes =
            (0..rank).filter(|axis| !moved.contains(axis)).chain(moved.iter().copied()).collect();
        let matrices = self.make(Op::Transpose(order), &[x])?;
        let s = self.singular_values(matrices)?;
        let reduced = self.reduction(op, s, Some(&[-1]), false)?;
        let mut shape = self.shape(x).clone();
        for axis in moved {
            shape.as_mut_slice()[axis] = 1;
        }
        self.reshape_named(reduced, shape, names)
    }
}

/// Returns `x^(1/degree)`.
fn root(x: Term<'_>, degree: f64) -> Term<'_> {
    if degree == 2.0 { x.sqrt() } else { x.pow(degree.recip()) }
}

/// Returns the norm of empty vectors or matrices. The smallest of no numbers is infinite, the largest
/// of no sizes is zero, and so is the sum of an empty row or column.
fn norm_of_nothing(norm: Norm, axes: &[i64], shape: &[usize]) -> f64 {
    let is_empty = |&axis: &i64| usize::try_from(axis).is_ok_and(|axis| shape[axis] == 0);
    let is_infinite = axes_of_minimum(norm, axes).iter().any(is_empty);
    if is_infinite { f64::INFINITY } else { 0.0 }
}

/// Returns the axes along which a norm is a minimum; none for norms that are not.
fn axes_of_minimum(norm: Norm, axes: &[i64]) -> &[i64] {
    match (norm, axes) {
        (Norm::Power(-1.0), [_, _]) => &axes[1..],
        (Norm::Min, [_, _]) => &axes[..1],
        (Norm::Power(power), _) if power < 0.0 => axes,
        (Norm::Min, _) => axes,
        (Norm::Power(_) | Norm::Euclid | Norm::Frobenius | Norm::Nuclear | Norm::Max, _) => &[],
    }
}
