//! Elements with an order, and the wider types in which narrow floats are computed.

use nxla_tensor::{DType, Scalar};

/// The dtype in which elements are compared, sorted and searched: narrow ones are widened to 32 bits, so that the
/// kernels have few types.
pub(crate) fn comparison_dtype(dtype: DType) -> DType {
    match dtype.at_least_f32() {
        narrow if narrow.bits() >= 32 => narrow,
        narrow if narrow.is_signed() => DType::S32,
        _ => DType::U32,
    }
}

/// Binds a type to the elements of a dtype that [`comparison_dtype`] returns.
macro_rules! match_sorted {
    ($dtype:expr, $t:ident => $body:expr) => {{
        match $dtype {
            DType::U32 => $crate::kernels::with_type!($t = u32 => $body),
            DType::U64 => $crate::kernels::with_type!($t = u64 => $body),
            DType::S32 => $crate::kernels::with_type!($t = i32 => $body),
            DType::S64 => $crate::kernels::with_type!($t = i64 => $body),
            DType::F32 => $crate::kernels::with_type!($t = f32 => $body),
            DType::F64 => $crate::kernels::with_type!($t = f64 => $body),
            dtype => unreachable!("{dtype} is widened or refused before it is sorted"),
        }
    }};
}
pub(crate) use match_sorted;

/// Binds a type to the elements of a dtype that [`comparison_dtype`] returns, and a name to the function which returns
/// true if the first of two elements is larger, or smaller if `$is_max` is false; it returns false if one of them is
/// NaN.
///
/// Integers of one size share a type and a function, so that a kernel is compiled for 6 orders. `$narrow` lists types
/// with dtypes of less than 32 bits that have kernels as well.
macro_rules! match_order {
    ($dtype:expr, $is_max:expr, $t:ident, $is_better:ident => $body:expr) => {
        match_order!($dtype, $is_max, $t, $is_better => $body;)
    };
    ($dtype:expr, $is_max:expr, $t:ident, $is_better:ident => $body:expr; $($narrow:pat => $found:ident,)*) => {{
        use nxla_tensor::DType;
        let (dtype, is_max): (DType, bool) = ($dtype, $is_max);
        macro_rules! integers {
            ($integer:ident) => {{
                type $t = $integer;
                let mask = $crate::kernels::ordered::order_mask(dtype, is_max) as $integer;
                let $is_better = std::convert::identity(
                    #[inline(always)]
                    move |a: $t, b: $t| a ^ mask > b ^ mask,
                );
                $body
            }};
        }
        macro_rules! floats {
            ($float:ident, $better:tt) => {{
                type $t = $float;
                let $is_better = std::convert::identity(
                    #[inline(always)]
                    |a: $t, b: $t| a $better b,
                );
                $body
            }};
        }
        match dtype {
            $($narrow => integers!($found),)*
            DType::U32 | DType::S32 => integers!(i32),
            DType::U64 | DType::S64 => integers!(i64),
            DType::F32 if is_max => floats!(f32, >),
            DType::F32 => floats!(f32, <),
            DType::F64 if is_max => floats!(f64, >),
            DType::F64 => floats!(f64, <),
            dtype => unreachable!("{dtype} is widened or refused before it is compared"),
        }
    }};
}
pub(crate) use match_order;

/// The bits by which integers differ from signed integers of the same order, or of the reverse order unless `is_max`.
pub(crate) fn order_mask(dtype: DType, is_max: bool) -> i64 {
    let sign =
        if dtype.is_unsigned() || dtype.is_pred() { -1 << (8 * dtype.size() - 1) } else { 0 };
    if is_max { sign } else { !sign }
}

/// The result of an extremum of no elements: the smallest value of a dtype, or the largest unless `is_max`.
pub(crate) fn worst(dtype: DType, is_max: bool) -> Scalar {
    if is_max { dtype.min_value() } else { dtype.max_value() }
}

/// The function that returns the better of two elements, or NaN if one of them is NaN.
#[inline(always)]
pub(crate) fn pick_better<T: Ordered>(
    is_better: impl Fn(T, T) -> bool + Copy,
) -> impl Fn(T, T) -> T + Copy {
    std::convert::identity(
        #[inline(always)]
        move |a, b| if is_better(a, b) | a.is_not_a_number() { a } else { b },
    )
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
    u32: |_| false;
    u64: |_| false;
    i8: |_| false;
    i16: |_| false;
    i32: |_| false;
    i64: |_| false;
    f32: f32::is_nan;
    f64: f64::is_nan;
}
