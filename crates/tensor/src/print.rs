//! Printing of tensors.
//!
//! ```text
//! #nxla.Tensor<
//!   f32[x: 2][2]
//!   [
//!     [1.0, 2.0],
//!     [3.0, NaN]
//!   ]
//! >
//! ```
//!
//! Floats print with the fewest digits that parse to the same value *of their type*, so the `f32`
//! nearest to a tenth prints as `0.1`. `f64` and `c128` use Erlang's style of exponents (`1.0e-7`),
//! narrower types the shorter style (`1e-7`).

use std::fmt;
use std::fmt::Write as _;

use crate::dtype::{DType, Kind};
use crate::float_text;
use crate::host::HostTensor;
use crate::names::type_text;
use crate::scalar::Scalar;
use crate::shape::Shape;

/// Options for printing a tensor.
///
/// ```
/// use nxla_tensor::{HostTensor, PrintOptions};
///
/// let tensor = HostTensor::from_slice(&[1_i32, 2, 3], [3]).unwrap();
/// let text = tensor.format(&PrintOptions { limit: Some(2) });
/// assert_eq!(text, "#nxla.Tensor<\n  s32[3]\n  [1, 2, ...]\n>");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrintOptions {
    /// The number of elements before `...`; `None` prints all elements.
    pub limit: Option<usize>,
}

impl Default for PrintOptions {
    fn default() -> PrintOptions {
        PrintOptions { limit: Some(50) }
    }
}

/// Formats one element: floats with the shortest digits for `dtype`, complex numbers as `1.0-2.0i`,
/// `pred` as 0 or 1.
///
/// ```
/// use nxla_tensor::{DType, Scalar, element_text};
///
/// assert_eq!(element_text(Scalar::Float(0.1_f32.into()), DType::F32), "0.1");
/// assert_eq!(element_text(Scalar::Float(0.1_f32.into()), DType::F64), "0.10000000149011612");
/// ```
#[must_use]
pub fn element_text(value: Scalar, dtype: DType) -> String {
    match dtype.kind() {
        Kind::Pred | Kind::Unsigned | Kind::Signed => value.cast(dtype).to_string(),
        Kind::Float => float_text::shortest_as(value.as_f64(), dtype),
        Kind::Complex => {
            let (real, imag) = value.parts();
            let part = dtype.to_real();
            float_text::complex(
                &float_text::shortest_as(real, part),
                &float_text::shortest_as(imag, part),
            )
        }
    }
}

impl HostTensor {
    /// Formats the tensor with its type above the elements.
    #[must_use]
    pub fn format(&self, options: &PrintOptions) -> String {
        let type_text = type_text(self.dtype(), self.shape(), self.names());
        format!("#nxla.Tensor<\n  {type_text}\n  {}\n>", self.body_text(options, 2))
    }

    /// Formats the elements as nested lists. Lines after the first are indented by `indent` spaces.
    #[must_use]
    pub fn body_text(&self, options: &PrintOptions, indent: usize) -> String {
        self.start_text(self.shape(), options, indent)
    }

    /// Formats the first elements, in row-major order, of a tensor with a larger shape. Missing
    /// elements are printed as `...`, like elements beyond the limit.
    ///
    /// ```
    /// use nxla_tensor::{HostTensor, PrintOptions, Shape};
    ///
    /// let start = HostTensor::from_slice(&[1_i32, 2, 3], [3]).unwrap();
    /// let text = start.start_text(&Shape::from([5]), &PrintOptions::default(), 0);
    /// assert_eq!(text, "[1, 2, 3, ...]");
    /// ```
    #[must_use]
    pub fn start_text(&self, shape: &Shape, options: &PrintOptions, indent: usize) -> String {
        let mut body = Body {
            tensor: self,
            shape,
            next: 0,
            // Without elements, the number of empty lists is limited instead.
            left: match (options.limit.unwrap_or(usize::MAX), shape.size()) {
                (limit, 0) => limit,
                (limit, _) => limit.min(self.shape().size()),
            },
            text: String::new(),
        };
        if shape.rank() == 0 {
            body.element();
        } else {
            body.list(0, indent);
        }
        body.text
    }
}

impl fmt::Display for HostTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.format(&PrintOptions::default()))
    }
}

/// A printing operation in progress.
struct Body<'a> {
    /// The first elements.
    tensor: &'a HostTensor,
    /// The shape of the whole tensor.
    shape: &'a Shape,
    /// The row-major index of the next element.
    next: usize,
    /// The number of elements, or empty lists, that may still be printed.
    left: usize,
    text: String,
}

impl Body<'_> {
    fn element(&mut self) {
        self.text.push_str(&element_text(self.tensor.get(self.next), self.tensor.dtype()));
        self.next += 1;
        self.left = self.left.saturating_sub(1);
    }

    /// Prints the list along `axis`. The recursion depth is the rank of the tensor.
    fn list(&mut self, axis: usize, indent: usize) {
        let dim = self.shape[axis];
        if dim == 0 {
            self.text.push_str("[]");
            self.left = self.left.saturating_sub(1);
            return;
        }
        let innermost = axis + 1 == self.shape.rank();
        self.text.push('[');
        for index in 0..dim {
            if index > 0 {
                self.text.push(',');
            }
            if !innermost {
                self.line(indent + 2);
            } else if index > 0 {
                self.text.push(' ');
            }
            if self.left == 0 {
                self.text.push_str("...");
                break;
            }
            if innermost {
                self.element();
            } else {
                self.list(axis + 1, indent + 2);
            }
        }
        if !innermost {
            self.line(indent);
        }
        self.text.push(']');
    }

    fn line(&mut self, indent: usize) {
        write!(self.text, "\n{:indent$}", "").expect("writing to a string cannot fail");
    }
}
