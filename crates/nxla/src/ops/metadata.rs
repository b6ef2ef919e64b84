//! What is known of a tensor without computing.

use super::axes::Axis;
use crate::expr::Expr;
use crate::tensor::Tensor;
use crate::{Error, Result};

macro_rules! metadata {
    ($($of:ty)*) => {
        $(
            impl $of {
                /// The position of an axis.
                ///
                /// # Errors
                /// An axis that there is not.
                pub fn axis_index(&self, axis: impl Into<Axis>) -> Result<usize> {
                    let position = axis.into().position(&self.ty());
                    position.map_err(|kind| Error::Expr(kind.of("axis")))
                }

                /// The size of an axis.
                ///
                /// # Errors
                /// An axis that there is not.
                pub fn axis_size(&self, axis: impl Into<Axis>) -> Result<usize> {
                    Ok(self.shape()[self.axis_index(axis)?])
                }
            }
        )*
    };
}

metadata!(Expr Tensor);
