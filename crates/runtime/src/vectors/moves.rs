//! Conversion between vectorized and ordinary axes.
//!
//! Elements stay in row-major order, so the new axes determine the result: a [`Move`] is computed from
//! types, and a reshape performs it.

use nxla_expr::{ExprId, Graph, Op, TensorType};
use nxla_tensor::{AxisName, Names, Shape};

use super::entry::spread;
use super::{VectorAxes, VectorAxis, mistake};
use crate::error::Result;

/// An axis that is to be vectorized: its name, and the size that it must have, if that is to be
/// checked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewVector {
    /// The name of the vectorized axis.
    pub name: AxisName,
    /// The required size; `None` accepts any size.
    pub size: Option<usize>,
}

impl From<&str> for NewVector {
    fn from(name: &str) -> Self {
        Self { name: name.into(), size: None }
    }
}

impl From<(&str, usize)> for NewVector {
    fn from((name, size): (&str, usize)) -> Self {
        Self { name: name.into(), size: Some(size) }
    }
}

impl From<(&str, Option<usize>)> for NewVector {
    fn from((name, size): (&str, Option<usize>)) -> Self {
        Self { name: name.into(), size }
    }
}

/// The remaining axes of a handle besides its new vectorized axes, see
/// [`RawExpr::revectorize`](crate::RawExpr::revectorize).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EntryAxes {
    /// The shape of an entry; one size may be `None`, and is worked out. Without a shape, axes
    /// that the vectorized ones leave over stay as they are.
    pub shape: Option<Vec<Option<usize>>>,
    /// The names of the axes of an entry.
    pub names: Option<Names>,
}

impl EntryAxes {
    /// Entries of this shape.
    pub fn shape(sizes: impl IntoIterator<Item = usize>) -> Self {
        Self { shape: Some(sizes.into_iter().map(Some).collect()), names: None }
    }
}

/// The change of a handle's axes.
pub(crate) struct Move {
    pub(crate) vectors: VectorAxes,
    /// The type of an entry, names included.
    pub(crate) entry: TensorType,
}

impl Move {
    /// The type of the node.
    pub(crate) fn full(&self) -> TensorType {
        self.vectors.full_type(&self.entry)
    }

    /// Carries it out.
    pub(crate) fn build(&self, graph: &mut Graph, x: ExprId) -> Result<ExprId> {
        let TensorType { shape, names, .. } = self.full();
        Ok(graph.reshape_named(x, shape, names)?)
    }

    /// The first axes of an entry become vectorized, after the axes that are.
    pub(crate) fn vectorize(
        own: &VectorAxes,
        entry: &TensorType,
        axes: &[NewVector],
    ) -> Result<Move> {
        let op = "vectorize";
        if axes.is_empty() {
            return Ok(Move { vectors: own.clone(), entry: entry.clone() });
        }
        if entry.rank() == 0 {
            return Err(mistake(op, "x: must have at least one axis; got a scalar"));
        }
        if axes.len() > entry.rank() {
            let why = format!("axes: must be at most the axes of {entry}; got {}", axes.len());
            return Err(mistake(op, why));
        }
        let (taken, rest) = entry.shape.split_at(axes.len());
        let names = entry.names.as_ref().map(|names| Names::new(names[axes.len()..].to_vec()));
        let names = names.filter(|names| !names.is_unnamed());
        let mut vectors: Vec<VectorAxis> = own.to_vec();
        for (axis, &size) in axes.iter().zip(taken) {
            let name = axis.name.clone();
            if let Some(expected) = axis.size.filter(|&expected| expected != size) {
                let why = format!("axes: size of {name:?} must be {size}; got {expected}");
                return Err(mistake(op, why));
            }
            if vectors.iter().any(|other| other.name == name) {
                let why = format!("axes: names must differ from the vectorized axes; got {name:?}");
                return Err(mistake(op, why));
            }
            if names.as_ref().is_some_and(|names| names.axis(&name).is_ok()) {
                let why =
                    format!("axes: names must differ from the other axes of {entry}; got {name:?}");
                return Err(mistake(op, why));
            }
            vectors.push(VectorAxis { name, size });
        }
        let entry = TensorType { dtype: entry.dtype, shape: rest.into(), names };
        Ok(Move { vectors: VectorAxes::new(vectors), entry })
    }

    /// Vectorized axes become the first axes again.
    pub(crate) fn devectorize(own: &VectorAxes, entry: &TensorType, keep_names: bool) -> Move {
        let mut full = own.full_type(entry);
        if keep_names && !own.is_empty() {
            let entry = entry.names.clone().unwrap_or_else(|| Names::without_names(entry.rank()));
            let vectors = own.iter().map(|axis| Some(axis.name.clone()));
            full.names = Some(Names::new(vectors.chain(entry.iter().cloned())));
        }
        Move { vectors: VectorAxes::NONE, entry: full }
    }

    /// All elements under other vectorized axes and another shape.
    pub(crate) fn revectorize(
        own: &VectorAxes,
        entry: &TensorType,
        axes: &[NewVector],
        target: &EntryAxes,
    ) -> Result<Move> {
        let op = "revectorize";
        let full = own.full_type(entry);
        let rest = match &target.shape {
            Some(shape) => shape.clone(),
            None => entry.shape.iter().copied().map(Some).collect(),
        };
        let sizes: Vec<Option<usize>> = axes.iter().map(|axis| axis.size).chain(rest).collect();
        if sizes.iter().filter(|size| size.is_none()).count() > 1 {
            let why = "sizes: must have at most one unknown size, in the vectorized axes and \
                       the shape together; got several";
            return Err(mistake(op, why));
        }
        let known: Shape = sizes.iter().copied().flatten().collect();
        let fit = full.shape.size().checked_div(known.size()).unwrap_or(0);
        let sizes: Shape = sizes.iter().map(|size| size.unwrap_or(fit)).collect();
        if sizes.checked_size() != Some(full.shape.size()) {
            let why = format!("sizes: must have the number of elements of {full}; got {sizes}");
            return Err(mistake(op, why));
        }
        let (vectors, shape) = sizes.split_at(axes.len());
        for (position, axis) in axes.iter().enumerate() {
            if axes[..position].iter().any(|other| other.name == axis.name) {
                return Err(mistake(op, format!("the axis {:?} is given twice", axis.name)));
            }
        }
        let vectors = axes
            .iter()
            .zip(vectors)
            .map(|(axis, &size)| VectorAxis { name: axis.name.clone(), size });
        let names = match &target.names {
            Some(names) if names.len() != shape.len() => {
                let why = format!(
                    "names: must be one for each axis; got {} for {} axes",
                    names.len(),
                    shape.len()
                );
                return Err(mistake(op, why));
            }
            Some(names) => Some(names.clone()).filter(|names| !names.is_unnamed()),
            None if target.shape.is_none() => entry.names.clone(),
            None => None,
        };
        let entry = TensorType { dtype: entry.dtype, shape: shape.into(), names };
        Ok(Move { vectors: VectorAxes::new(vectors), entry })
    }
}

/// Adds vectorized axes to operands until all have the same, in the order of their first use: with
/// size 1 if an operand lacks the axis, or repeated to full size with `repeat`. With `align_ranks`,
/// entries get axes of size 1 in front until all have the same rank. Operands without any
/// vectorized axis are unchanged.
pub(crate) fn align_vectors(
    graph: &mut Graph,
    function: &str,
    operands: &[(ExprId, VectorAxes)],
    align_ranks: bool,
    repeat: bool,
) -> Result<Vec<(ExprId, VectorAxes)>> {
    let union = VectorAxes::union(function, operands.iter().map(|(_, own)| own))?;
    if union.is_empty() {
        return Ok(operands.to_vec());
    }
    let rank = operands.iter().map(|(id, own)| graph.shape(*id).rank() - own.len()).max();
    let mut results = Vec::with_capacity(operands.len());
    for (id, own) in operands {
        let (id, vectors) = if repeat {
            (spread(graph, *id, own, &union)?, union.clone())
        } else {
            pad_axes(graph, *id, own, &union)?
        };
        let mut entry = vectors.entry_type(graph.tensor_type(id));
        let missing = rank.map_or(0, |rank| rank - entry.rank());
        let id = if align_ranks && missing > 0 {
            let ones = std::iter::repeat_n(1, missing);
            entry.shape = ones.chain(entry.shape.iter().copied()).collect();
            entry.names = entry.names.map(|names| {
                Names::new(std::iter::repeat_n(None, missing).chain(names.iter().cloned()))
            });
            Move { vectors: vectors.clone(), entry }.build(graph, id)?
        } else {
            id
        };
        results.push((id, vectors));
    }
    Ok(results)
}

/// Returns the node with all axes of `union` in order; new axes have size 1.
fn pad_axes(
    graph: &mut Graph,
    x: ExprId,
    own: &VectorAxes,
    union: &VectorAxes,
) -> Result<(ExprId, VectorAxes)> {
    let vectors = VectorAxes::new(union.iter().map(|axis| {
        let size = own.position(&axis.name).map_or(1, |position| own[position].size);
        VectorAxis { name: axis.name.clone(), size }
    }));
    let entry = own.entry_type(graph.tensor_type(x));
    let order = vectors.iter().filter_map(|axis| own.position(&axis.name));
    let rest = own.len()..own.len() + entry.rank();
    let x = graph.make(Op::Transpose(order.chain(rest).collect()), &[x])?;
    let id = Move { vectors: vectors.clone(), entry }.build(graph, x)?;
    Ok((id, vectors))
}

/// Makes a vectorized axis the first axis of the entries. A node without this axis is repeated
/// along it.
pub(crate) fn separate(
    graph: &mut Graph,
    x: ExprId,
    own: &VectorAxes,
    name: &str,
    size: usize,
) -> Result<(ExprId, VectorAxes)> {
    let with = match own.position(name) {
        Some(_) => own.clone(),
        None => own.with(name, size),
    };
    let x = spread(graph, x, own, &with)?;
    let (position, rank) = (with.position(name).unwrap_or(0), graph.shape(x).rank());
    let rest = with.without(name);
    let others = (0..with.len()).filter(|&axis| axis != position);
    let order = others.chain([position]).chain(with.len()..rank).collect();
    Ok((graph.make(Op::Transpose(order), &[x])?, rest))
}

/// Returns for each entry along a vectorized axis its own row along an axis of the entries, which
/// replaces the vectorized axis. Other nodes are unchanged.
pub(crate) fn select_own_entries(
    graph: &mut Graph,
    x: ExprId,
    own: &VectorAxes,
    name: &str,
    position: usize,
) -> Result<(ExprId, VectorAxes)> {
    let entry = own.entry_type(graph.tensor_type(x));
    let size = own.position(name).map(|axis| own[axis].size);
    let Some(size) = size.filter(|&size| entry.shape.get(position) == Some(&size)) else {
        return Ok((x, own.clone()));
    };
    let (x, vectors) = separate(graph, x, own, name, size)?;
    let (rank, first) = (graph.shape(x).rank(), vectors.len());
    let row = first + 1 + position;
    let others = (0..rank).filter(|axis| ![first, row].contains(axis));
    let x = graph.make(Op::Transpose(others.chain([first, row]).collect()), &[x])?;
    let x = graph.take_diagonal(x, 0)?;
    let before = first + position;
    let order = (0..before).chain([rank - 2]).chain(before..rank - 2).collect();
    let x = graph.make(Op::Transpose(order), &[x])?;
    // The diagonal has no names.
    let id = Move { vectors: vectors.clone(), entry }.build(graph, x)?;
    Ok((id, vectors))
}

#[cfg(test)]
mod tests {
    use nxla_tensor::DType;

    use super::*;

    fn matrix() -> TensorType {
        let names = Names::from([Some("x"), Some("y")]);
        TensorType { names: Some(names), ..TensorType::new(DType::S32, [2, 3]) }
    }

    #[test]
    fn vectorizing_takes_leading_axes() {
        let moved = Move::vectorize(&VectorAxes::NONE, &matrix(), &["foo".into()]).unwrap();
        assert_eq!(moved.vectors.to_string(), "vectorized[foo: 2]");
        assert_eq!(moved.entry.to_string(), "s32[y: 3]");
        assert_eq!(moved.full().to_string(), "s32[2][y: 3]");
        let devectorized = Move::devectorize(&moved.vectors, &moved.entry, true);
        assert_eq!(devectorized.full().to_string(), "s32[foo: 2][y: 3]");
        let devectorized = Move::devectorize(&moved.vectors, &moved.entry, false);
        assert_eq!(devectorized.full().to_string(), "s32[2][y: 3]");
    }

    #[test]
    fn invalid_vectorize_arguments_are_errors() {
        let error = |own: &VectorAxes, axes: &[NewVector]| {
            Move::vectorize(own, &matrix(), axes).err().unwrap().to_string()
        };
        let none = VectorAxes::NONE;
        let x = VectorAxes::new([VectorAxis { name: "v".into(), size: 4 }]);
        assert_eq!(
            error(&none, &["y".into()]),
            "vectorize: axes: names must differ from the other axes of s32[x: 2][y: 3]; got \"y\""
        );
        assert_eq!(
            error(&none, &[("x", 3).into()]),
            "vectorize: axes: size of \"x\" must be 2; got 3"
        );
        assert_eq!(
            error(&x, &["v".into()]),
            "vectorize: axes: names must differ from the vectorized axes; got \"v\""
        );
        assert_eq!(
            error(&none, &["a".into(), "b".into(), "c".into()]),
            "vectorize: axes: must be at most the axes of s32[x: 2][y: 3]; got 3"
        );
    }

    #[test]
    fn revectorize_infers_one_size() {
        let moved = Move::vectorize(&VectorAxes::NONE, &matrix(), &["v".into()]).unwrap();
        let revectorize = |axes: &[NewVector], target: EntryAxes| {
            Move::revectorize(&moved.vectors, &moved.entry, axes, &target)
        };
        let split =
            revectorize(&[("a", 1).into(), ("b", None).into()], EntryAxes::default()).unwrap();
        assert_eq!(split.vectors.to_string(), "vectorized[a: 1][b: 2]");
        assert_eq!(split.entry.to_string(), "s32[y: 3]");
        let target = EntryAxes { shape: Some(vec![None]), names: None };
        let flat = revectorize(&[("a", 1).into()], target).unwrap();
        assert_eq!(flat.full().to_string(), "s32[1][6]");
        let error = revectorize(&[("a", 5).into()], EntryAxes::default()).err().unwrap();
        assert_eq!(
            error.to_string(),
            "revectorize: sizes: must have the number of elements of s32[2][y: 3]; got [5][3]"
        );
    }
}
