//! Normalization: subtracting the mean and dividing by the standard deviation.

use nxla_tensor::{DType, Shape, promote, to_i64};

use super::super::formula::Formula;
use crate::graph::{ErrorKind, ExprId, Graph, Result};

/// Options of [`Graph::batch_norm_train`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RunningNorm {
    /// The axis of the channels.
    pub axis: i64,
    /// The value that is added to a variance before dividing.
    pub epsilon: f64,
    /// The weight of the old running statistics.
    pub momentum: f64,
}

impl Graph {
    /// Normalizes the elements along some axes by their mean and standard deviation, then
    /// multiplies by `scale` and adds `bias`, which have the sizes of these axes.
    ///
    /// # Errors
    /// Returns an error for axes out of range or repeated, a scale or bias of another shape, or
    /// complex numbers.
    pub fn layer_norm(
        &mut self,
        x: ExprId,
        [scale, bias]: [Option<ExprId>; 2],
        axes: &[i64],
        epsilon: f64,
    ) -> Result<ExprId> {
        let op = "layer_norm";
        let (x, dtype) = self.widen_to_float(x)?;
        let positions = self.axes(op, x, axes)?;
        let mean = self.mean(x, Some(axes), true)?;
        let distance = self.subtract(x, mean)?;
        let y = self.over_root_mean_square(distance, axes, epsilon)?;
        let y = self.with_scale_and_bias(y, [scale, bias], &positions)?;
        self.as_type(y, dtype)
    }

    /// Divides the elements along some axes by their root mean square, then multiplies by `scale`.
    ///
    /// # Errors
    /// Returns the errors of [`Graph::layer_norm`].
    pub fn rms_norm(
        &mut self,
        x: ExprId,
        scale: Option<ExprId>,
        axes: &[i64],
        epsilon: f64,
    ) -> Result<ExprId> {
        let op = "rms_norm";
        let (x, dtype) = self.widen_to_float(x)?;
        let positions = self.axes(op, x, axes)?;
        let y = self.over_root_mean_square(x, axes, epsilon)?;
        let y = self.with_scale_and_bias(y, [scale, None], &positions)?;
        self.as_type(y, dtype)
    }

    /// Normalizes groups of channels over all axes but the first, then multiplies by `scale` and
    /// adds `bias` of each channel.
    ///
    /// # Errors
    /// Returns an error for groups that do not divide the channels; for fewer than two axes, or
    /// channels along the first; for a scale or bias of another shape; for complex numbers.
    pub fn group_norm(
        &mut self,
        x: ExprId,
        groups: usize,
        [scale, bias]: [Option<ExprId>; 2],
        axis: i64,
        epsilon: f64,
    ) -> Result<ExprId> {
        let op = "group_norm";
        let (x, dtype) = self.widen_to_float(x)?;
        let at = self.axis(op, x, axis)?;
        let shape = self.shape(x).clone();
        if at == 0 {
            let why = format!("must not be the axis of examples, 0; got {axis}");
            return Err(self.invalid(op, "axis", why));
        }
        if groups == 0 || !shape[at].is_multiple_of(groups) {
            let why = format!("must divide {} channels; got {groups}", shape[at]);
            return Err(self.invalid(op, "groups", why));
        }
        let names = self.tensor_type(x).names.clone();
        let mut split = shape.clone();
        split.as_mut_slice()[at] = groups;
        split.insert(at + 1, shape[at] / groups);
        let grouped = self.rename(x, None)?;
        let grouped = self.reshape(grouped, split.clone())?;
        let axes: Vec<i64> = (1..split.rank()).filter(|&axis| axis != at).map(to_i64).collect();
        let y = self.layer_norm(grouped, [None, None], &axes, epsilon)?;
        let y = self.reshape_named(y, shape, names)?;
        let y = self.with_scale_and_bias(y, [scale, bias], &[at])?;
        self.as_type(y, dtype)
    }

    /// Subtracts a mean from each channel, divides by the root of a variance, then multiplies by
    /// `scale` and adds `bias`. All of these are vectors with a value for each channel.
    ///
    /// # Errors
    /// Returns an error for an axis out of range, vectors of another size, or complex numbers.
    pub fn batch_norm(
        &mut self,
        x: ExprId,
        [mean, variance]: [ExprId; 2],
        [scale, bias]: [Option<ExprId>; 2],
        axis: i64,
        epsilon: f64,
    ) -> Result<ExprId> {
        let op = "batch_norm";
        let (x, dtype) = self.widen_to_float(x)?;
        let at = self.axis(op, x, axis)?;
        let mean = self.along_axes("mean", x, mean, &[at])?;
        let mean = self.as_type(mean, self.dtype(x))?;
        let variance = self.along_axes("variance", x, variance, &[at])?;
        // A variance may exceed the range of the elements.
        let variance = self.as_type(variance, promote(self.dtype(x), self.dtype(variance)))?;
        let distance = self.subtract(x, mean)?;
        let y = self.over_root(distance, variance, epsilon)?;
        let y = self.with_scale_and_bias(y, [scale, bias], &[at])?;
        self.as_type(y, dtype)
    }

    /// Applies [`Graph::batch_norm`] with the mean and the variance of `x`, and returns updated
    /// running statistics: `momentum` times the old plus `1 - momentum` times the new values.
    ///
    /// # Errors
    /// Returns the errors of [`Graph::batch_norm`], and an error for a tensor without elements.
    pub fn batch_norm_train(
        &mut self,
        x: ExprId,
        running: [ExprId; 2],
        affine: [Option<ExprId>; 2],
        options: RunningNorm,
    ) -> Result<(ExprId, ExprId, ExprId)> {
        let op = "batch_norm";
        let at = self.axis(op, x, options.axis)?;
        let axes: Vec<i64> =
            (0..self.shape(x).rank()).filter(|&axis| axis != at).map(to_i64).collect();
        let (wide, _) = self.widen_to_float(x)?;
        let unnamed = self.rename(wide, None)?;
        let mean = self.mean(unnamed, Some(&axes), false)?;
        // Squares of large elements overflow in 32 bits.
        let unnamed = self.as_type(unnamed, DType::F64)?;
        let variance = self.variance(unnamed, Some(&axes), false, 0.0)?;
        let y = self.batch_norm(x, [mean, variance], affine, options.axis, options.epsilon)?;
        let mut moved = [y; 2];
        for (index, (old, new)) in running.into_iter().zip([mean, variance]).enumerate() {
            if self.shape(old) != self.shape(new) {
                let argument = if index == 0 { "mean" } else { "variance" };
                return Err(self.wrong_sizes(argument, old, self.shape(new)));
            }
            // No gradient flows through statistics.
            let new = self.stop_grad(new)?;
            // Integers would round each change to 0.
            let old = self.as_type(old, self.dtype(old).to_floating())?;
            let formula = Formula::new(self);
            let [old_term, new] = formula.terms([old, new]);
            let sum = (old_term * options.momentum + new * (1.0 - options.momentum)).id()?;
            moved[index] = self.as_type(sum, self.dtype(old))?;
        }
        Ok((y, moved[0], moved[1]))
    }

    /// Returns `x / √(square + epsilon)` in the dtype of `x`.
    fn over_root(&mut self, x: ExprId, square: ExprId, epsilon: f64) -> Result<ExprId> {
        let formula = Formula::new(self);
        let [x, square] = formula.terms([x, square]);
        (x * (square + epsilon).rsqrt().as_type(x.dtype())).id()
    }

    /// Returns `x / √(mean(x²) + epsilon)`.
    fn over_root_mean_square(&mut self, x: ExprId, axes: &[i64], epsilon: f64) -> Result<ExprId> {
        // Squares of large elements overflow in 32 bits.
        let wide = self.as_type(x, DType::F64)?;
        let squares = self.square(wide)?;
        let power = self.mean(squares, Some(axes), true)?;
        self.over_root(x, power, epsilon)
    }

    fn with_scale_and_bias(
        &mut self,
        x: ExprId,
        [scale, bias]: [Option<ExprId>; 2],
        axes: &[usize],
    ) -> Result<ExprId> {
        let mut y = x;
        if let Some(scale) = scale {
            let scale = self.along_axes("scale", x, scale, axes)?;
            let scale = self.as_type(scale, self.dtype(x))?;
            y = self.multiply(y, scale)?;
        }
        if let Some(bias) = bias {
            let bias = self.along_axes("bias", x, bias, axes)?;
            let bias = self.as_type(bias, self.dtype(x))?;
            y = self.add(y, bias)?;
        }
        Ok(y)
    }

    /// Reshapes values for some axes of `x` to the rank of `x`.
    fn along_axes(
        &mut self,
        argument: &'static str,
        x: ExprId,
        numbers: ExprId,
        axes: &[usize],
    ) -> Result<ExprId> {
        let shape = self.shape(x).clone();
        let mut sorted = axes.to_vec();
        sorted.sort_unstable();
        let expected: Shape = sorted.iter().map(|&axis| shape[axis]).collect();
        if *self.shape(numbers) != expected {
            return Err(self.wrong_sizes(argument, numbers, &expected));
        }
        let aligned: Shape = (0..shape.rank())
            .map(|axis| if sorted.contains(&axis) { shape[axis] } else { 1 })
            .collect();
        let numbers = self.rename(numbers, None)?;
        self.reshape(numbers, aligned)
    }

    fn wrong_sizes(&self, argument: &'static str, found: ExprId, expected: &Shape) -> crate::Error {
        let (found, expected) =
            (self.tensor_type(found).to_string(), format!("{:?}", &expected[..]));
        self.error("norm", ErrorKind::Shape { argument, found, expected })
    }
}
