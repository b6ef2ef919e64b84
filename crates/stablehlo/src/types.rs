//! Tensor types in MLIR's syntax. Each distinct type is formatted once and then identified by a
//! small id.

use std::fmt::Write;

use nxla_tensor::{DType, Shape};
use rustc_hash::FxHashMap;

/// A tensor type of one module; equal types have equal ids.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Ty(u32);

struct Entry {
    dtype: DType,
    shape: Shape,
    text: Box<str>,
}

/// The types that a module has mentioned so far.
#[derive(Default)]
pub(crate) struct Types {
    entries: Vec<Entry>,
    ids: FxHashMap<(DType, Shape), Ty>,
}

impl Types {
    pub(crate) fn intern(&mut self, dtype: DType, shape: &Shape) -> Ty {
        let key = (dtype, shape.clone());
        if let Some(&id) = self.ids.get(&key) {
            return id;
        }
        let id = Ty(u32::try_from(self.entries.len()).expect("fewer than 2^32 distinct types"));
        self.entries.push(Entry { dtype, shape: shape.clone(), text: text(dtype, shape).into() });
        self.ids.insert(key, id);
        id
    }

    /// The first type whose bytes XLA cannot count: it multiplies the sizes as `i64`, and counts the
    /// steps of empty tensors too.
    pub(crate) fn too_large(&self) -> Option<(DType, &Shape)> {
        let fits = |entry: &&Entry| {
            let sizes = entry.shape.iter().map(|&size| i64::try_from(size.max(1)).ok());
            let mut factors = sizes.chain([Some(entry.dtype.size() as i64)]);
            factors.try_fold(1_i64, |bytes, factor| bytes.checked_mul(factor?)).is_some()
        };
        let entry = self.entries.iter().find(|entry| !fits(entry))?;
        Some((entry.dtype, &entry.shape))
    }

    pub(crate) fn text(&self, ty: Ty) -> &str {
        &self.entries[ty.0 as usize].text
    }

    pub(crate) fn dtype(&self, ty: Ty) -> DType {
        self.entries[ty.0 as usize].dtype
    }

    pub(crate) fn shape(&self, ty: Ty) -> &Shape {
        &self.entries[ty.0 as usize].shape
    }
}

/// `tensor<2x3xf32>`, `tensor<f32>` for a scalar.
fn text(dtype: DType, shape: &Shape) -> String {
    let mut text = String::from("tensor<");
    for dim in shape {
        write!(text, "{dim}x").expect("writing to a string cannot fail");
    }
    text.push_str(dtype.mlir_name());
    text.push('>');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_types_share_an_id() {
        let mut types = Types::default();
        let a = types.intern(DType::F32, &Shape::from([2, 3]));
        assert_eq!(types.intern(DType::F32, &Shape::from([2, 3])), a);
        assert_ne!(types.intern(DType::F32, &Shape::from([3, 2])), a);
        assert_ne!(types.intern(DType::F16, &Shape::from([2, 3])), a);
        assert_eq!(types.text(a), "tensor<2x3xf32>");
    }

    #[test]
    fn texts_of_scalar_empty_and_complex_types() {
        assert_eq!(text(DType::Pred, &Shape::scalar()), "tensor<i1>");
        assert_eq!(text(DType::C64, &Shape::from([0, 2])), "tensor<0x2xcomplex<f32>>");
    }
}
