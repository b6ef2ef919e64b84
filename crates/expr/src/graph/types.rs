//! Types of nodes, and a table that assigns an id to each distinct type.

use std::fmt;

use nxla_tensor::{AxisName, DType, Names, Shape};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// Dtype, shape and axis names of a tensor.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct TensorType {
    /// The element type.
    pub dtype: DType,
    /// The size of each axis.
    pub shape: Shape,
    /// The axis names, if any axis has a name.
    pub names: Option<Names>,
}

impl TensorType {
    /// Creates a type without axis names.
    pub fn new(dtype: DType, shape: impl Into<Shape>) -> Self {
        Self { dtype, shape: shape.into(), names: None }
    }

    /// Creates the type of a scalar.
    pub fn scalar(dtype: DType) -> Self {
        Self { dtype, shape: Shape::scalar(), names: None }
    }

    /// Returns the type with another dtype.
    pub fn with_dtype(&self, dtype: DType) -> Self {
        Self { dtype, shape: self.shape.clone(), names: self.names.clone() }
    }

    /// Returns the number of axes.
    pub fn rank(&self) -> usize {
        self.shape.rank()
    }

    /// Returns the bytes of a tensor of this type; see [`Shape::byte_size`].
    pub fn byte_size(&self) -> usize {
        self.shape.byte_size(self.dtype)
    }

    /// Returns the name of each axis, for rules that combine axes of several operands.
    pub(crate) fn axis_names(&self) -> Vec<Option<AxisName>> {
        self.names.as_deref().map_or_else(|| vec![None; self.rank()], <[_]>::to_vec)
    }

    /// Returns whether a tensor of type `other` can be used as a tensor of this type: dtype and
    /// shape must be equal, and so must the names of axes that have a name in both types.
    ///
    /// ```
    /// use nxla_expr::TensorType;
    /// use nxla_tensor::DType;
    ///
    /// let pair = TensorType::new(DType::F32, [2]);
    /// assert!(pair.accepts(&TensorType::new(DType::F32, [2])));
    /// assert!(!pair.accepts(&TensorType::new(DType::F64, [2])));
    /// ```
    pub fn accepts(&self, other: &TensorType) -> bool {
        let names = match (&self.names, &other.names) {
            (Some(left), Some(right)) => left.iter().zip(right.iter()).all(|pair| match pair {
                (Some(left), Some(right)) => left == right,
                (None, _) | (_, None) => true,
            }),
            (None, _) | (_, None) => true,
        };
        self.dtype == other.dtype && self.shape == other.shape && names
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&nxla_tensor::type_text(self.dtype, &self.shape, self.names.as_ref()))
    }
}

/// The type of a node: a tensor, or a tuple for ops with several results.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Type {
    /// A tensor.
    Tensor(TensorType),
    /// A tuple of tensors; [`Op::Elem`](crate::Op::Elem) selects one.
    Tuple(Box<[TensorType]>),
}

impl Type {
    /// Returns the tensor type, or `None` for a tuple.
    pub fn as_tensor(&self) -> Option<&TensorType> {
        match self {
            Type::Tensor(ty) => Some(ty),
            Type::Tuple(_) => None,
        }
    }

    /// Returns the type of a node with these results; a single result is not a tuple.
    pub fn of_results(mut types: Vec<TensorType>) -> Self {
        if types.len() == 1 {
            Type::Tensor(types.remove(0))
        } else {
            Type::Tuple(types.into_boxed_slice())
        }
    }

    /// Returns the tensor types, one for a tensor.
    pub fn parts(&self) -> &[TensorType] {
        match self {
            Type::Tensor(ty) => std::slice::from_ref(ty),
            Type::Tuple(types) => types,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Tensor(ty) => ty.fmt(f),
            Type::Tuple(types) => write!(f, "tuple{}", types.len()),
        }
    }
}

/// A type within one graph; equal types have equal ids.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TypeId(u32);

/// A map from types of one graph to types of another graph.
pub(crate) type TypeMap = FxHashMap<TypeId, TypeId>;

/// A table that assigns an id to each distinct type.
#[derive(Clone, Default, Debug)]
pub(crate) struct TypeTable {
    types: Vec<Type>,
    ids: FxHashMap<Type, TypeId>,
}

impl TypeTable {
    pub(crate) fn intern(&mut self, ty: Type) -> TypeId {
        if let Some(&id) = self.ids.get(&ty) {
            return id;
        }
        let id = TypeId(u32::try_from(self.types.len()).expect("fewer than 2^32 distinct types"));
        self.types.push(ty.clone());
        self.ids.insert(ty, id);
        id
    }

    pub(crate) fn get(&self, id: TypeId) -> &Type {
        &self.types[id.0 as usize]
    }
}
