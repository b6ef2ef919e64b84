//! Types of nodes, and the table that gives each distinct type a small id.

use std::fmt;

use nxla_tensor::{DType, Names, Shape};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// Dtype, shape and axis names of one tensor.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct TensorType {
    /// Element type.
    pub dtype: DType,
    /// Size of each axis.
    pub shape: Shape,
    /// Names of the axes, if any has one.
    pub names: Option<Names>,
}

impl TensorType {
    /// A type without axis names.
    pub fn new(dtype: DType, shape: impl Into<Shape>) -> Self {
        Self { dtype, shape: shape.into(), names: None }
    }

    /// The type of a single number.
    pub fn scalar(dtype: DType) -> Self {
        Self { dtype, shape: Shape::scalar(), names: None }
    }

    /// The same shape and names with another dtype.
    pub fn with_dtype(&self, dtype: DType) -> Self {
        Self { dtype, shape: self.shape.clone(), names: self.names.clone() }
    }

    /// The number of axes.
    pub fn rank(&self) -> usize {
        self.shape.rank()
    }

    /// Whether a tensor of the other type can stand in for one of this type: dtype and shape are
    /// the same, and so are the names of the axes, where both have one.
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

/// The type of a node: one tensor, or several for ops with several results.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Type {
    /// One tensor.
    Tensor(TensorType),
    /// Several tensors; [`Op::Elem`](crate::Op::Elem) picks one.
    Tuple(Box<[TensorType]>),
}

impl Type {
    /// The tensor type, or `None` for a tuple.
    pub fn as_tensor(&self) -> Option<&TensorType> {
        match self {
            Type::Tensor(ty) => Some(ty),
            Type::Tuple(_) => None,
        }
    }

    /// The type of results that come in this number: a lone one is no tuple.
    pub fn of_results(mut types: Vec<TensorType>) -> Self {
        if types.len() == 1 {
            Type::Tensor(types.remove(0))
        } else {
            Type::Tuple(types.into_boxed_slice())
        }
    }

    /// The tensor types, one for a tensor.
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

/// Which type of one graph is which of another.
pub(crate) type TypeMap = FxHashMap<TypeId, TypeId>;

/// Gives each distinct type an id.
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
