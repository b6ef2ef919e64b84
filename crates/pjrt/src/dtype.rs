//! Element types by their numbers in PJRT and in XLA FFI. The two enumerations differ.

use nxla_tensor::DType;

use crate::error::Error;

/// `PJRT_Buffer_Type` of a dtype.
pub(crate) const fn to_pjrt(dtype: DType) -> i32 {
    match dtype {
        DType::Pred => 1,
        DType::S8 => 2,
        DType::S16 => 3,
        DType::S32 => 4,
        DType::S64 => 5,
        DType::U8 => 6,
        DType::U16 => 7,
        DType::U32 => 8,
        DType::U64 => 9,
        DType::F16 => 10,
        DType::F32 => 11,
        DType::F64 => 12,
        DType::BF16 => 13,
        DType::C64 => 14,
        DType::C128 => 15,
        DType::F8E5M2 => 16,
        DType::F8E4M3FN => 17,
        DType::S4 => 21,
        DType::U4 => 22,
        DType::S2 => 24,
        DType::U2 => 25,
    }
}

/// `XLA_FFI_DataType` of a dtype, which is XLA's own `PrimitiveType`.
pub(crate) const fn to_xla(dtype: DType) -> i32 {
    match dtype {
        DType::Pred => 1,
        DType::S8 => 2,
        DType::S16 => 3,
        DType::S32 => 4,
        DType::S64 => 5,
        DType::U8 => 6,
        DType::U16 => 7,
        DType::U32 => 8,
        DType::U64 => 9,
        DType::F16 => 10,
        DType::F32 => 11,
        DType::F64 => 12,
        DType::C64 => 15,
        DType::BF16 => 16,
        DType::C128 => 18,
        DType::F8E5M2 => 19,
        DType::F8E4M3FN => 20,
        DType::S4 => 21,
        DType::U4 => 22,
        DType::S2 => 26,
        DType::U2 => 27,
    }
}

/// The dtype of a `PJRT_Buffer_Type`.
///
/// # Errors
/// Returns [`Error::UnknownType`] for a type without a [`DType`].
pub(crate) fn from_pjrt(code: i32) -> Result<DType, Error> {
    find(code, to_pjrt)
}

/// The dtype of an `XLA_FFI_DataType`.
///
/// # Errors
/// Returns [`Error::UnknownType`] for a type without a [`DType`].
pub(crate) fn from_xla(code: i32) -> Result<DType, Error> {
    find(code, to_xla)
}

fn find(code: i32, to_code: fn(DType) -> i32) -> Result<DType, Error> {
    let found = DType::ALL.into_iter().find(|&dtype| to_code(dtype) == code);
    found.ok_or(Error::UnknownType { code })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dtype_codes_round_trip() {
        for dtype in DType::ALL {
            assert_eq!(from_pjrt(to_pjrt(dtype)), Ok(dtype));
            assert_eq!(from_xla(to_xla(dtype)), Ok(dtype));
        }
        assert_eq!(from_pjrt(23), Err(Error::UnknownType { code: 23 }));
        assert_eq!(from_xla(17), Err(Error::UnknownType { code: 17 }));
    }
}
