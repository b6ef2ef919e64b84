//! Conversions between dtypes, by the rules of [`Scalar::cast`](nxla_tensor::Scalar::cast).
//!
//! `stablehlo.convert` agrees with them but for three cases: a complex number is true if its
//! imaginary part alone is not zero; a number beyond the range of `f8_e4m3fn` becomes its largest
//! number; and a finite float beyond the range of an integer wraps around.

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
        let ty = self.retyped(value, dtype);
        self.once(value, ty, |cx| {
            if dtype.is_pred() && from.is_complex() {
                cx.nonzero(value)
            } else if from.is_pred() && (dtype.is_float() || dtype.is_complex()) {
                cx.zero_or_one(value, dtype)
            } else if dtype.is_pred() && matches!(from, DType::F16 | DType::BF16) {
                cx.has_bits(value)
            } else if dtype == DType::F8E4M3FN {
                let value = cx.saturated(value);
                cx.operation("stablehlo.convert", &[value], ty)
            } else if dtype.is_integer() && from.is_complex() {
                let real = cx.convert(value, from.to_real());
                cx.convert(real, dtype)
            } else if dtype.is_integer() && from.is_float() && !holds(dtype, from) {
                cx.wrapped(value, dtype)
            } else {
                cx.operation("stablehlo.convert", &[value], ty)
            }
        })
    }

    /// A truth value as a number. XLA takes the product with one that it has converted itself for a
    /// choice between the other factor and 0, whatever that is: false times infinity is NaN.
    fn zero_or_one(&mut self, value: Value, dtype: DType) -> Value {
        let shape = self.shape(value.ty).clone();
        let one = self.splat(Scalar::UInt(1), dtype, &shape);
        let zero = self.splat(Scalar::UInt(0), dtype, &shape);
        self.select(value, one, zero)
    }

    /// Whether a float of 16 bits is not zero, which it is with any bit but that of the sign. XLA for
    /// the CPU (its version of API 0.106) does not find code for comparisons of both kinds of such
    /// floats in one kernel.
    fn has_bits(&mut self, value: Value) -> Value {
        let ty = self.retyped(value, DType::U16);
        let bits = self.operation("stablehlo.bitcast_convert", &[value], ty);
        let shape = self.shape(ty).clone();
        let magnitude = self.splat(Scalar::UInt(0x7fff), DType::U16, &shape);
        let zero = self.splat(Scalar::UInt(0), DType::U16, &shape);
        let bits = self.uniform("stablehlo.and", &[bits, magnitude]);
        self.compare("NE", bits, zero)
    }

    /// A source whose elements take whole bytes, see [`widen::stored`].
    ///
    /// Without the barriers here and in [`Cx::packed`], XLA moves the conversions to where they
    /// save most memory, and the operation onto packed elements after all.
    pub(crate) fn unpacked(&mut self, source: Source) -> Source {
        let dtype = self.dtype(source.ty());
        let stored = widen::stored(dtype);
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

    /// The inverse of [`Cx::unpacked`] for a result of this dtype.
    pub(crate) fn packed(&mut self, value: Value, dtype: DType) -> Value {
        let from = self.dtype(value.ty);
        let value =
            if from != dtype && from == widen::stored(dtype) { self.barrier(value) } else { value };
        self.convert(value, dtype)
    }

    /// [`Cx::packed`] for a source.
    pub(crate) fn packed_source(&mut self, source: Source, dtype: DType) -> Source {
        match source {
            Source::Value(value) => self.packed(value, dtype).into(),
            Source::Splat(number, ty) => {
                let shape = self.shape(ty).clone();
                Source::Splat(number, self.ty(dtype, &shape))
            }
        }
    }

    fn barrier(&mut self, value: Value) -> Value {
        self.operation("stablehlo.optimization_barrier", &[value], value.ty)
    }

    fn nonzero(&mut self, value: Value) -> Value {
        let zero = self.splat_like(Scalar::UInt(0), value);
        self.compare("NE", value, zero)
    }

    /// A number repeated to the type of a value.
    fn splat_like(&mut self, number: Scalar, value: Value) -> Value {
        let shape = self.shape(value.ty).clone();
        self.splat(number, self.dtype(value.ty), &shape)
    }

    /// A value within the range of `f8_e4m3fn`: XLA would convert what is larger to NaN.
    fn saturated(&mut self, value: Value) -> Value {
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

    /// The low bits of a truncated float. Infinities become the largest and smallest integer, and
    /// NaN becomes 0, as they do by themselves.
    fn wrapped(&mut self, value: Value, dtype: DType) -> Value {
        let ty = self.retyped(value, dtype);
        let wide = self.retyped(value, DType::S64);
        let direct = self.operation("stablehlo.convert", &[value], ty);
        let near = self.low_64_bits(value, dtype);
        let near = self.operation("stablehlo.convert", &[near], wide);
        let wrapped = self.convert(near, dtype);
        if self.dtype(value.ty) == DType::F8E4M3FN {
            return wrapped;
        }
        let magnitude = self.uniform("stablehlo.abs", &[value]);
        let infinity = self.splat_like(Scalar::Float(f64::INFINITY), value);
        let is_infinite = self.compare("EQ", magnitude, infinity);
        self.select(is_infinite, direct, wrapped)
    }

    /// A float that fits 64 bits and has the same low bits, as many as `dtype` has.
    fn low_64_bits(&mut self, value: Value, dtype: DType) -> Value {
        const TWO_63: f64 = 9_223_372_036_854_775_808.0;
        let from = self.dtype(value.ty);
        if matches!(from, DType::F8E5M2 | DType::F8E4M3FN | DType::F16) {
            return value;
        }
        if from != DType::F64 && dtype.bits() <= 32 {
            // Large numbers of so few digits end in more than 32 zeros.
            let magnitude = self.uniform("stablehlo.abs", &[value]);
            let limit = self.splat_like(Scalar::Float(TWO_63), value);
            let is_near = self.compare("LT", magnitude, limit);
            let zero = self.splat_like(Scalar::UInt(0), value);
            return self.select(is_near, value, zero);
        }
        // The remainder and the sums are exact.
        let turn = self.splat_like(Scalar::Float(2.0 * TWO_63), value);
        let high = self.splat_like(Scalar::Float(TWO_63), value);
        let low = self.splat_like(Scalar::Float(-TWO_63), value);
        let rest = self.uniform("stablehlo.remainder", &[value, turn]);
        let less = self.uniform("stablehlo.subtract", &[rest, turn]);
        let more = self.uniform("stablehlo.add", &[rest, turn]);
        let is_high = self.compare("GE", rest, high);
        let is_low = self.compare("LT", rest, low);
        let rest = self.select(is_low, more, rest);
        self.select(is_high, less, rest)
    }
}

/// Whether an integer dtype holds every finite number of a float dtype, truncated.
fn holds(integer: DType, float: DType) -> bool {
    // The largest numbers are 448, 57344 and 65504.
    let bits = match float {
        DType::F8E4M3FN => 10,
        DType::F8E5M2 | DType::F16 => 17,
        DType::BF16
        | DType::F32
        | DType::F64
        | DType::Pred
        | DType::U2
        | DType::U4
        | DType::U8
        | DType::U16
        | DType::U32
        | DType::U64
        | DType::S2
        | DType::S4
        | DType::S8
        | DType::S16
        | DType::S32
        | DType::S64
        | DType::C64
        | DType::C128 => return false,
    };
    integer.is_signed() && integer.bits() >= bits
}
