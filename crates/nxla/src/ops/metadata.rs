//! Properties of tensors that need no computation.

use super::axes::Axis;
use crate::expr::Expr;
use crate::tensor::Tensor;
use crate::{Error, Result};

macro_rules! metadata {
    ($($of:ty)*) => {
        $(
            impl $of {
                /// Returns the number of axes.
                ///
                /// ```
                /// use nxla::Tensor;
                ///
                /// assert_eq!(Tensor::from([[1, 2, 3]]).rank(), 2);
                /// ```
                pub fn rank(&self) -> usize {
                    self.shape().rank()
                }

                /// Returns the number of elements.
                ///
                /// ```
                /// use nxla::Tensor;
                ///
                /// assert_eq!(Tensor::from([[1, 2, 3], [4, 5, 6]]).size(), 6);
                /// ```
                pub fn size(&self) -> usize {
                    self.shape().size()
                }

                /// Returns the index of an axis.
                ///
                /// ```
                /// use nxla::Tensor;
                ///
                /// let x = Tensor::from([[1, 2, 3]]).with_names(["row", "column"])?;
                /// assert_eq!((x.axis_index("column")?, x.axis_index(-2)?), (1, 0));
                /// # Ok::<(), nxla::Error>(())
                /// ```
                ///
                /// # Errors
                /// Returns an error if the axis does not exist.
                pub fn axis_index(&self, axis: impl Into<Axis>) -> Result<usize> {
                    let position = axis.into().position(&self.ty());
                    position.map_err(|kind| Error::Expr(kind.of("axis_index")))
                }

                /// Returns the size of an axis.
                ///
                /// ```
                /// use nxla::Tensor;
                ///
                /// let x = Tensor::from([[1, 2, 3]]).with_names(["row", "column"])?;
                /// assert_eq!(x.axis_size("column")?, 3);
                /// assert!(x.axis_size("depth").is_err());
                /// # Ok::<(), nxla::Error>(())
                /// ```
                ///
                /// # Errors
                /// Returns an error if the axis does not exist.
                pub fn axis_size(&self, axis: impl Into<Axis>) -> Result<usize> {
                    let axis = self.axis_index(axis);
                    Ok(self.shape()[axis.map_err(|error| error.in_function("axis_size"))?])
                }
            }
        )*
    };
}

metadata!(Expr Tensor);
