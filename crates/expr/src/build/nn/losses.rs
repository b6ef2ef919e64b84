//! Loss functions.

use nxla_tensor::{DType, Number};

use crate::graph::{ErrorKind, ExprId, Graph, Result};

impl Graph {
    /// Converts both operands to the common dtype for computations, and returns the dtype of the
    /// result.
    fn both_floating(
        &mut self,
        x: ExprId,
        y: ExprId,
    ) -> Result<(ExprId, ExprId, nxla_tensor::DType)> {
        let dtype = nxla_tensor::promote(self.dtype(x), self.dtype(y));
        let (x, y) = (self.as_type(x, dtype)?, self.as_type(y, dtype)?);
        let ((x, dtype), (y, _)) = (self.widen_to_float(x)?, self.widen_to_float(y)?);
        Ok((x, y, dtype))
    }

    /// Returns `-Σ labels log_softmax(logits)` along an axis; labels of 0 contribute nothing.
    ///
    /// # Errors
    /// Returns an error for an axis out of range, shapes that do not broadcast, or complex numbers.
    pub fn softmax_cross_entropy(
        &mut self,
        logits: ExprId,
        labels: ExprId,
        axis: i64,
    ) -> Result<ExprId> {
        let (logits, labels, dtype) = self.both_floating(logits, labels)?;
        let logs = self.log_softmax(logits, axis)?;
        let terms = self.product_or_zero(labels, logs)?;
        let sum = self.sum(terms, Some(&[axis]), false)?;
        let loss = self.negate(sum)?;
        self.as_type(loss, dtype)
    }

    /// Returns `x y`, and 0 where `x` is 0 and `y` is not finite. A finite `y` remains the derivative by `x`.
    fn product_or_zero(&mut self, x: ExprId, y: ExprId) -> Result<ExprId> {
        let zero = self.zero_like(x)?;
        let (nothing, finite) = (self.equal(x, zero)?, self.is_finite(y)?);
        let infinite = self.logical_not(finite)?;
        let unusable = self.logical_and(nothing, infinite)?;
        let safe = self.select(unusable, zero, y)?;
        self.multiply(x, safe)
    }

    /// Returns `-log_softmax(logits)` at the integers `labels` along an axis that `labels` does not
    /// have. The loss of a label that is not the index of a class is NaN, without a gradient.
    ///
    /// # Errors
    /// Returns an error for an axis out of range, labels that are not integers or have another
    /// shape, or complex logits.
    pub fn integer_cross_entropy(
        &mut self,
        logits: ExprId,
        labels: ExprId,
        axis: i64,
    ) -> Result<ExprId> {
        let op = "softmax_cross_entropy_with_integer_labels";
        let at = self.axis(op, logits, axis)?;
        let mut expected = self.shape(logits).clone();
        expected.remove(at);
        if *self.shape(labels) != expected {
            let (found, expected) = (self.tensor_type(labels).to_string(), expected.to_string());
            return Err(self.error(op, ErrorKind::Shape { argument: "labels", found, expected }));
        }
        if !self.dtype(labels).is_integer() {
            let (argument, found, expected) = ("labels", self.dtype(labels), "an integer dtype");
            return Err(self.error(op, ErrorKind::DType { argument, found, expected }));
        }
        let (wide, dtype) = self.widen_to_float(logits)?;
        let logs = self.log_softmax(wide, axis)?;
        let axis = i64::try_from(at).expect("an axis is small");
        let indices = self.new_axis(labels, axis, None)?;
        let chosen = self.take_along_axis(logs, indices, axis)?;
        let chosen = self.squeeze(chosen, Some(&[axis]))?;
        let loss = self.negate(chosen)?;
        let is_class = self.is_index(labels, self.shape(logits)[at])?;
        let nan = self.near(loss, f64::NAN)?;
        let loss = self.select(is_class, loss, nan)?;
        self.as_type(loss, dtype)
    }

    /// Returns whether integers are at least 0 and below `count`.
    fn is_index(&mut self, x: ExprId, count: usize) -> Result<ExprId> {
        let dtype = self.dtype(x);
        // Narrow dtypes may not contain the count.
        let is_short = dtype.bits() < 32 || dtype == DType::S32;
        let x = self.as_type(x, if is_short { DType::S32 } else { DType::S64 })?;
        let zero = self.zero_like(x)?;
        let last = self.weak_number(Number::Int(count as i128 - 1), x)?;
        let (starts, ends) = (self.greater_equal(x, zero)?, self.less_equal(x, last)?);
        self.logical_and(starts, ends)
    }

    /// Returns `-labels log(p) - (1 - labels) log(1 - p)`, where `p` is the sigmoid of the logits.
    ///
    /// # Errors
    /// Returns an error for shapes that do not broadcast or complex numbers.
    pub fn sigmoid_cross_entropy(&mut self, logits: ExprId, labels: ExprId) -> Result<ExprId> {
        let (logits, labels, dtype) = self.both_floating(logits, labels)?;
        let yes = self.log_sigmoid(logits)?;
        let opposite = self.negate(logits)?;
        let no = self.log_sigmoid(opposite)?;
        let one = self.constant_like(labels, 1.0)?;
        let others = self.subtract(one, labels)?;
        let (yes, no) = (self.product_or_zero(labels, yes)?, self.product_or_zero(others, no)?);
        let sum = self.add(yes, no)?;
        let loss = self.negate(sum)?;
        self.as_type(loss, dtype)
    }

    /// Returns half of the squared error up to an error of `delta`, and a linear function above.
    ///
    /// # Errors
    /// Returns an error for shapes that do not broadcast, a negative `delta`, or complex numbers.
    pub fn huber_loss(&mut self, x: ExprId, target: ExprId, delta: f64) -> Result<ExprId> {
        let op = "huber_loss";
        // NaN is rejected too.
        if delta.is_nan() || delta < 0.0 {
            return Err(self.invalid(op, "delta", format!("must not be negative; got {delta}")));
        }
        let (x, target, dtype) = self.both_floating(x, target)?;
        let error = self.subtract(x, target)?;
        if delta.is_infinite() {
            let square = self.multiply(error, error)?;
            let loss = self.scale_by(square, 0.5)?;
            return self.as_type(loss, dtype);
        }
        let size = self.abs(error)?;
        let limit = self.constant_like(size, delta)?;
        let near = self.min(size, limit)?;
        // The derivative of `near^2 / 2 + delta (size - near)` would cancel for small errors.
        let half = self.scale_by(near, 0.5)?;
        let rest = self.subtract(size, half)?;
        let loss = self.multiply(near, rest)?;
        self.as_type(loss, dtype)
    }

    /// Returns `(x - target)²`.
    ///
    /// # Errors
    /// Returns an error for shapes that do not broadcast or complex numbers.
    pub fn squared_error(&mut self, x: ExprId, target: ExprId) -> Result<ExprId> {
        let (x, target, dtype) = self.both_floating(x, target)?;
        let error = self.subtract(x, target)?;
        let loss = self.multiply(error, error)?;
        self.as_type(loss, dtype)
    }

    /// Returns `Σ targets (log(targets) - log_predictions)` along an axis; targets of 0 contribute
    /// nothing.
    ///
    /// # Errors
    /// Returns an error for an axis out of range, shapes that do not broadcast, or complex numbers.
    pub fn kl_divergence(
        &mut self,
        log_predictions: ExprId,
        targets: ExprId,
        axis: i64,
    ) -> Result<ExprId> {
        let (logs, targets, dtype) = self.both_floating(log_predictions, targets)?;
        let zero = self.zero_like(targets)?;
        let nothing = self.equal(targets, zero)?;
        let one = self.one_like(targets)?;
        let safe = self.select(nothing, one, targets)?;
        let own = self.log(safe)?;
        let difference = self.subtract(own, logs)?;
        let terms = self.product_or_zero(targets, difference)?;
        let sum = self.sum(terms, Some(&[axis]), false)?;
        self.as_type(sum, dtype)
    }

    /// Returns the cosine of the angle between vectors along an axis. Norms below `epsilon` are
    /// replaced by `epsilon`.
    ///
    /// # Errors
    /// Returns an error for an axis out of range, shapes that do not broadcast, or complex numbers.
    pub fn cosine_similarity(
        &mut self,
        x: ExprId,
        y: ExprId,
        axis: i64,
        epsilon: f64,
    ) -> Result<ExprId> {
        let (x, y, dtype) = self.both_floating(x, y)?;
        let (x, y) = (self.unit_vectors(x, axis, epsilon)?, self.unit_vectors(y, axis, epsilon)?);
        let products = self.multiply(x, y)?;
        let sum = self.sum(products, Some(&[axis]), false)?;
        self.as_type(sum, dtype)
    }

    /// Normalizes vectors; dividing by the largest element first avoids overflow.
    fn unit_vectors(&mut self, x: ExprId, axis: i64, epsilon: f64) -> Result<ExprId> {
        let size = self.abs(x)?;
        let largest = self.reduce_max(size, Some(&[axis]), true)?;
        let largest = self.stop_grad(largest)?;
        let zero = self.zero_like(largest)?;
        let none = self.equal(largest, zero)?;
        let one = self.one_like(largest)?;
        let unit = self.select(none, one, largest)?;
        let parts = self.divide(x, unit)?;
        let squares = self.multiply(parts, parts)?;
        let sum = self.sum(squares, Some(&[axis]), true)?;
        let floor = self.constant_like(sum, epsilon)?;
        let floor = self.divide(floor, unit)?;
        let floor = self.multiply(floor, floor)?;
        let tiny = self.less(sum, floor)?;
        let sum = self.select(tiny, floor, sum)?;
        let inverse = self.rsqrt(sum)?;
        self.multiply(parts, inverse)
    }
}
