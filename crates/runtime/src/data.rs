//! Data of Rust programs as tensors: numbers, lists, and nested arrays.

use nxla_tensor::{Complex, F8E4M3, F8E5M2, HostTensor, Shape, bf16, f16};

use crate::tensor::RawTensor;

mod sealed {
    /// Keeps [`super::Nested`] to numbers and arrays of them.
    pub trait Sealed {}
}

const FITS: &str = "the shape has as many elements as there are";

/// An item of a list that becomes a tensor: a number or an array.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither an element type of tensors nor an array of elements",
    note = "convert `usize` to an integer of a fixed width, such as `i64`",
    note = "convert a list of rows with `Tensor::new(rows.concat(), [rows.len(), columns])`"
)]
pub trait Nested: sealed::Sealed + Copy {
    /// Appends the sizes of the arrays, the outermost first.
    fn sizes(sizes: &mut Vec<usize>);

    /// A tensor of a shape from the numbers in all items.
    fn host(items: &[Self], shape: Shape) -> HostTensor;
}

macro_rules! numbers {
    ($($ty:ty)*) => {
        $(
            impl sealed::Sealed for $ty {}

            impl Nested for $ty {
                fn sizes(_: &mut Vec<usize>) {}

                fn host(elements: &[Self], shape: Shape) -> HostTensor {
                    HostTensor::from_slice(elements, shape).expect(FITS)
                }
            }

            impl From<$ty> for RawTensor {
                fn from(number: $ty) -> Self {
                    RawTensor::Host(<$ty>::host(&[number], Shape::scalar()))
                }
            }
        )*
    };
}

numbers!(bool u8 u16 u32 u64 i8 i16 i32 i64 f32 f64 f16 bf16 F8E4M3 F8E5M2);
numbers!(Complex<f32> Complex<f64>);

impl<T: sealed::Sealed, const N: usize> sealed::Sealed for [T; N] {}

impl<T: Nested, const N: usize> Nested for [T; N] {
    fn sizes(sizes: &mut Vec<usize>) {
        sizes.push(N);
        T::sizes(sizes);
    }

    fn host(items: &[Self], shape: Shape) -> HostTensor {
        T::host(items.as_flattened(), shape)
    }
}

/// ```
/// use nxla::Tensor;
///
/// let x = Tensor::from(&[[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0]][1..]);
/// assert_eq!((&x.shape()[..], x.to_vec::<f32>()?), (&[2usize, 2][..], vec![3.0, 4.0, 5.0, 6.0]));
/// # Ok::<(), nxla::Error>(())
/// ```
impl<T: Nested> From<&[T]> for RawTensor {
    fn from(items: &[T]) -> Self {
        let mut sizes = vec![items.len()];
        T::sizes(&mut sizes);
        RawTensor::Host(T::host(items, Shape::from(sizes)))
    }
}

impl<T: Nested> From<Vec<T>> for RawTensor {
    fn from(items: Vec<T>) -> Self {
        RawTensor::from(items.as_slice())
    }
}

impl<T: Nested> From<&Vec<T>> for RawTensor {
    fn from(items: &Vec<T>) -> Self {
        RawTensor::from(items.as_slice())
    }
}

/// ```
/// use nxla::{DType, Tensor};
///
/// let x = Tensor::from([[1, 2, 3], [4, 5, 6]]);
/// assert_eq!((x.dtype(), &x.shape()[..]), (DType::S32, &[2usize, 3][..]));
/// assert_eq!(Tensor::from([true, false]).dtype(), DType::Pred);
/// ```
impl<T: Nested, const N: usize> From<[T; N]> for RawTensor {
    fn from(items: [T; N]) -> Self {
        RawTensor::from(items.as_slice())
    }
}

impl<T: Nested, const N: usize> From<&[T; N]> for RawTensor {
    fn from(items: &[T; N]) -> Self {
        RawTensor::from(items.as_slice())
    }
}
