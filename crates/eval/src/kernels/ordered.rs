//! Elements with an order, and the wider types in which narrow floats are computed.

use nxla_tensor::DType;

/// Binds a type to the elements of an ordered dtype that [`widened_float`] returns.
macro_rules! match_ordered {
    ($dtype:expr, $t:ident => $body:expr) => {{
        macro_rules! with {
            ($found:ident) => {{
                type $t = $found;
                $body
            }};
        }
        match $dtype {
            DType::Pred | DType::U2 | DType::U4 | DType::U8 => with!(u8),
            DType::U16 => with!(u16),
            DType::U32 => with!(u32),
            DType::U64 => with!(u64),
            DType::S2 | DType::S4 | DType::S8 => with!(i8),
            DType::S16 => with!(i16),
            DType::S32 => with!(i32),
            DType::S64 => with!(i64),
            DType::F32 => with!(f32),
            DType::F64 => with!(f64),
            dtype @ (DType::F8E5M2
            | DType::F8E4M3FN
            | DType::BF16
            | DType::F16
            | DType::C64
            | DType::C128) => unreachable!("{dtype} is widened or refused before it is compared"),
        }
    }};
}
pub(crate) use match_ordered;

/// Floats narrower than `f32` are computed in `f32`.
pub(crate) fn widened_float(dtype: DType) -> DType {
    if dtype.is_float() && dtype.bits() < 32 { DType::F32 } else { dtype }
}

/// The larger of two elements, or NaN if one of them is NaN.
#[inline(always)]
pub(crate) fn larger<T: Ordered>(a: T, b: T) -> T {
    if (a > b) | a.is_not_a_number() { a } else { b }
}

/// The smaller of two elements, or NaN if one of them is NaN.
#[inline(always)]
pub(crate) fn smaller<T: Ordered>(a: T, b: T) -> T {
    if (a < b) | a.is_not_a_number() { a } else { b }
}

/// Elements that have an order, except for NaN.
pub(crate) trait Ordered: nxla_tensor::Element + PartialOrd {
    fn is_not_a_number(self) -> bool;
}

macro_rules! ordered {
    ($($t:ident: $is_nan:expr;)*) => {
        $(impl Ordered for $t {
            #[inline(always)]
            fn is_not_a_number(self) -> bool {
                $is_nan(self)
            }
        })*
    };
}
ordered! {
    u8: |_| false;
    u16: |_| false;
    u32: |_| false;
    u64: |_| false;
    i8: |_| false;
    i16: |_| false;
    i32: |_| false;
    i64: |_| false;
    f32: f32::is_nan;
    f64: f64::is_nan;
}
