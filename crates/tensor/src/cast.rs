//! Conversion of the elements of whole buffers.
//!
//! There is one generic loop per pair of storage types. The intermediate scalar is optimized away,
//! since its variant is known from the source type.

use crate::dtype::{DType, Kind};
use crate::element::Element;
use crate::match_dtype;

/// Converts `source` elements to `target` elements by the rules of
/// [`Scalar::cast`](crate::Scalar::cast). Both buffers must have the same number of elements.
pub(crate) fn cast_bytes(from: DType, source: &[u8], to: DType, target: &mut [u8]) {
    match_dtype!(from, S => {
        let source: &[S] = bytemuck::cast_slice(source);
        match to.kind() {
            Kind::Pred => {
                map(source, target, |element| u8::from(!element.to_scalar().is_zero()));
            }
            // Saturation and wrapping depend on the width of the dtype, not of the storage type.
            Kind::Unsigned if to.bits() < 8 => {
                map(source, target, |element| u8::from_scalar(element.to_scalar().cast(to)));
            }
            Kind::Signed if to.bits() < 8 => {
                let target: &mut [i8] = bytemuck::cast_slice_mut(target);
                map(source, target, |element| i8::from_scalar(element.to_scalar().cast(to)));
            }
            Kind::Unsigned | Kind::Signed | Kind::Float | Kind::Complex => {
                match_dtype!(to, T => {
                    let target: &mut [T] = bytemuck::cast_slice_mut(target);
                    map(source, target, |element| T::from_scalar(element.to_scalar()));
                });
            }
        }
    });
}

fn map<S: Element, T: Element>(source: &[S], target: &mut [T], convert: impl Fn(S) -> T) {
    for (to, from) in target.iter_mut().zip(source) {
        *to = convert(*from);
    }
}
