//! Tensors of numbers, accessed by index.

use nxla_expr::TensorType;
use nxla_tensor::{DType, Element, HostTensor, Shape, TensorError, match_dtype};

use crate::number::Number;

/// A tensor during a run. Each element is representable in the dtype.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<usize>,
    /// The elements in row-major order.
    pub(crate) elements: Vec<Number>,
}

impl Array {
    /// Creates a tensor of these elements, converted to the dtype.
    pub(crate) fn new(dtype: DType, shape: &[usize], elements: Vec<Number>) -> Array {
        let elements: Vec<Number> = elements.into_iter().map(|x| x.cast(dtype)).collect();
        assert_eq!(elements.len(), shape.iter().product::<usize>(), "one element for each place");
        Array { dtype, shape: shape.to_vec(), elements }
    }

    /// Creates a tensor of this type from a function of the index.
    pub(crate) fn from_fn(ty: &TensorType, element: impl FnMut(&[usize]) -> Number) -> Array {
        let places: Vec<Vec<usize>> = indices(&ty.shape).collect();
        let elements = places.iter().map(Vec::as_slice).map(element).collect();
        Array::new(ty.dtype, &ty.shape, elements)
    }

    /// Creates a scalar.
    pub(crate) fn scalar(dtype: DType, x: Number) -> Array {
        Array::new(dtype, &[], vec![x])
    }

    pub(crate) fn rank(&self) -> usize {
        self.shape.len()
    }

    /// Returns the element at an index.
    pub(crate) fn at(&self, index: &[usize]) -> Number {
        self.elements[position(index, &self.shape)]
    }

    /// Returns the element for an index of a shape to which this tensor broadcasts: axes are
    /// aligned from the right, and an axis of size 1 has the same element for all indices.
    pub(crate) fn broadcast_at(&self, index: &[usize]) -> Number {
        let aligned = &index[index.len() - self.rank()..];
        let sizes = self.shape.iter().zip(aligned);
        self.at(&sizes.map(|(&size, &at)| if size == 1 { 0 } else { at }).collect::<Vec<_>>())
    }

    /// Returns the only element.
    pub(crate) fn item(&self) -> Number {
        self.elements[0]
    }

    /// Converts the elements to another dtype.
    pub(crate) fn cast(&self, dtype: DType) -> Array {
        Array::new(dtype, &self.shape, self.elements.clone())
    }

    /// Creates a tensor from a host tensor.
    pub(crate) fn of(tensor: &HostTensor) -> Array {
        let elements = (0..tensor.size()).map(|at| Number::of(tensor.get(at))).collect();
        Array::new(tensor.dtype(), tensor.shape(), elements)
    }

    /// Creates the host tensor of this type.
    pub(crate) fn host(&self, ty: &TensorType) -> Result<HostTensor, TensorError> {
        match_dtype!(self.dtype, T => {
            let scalars = self.elements.iter().map(|x| x.scalar(self.dtype));
            let elements: Vec<T> = scalars.map(T::from_scalar).collect();
            HostTensor::from_slice_as(self.dtype, &elements, &self.shape[..])
        })?
        .with_names(ty.names.clone())
    }
}

/// Returns the indices of a shape in row-major order: the last axis varies fastest.
pub(crate) fn indices(shape: &[usize]) -> impl Iterator<Item = Vec<usize>> + use<> {
    let shape = Shape::from(shape);
    (0..shape.size()).map(move |position| shape.index_at(position))
}

/// Returns the row-major position of an index.
pub(crate) fn position(index: &[usize], shape: &[usize]) -> usize {
    index.iter().zip(shape).fold(0, |position, (&at, &size)| position * size + at)
}
