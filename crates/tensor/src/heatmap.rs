//! Heatmaps: drawings of tensors as text for terminals.

use std::fmt;

use crate::error::TensorError;
use crate::host::HostTensor;
use crate::names::type_text;

/// The number of the first of the 24 shades of gray of terminals.
const FIRST_SHADE: u32 = 232;
const SHADES: u32 = 24;
const DIGITS: u32 = 10;

/// A heatmap of a tensor: each element is a digit from 0 to 9, or a shade of gray. The smallest
/// element of a matrix, in the last two axes, is the darkest and the largest the brightest; NaN
/// counts as the smallest.
///
/// ```
/// use nxla_tensor::HostTensor;
///
/// let x = HostTensor::from_slice(&[1_i32, 2, 3, 9], [2, 2])?;
/// assert_eq!(x.heatmap()?.to_string(), "#nxla.Heatmap<\n  s32[2][2]\n  \n  01\n  29\n>");
/// # Ok::<(), nxla_tensor::TensorError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Heatmap {
    tensor: HostTensor,
    title: String,
    cell: Option<String>,
}

impl HostTensor {
    /// Creates a heatmap of the tensor.
    ///
    /// # Errors
    /// Returns an error for a scalar or for complex numbers.
    pub fn heatmap(&self) -> Result<Heatmap, TensorError> {
        let (dtype, shape) = (self.dtype(), self.shape().clone());
        if self.rank() == 0 || dtype.is_complex() {
            return Err(TensorError::NoPicture { dtype, shape });
        }
        let title = type_text(dtype, &shape, self.names());
        Ok(Heatmap { tensor: self.clone(), title, cell: None })
    }
}

impl Heatmap {
    /// Draws elements as shades of gray, by ANSI escape sequences around the string `cell`, such as
    /// spaces.
    #[must_use]
    pub fn shades(self, cell: impl Into<String>) -> Self {
        Self { cell: Some(cell.into()), ..self }
    }

    /// Replaces the type of the tensor above the heatmap by another title.
    #[must_use]
    pub fn title(self, title: impl Into<String>) -> Self {
        Self { title: title.into(), ..self }
    }

    /// Returns the lines of a part of the tensor that starts at an element and has the axes from
    /// `axis` on.
    fn lines(&self, axis: usize, first: usize) -> Vec<String> {
        let shape = &self.tensor.shape()[axis..];
        match shape {
            [] | [_] => self.picture(first, (1, shape.iter().product())),
            &[rows, columns] => self.picture(first, (rows, columns)),
            [count, inner @ ..] => {
                let size: usize = inner.iter().product();
                let mut lines = vec!["[".to_owned()];
                for position in 0..*count {
                    if position > 0 {
                        lines.last_mut().expect("there is a line").push(',');
                        lines.push("  ".into());
                    }
                    let part = self.lines(axis + 1, first + position * size);
                    lines.extend(part.into_iter().map(|line| format!("  {line}")));
                }
                lines.push("]".into());
                lines
            }
        }
    }

    /// Returns the lines of a matrix that starts at an element.
    fn picture(&self, first: usize, (rows, columns): (usize, usize)) -> Vec<String> {
        let number = |index| self.tensor.get(index).as_f64();
        let all = || (first..first + rows * columns).map(number);
        let (low, high) =
            (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max));
        let levels = if self.cell.is_some() { SHADES } else { DIGITS };
        let range = if high > low { high - low } else { 1.0 };
        let scale = f64::from(levels - 1) / range;
        // Ties round up. NaN becomes 0.
        let level = |index| ((number(index) - low) * scale + 0.5) as u32;
        let row = |row: usize| -> String {
            let from = first + row * columns;
            let levels = (from..from + columns).map(level);
            match &self.cell {
                None => levels.map(|level| level.to_string()).collect(),
                Some(cell) => {
                    let shade = |level| format!("\x1b[48;5;{}m{cell}", FIRST_SHADE + level);
                    levels.map(shade).chain(["\x1b[0m".into()]).collect()
                }
            }
        };
        (0..rows).map(row).collect()
    }
}

impl fmt::Display for Heatmap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#nxla.Heatmap<\n  {}\n", self.title)?;
        // A heatmap with several rows starts on a new line, so that the rows are aligned.
        if self.tensor.rank() == 2 {
            f.write_str("  \n")?;
        }
        for line in self.lines(0, 0) {
            writeln!(f, "  {line}")?;
        }
        f.write_str(">")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacked_matrices_have_separate_scales() {
        let x = HostTensor::from_slice(&[0.0_f32, 1.0, 0.0, 100.0], [2, 1, 2]).unwrap();
        let text = x.heatmap().unwrap().to_string();
        let expected = "#nxla.Heatmap<\n  f32[2][1][2]\n  [\n    09,\n    \n    09\n  ]\n>";
        assert_eq!(text, expected);
    }

    #[test]
    fn shades_and_title_are_configurable() {
        let x = HostTensor::from_slice(&[0_u8, 23], [2]).unwrap();
        let text = x.heatmap().unwrap().shades(" ").title("two").to_string();
        let expected = "#nxla.Heatmap<\n  two\n  \x1b[48;5;232m \x1b[48;5;255m \x1b[0m\n>";
        assert_eq!(text, expected);
    }

    #[test]
    fn non_finite_and_empty_tensors_are_drawn() {
        let x = HostTensor::from_slice(&[f32::NAN, 1.0, 2.0], [3]).unwrap();
        assert!(x.heatmap().unwrap().to_string().contains("009"));
        let empty = HostTensor::from_slice::<f32>(&[], [0, 2]).unwrap();
        assert!(empty.heatmap().unwrap().to_string().contains("f32[0][2]"));
        let infinite = HostTensor::from_slice(&[f32::INFINITY, 1.0], [2]).unwrap();
        assert!(infinite.heatmap().unwrap().to_string().ends_with("\n>"));
    }

    #[test]
    fn scalars_and_complex_tensors_are_rejected() {
        let scalar = HostTensor::from_slice(&[1_i32], []).unwrap();
        assert!(matches!(scalar.heatmap(), Err(TensorError::NoPicture { .. })));
    }
}
