//! Constants, literals and tensors that are computed by a formula.

use nxla_tensor::{AxisName, DType, HostTensor, Names, Number, Scalar, Shape, to_i64};

use super::formula::{Formula, Term};
use crate::graph::{
    BinaryOp, Broadcast, Constant, ErrorKind, ExprId, Graph, Iota, Literal, Op, Result, TensorType,
    shape_text,
};

impl Graph {
    /// Creates a constant that repeats `value`, rounded to the dtype, over the shape of a type.
    pub fn constant(&mut self, value: Scalar, ty: TensorType) -> Result<ExprId> {
        self.make(Op::Constant(Box::new(Constant { value, ty })), &[])
    }

    /// Creates a scalar constant of a dtype.
    pub fn scalar_constant(&mut self, value: Scalar, dtype: DType) -> Result<ExprId> {
        self.constant(value, TensorType::scalar(dtype))
    }

    /// Creates a constant of the default dtype of a scalar: `s32` for integers (or a wider dtype
    /// for large values), `f32` for floats, `c64` for complex numbers and `pred` for booleans.
    ///
    /// # Errors
    /// Returns an error for an integer that no dtype holds.
    pub fn number(&mut self, number: Number) -> Result<ExprId> {
        self.weak_constant(number, None)
    }

    /// Creates a constant for a scalar that is combined with `other`, whose dtype it takes if
    /// possible: `x + 1` remains `f16` for an `f16` tensor and `u8` for a `u8` tensor.
    ///
    /// # Errors
    /// Returns an error for an integer that no dtype holds.
    pub fn weak_number(&mut self, number: Number, other: ExprId) -> Result<ExprId> {
        self.weak_constant(number, Some(self.dtype(other)))
    }

    /// Creates a constant for a scalar that is combined with a dtype, if any; see
    /// [`Number::weak_scalar`].
    ///
    /// # Errors
    /// Returns an error for an integer that no dtype holds.
    pub fn weak_constant(&mut self, number: Number, other: Option<DType>) -> Result<ExprId> {
        let (value, dtype) = number
            .weak_scalar(other)
            .map_err(|error| self.invalid("constant", "value", error.to_string()))?;
        self.scalar_constant(value, dtype)
    }

    /// Creates a literal tensor. A scalar becomes a constant.
    pub fn tensor(&mut self, tensor: HostTensor) -> Result<ExprId> {
        if tensor.rank() == 0 {
            return self.scalar_constant(tensor.get(0), tensor.dtype());
        }
        self.make(Op::Tensor(Literal(Box::new(tensor))), &[])
    }

    /// Creates the values 0, 1, 2… along `axis`, or over the whole tensor in row-major order.
    ///
    /// # Errors
    /// Returns an error for an axis out of range or the dtype `pred`.
    pub fn iota(
        &mut self,
        shape: impl Into<Shape>,
        axis: Option<i64>,
        dtype: DType,
    ) -> Result<ExprId> {
        self.iota_of(TensorType::new(dtype, shape), axis)
    }

    /// Does the same as [`Graph::iota`] for a type with axis names.
    ///
    /// # Errors
    /// Returns the errors of [`Graph::iota`].
    pub fn iota_of(&mut self, ty: TensorType, axis: Option<i64>) -> Result<ExprId> {
        let axis = match axis {
            None => None,
            Some(axis) => match nxla_tensor::normalize_axis(axis, ty.rank()) {
                Ok(axis) => Some(axis),
                Err(_) => {
                    let ty = Box::new(ty);
                    return Err(self.error("iota", ErrorKind::Axis { argument: "axis", axis, ty }));
                }
            },
        };
        self.make(Op::Iota(Box::new(Iota { axis, ty })), &[])
    }

    /// Creates ones on the diagonal of the last two axes, and zeros elsewhere.
    ///
    /// # Errors
    /// Returns an error for fewer than two axes.
    pub fn eye(&mut self, shape: impl Into<Shape>, dtype: DType) -> Result<ExprId> {
        self.eye_of(TensorType::new(dtype, shape))
    }

    /// Does the same as [`Graph::eye`] for a type with axis names.
    ///
    /// # Errors
    /// Returns an error for fewer than two axes.
    pub fn eye_of(&mut self, ty: TensorType) -> Result<ExprId> {
        self.make(Op::Eye(Box::new(ty)), &[])
    }

    /// Creates a `pred` mask of `rows` by `columns`, true where `column <= row + offset`.
    pub fn tri(&mut self, rows: usize, columns: usize, offset: i64) -> Result<ExprId> {
        let row = self.iota([rows, columns], Some(0), DType::S32)?;
        let column = self.iota([rows, columns], Some(1), DType::S32)?;
        // A larger offset is equivalent; the clamped offset plus a row index fits in `s32`.
        let offset = offset.clamp(-(1 << 30), 1 << 30);
        let offset = self.scalar_constant(Scalar::Int(offset), DType::S32)?;
        let last = self.add(row, offset)?;
        self.less_equal(column, last)
    }

    /// Returns the lower triangle of the last two axes, with zeros above the diagonal `offset`.
    ///
    /// # Errors
    /// Returns an error for fewer than two axes.
    pub fn tril(&mut self, x: ExprId, offset: i64) -> Result<ExprId> {
        let mask = self.triangle(x, offset)?;
        let zero = self.zero_like(x)?;
        self.select(mask, x, zero)
    }

    /// Returns the upper triangle of the last two axes, with zeros below the diagonal `offset`.
    ///
    /// # Errors
    /// Returns an error for fewer than two axes.
    pub fn triu(&mut self, x: ExprId, offset: i64) -> Result<ExprId> {
        let mask = self.triangle(x, offset.saturating_sub(1))?;
        let zero = self.zero_like(x)?;
        self.select(mask, zero, x)
    }

    fn triangle(&mut self, x: ExprId, offset: i64) -> Result<ExprId> {
        let [.., rows, columns] = self.shape(x)[..] else {
            let (found, expected) = (self.tensor_type(x).to_string(), "at least two axes".into());
            return Err(
                self.error("triangle", ErrorKind::Shape { argument: "operand", found, expected })
            );
        };
        self.tri(rows, columns, offset)
    }

    /// Creates `steps` evenly spaced values from `start` to `stop`. With `endpoint`, the last value
    /// is exactly `stop`. Narrow floats are computed in 32 bits.
    ///
    /// # Errors
    /// Returns an error for a dtype that is neither a float nor complex.
    pub fn linspace(
        &mut self,
        start: impl Into<Number>,
        stop: impl Into<Number>,
        steps: usize,
        endpoint: bool,
        dtype: DType,
    ) -> Result<ExprId> {
        self.linspace_dtype(dtype)?;
        // A narrow float represents neither all counts nor the accumulated steps.
        let (dtype, narrow) = (dtype.at_least_f32(), dtype);
        let mut end = |number: Number| -> Result<(Scalar, ExprId)> {
            let scalar = number.to_scalar();
            let scalar = scalar.map_err(|e| self.invalid("linspace", "start", e.to_string()))?;
            Ok((scalar, self.scalar_constant(scalar, dtype)?))
        };
        let ((from, start), (to, stop)) = (end(start.into())?, end(stop.into())?);
        let ((from, from_im), (to, to_im)) = (from.parts(), to.parts());
        let is_regular = |from: f64, to: f64| {
            let width = Scalar::Float(to - from).cast(dtype.to_real());
            width.parts().0.is_finite()
        };
        // The halves of huge ends have a finite difference.
        let unit = if is_regular(from, to) && is_regular(from_im, to_im) { 1.0 } else { 0.5 };
        let gaps = if endpoint { steps.saturating_sub(1) } else { steps };
        #[expect(clippy::cast_precision_loss, reason = "a count of elements")]
        let share = |from: f64, to: f64| match gaps {
            0 => 0.0,
            gaps => (to * unit - from * unit) / gaps as f64,
        };
        let step = if dtype.is_complex() {
            Scalar::Complex(share(from, to), share(from_im, to_im))
        } else {
            Scalar::Float(share(from, to))
        };
        let step = self.scalar_constant(step, dtype)?;
        let count = self.iota([steps], None, dtype)?;
        let scaled = self.multiply(count, step)?;
        let numbers = if unit == 1.0 {
            self.add(scaled, start)?
        } else {
            let formula = Formula::new(self);
            let [scaled, start] = formula.terms([scaled, start]);
            ((scaled + start * unit) * unit.recip()).id()?
        };
        let numbers = if endpoint { self.ending_at(numbers, stop)? } else { numbers };
        self.as_type(numbers, narrow)
    }

    /// Replaces the last value along the last axis by `stop`, unless it is the only value.
    fn ending_at(&mut self, numbers: ExprId, stop: ExprId) -> Result<ExprId> {
        let steps = *self.shape(numbers).last().expect("there is an axis of steps");
        if steps < 2 {
            return Ok(numbers);
        }
        let place = self.iota([steps], None, DType::S64)?;
        let last = to_i64(steps - 1);
        let last = self.scalar_constant(Scalar::Int(last), DType::S64)?;
        let is_last = self.equal(place, last)?;
        self.select(is_last, stop, numbers)
    }

    /// Creates `start, start + step, …` up to and excluding `stop`.
    ///
    /// # Errors
    /// Returns an error for ends that are not finite, a step of 0 or NaN, or the dtype `pred`.
    pub fn arange(&mut self, start: f64, stop: f64, step: f64, dtype: DType) -> Result<ExprId> {
        for (argument, end) in [("start", start), ("stop", stop)] {
            if !end.is_finite() {
                let why = format!("must be finite; got {end}");
                return Err(self.invalid("arange", argument, why));
            }
        }
        if !(stop - start).is_finite() {
            let why = format!("must be a finite distance from start; got {start} and {stop}");
            return Err(self.invalid("arange", "stop", why));
        }
        if step == 0.0 || step.is_nan() {
            let why = format!("must not be 0 or NaN; got {step}");
            return Err(self.invalid("arange", "step", why));
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative")]
        let count = ((stop - start) / step).ceil().max(0.0) as usize;
        // Fractions are summed before they are truncated.
        let whole = start.fract() == 0.0 && step.fract() == 0.0;
        let counted = if dtype.is_integer() && !whole { DType::F64 } else { dtype.at_least_f32() };
        let mut numbers = self.iota([count], None, counted)?;
        // The product of 0 and a negative step is -0.0, to which the start is added even if it is 0.
        let adds = start != 0.0 || (step < 0.0 && !counted.is_integer());
        let operations = [(BinaryOp::Multiply, step, step != 1.0), (BinaryOp::Add, start, adds)];
        for (op, number, has_effect) in operations {
            if has_effect {
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "the value is an integer, and as small as a size"
                )]
                let number = if counted.is_integer() {
                    // Integers wrap, so that a negative step counts down in unsigned dtypes too.
                    Scalar::Int(number as i64).cast(counted)
                } else if counted.is_float() {
                    Scalar::Float(number)
                } else {
                    Scalar::Float(number).cast(counted)
                };
                let number = self.scalar_constant(number, counted)?;
                numbers = self.binary(op, numbers, number)?;
            }
        }
        self.as_type(numbers, dtype)
    }

    /// Creates evenly spaced values between the corresponding elements of two tensors of equal
    /// shape, along a new last axis of `steps` elements. The new axis may have a name.
    ///
    /// # Errors
    /// Returns an error for shapes that differ or a dtype that is neither a float nor complex.
    pub fn linspace_between(
        &mut self,
        start: ExprId,
        stop: ExprId,
        steps: usize,
        endpoint: bool,
        dtype: DType,
        name: Option<AxisName>,
    ) -> Result<ExprId> {
        self.linspace_dtype(dtype)?;
        if self.shape(start) != self.shape(stop) {
            let (found, expected) = (shape_text(self.shape(stop)), shape_text(self.shape(start)));
            let kind = ErrorKind::Shape { argument: "stop", found, expected };
            return Err(self.error("linspace", kind));
        }
        // A narrow float represents neither all counts nor the accumulated steps.
        let (dtype, narrow) = (dtype.at_least_f32(), dtype);
        let (start, stop) = (self.as_type(start, dtype)?, self.as_type(stop, dtype)?);
        let gaps = if endpoint { steps.saturating_sub(1) } else { steps }.max(1);
        let gaps = i64::try_from(gaps).map_err(|_| {
            self.invalid("linspace", "num", format!("must fit in 64 bits; got {gaps}"))
        })?;
        let gaps = self.scalar_constant(Scalar::Int(gaps), DType::S64)?;
        let formula = Formula::new(self);
        let [start, end, gaps] = formula.terms([start, stop, gaps]);
        let [unit, inverse] = unit_of_width(start, end);
        let (first, last) = (start * unit, end * unit);
        let [first, step, inverse] = formula.ids([first, (last - first) / gaps, inverse])?;
        let (first, step) = (self.new_axis(first, -1, None)?, self.new_axis(step, -1, None)?);
        let (inverse, stop) = (self.new_axis(inverse, -1, None)?, self.new_axis(stop, -1, None)?);
        let names = name.map(|name| Names::new([Some(name)]));
        let counted = TensorType { dtype, shape: [steps].into(), names };
        let count = self.iota_of(counted, None)?;
        let scaled = self.multiply(count, step)?;
        let numbers = self.add(scaled, first)?;
        let numbers = self.multiply(numbers, inverse)?;
        let numbers = if endpoint { self.ending_at(numbers, stop)? } else { numbers };
        self.as_type(numbers, narrow)
    }

    fn linspace_dtype(&self, dtype: DType) -> Result<()> {
        if dtype.is_float() || dtype.is_complex() {
            return Ok(());
        }
        let expected = "a float or complex dtype";
        let kind = ErrorKind::DType { argument: "dtype", found: dtype, expected };
        Err(self.error("linspace", kind))
    }

    /// Returns zero in the dtype of `x`.
    pub fn zero_like(&mut self, x: ExprId) -> Result<ExprId> {
        let dtype = self.dtype(x);
        self.scalar_constant(Scalar::zero(dtype), dtype)
    }

    /// Returns one in the dtype of `x`.
    pub fn one_like(&mut self, x: ExprId) -> Result<ExprId> {
        let dtype = self.dtype(x);
        self.scalar_constant(Scalar::one(dtype), dtype)
    }

    /// Broadcasts `x` to a shape, aligned from the right, and sets the axis names.
    pub(crate) fn broadcast_named(
        &mut self,
        x: ExprId,
        shape: Shape,
        names: Option<Names>,
    ) -> Result<ExprId> {
        let added = shape.rank().checked_sub(self.shape(x).rank());
        let Some(added) = added else {
            let found = self.tensor_type(x).to_string();
            let expected = format!("a shape that broadcasts to {}", shape_text(&shape));
            return Err(
                self.error("broadcast", ErrorKind::Shape { argument: "operand", found, expected })
            );
        };
        let axes = (added..shape.rank()).collect();
        self.make(Op::Broadcast(Box::new(Broadcast { shape, axes, names })), &[x])
    }
}

/// Returns a factor for the ends of an interval whose product with their difference is finite, and
/// its inverse: 1, or a half of huge ends. Scaling by it is exact.
pub(super) fn unit_of_width<'f>(start: Term<'f>, stop: Term<'f>) -> [Term<'f>; 2] {
    let width = stop - start;
    let (is_regular, one) = (width.is_finite(), width.number(1.0).as_type(width.dtype().to_real()));
    [is_regular.select(one, 0.5), is_regular.select(one, 2.0)]
}
