//! Optional axis names.
//!
//! A tensor has either no names, or an optional name for each axis. Tensors whose names conflict on
//! an axis cannot be combined; a missing name takes the other name.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::dtype::DType;

/// The name of an axis, shared by the tensors that are derived from one tensor.
pub type AxisName = Arc<str>;

/// One optional name per axis.
///
/// ```
/// use nxla_tensor::Names;
///
/// let rows = Names::from([Some("rows"), None]);
/// let columns = Names::from([Some("columns")]);
/// let merged = rows.merge(&columns).unwrap();
/// assert_eq!(merged, Names::from([Some("rows"), Some("columns")]));
/// assert_eq!(merged.axis("columns"), Ok(1));
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Names(Arc<[Option<AxisName>]>);

/// An error of axis names.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum NamesError {
    /// Corresponding axes have different names.
    #[error("cannot merge name {left} on axis {left_axis} with name {right} on axis {right_axis}")]
    Conflict {
        /// The name in the left operand.
        left: AxisName,
        /// The axis of the left operand.
        left_axis: usize,
        /// The name in the right operand.
        right: AxisName,
        /// The axis of the right operand.
        right_axis: usize,
    },
    /// No axis has the name.
    #[error("name {name} not found in tensor with names {names:?}")]
    NotFound {
        /// The name.
        name: String,
        /// The names of the tensor.
        names: Names,
    },
    /// Two axes of a result would have the same name.
    #[error("operation would result in duplicate names {names:?}, rename axes to avoid that")]
    Duplicate {
        /// The names with the repetition.
        names: Names,
    },
    /// The number of names differs from the rank.
    #[error("names {names:?} do not fit a tensor of rank {rank}: every axis needs a name or none")]
    Length {
        /// The names.
        names: Names,
        /// The rank of the tensor.
        rank: usize,
    },
}

crate::debug_as_message!(NamesError);

impl Names {
    /// Creates names for axes in order. A name may repeat; see [`Names::check_unique`].
    #[must_use]
    pub fn new<I>(names: I) -> Names
    where
        I: IntoIterator<Item = Option<AxisName>>,
    {
        Names(names.into_iter().collect())
    }

    /// Creates `rank` axes without names.
    #[must_use]
    pub fn without_names(rank: usize) -> Names {
        Names::new(std::iter::repeat_n(None, rank))
    }

    /// Returns whether no axis has a name.
    #[must_use]
    pub fn is_unnamed(&self) -> bool {
        self.iter().all(Option::is_none)
    }

    /// Returns the name of an axis; `None` also for an axis out of range.
    #[must_use]
    pub fn name(&self, axis: usize) -> Option<&AxisName> {
        self.0.get(axis).and_then(Option::as_ref)
    }

    /// Returns the first axis with a name.
    ///
    /// # Errors
    /// Returns [`NamesError::NotFound`] if there is none.
    pub fn axis(&self, name: &str) -> Result<usize, NamesError> {
        self.iter()
            .position(|slot| slot.as_deref() == Some(name))
            .ok_or_else(|| NamesError::NotFound { name: name.to_owned(), names: self.clone() })
    }

    /// Checks that the names are distinct, which may not hold for the result of a contraction.
    ///
    /// # Errors
    /// Returns [`NamesError::Duplicate`] if two axes have the same name.
    pub fn check_unique(&self) -> Result<(), NamesError> {
        let repeated =
            (1..self.len()).any(|axis| self[axis].is_some() && self[..axis].contains(&self[axis]));
        if repeated { Err(NamesError::Duplicate { names: self.clone() }) } else { Ok(()) }
    }

    /// Checks that there is one name for each axis of a tensor of rank `rank`.
    ///
    /// # Errors
    /// Returns [`NamesError::Length`] if their number differs from the rank.
    pub fn check_length(&self, rank: usize) -> Result<(), NamesError> {
        if self.len() == rank {
            Ok(())
        } else {
            Err(NamesError::Length { names: self.clone(), rank })
        }
    }

    /// Merges the names of two operands, aligned from the right: a missing name takes the other
    /// name, and equal names remain. The result has the larger rank.
    ///
    /// # Errors
    /// Returns [`NamesError::Conflict`] for different names on one axis.
    pub fn merge(&self, other: &Names) -> Result<Names, NamesError> {
        let rank = self.len().max(other.len());
        let slot = |names: &Names, axis: usize| {
            let axis = (axis + names.len()).checked_sub(rank)?;
            names.name(axis).cloned().map(|name| (name, axis))
        };
        (0..rank)
            .map(|axis| match (slot(self, axis), slot(other, axis)) {
                (Some((left, left_axis)), Some((right, right_axis))) if left != right => {
                    Err(NamesError::Conflict { left, left_axis, right, right_axis })
                }
                (left, right) => Ok(left.or(right).map(|(name, _)| name)),
            })
            .collect::<Result<Arc<[_]>, NamesError>>()
            .map(Names)
    }
}

/// Merges the names of operands with these ranks, which may have no names. Returns `None` if no
/// axis of the result has a name.
///
/// # Errors
/// Returns [`NamesError::Conflict`] for different names on one axis.
pub fn merge_names(
    left: Option<&Names>,
    left_rank: usize,
    right: Option<&Names>,
    right_rank: usize,
) -> Result<Option<Names>, NamesError> {
    if left.is_none() && right.is_none() {
        return Ok(None);
    }
    let or_unnamed =
        |names: Option<&Names>, rank| names.cloned().unwrap_or_else(|| Names::without_names(rank));
    let merged = or_unnamed(left, left_rank).merge(&or_unnamed(right, right_rank))?;
    Ok((!merged.is_unnamed()).then_some(merged))
}

impl Deref for Names {
    type Target = [Option<AxisName>];

    fn deref(&self) -> &[Option<AxisName>] {
        &self.0
    }
}

impl<const N: usize> From<[Option<&str>; N]> for Names {
    fn from(names: [Option<&str>; N]) -> Names {
        Names::new(names.into_iter().map(|name| name.map(AxisName::from)))
    }
}

impl<const N: usize> From<[&str; N]> for Names {
    fn from(names: [&str; N]) -> Names {
        Names::from(names.map(Some))
    }
}

impl From<&[&str]> for Names {
    fn from(names: &[&str]) -> Names {
        names.iter().map(|&name| Some(name.into())).collect()
    }
}

impl FromIterator<Option<AxisName>> for Names {
    fn from_iter<I: IntoIterator<Item = Option<AxisName>>>(names: I) -> Names {
        Names::new(names)
    }
}

impl fmt::Debug for Names {
    /// Writes `[x, nil, y]`, the format of error messages.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (axis, name) in self.iter().enumerate() {
            let separator = if axis == 0 { "" } else { ", " };
            write!(f, "{separator}{}", name.as_deref().unwrap_or("nil"))?;
        }
        f.write_str("]")
    }
}

/// Formats the type of a tensor: `f32[x: 2][3]`, and `f32` for a scalar.
///
/// ```
/// use nxla_tensor::{DType, Names, type_text};
///
/// let names = Names::from([Some("x"), None]);
/// assert_eq!(type_text(DType::F32, &[2, 3], Some(&names)), "f32[x: 2][3]");
/// assert_eq!(type_text(DType::S32, &[], None), "s32");
/// ```
#[must_use]
pub fn type_text(dtype: DType, shape: &[usize], names: Option<&Names>) -> String {
    let mut text = dtype.name().to_owned();
    for (axis, dim) in shape.iter().enumerate() {
        match names.and_then(|names| names.name(axis)) {
            Some(name) => text.push_str(&format!("[{name}: {dim}]")),
            None => text.push_str(&format!("[{dim}]")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_aligns_trailing_axes() {
        let long = Names::from([Some("a"), None, Some("c")]);
        let short = Names::from([Some("b"), None]);
        let expected = Names::from([Some("a"), Some("b"), Some("c")]);
        assert_eq!(long.merge(&short), Ok(expected.clone()));
        assert_eq!(short.merge(&long), Ok(expected.clone()));
        assert_eq!(expected.merge(&expected), Ok(expected.clone()));
        assert_eq!(Names::without_names(0).merge(&expected), Ok(expected));
    }

    #[test]
    fn conflicts_name_both_sides() {
        let error = Names::from([None, Some("x")]).merge(&Names::from([Some("y")])).unwrap_err();
        assert_eq!(error.to_string(), "cannot merge name x on axis 1 with name y on axis 0");
    }

    #[test]
    fn merging_optional_names() {
        let names = Names::from([Some("x")]);
        assert_eq!(merge_names(None, 2, None, 3), Ok(None));
        assert_eq!(merge_names(Some(&Names::without_names(2)), 2, None, 3), Ok(None));
        let expected = Names::from([None, Some("x")]);
        assert_eq!(merge_names(None, 2, Some(&names), 1), Ok(Some(expected)));
    }

    #[test]
    fn lookup_and_duplicates() {
        let names = Names::from([Some("x"), None, Some("y")]);
        assert_eq!(names.axis("y"), Ok(2));
        let error = names.axis("z").unwrap_err();
        assert_eq!(error.to_string(), "name z not found in tensor with names [x, nil, y]");
        assert_eq!(names.name(1), None);
        assert_eq!(names.name(9), None);
        assert_eq!(names.check_unique(), Ok(()));
        assert_eq!(Names::without_names(2).check_unique(), Ok(()));
        assert!(Names::from([Some("x"), None, Some("x")]).check_unique().is_err());
    }

    #[test]
    fn types_are_printed_with_names() {
        assert_eq!(type_text(DType::F8E4M3FN, &[0, 2], None), "f8_e4m3fn[0][2]");
        let names = Names::from([None, Some("y")]);
        assert_eq!(type_text(DType::U8, &[1, 2], Some(&names)), "u8[1][y: 2]");
    }
}
