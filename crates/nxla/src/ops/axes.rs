//! Axis arguments: one axis, or a set of axes.

use nxla_expr::{ErrorKind, ExprId, Graph, TensorType};
use nxla_tensor::{normalize_axis, to_i64};

use crate::{Error, Result};

/// An axis, by index or by name.
///
/// Integers are indices, and negative ones count from the end; strings are names.
///
/// ```
/// use nxla::{Axis, Tensor};
///
/// let x = Tensor::from([[1, 2], [3, 4]]).with_names(["row", "column"])?;
/// assert_eq!(Axis::from("column"), Axis::Name("column".into()));
/// assert_eq!(x.cumulative_sum("column")?.to_vec::<i32>()?, [1, 3, 3, 7]);
/// # Ok::<(), nxla::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Axis {
    /// An index; negative values count from the end.
    Number(i64),
    /// A name.
    Name(String),
}

impl From<i64> for Axis {
    fn from(number: i64) -> Self {
        Axis::Number(number)
    }
}

impl From<i32> for Axis {
    fn from(number: i32) -> Self {
        Axis::Number(number.into())
    }
}

/// An index above the range of `i64` remains out of range.
impl From<usize> for Axis {
    fn from(number: usize) -> Self {
        Axis::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<&str> for Axis {
    fn from(name: &str) -> Self {
        Axis::Name(name.to_owned())
    }
}

impl From<String> for Axis {
    fn from(name: String) -> Self {
        Axis::Name(name)
    }
}

/// Implements the conversions of an axis to a type with the constructor `axis`.
macro_rules! from_axis {
    ($type:ident) => {
        from_axis!($type: i64 i32 usize &str String Axis);
    };
    ($type:ident: $($axis:ty)+) => {
        $(
            impl From<$axis> for $type {
                fn from(axis: $axis) -> Self {
                    $type::axis(axis)
                }
            }
        )+
    };
}
pub(super) use from_axis;

impl Axis {
    /// Returns the index of the axis in `x`, which may be negative.
    ///
    /// # Errors
    /// Returns an error if no axis of `x` has the name; the caller names the function in it.
    pub(crate) fn of(&self, graph: &Graph, x: ExprId) -> Result<i64> {
        match self {
            Axis::Number(number) => Ok(*number),
            Axis::Name(_) => match self.position(graph.tensor_type(x)) {
                Ok(axis) => Ok(to_i64(axis)),
                Err(kind) => Err(Error::Expr(graph.error("axis", kind))),
            },
        }
    }

    /// Returns the index of the axis in operands that are broadcast: of a name, the negative index
    /// in the first operand that has the name. Broadcasting aligns the last axes, so the index
    /// means the same axis in operands of other ranks.
    ///
    /// # Errors
    /// Returns the error of [`Axis::of`] for the first operand if no operand has the name.
    pub(super) fn of_operands(&self, graph: &Graph, operands: [ExprId; 2]) -> Result<i64> {
        let from_end = |operand: ExprId| {
            let ty = graph.tensor_type(operand);
            Some(to_i64(self.position(ty).ok()?) - to_i64(ty.rank()))
        };
        match self {
            Axis::Number(number) => Ok(*number),
            Axis::Name(_) => match operands.into_iter().find_map(from_end) {
                Some(axis) => Ok(axis),
                None => self.of(graph, operands[0]),
            },
        }
    }

    /// Returns the nonnegative index of the axis in a tensor of a type.
    pub(super) fn position(&self, ty: &TensorType) -> Result<usize, ErrorKind> {
        let found = match self {
            Axis::Number(number) => normalize_axis(*number, ty.rank()).ok(),
            Axis::Name(name) => ty.names.as_ref().and_then(|names| names.axis(name).ok()),
        };
        found.ok_or_else(|| match self {
            Axis::Number(axis) => {
                ErrorKind::Axis { argument: "axis", axis: *axis, ty: Box::new(ty.clone()) }
            }
            Axis::Name(name) => ErrorKind::AxisName {
                argument: "axis",
                name: name.clone(),
                ty: Box::new(ty.clone()),
            },
        })
    }
}

/// The axes of a reduction, and whether they remain in the result.
///
/// One axis, an array of axes, and `()` for all axes convert to an `Over`. [`Over::keep`] keeps
/// reduced axes with size 1, so that the result broadcasts with the operand.
///
/// ```
/// use nxla::{Over, Tensor};
///
/// let x = Tensor::new(vec![1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
/// assert_eq!(x.sum_over(0)?.to_vec::<f32>()?, [4.0, 6.0]);
/// assert_eq!(x.sum_over([0, 1])?.item::<f64>()?, 10.0);
/// assert_eq!(x.sum_over(Over::axis(-1).keep())?.shape()[..], [2, 1]);
/// # Ok::<(), nxla::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Over {
    axes: Option<Vec<Axis>>,
    keep: bool,
}

impl Over {
    /// Reduces all axes.
    ///
    /// ```
    /// use nxla::{Over, Tensor};
    ///
    /// assert_eq!(Tensor::from([[1, 2], [3, 4]]).sum_over(Over::all())?.item::<i32>()?, 10);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// Reduces one axis.
    ///
    /// ```
    /// use nxla::{Over, Tensor};
    ///
    /// let x = Tensor::from([[1, 2], [3, 4]]);
    /// assert_eq!(x.sum_over(Over::axis(0))?.to_vec::<i32>()?, [4, 6]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn axis(axis: impl Into<Axis>) -> Self {
        Self { axes: Some(vec![axis.into()]), keep: false }
    }

    /// Reduces these axes; an empty list leaves the elements unchanged.
    ///
    /// ```
    /// use nxla::{Over, Tensor};
    ///
    /// let x = Tensor::from([[1, 2], [3, 4]]);
    /// assert_eq!(x.sum_over(Over::axes([0, 1]))?.item::<i32>()?, 10);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn axes<A: Into<Axis>>(axes: impl IntoIterator<Item = A>) -> Self {
        Self { axes: Some(axes.into_iter().map(Into::into).collect()), keep: false }
    }

    /// Keeps the axes with size 1.
    ///
    /// ```
    /// use nxla::{Over, Tensor};
    ///
    /// let x = Tensor::from([[1, 2], [3, 4]]);
    /// assert_eq!(x.sum_over(Over::all().keep())?.shape()[..], [1, 1]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn keep(self) -> Self {
        Self { keep: true, ..self }
    }

    /// Returns the indices of the axes in `x`, or `None` for all, for a function that does not
    /// reduce axes.
    ///
    /// # Errors
    /// Returns an error for [`Over::keep`], and for a name that no axis of `x` has.
    pub(super) fn of(&self, graph: &Graph, x: ExprId) -> Result<Option<Vec<i64>>> {
        if self.keep {
            let why =
                "must not keep axes, because the function does not reduce them; remove `keep`";
            return Err(graph.error("axis", ErrorKind::invalid("axes", why)).into());
        }
        Ok(self.of_reduction(graph, x)?.0)
    }

    /// Returns the indices of the axes in `x`, all of them by default, for a function that does not
    /// reduce axes.
    ///
    /// # Errors
    /// Returns the errors of [`Over::of`].
    pub(super) fn of_all(&self, graph: &Graph, x: ExprId) -> Result<Vec<i64>> {
        let all = || (0..).take(graph.shape(x).rank()).collect();
        Ok(self.of(graph, x)?.unwrap_or_else(all))
    }

    /// Returns the indices of the axes in `x`, or `None` for all, and whether the axes remain.
    ///
    /// # Errors
    /// Returns an error for a name that no axis of `x` has.
    pub(super) fn of_reduction(
        &self,
        graph: &Graph,
        x: ExprId,
    ) -> Result<(Option<Vec<i64>>, bool)> {
        let positions = |axes: &Vec<Axis>| axes.iter().map(|axis| axis.of(graph, x)).collect();
        Ok((self.axes.as_ref().map(positions).transpose()?, self.keep))
    }
}

impl From<()> for Over {
    fn from((): ()) -> Self {
        Over::all()
    }
}

from_axis!(Over);

impl<A: Into<Axis>, const N: usize> From<[A; N]> for Over {
    fn from(axes: [A; N]) -> Self {
        Over::axes(axes)
    }
}

impl<A: Into<Axis> + Clone> From<&[A]> for Over {
    fn from(axes: &[A]) -> Self {
        Over::axes(axes.iter().cloned())
    }
}

impl<A: Into<Axis>> From<Vec<A>> for Over {
    fn from(axes: Vec<A>) -> Self {
        Over::axes(axes)
    }
}
