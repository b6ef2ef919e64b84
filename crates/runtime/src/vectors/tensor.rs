//! Data with vectorized axes.

use std::fmt;
use std::sync::Arc;

use nxla_expr::TensorType;
use nxla_tensor::{Names, TensorError};

use super::VectorAxes;
use crate::error::Error;
use crate::tensor::RawTensor;

/// Data whose first axes are vectorized; see [`RawTensor::with_vectors`].
#[derive(Clone)]
pub struct VectorTensor {
    data: RawTensor,
    vectors: VectorAxes,
    entry: TensorType,
}

impl VectorTensor {
    /// All entries, their vectorized axes being ordinary ones.
    pub fn data(&self) -> &RawTensor {
        &self.data
    }

    /// The vectorized axes.
    pub fn vectors(&self) -> &VectorAxes {
        &self.vectors
    }

    /// The type of one entry.
    pub fn entry(&self) -> &TensorType {
        &self.entry
    }

    /// The same for other data of the same type.
    pub(crate) fn with_data(&self, data: RawTensor) -> RawTensor {
        RawTensor::Vectorized(Arc::new(Self { data, ..self.clone() }))
    }

    /// With other names for the axes of an entry.
    ///
    /// # Errors
    /// Returns an error for a wrong number of names.
    pub(crate) fn with_names(&self, names: Option<Names>) -> Result<RawTensor, TensorError> {
        let mut entry = self.entry.clone();
        names.as_ref().map_or(Ok(()), |names| names.check_length(entry.rank()))?;
        entry.names = names.filter(|names| !names.is_unnamed());
        let data = self.data.clone().with_names(self.vectors.full_type(&entry).names)?;
        Ok(data.with_vectors(self.vectors.clone()))
    }

    /// It has as many numbers as entries, or more.
    pub(crate) fn no_number(&self) -> Error {
        let why =
            format!("the tensor must be a single number; got the vectorized axes {}", self.vectors);
        Error::Vectors { function: "item".into(), why }
    }
}

impl fmt::Debug for VectorTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.vectors, self.data)
    }
}

impl RawTensor {
    /// Returns the data with its first axes vectorized; the axes must have the sizes of `vectors`.
    ///
    /// # Panics
    /// Panics if the sizes differ.
    pub fn with_vectors(self, vectors: VectorAxes) -> RawTensor {
        if vectors.is_empty() {
            return self;
        }
        let ty = self.ty();
        assert!(ty.shape.starts_with(&vectors.sizes()), "{ty} does not begin with {vectors}");
        let entry = vectors.entry_type(&ty);
        RawTensor::Vectorized(Arc::new(VectorTensor { data: self, vectors, entry }))
    }

    /// Returns the vectorized axes, which are not part of the shape and the type.
    #[inline]
    pub fn vectors(&self) -> &VectorAxes {
        static NONE: VectorAxes = VectorAxes::NONE;
        match self {
            RawTensor::Host(_) | RawTensor::Device(_) => &NONE,
            RawTensor::Vectorized(tensor) => &tensor.vectors,
        }
    }

    /// Returns the data, whose leading axes are the vectorized axes.
    #[inline]
    pub fn data(&self) -> &RawTensor {
        match self {
            RawTensor::Host(_) | RawTensor::Device(_) => self,
            RawTensor::Vectorized(tensor) => &tensor.data,
        }
    }
}
