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
use std::ops::Range;

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
/// let tensor = HostTensor::from_slice(&[1_i32, 2, 3, 4, 5], [5]).unwrap();
/// let options = PrintOptions { threshold: 4, edge_items: 1, ..PrintOptions::default() };
/// assert_eq!(tensor.format(&options), "#nxla.Tensor<\n  s32[5]\n  [1, ..., 5]\n>");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrintOptions {
    /// The number of digits after the decimal point; `None` prints the fewest digits that identify
    /// the number.
    pub precision: Option<usize>,
    /// The number of elements above which the middle of each axis is omitted.
    pub threshold: usize,
    /// The number of elements that are printed at each end of a shortened axis.
    pub edge_items: usize,
    /// The maximum number of characters in a line.
    pub line_width: usize,
}

impl PrintOptions {
    /// The options of NumPy, without a precision.
    pub const DEFAULT: PrintOptions =
        PrintOptions { precision: None, threshold: 1000, edge_items: 3, line_width: 80 };

    /// Returns whether the middle of each axis is omitted. For a tensor without elements, the
    /// number of its empty lists counts.
    fn shortens(&self, shape: &Shape) -> bool {
        let lists = || shape.iter().copied().take_while(|&dim| dim > 0).collect::<Shape>().size();
        let count = if shape.size() > 0 { shape.size() } else { lists() };
        count > self.threshold
    }

    /// Returns the number of entries to print at each end of an axis; `None` prints all entries.
    fn ends(&self, dim: usize, shortens: bool) -> Option<usize> {
        (shortens && dim > 2 * self.edge_items).then_some(self.edge_items)
    }

    /// Returns the row-major ranges of the printed elements of a tensor, in increasing order.
    ///
    /// ```
    /// use nxla_tensor::{PrintOptions, Shape};
    ///
    /// let options = PrintOptions { threshold: 4, edge_items: 1, ..PrintOptions::DEFAULT };
    /// assert_eq!(options.printed_ranges(&Shape::from([2, 5])), [0..1, 4..5, 5..6, 9..10]);
    /// assert_eq!(options.printed_ranges(&Shape::from([2, 2])), [0..4]);
    /// ```
    #[must_use]
    pub fn printed_ranges(&self, shape: &Shape) -> Vec<Range<usize>> {
        if shape.size() == 0 {
            return Vec::new();
        }
        let shortens = self.shortens(shape);
        let mut ranges: Vec<Range<usize>> = std::iter::once(0..1).collect();
        for &dim in shape.iter() {
            let all = |range: Range<usize>| range.start * dim..range.end * dim;
            ranges = match self.ends(dim, shortens) {
                None => ranges.into_iter().map(all).collect(),
                Some(edge) => {
                    let ends = |row: usize| {
                        [row * dim..row * dim + edge, (row + 1) * dim - edge..(row + 1) * dim]
                    };
                    ranges.into_iter().flatten().flat_map(ends).collect()
                }
            };
        }
        ranges
    }
}

impl Default for PrintOptions {
    fn default() -> PrintOptions {
        PrintOptions::DEFAULT
    }
}

/// Formats one element: floats with the shortest digits for `dtype`, complex numbers as `1.0-2.0i`,
/// `pred` as `true` or `false`.
///
/// ```
/// use nxla_tensor::{DType, Scalar, element_text};
///
/// assert_eq!(element_text(Scalar::Float(0.1_f32.into()), DType::F32), "0.1");
/// assert_eq!(element_text(Scalar::Float(0.1_f32.into()), DType::F64), "0.10000000149011612");
/// ```
#[must_use]
pub fn element_text(value: Scalar, dtype: DType) -> String {
    text_with(value, dtype, None)
}

/// Formats one element with a number of digits after the decimal point.
fn text_with(value: Scalar, dtype: DType, precision: Option<usize>) -> String {
    let float = |value: f64, dtype: DType| match precision {
        None => float_text::shortest_as(value, dtype),
        Some(digits) => float_text::rounded(value, digits),
    };
    match dtype.kind() {
        Kind::Pred => (value != Scalar::zero(DType::Pred)).to_string(),
        Kind::Unsigned | Kind::Signed => value.cast(dtype).to_string(),
        Kind::Float => float(value.as_f64(), dtype),
        Kind::Complex => {
            let (real, imag) = value.parts();
            let part = dtype.to_real();
            float_text::complex(&float(real, part), &float(imag, part))
        }
    }
}

impl HostTensor {
    /// Formats the tensor with its type: above the elements, and in one line for a scalar.
    #[must_use]
    pub fn format(&self, options: &PrintOptions) -> String {
        let ty = type_text(self.dtype(), self.shape(), self.names());
        tensor_text(&[ty], self.shape(), &self.body_text(options, 2))
    }

    /// Formats the elements as nested lists. Lines after the first are indented by `indent` spaces.
    #[must_use]
    pub fn body_text(&self, options: &PrintOptions, indent: usize) -> String {
        let printed = options.printed_ranges(self.shape()).into_iter().flatten();
        Body { elements: self, indices: printed, options, shape: self.shape() }.text(indent)
    }

    /// Formats a larger tensor. This tensor contains the printed elements, in the order of
    /// [`PrintOptions::printed_ranges`].
    ///
    /// ```
    /// use nxla_tensor::{HostTensor, PrintOptions, Shape};
    ///
    /// let ends = HostTensor::from_slice(&[0_i32, 1, 2, 1997, 1998, 1999], [6]).unwrap();
    /// let text = ends.printed_text(&Shape::from([2000]), &PrintOptions::default(), 0);
    /// assert_eq!(text, "[0, 1, 2, ..., 1997, 1998, 1999]");
    /// ```
    #[must_use]
    pub fn printed_text(&self, shape: &Shape, options: &PrintOptions, indent: usize) -> String {
        let indices = 0..self.shape().size();
        Body { elements: self, indices, options, shape }.text(indent)
    }
}

/// Formats a tensor from the lines of its header and the string of its elements.
///
/// ```
/// use nxla_tensor::{Shape, tensor_text};
///
/// assert_eq!(tensor_text(&["f32".into()], &Shape::from([]), "1.5"), "#nxla.Tensor<f32 1.5>");
/// ```
#[must_use]
pub fn tensor_text(header: &[String], shape: &Shape, body: &str) -> String {
    match shape.rank() {
        0 => format!("#nxla.Tensor<{} {body}>", header.join(" ")),
        _ => format!("#nxla.Tensor<\n  {}\n  {body}\n>", header.join("\n  ")),
    }
}

impl fmt::Display for HostTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.format(&PrintOptions::default()))
    }
}

/// A printing operation in progress.
struct Body<'a, I> {
    elements: &'a HostTensor,
    /// The indices of the printed elements.
    indices: I,
    options: &'a PrintOptions,
    /// The shape of the whole tensor.
    shape: &'a Shape,
}

impl<I: Iterator<Item = usize>> Body<'_, I> {
    fn text(mut self, indent: usize) -> String {
        let mut text = String::new();
        if self.shape.rank() == 0 {
            let index = self.indices.next().expect("a scalar has one element");
            text.push_str(&self.element(index));
        } else {
            let shortens = self.options.shortens(self.shape);
            self.list(&mut text, 0, indent, shortens);
        }
        text
    }

    fn element(&self, index: usize) -> String {
        text_with(self.elements.get(index), self.elements.dtype(), self.options.precision)
    }

    /// Prints the list along `axis`. The recursion depth is the rank of the tensor.
    fn list(&mut self, text: &mut String, axis: usize, indent: usize, shortens: bool) {
        let dim = self.shape[axis];
        if dim == 0 {
            return text.push_str("[]");
        }
        let ends = self.options.ends(dim, shortens);
        if axis + 1 == self.shape.rank() {
            return self.row(text, dim, ends, indent);
        }
        text.push('[');
        let line = |text: &mut String, indent: usize| {
            write!(text, "\n{:indent$}", "").expect("writing to a string cannot fail");
        };
        for entry in 0..ends.map_or(dim, |edge| 2 * edge) {
            if entry > 0 {
                text.push(',');
            }
            line(text, indent + 2);
            if ends == Some(entry) {
                text.push_str("...,");
                line(text, indent + 2);
            }
            self.list(text, axis + 1, indent + 2, shortens);
        }
        line(text, indent);
        text.push(']');
    }

    /// Prints an innermost list, in several lines if necessary.
    fn row(&mut self, text: &mut String, dim: usize, ends: Option<usize>, indent: usize) {
        text.push('[');
        let (count, line_width) = (ends.map_or(dim, |edge| 2 * edge), self.options.line_width);
        // The current column, without the characters of the line before the list.
        let (mut column, mut is_first) = (indent + 1, true);
        let mut push = |entry: &str| {
            if is_first {
                is_first = false;
            } else if column + 1 + entry.len() > line_width {
                write!(text, "\n{:indent$} ", "").expect("writing to a string cannot fail");
                column = indent + 1;
            } else {
                text.push(' ');
                column += 1;
            }
            text.push_str(entry);
            column += entry.len();
        };
        for entry in 0..count {
            if ends == Some(entry) {
                push("...,");
            }
            let end = if entry + 1 < count { "," } else { "]" };
            let index = self.indices.next().expect("each printed element has an index");
            push(&(self.element(index) + end));
        }
    }
}
