//! Tensors whose elements are numbers, read and written by their index.

use nxla_expr::TensorType;
use nxla_tensor::{DType, Element, HostTensor, TensorError, match_dtype};

use crate::number::Number;

/// A tensor while a program runs. Each element is one that the dtype has.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<usize>,
    /// In row-major order.
    pub(crate) elements: Vec<Number>,
}

impl Array {
    /// A tensor of these elements, each converted to the dtype.
    pub(crate) fn new(dtype: DType, shape: &[usize], elements: Vec<Number>) -> Array {
        let elements: Vec<Number> = elements.into_iter().map(|x| x.cast(dtype)).collect();
        assert_eq!(elements.len(), shape.iter().product::<usize>(), "one element for each place");
        Array { dtype, shape: shape.to_vec(), elements }
    }

    /// A tensor of this type whose element at each index is what a function says.
    pub(crate) fn from_fn(ty: &TensorType, element: impl FnMut(&[usize]) -> Number) -> Array {
        let places: Vec<Vec<usize>> = indices(&ty.shape).collect();
        let elements = places.iter().map(Vec::as_slice).map(element).collect();
        Array::new(ty.dtype, &ty.shape, elements)
    }

    /// One number.
    pub(crate) fn scalar(dtype: DType, x: Number) -> Array {
        Array::new(dtype, &[], vec![x])
    }

    pub(crate) fn rank(&self) -> usize {
        self.shape.len()
    }

    /// The element at an index.
    pub(crate) fn at(&self, index: &[usize]) -> Number {
        self.elements[position(index, &self.shape)]
    }

    /// The element for an index of a shape that this one broadcasts to: axes are aligned at the
    /// last one, and the only element along an axis of size 1 stands for all.
    pub(crate) fn broadcast_at(&self, index: &[usize]) -> Number {
        let aligned = &index[index.len() - self.rank()..];
        let sizes = self.shape.iter().zip(aligned);
        self.at(&sizes.map(|(&size, &at)| if size == 1 { 0 } else { at }).collect::<Vec<_>>())
    }

    /// The only element.
    pub(crate) fn item(&self) -> Number {
        self.elements[0]
    }

    /// The same numbers in another dtype.
    pub(crate) fn cast(&self, dtype: DType) -> Array {
        Array::new(dtype, &self.shape, self.elements.clone())
    }

    /// What a host tensor holds.
    pub(crate) fn of(tensor: &HostTensor) -> Array {
        let elements = (0..tensor.size()).map(|at| Number::of(tensor.get(at))).collect();
        Array::new(tensor.dtype(), tensor.shape(), elements)
    }

    /// The host tensor of this type.
    pub(crate) fn host(&self, ty: &TensorType) -> Result<HostTensor, TensorError> {
        match_dtype!(self.dtype, T => {
            let scalars = self.elements.iter().map(|x| x.scalar(self.dtype));
            let elements: Vec<T> = scalars.map(T::from_scalar).collect();
            HostTensor::from_slice_as(self.dtype, &elements, &self.shape[..])
        })?
        .with_names(ty.names.clone())
    }
}

/// The indices of a shape in row-major order: the last axis runs fastest.
pub(crate) fn indices(shape: &[usize]) -> impl Iterator<Item = Vec<usize>> + use<> {
    let shape = shape.to_vec();
    (0..shape.iter().product()).map(move |mut position: usize| {
        let mut index = vec![0; shape.len()];
        for axis in (0..shape.len()).rev() {
            index[axis] = position % shape[axis];
            position /= shape[axis];
        }
        index
    })
}

/// The place of an index in row-major order.
pub(crate) fn position(index: &[usize], shape: &[usize]) -> usize {
    index.iter().zip(shape).fold(0, |position, (&at, &size)| position * size + at)
}
