//! Constants and iotas.

use nxla_expr::{ExprId, TensorType};

use super::{Builder, Fail, malformed, unsupported};
use crate::stablehlo::syntax::{Attribute, Dense, Operation};

impl Builder<'_> {
    pub(super) fn create(
        &mut self,
        name: &str,
        operation: &Operation,
        _: &[ExprId],
    ) -> Result<Option<ExprId>, Fail> {
        Ok(Some(match name {
            "constant" | "chlo.constant" => match operation.attribute(&["value"]) {
                Some(Attribute::Dense(Dense::Splat(element, ty))) => {
                    self.graph.constant(element.get(0), ty.clone())?
                }
                Some(Attribute::Dense(Dense::Tensor(tensor))) => match tensor.splat_value() {
                    Some(value) if tensor.size() == 1 => {
                        let ty = TensorType::new(tensor.dtype(), tensor.shape().clone());
                        self.graph.constant(value, ty)?
                    }
                    _ => self.constant(tensor)?,
                },
                Some(Attribute::Dense(Dense::Other(ty))) => {
                    return unsupported(format!("the type {ty} is not supported"));
                }
                _ => return malformed("the value must be a dense constant"),
            },
            "iota" => {
                let axis = operation.integer(&["iota_dimension", "dim"])?;
                self.graph.iota_of(operation.result(0)?.clone(), Some(axis))?
            }
            _ => return Ok(None),
        }))
    }
}
