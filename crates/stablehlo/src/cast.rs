//! Conversions between dtypes, by the rules of [`Scalar::cast`](nxla_tensor::Scalar::cast).
//!
//! `stablehlo.convert` agrees with them but for two cases: a complex number is true if its
//! imaginary part alone is not zero, and a number beyond the range of `f8_e4m3fn` becomes its
//! largest number.

use nxla_tensor::{DType, Scalar, Shape};

use crate::context::Cx;
use crate::region::Source;
use crate::widen;
use crate::writer::Value;

impl Cx<'_> {
    /// A value with another dtype.
    pub(crate) fn convert(&mut self, value: Value, dtype: DType) -> Value {
        let from = self.dtype(value.ty);
        if from == dtype {
            return value;
        }
        let ty = self.ty_with_dtype(value, dtype);
        self.once(value, ty, |cx| {
            if dtype.is_pred() && from.is_complex() {
                cx.nonzero(value)
            } else if from.is_pred() && (dtype.is_float() || dtype.is_complex()) {
                cx.zero_or_one(value, dtype)
            } else if dtype.is_pred() && matches!(from, DType::F16 | DType::BF16) {
                cx.has_bits(value)
            } else if dtype == DType::F8E4M3FN {
                let value = cx.clamp_to_f8(value);
                cx.operation("stablehlo.convert", &[value], ty)
            } else if dtype.is_integer() && from.is_complex() {
                let real = cx.convert(value, from.to_real());
                cx.convert(real, dtype)
            } else {
                cx.operation("stablehlo.convert", &[value], ty)
            }
        })
    }

    /// Converts a boolean to a number. A `convert` is not used, because XLA rewrites the
    /// product of a converted boolean and `x` to a selection between `x` and 0, although false times
    /// infinity is NaN.
    fn zero_or_one(&mut self, value: Value, dtype: DType) -> Value {
        let shape = self.shape(value.ty).clone();
        let one = self.splat(Scalar::UInt(1), dtype, &shape);
        let zero = self.splat(Scalar::UInt(0), dtype, &shape);
        self.select(value, one, zero)
    }

    /// Converts a float of 16 bits to a boolean by its bits without the sign. XLA for the CPU (its
    /// version of API 0.106) does not find code for comparisons of both kinds of such floats in one
    /// kernel.
    fn has_bits(&mut self, value: Value) -> Value {
        let ty = self.ty_with_dtype(value, DType::U16);
        let bits = self.operation("stablehlo.bitcast_convert", &[value], ty);
        let magnitude = self.splat_like(Scalar::UInt(0x7fff), bits);
        let zero = self.splat_like(Scalar::UInt(0), bits);
        let bits = self.uniform("stablehlo.and", &[bits, magnitude]);
        self.compare("NE", bits, zero)
    }

    /// A source whose elements take whole bytes, see [`widen::storage`].
    ///
    /// Without the barriers here and in [`Cx::pack`], XLA moves the conversions to where they
    /// save most memory, and the operation onto packed elements after all.
    pub(crate) fn unpack(&mut self, source: Source) -> Source {
        let dtype = self.dtype(source.ty());
        let stored = widen::storage(dtype);
        match source {
            Source::Value(value) if stored != dtype => {
                let value = self.convert(value, stored);
                self.barrier(value).into()
            }
            Source::Splat(number, ty) if stored != dtype => {
                let shape = self.shape(ty).clone();
                Source::Splat(number.cast(dtype), self.ty(stored, &shape))
            }
            Source::Value(_) | Source::Splat(..) => source,
        }
    }

    /// The inverse of [`Cx::unpack`] for a result of this dtype.
    pub(crate) fn pack(&mut self, value: Value, dtype: DType) -> Value {
        let from = self.dtype(value.ty);
        let value = if from != dtype && from == widen::storage(dtype) {
            self.barrier(value)
        } else {
            value
        };
        self.convert(value, dtype)
    }

    /// [`Cx::pack`] for a source.
    pub(crate) fn pack_source(&mut self, source: Source, dtype: DType) -> Source {
        match source {
            Source::Value(value) => self.pack(value, dtype).into(),
            Source::Splat(number, ty) => {
                let shape = self.shape(ty).clone();
                Source::Splat(number, self.ty(dtype, &shape))
            }
        }
    }

    pub(crate) fn barrier(&mut self, value: Value) -> Value {
        self.operation("stablehlo.optimization_barrier", &[value], value.ty)
    }

    fn nonzero(&mut self, value: Value) -> Value {
        let zero = self.splat_like(Scalar::UInt(0), value);
        self.compare("NE", value, zero)
    }

    /// Returns a value clamped to the range of `f8_e4m3fn`, because XLA converts larger values to NaN.
    fn clamp_to_f8(&mut self, value: Value) -> Value {
        let from = self.dtype(value.ty);
        if from.is_pred() || from.bits() < 8 {
            return value;
        }
        let from = if from.is_float() { from } else { from.to_real() };
        let value = self.convert(value, from);
        let scalar = Shape::scalar();
        let smallest = self.splat(DType::F8E4M3FN.min_value(), from, &scalar);
        let largest = self.splat(DType::F8E4M3FN.max_value(), from, &scalar);
        self.operation("stablehlo.clamp", &[smallest, value, largest], value.ty)
    }
}
