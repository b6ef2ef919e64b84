//! Padding with elements of the tensor itself.

use nxla_tensor::{DType, HostTensor, Shape};

use super::index::counting_dtype;
use crate::graph::{ExprId, Graph, Result};

/// The elements beyond the ends of an axis; for `abc`, three on each side:
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OuterPadding {
    /// `abc|abc|abc`
    Cyclic,
    /// `cba|abc|cba`: the outermost element is repeated.
    Mirror,
    /// `bcb|abc|bab`: the outermost element is not repeated.
    Reflect,
    /// `aaa|abc|ccc`
    Replicate,
}

impl OuterPadding {
    /// All rules.
    pub const ALL: [OuterPadding; 4] = [
        OuterPadding::Cyclic,
        OuterPadding::Mirror,
        OuterPadding::Reflect,
        OuterPadding::Replicate,
    ];

    /// Returns the name of the rule.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            OuterPadding::Cyclic => "cyclic",
            OuterPadding::Mirror => "mirror",
            OuterPadding::Reflect => "reflect",
            OuterPadding::Replicate => "replicate",
        }
    }

    /// Returns the index of the element at a position, which may be outside of `0..size`.
    fn source(self, place: i64, size: i64) -> i64 {
        match self {
            OuterPadding::Cyclic => place.rem_euclid(size),
            OuterPadding::Replicate => place.clamp(0, size - 1),
            OuterPadding::Mirror => {
                let place = place.rem_euclid(2 * size);
                place.min(2 * size - 1 - place)
            }
            // A single element is its own reflection.
            OuterPadding::Reflect if size == 1 => 0,
            OuterPadding::Reflect => {
                let place = place.rem_euclid(2 * (size - 1));
                place.min(2 * (size - 1) - place)
            }
        }
    }
}

impl Graph {
    /// Pads `x` with its own elements before and after each axis.
    ///
    /// ```
    /// # use nxla_expr::{Graph, TensorType, build::OuterPadding};
    /// # use nxla_tensor::DType;
    /// let mut graph = Graph::new();
    /// let x = graph.parameter(0, TensorType::new(DType::F32, [2, 3]));
    /// let padded = graph.pad_outer(x, OuterPadding::Mirror, &[(0, 0), (2, 5)])?;
    /// assert_eq!(graph.tensor_type(padded).to_string(), "f32[2][10]");
    /// # Ok::<(), nxla_expr::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error for a scalar, for a list without one entry per axis, for a width that is
    /// too large, or if an axis to be padded has no elements.
    pub fn pad_outer(
        &mut self,
        x: ExprId,
        rule: OuterPadding,
        widths: &[(usize, usize)],
    ) -> Result<ExprId> {
        let op = "pad_outer";
        let (shape, described) = (self.shape(x).clone(), self.tensor_type(x).to_string());
        if shape.rank() == 0 {
            return Err(self.invalid(op, "operand", "must have at least one axis; got a scalar"));
        }
        if widths.len() != shape.rank() {
            let why =
                format!("must have one entry for each axis of {described}; got {}", widths.len());
            return Err(self.invalid(op, "widths", why));
        }
        let mut padded = x;
        for (axis, (&size, &(low, high))) in shape.iter().zip(widths).enumerate() {
            if low == 0 && high == 0 {
                continue;
            }
            if size == 0 {
                let why =
                    format!("must have elements to repeat along axis {axis}; got {described}");
                return Err(self.invalid(op, "operand", why));
            }
            let places = places(rule, size, low, high);
            let Some(places) = places else {
                return Err(self.invalid(
                    op,
                    "widths",
                    format!("must fit the address space; got {low} and {high}"),
                ));
            };
            let places = self.positions(&places, [places.len()], counting_dtype(&[size]))?;
            let names = self.tensor_type(padded).names.clone();
            padded = self.gather_along(padded, places, axis)?;
            padded = self.rename(padded, names)?;
        }
        Ok(padded)
    }

    /// Creates a literal of positions.
    pub(super) fn positions(
        &mut self,
        positions: &[i64],
        shape: impl Into<Shape>,
        dtype: DType,
    ) -> Result<ExprId> {
        let literal = HostTensor::from_slice(positions, shape)
            .expect("one position for each element of the shape");
        let literal = if dtype == DType::S64 { literal } else { literal.cast(dtype) };
        self.tensor(literal)
    }
}

/// Returns the indices of the elements of a padded axis, or `None` if their number overflows or
/// exceeds the memory.
fn places(rule: OuterPadding, size: usize, low: usize, high: usize) -> Option<Vec<i64>> {
    let (size, low) = (i64::try_from(size).ok()?, i64::try_from(low).ok()?);
    let end = size.checked_add(i64::try_from(high).ok()?)?;
    size.checked_mul(2)?;
    let mut places = Vec::new();
    places.try_reserve_exact(usize::try_from(end.checked_add(low)?).ok()?).ok()?;
    places.extend((-low..end).map(|place| rule.source(place, size)));
    Some(places)
}
