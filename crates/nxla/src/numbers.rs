//! Rust types of scalars and axis names.

use nxla_tensor::{Complex, Names, Scalar};

mod sealed {
    /// Restricts the traits of this file to the types in it.
    pub trait Sealed {}
}

/// A scalar type for reading the only element of a tensor; see
/// [`Tensor::item`](crate::Tensor::item).
///
/// ```
/// use nxla::{Scalar, Tensor};
///
/// let x = Tensor::from(3.5f32);
/// assert_eq!((x.item::<f64>()?, x.item::<Scalar>()?), (3.5, Scalar::Float(3.5)));
/// assert!(x.item::<u8>().is_err());
/// # Ok::<(), nxla::Error>(())
/// ```
pub trait Item: sealed::Sealed + Sized {
    /// Converts a scalar if this type can represent it.
    fn of(scalar: Scalar) -> Option<Self>;
}

/// Returns the real number of a scalar, or `None` for a complex number.
fn real(scalar: Scalar) -> Option<f64> {
    match scalar {
        Scalar::Complex(_, imaginary) if imaginary != 0.0 => None,
        _ => Some(scalar.as_f64()),
    }
}

macro_rules! items {
    ($($ty:ty => |$scalar:ident| $of:expr;)*) => {
        $(
            impl sealed::Sealed for $ty {}

            impl Item for $ty {
                fn of($scalar: Scalar) -> Option<Self> {
                    $of
                }
            }
        )*
    };
    (@integers $($ty:ty)*) => {
        items! { $($ty => |scalar| <$ty>::try_from(scalar.as_i128()?).ok();)* }
    };
}

items! {
    Scalar => |scalar| Some(scalar);
    f32 => |scalar| real(scalar).map(|number| number as f32);
    f64 => |scalar| real(scalar);
    Complex<f32> => |scalar| {
        let (real, imaginary) = scalar.parts();
        Some(Complex::new(real as f32, imaginary as f32))
    };
    Complex<f64> => |scalar| {
        let (real, imaginary) = scalar.parts();
        Some(Complex::new(real, imaginary))
    };
    bool => |scalar| match scalar.as_i128()? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    };
}

items!(@integers u8 u16 u32 u64 usize i8 i16 i32 i64 i128 isize);

/// Axis names: `["row", "column"]`, `[Some("row"), None]`, or `()` for none.
///
/// ```
/// use nxla::Tensor;
///
/// let x = Tensor::from([[1, 2]]);
/// assert!(x.clone().with_names(["row", "column"])?.names().is_some());
/// assert!(x.with_names(())?.names().is_none());
/// # Ok::<(), nxla::Error>(())
/// ```
pub trait IntoNames: sealed::Sealed {
    /// Returns the names.
    fn into_names(self) -> Option<Names>;
}

macro_rules! names {
    ($(($($parameters:tt)*) $ty:ty => |$names:ident| $of:expr;)*) => {
        $(
            impl<$($parameters)*> sealed::Sealed for $ty {}

            impl<$($parameters)*> IntoNames for $ty {
                fn into_names(self) -> Option<Names> {
                    let $names = self;
                    $of
                }
            }
        )*
    };
}

names! {
    () () => |_names| None;
    () Names => |names| Some(names);
    () Option<Names> => |names| names;
    () &[&str] => |names| Some(names.into());
    (const N: usize) [&str; N] => |names| Some(names.into());
    (const N: usize) [Option<&str>; N] => |names| Some(names.into());
}
