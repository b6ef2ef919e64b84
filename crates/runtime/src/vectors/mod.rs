//! Vectorized axes: leading axes that functions do not see.
//!
//! A handle is a [`RawTensor`](crate::RawTensor) or a [`RawExpr`](crate::RawExpr). The shape of a handle
//! omits its vectorized axes, and every function treats the handle as a batch of tensors of this
//! shape. Axes of several operands match by name. Graphs have only ordinary axes: a function
//! of vectorized operands is built once for one entry, and [`nxla_expr::batch`] converts it to a
//! function of all entries, which is added to the trace.

pub mod active_entries;
pub mod control;
mod entry;
mod handles;
pub mod loops;
mod map;
mod moves;
mod tensor;

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use nxla_expr::TensorType;
use nxla_tensor::{AxisName, Names, Shape};
use smallvec::SmallVec;

use crate::error::{Error, Result};

pub use entry::{fold_per_entry, per_entry, reduce_to_vectors, spread};
pub use map::map_entries;
pub use moves::{EntryAxes, NewVector};
pub use tensor::VectorTensor;

/// A vectorized axis.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct VectorAxis {
    /// The name that matches axes of several operands.
    pub name: AxisName,
    /// The number of entries along the axis.
    pub size: usize,
}

/// The vectorized axes of a handle, the outermost first.
///
/// Most handles have no vectorized axes, which costs neither memory nor time.
///
/// ```
/// use nxla::{Tensor, VectorAxis, VectorAxes};
///
/// let rows = Tensor::from([[1, 2], [3, 4]]).vectorize(["row"])?;
/// assert_eq!(*rows.vectors(), VectorAxes::new([VectorAxis { name: "row".into(), size: 2 }]));
/// assert_eq!(rows.sum()?.devectorize(false)?.to_vec::<i32>()?, [3, 7]);
/// # Ok::<(), nxla::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct VectorAxes(Option<Arc<[VectorAxis]>>);

impl VectorAxes {
    /// The empty list of axes.
    pub const NONE: VectorAxes = VectorAxes(None);

    /// These axes.
    ///
    /// # Panics
    /// Panics if two axes have the same name, because a name then selects only one of them.
    pub fn new(axes: impl IntoIterator<Item = VectorAxis>) -> Self {
        let axes: SmallVec<[VectorAxis; 2]> = axes.into_iter().collect();
        for (position, axis) in axes.iter().enumerate() {
            let is_first = axes[..position].iter().all(|other| other.name != axis.name);
            assert!(
                is_first,
                "vectorized axes must have distinct names; got {:?} twice",
                axis.name
            );
        }
        Self((!axes.is_empty()).then(|| axes.into_vec().into()))
    }

    /// These and another axis, the innermost.
    #[must_use]
    pub fn with(&self, name: &str, size: usize) -> Self {
        let more = VectorAxis { name: name.into(), size };
        Self::new(self.iter().cloned().chain([more]))
    }

    /// Returns all axes except one.
    #[must_use]
    pub fn without(&self, name: &str) -> Self {
        Self::new(self.iter().filter(|axis| *axis.name != *name).cloned())
    }

    /// Returns all axes whose names are not names of `others`.
    #[must_use]
    pub(crate) fn without_all(&self, others: &VectorAxes) -> Self {
        Self::new(self.iter().filter(|axis| others.position(&axis.name).is_none()).cloned())
    }

    /// Returns `true` without vectorized axes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The size of each.
    pub fn sizes(&self) -> Shape {
        self.iter().map(|axis| axis.size).collect()
    }

    /// The position of an axis.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.iter().position(|axis| &*axis.name == name)
    }

    /// The axes that operands with these have in common, in the order of their first use. Axes
    /// of one name have one size, or size 1.
    ///
    /// # Errors
    /// Returns an error for vectorized axes of equal names and different sizes.
    pub fn union<'a>(
        function: &str,
        all: impl IntoIterator<Item = &'a VectorAxes>,
    ) -> Result<VectorAxes> {
        let mut common: SmallVec<[VectorAxis; 4]> = SmallVec::new();
        for axis in all.into_iter().flat_map(|vectors| vectors.iter()) {
            match common.iter_mut().find(|known| known.name == axis.name) {
                None => common.push(axis.clone()),
                Some(known) if known.size == axis.size || axis.size == 1 => {}
                Some(known) if known.size == 1 => known.size = axis.size,
                Some(known) => {
                    let why = format!(
                        "the vectorized axis {:?} has size {} in one operand and {} in another; \
                         sizes must be equal, or 1",
                        known.name, known.size, axis.size
                    );
                    return Err(mistake(function, why));
                }
            }
        }
        Ok(VectorAxes::new(common))
    }

    /// The type of one entry of a node that has these axes in front.
    pub fn entry_type(&self, ty: &TensorType) -> TensorType {
        let depth = self.len();
        let names = ty.names.as_ref().map(|names| Names::new(names[depth..].iter().cloned()));
        TensorType {
            dtype: ty.dtype,
            shape: ty.shape[depth..].into(),
            names: names.filter(|names| !names.is_unnamed()),
        }
    }

    /// The type of a node with these axes, unnamed, in front of the axes of an entry.
    pub fn full_type(&self, entry: &TensorType) -> TensorType {
        nxla_expr::batch::batched_type(entry, &self.sizes())
    }
}

impl Deref for VectorAxes {
    type Target = [VectorAxis];

    fn deref(&self) -> &[VectorAxis] {
        self.0.as_deref().unwrap_or_default()
    }
}

impl fmt::Display for VectorAxes {
    /// Writes the axes as Nx does: `vectorized[x: 2][y: 3]`; an empty string without axes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return Ok(());
        }
        f.write_str("vectorized")?;
        self.iter().try_for_each(|axis| write!(f, "[{}: {}]", axis.name, axis.size))
    }
}

impl fmt::Debug for VectorAxes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An error about vectorized axes.
fn mistake(function: &str, why: impl Into<String>) -> Error {
    Error::Vectors { function: function.into(), why: why.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axes(axes: &[(&str, usize)]) -> VectorAxes {
        VectorAxes::new(axes.iter().map(|&(name, size)| VectorAxis { name: name.into(), size }))
    }

    #[test]
    fn union_of_axes_keeps_order_of_appearance() {
        let all = [axes(&[("x", 1)]), axes(&[]), axes(&[("y", 3), ("x", 2)])];
        let union = VectorAxes::union("add", &all).unwrap();
        assert_eq!(union, axes(&[("x", 2), ("y", 3)]));
        assert_eq!(union.to_string(), "vectorized[x: 2][y: 3]");
    }

    #[test]
    fn sizes_must_agree() {
        let error = VectorAxes::union("add", &[axes(&[("x", 3)]), axes(&[("x", 2)])]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "add: the vectorized axis \"x\" has size 3 in one operand and 2 in another; sizes must \
             be equal, or 1"
        );
    }

    #[test]
    #[should_panic(expected = "must have distinct names")]
    fn names_must_be_distinct() {
        axes(&[("x", 2), ("y", 3), ("x", 2)]);
    }

    #[test]
    fn empty_axes_do_not_allocate() {
        assert!(axes(&[]).is_empty());
        assert_eq!(axes(&[]), VectorAxes::NONE);
    }
}
