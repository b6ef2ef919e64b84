//! Loss functions.

use nxla_tensor::{DType, promote, to_i64};

use super::super::formula::{Formula, Term};
use crate::graph::{ErrorKind, ExprId, Graph, Result};

impl Graph {
    /// Converts both operands to the common dtype for computations, and returns the dtype of the
    /// result.
    fn both_floating(&mut self, x: ExprId, y: ExprId) -> Result<(ExprId, ExprId, DType)> {
        let dtype = promote(self.dtype(x), self.dtype(y));
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
        let formula = Formula::new(self);
        let [labels, logs] = formula.terms([labels, logs]);
        let sum = product_or_zero(labels, logs).sum(Some(&[axis]), false);
        (-sum).as_type(dtype).id()
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
        let axis = to_i64(at);
        let indices = self.new_axis(labels, axis, None)?;
        let chosen = self.take_along_axis(logs, indices, axis)?;
        let chosen = self.squeeze(chosen, Some(&[axis]))?;
        let is_class = self.is_index(labels, self.shape(logits)[at])?;
        let formula = Formula::new(self);
        let [is_class, chosen] = formula.terms([is_class, chosen]);
        is_class.select(-chosen, f64::NAN).as_type(dtype).id()
    }

    /// Returns whether integers are at least 0 and below `count`.
    fn is_index(&mut self, x: ExprId, count: usize) -> Result<ExprId> {
        let dtype = self.dtype(x);
        // Narrow dtypes may not contain the count.
        let is_short = dtype.bits() < 32 || dtype == DType::S32;
        let formula = Formula::new(self);
        let x = formula.term(x).as_type(if is_short { DType::S32 } else { DType::S64 });
        (x.greater_equal(0) & x.less_equal(count as i128 - 1)).id()
    }

    /// Returns `-labels log(p) - (1 - labels) log(1 - p)`, where `p` is the sigmoid of the logits.
    ///
    /// # Errors
    /// Returns an error for shapes that do not broadcast or complex numbers.
    pub fn sigmoid_cross_entropy(&mut self, logits: ExprId, labels: ExprId) -> Result<ExprId> {
        let (logits, labels, dtype) = self.both_floating(logits, labels)?;
        let formula = Formula::new(self);
        let [logits, labels] = formula.terms([logits, labels]);
        let yes = logits.apply(Graph::log_sigmoid);
        let no = (-logits).apply(Graph::log_sigmoid);
        let others = 1.0 - labels;
        let sum = product_or_zero(labels, yes) + product_or_zero(others, no);
        (-sum).as_type(dtype).id()
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
        let formula = Formula::new(self);
        let error = formula.term(x) - formula.term(target);
        let loss = if delta.is_infinite() {
            error * error * 0.5
        } else {
            let size = error.abs();
            let near = size.min(delta);
            // The derivative of `near^2 / 2 + delta (size - near)` would cancel for small errors.
            near * (size - near * 0.5)
        };
        loss.as_type(dtype).id()
    }

    /// Returns `(x - target)²`.
    ///
    /// # Errors
    /// Returns an error for shapes that do not broadcast or complex numbers.
    pub fn squared_error(&mut self, x: ExprId, target: ExprId) -> Result<ExprId> {
        let (x, target, dtype) = self.both_floating(x, target)?;
        let formula = Formula::new(self);
        let error = formula.term(x) - formula.term(target);
        (error * error).as_type(dtype).id()
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
        let formula = Formula::new(self);
        let [logs, targets] = formula.terms([logs, targets]);
        let difference = targets.equal(0.0).select(1.0, targets).log() - logs;
        let terms = product_or_zero(targets, difference);
        terms.sum(Some(&[axis]), false).as_type(dtype).id()
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
        let formula = Formula::new(self);
        let [x, y] = formula.terms([x, y]).map(|x| unit_vectors(x, axis, epsilon));
        (x * y).sum(Some(&[axis]), false).as_type(dtype).id()
    }
}

/// Returns `x y`, and 0 where `x` is 0 and `y` is not finite. A finite `y` remains the derivative by `x`.
fn product_or_zero<'f>(x: Term<'f>, y: Term<'f>) -> Term<'f> {
    let unusable = x.equal(0.0) & !y.is_finite();
    x * unusable.select(0.0, y)
}

/// Normalizes vectors; dividing by the largest element first avoids overflow.
fn unit_vectors(x: Term<'_>, axis: i64, epsilon: f64) -> Term<'_> {
    let largest = x.abs().apply(|graph, size| graph.reduce_max(size, Some(&[axis]), true));
    let largest = largest.apply(Graph::stop_grad);
    let unit = largest.equal(0.0).select(1.0, largest);
    let parts = x / unit;
    let sum = (parts * parts).sum(Some(&[axis]), true);
    let floor = epsilon / unit;
    let floor = floor * floor;
    let sum = sum.less(floor).select(floor, sum);
    parts * sum.rsqrt()
}
