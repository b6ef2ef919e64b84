//! Dtypes that an operation is computed in, where they are not the dtype of its result.
//!
//! There are three reasons. Some operations do not exist for every dtype in the plugins, or are
//! wrong there. Sums of narrow floats lose what the dtype could hold when each partial sum is
//! rounded to it, so they are kept in `f32` and rounded once. And a result that is too large for
//! `f8_e4m3fn`, which has no infinity, is its largest number here, but NaN to XLA; it is therefore
//! computed in `f32` and clamped by the conversion back.

use nxla_expr::UnaryOp;
use nxla_tensor::DType;

/// The dtype for a unary op with a result of this dtype.
pub(crate) fn unary(op: UnaryOp, dtype: DType) -> DType {
    match op {
        // XLA cannot expand `chlo.erfc` for 8-bit floats.
        UnaryOp::Erfc if dtype == DType::F8E5M2 => DType::F32,
        // XLA composes these from several operations, each rounded to 11 bits.
        UnaryOp::Expm1
        | UnaryOp::Log1p
        | UnaryOp::Sigmoid
        | UnaryOp::Asinh
        | UnaryOp::Acosh
        | UnaryOp::Atanh
        | UnaryOp::Cbrt
            if dtype == DType::F16 =>
        {
            DType::F32
        }
        // XLA counts the bits of the sign-extended byte.
        UnaryOp::PopulationCount if dtype == DType::S4 => DType::U4,
        UnaryOp::PopulationCount if dtype == DType::S2 => DType::U2,
        UnaryOp::Exp
        | UnaryOp::Expm1
        | UnaryOp::Log
        | UnaryOp::Log1p
        | UnaryOp::Sigmoid
        | UnaryOp::Sin
        | UnaryOp::Cos
        | UnaryOp::Tan
        | UnaryOp::Asin
        | UnaryOp::Acos
        | UnaryOp::Atan
        | UnaryOp::Sinh
        | UnaryOp::Cosh
        | UnaryOp::Tanh
        | UnaryOp::Asinh
        | UnaryOp::Acosh
        | UnaryOp::Atanh
        | UnaryOp::Sqrt
        | UnaryOp::Rsqrt
        | UnaryOp::Cbrt
        | UnaryOp::Erf
        | UnaryOp::Erfc
        | UnaryOp::ErfInv
        | UnaryOp::Negate
        | UnaryOp::Sign
        | UnaryOp::Abs
        | UnaryOp::Floor
        | UnaryOp::Ceil
        | UnaryOp::Round
        | UnaryOp::RoundEven
        | UnaryOp::IsNan
        | UnaryOp::IsInfinity
        | UnaryOp::LogicalNot
        | UnaryOp::BitwiseNot
        | UnaryOp::PopulationCount
        | UnaryOp::CountLeadingZeros
        | UnaryOp::Real
        | UnaryOp::Imag
        | UnaryOp::Conjugate => arithmetic(dtype),
    }
}

/// The dtype for arithmetic with a result of this dtype.
pub(crate) fn arithmetic(dtype: DType) -> DType {
    if dtype == DType::F8E4M3FN { DType::F32 } else { dtype }
}

/// The dtype in which elements are moved, indexed and multiplied in sums: XLA packs sub-byte
/// integers, and crashes on unaligned offsets, which some of these operations produce.
pub(crate) const fn storage(dtype: DType) -> DType {
    match dtype {
        DType::U2 | DType::U4 => DType::U8,
        DType::S2 | DType::S4 => DType::S8,
        other => other,
    }
}

/// The dtype in which sums and products are accumulated.
pub(crate) const fn accumulator(dtype: DType) -> DType {
    // Integers wrap, for every width of the sum.
    storage(dtype.at_least_f32())
}

/// The dtype of matrix factorizations, which need the range and precision of `f32` at least.
pub(crate) const fn linalg(dtype: DType) -> DType {
    accumulator(dtype)
}

/// The dtype in which elements are compared: it keeps their order, has at least one byte, and is
/// not an 8-bit float.
pub(crate) const fn comparison(dtype: DType) -> DType {
    match dtype {
        DType::Pred => DType::U8,
        DType::F8E5M2 | DType::F8E4M3FN => DType::F32,
        dtype => storage(dtype),
    }
}

/// The dtype in which elements are counted before they are converted.
pub(crate) fn counter(dtype: DType, count: usize) -> DType {
    match dtype {
        DType::S32 | DType::S64 | DType::U32 | DType::U64 | DType::F32 | DType::F64 => dtype,
        _ => index(count),
    }
}

/// The signed dtype that holds indices below `count`.
pub(crate) fn index(count: usize) -> DType {
    if i32::try_from(count).is_ok() { DType::S32 } else { DType::S64 }
}

/// The signed dtype for indices that come in this dtype, into axes of at most this size.
pub(crate) fn index_of(dtype: DType, largest: usize) -> DType {
    if dtype == DType::S64 || index(largest) == DType::S64 { DType::S64 } else { DType::S32 }
}
