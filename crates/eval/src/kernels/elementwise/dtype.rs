//! The dtypes in which kernels compute.
//!
//! There are fewer of them than dtypes: sub-byte integers compute in a whole byte and wrap
//! afterwards, `pred` counts as `u8`, and the floats narrower than `f32` compute in `f32` and are
//! rounded once per op, and functions of `c64` compute in `c128`.

use nxla_tensor::DType;

/// A dtype with kernels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Compute {
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    F32,
    F64,
    C64,
    C128,
}

impl Compute {
    /// The compute dtype of the values of a dtype.
    pub(crate) fn of(dtype: DType) -> Self {
        match dtype {
            DType::Pred | DType::U2 | DType::U4 | DType::U8 => Compute::U8,
            DType::U16 => Compute::U16,
            DType::U32 => Compute::U32,
            DType::U64 => Compute::U64,
            DType::S2 | DType::S4 | DType::S8 => Compute::S8,
            DType::S16 => Compute::S16,
            DType::S32 => Compute::S32,
            DType::S64 => Compute::S64,
            DType::F8E5M2 | DType::F8E4M3FN | DType::BF16 | DType::F16 | DType::F32 => Compute::F32,
            DType::F64 => Compute::F64,
            DType::C64 => Compute::C64,
            DType::C128 => Compute::C128,
        }
    }

    /// The compute dtype of a function of the values of a dtype. A function takes longer than the conversion of its
    /// operands, so functions of `c64` have no kernels.
    pub(crate) fn of_function(dtype: DType) -> Self {
        match Self::of(dtype) {
            Compute::C64 => Compute::C128,
            compute => compute,
        }
    }

    /// The dtype of the values while they are computed.
    pub(crate) fn dtype(self) -> DType {
        use DType::{C64, C128, F32, F64, S8, S16, S32, S64, U8, U16, U32, U64};
        // The entries are in the order of the variants.
        [U8, U16, U32, U64, S8, S16, S32, S64, F32, F64, C64, C128][self as usize]
    }
}
