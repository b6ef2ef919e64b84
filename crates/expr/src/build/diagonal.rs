//! Diagonals of matrices, as gathers and scatters at constant coordinates.

use nxla_tensor::{DType, Scalar, Shape, promote, promote_keep_pred, to_i64};

use super::index::counting_dtype;
use crate::graph::{ErrorKind, ExprId, Graph, Op, Result, TensorType};

impl Graph {
    /// Returns a diagonal of the last two axes, `offset` columns right of the main diagonal.
    /// Leading axes remain; names are dropped.
    ///
    /// # Errors
    /// Returns an error for fewer than two axes or an offset outside of the matrix.
    pub fn take_diagonal(&mut self, x: ExprId, offset: i64) -> Result<ExprId> {
        let (rank, [rows, columns]) = self.matrix(x)?;
        if offset == 0 && (rows == 0 || columns == 0) {
            return self.diagonal_or_none(x, offset);
        }
        let taken = self.gather_diagonal(x, [rank - 2, rank - 1], offset)?;
        // Gathering moves the axis of the indices to the front.
        self.make(Op::Transpose((1..rank - 1).chain([0]).collect()), &[taken])
    }

    /// Returns the diagonal of two axes of equal size as the first axis, before the other axes.
    pub(super) fn diagonal_of_axes(&mut self, x: ExprId, axes: [usize; 2]) -> Result<ExprId> {
        let side = self.shape(x)[axes[0]];
        if side == 0 {
            let others = (0..self.shape(x).rank()).filter(|axis| !axes.contains(axis));
            let shape: Shape =
                [0].into_iter().chain(others.map(|axis| self.shape(x)[axis])).collect();
            let dtype = self.dtype(x);
            return self.constant(Scalar::zero(dtype), TensorType::new(dtype, shape));
        }
        self.gather_diagonal(x, axes, 0)
    }

    /// Gathers a diagonal of two axes as the first axis, before the other axes.
    fn gather_diagonal(&mut self, x: ExprId, axes: [usize; 2], offset: i64) -> Result<ExprId> {
        let [rows, columns] = axes.map(|axis| self.shape(x)[axis]);
        let indices = self.diagonal(rows, columns, offset)?;
        self.make(Op::Gather(axes.into()), &[x, indices])
    }

    /// Does the same as [`Graph::take_diagonal`], and returns no elements if the offset is out of
    /// range.
    ///
    /// # Errors
    /// Returns an error for fewer than two axes.
    pub fn diagonal_or_none(&mut self, x: ExprId, offset: i64) -> Result<ExprId> {
        let (rank, [rows, columns]) = self.matrix(x)?;
        let (high, low) = (i64::try_from(columns), i64::try_from(rows));
        let inside =
            offset < high.unwrap_or(i64::MAX) && offset.saturating_neg() < low.unwrap_or(i64::MAX);
        if inside && rows > 0 && columns > 0 {
            return self.take_diagonal(x, offset);
        }
        let dtype = self.dtype(x);
        let shape: Shape = self.shape(x)[..rank - 2].iter().copied().chain([0]).collect();
        self.constant(Scalar::zero(dtype), TensorType::new(dtype, shape))
    }

    /// Returns a square matrix with the vector `x` on a diagonal and zeros elsewhere. Integers
    /// narrower than 32 bits widen.
    ///
    /// # Errors
    /// Returns an error for an operand that is not a vector or an offset that makes the matrix too
    /// large.
    pub fn make_diagonal(&mut self, x: ExprId, offset: i64) -> Result<ExprId> {
        let op = "make_diagonal";
        let &[length] = self.shape(x).as_slice() else {
            return Err(self.not_a_vector("operand", x));
        };
        let distance = usize::try_from(offset.unsigned_abs()).ok();
        let Some(side) = distance.and_then(|distance| length.checked_add(distance)) else {
            return Err(self.invalid(op, "offset", format!("must fit 64-bit sizes; got {offset}")));
        };
        // Signed dtypes cannot represent all of `u64`, so `u64` does not change.
        let dtype = self.dtype(x);
        let dtype = if dtype == DType::U64 { dtype } else { DType::S32 };
        let zero = self.scalar_constant(Scalar::zero(dtype), dtype)?;
        let zeros = self.broadcast(zero, [side, side], None)?;
        if length == 0 {
            return self.as_type(zeros, promote(dtype, self.dtype(x)));
        }
        let indices = self.diagonal(side, side, offset)?;
        self.indexed_put(zeros, indices, x, Some(&[0, 1]))
    }

    /// Writes the vector `diagonal` over a diagonal of the matrix `x`. The dtypes are promoted.
    ///
    /// # Errors
    /// Returns an error for an operand that is not a matrix, a diagonal that is not a vector of the
    /// right length, or an offset outside of the matrix.
    pub fn put_diagonal(&mut self, x: ExprId, diagonal: ExprId, offset: i64) -> Result<ExprId> {
        let op = "put_diagonal";
        let &[rows, columns] = self.shape(x).as_slice() else {
            let (found, expected) = (self.tensor_type(x).to_string(), "a matrix".into());
            return Err(self.error(op, ErrorKind::Shape { argument: "operand", found, expected }));
        };
        if self.shape(diagonal).rank() != 1 {
            return Err(self.not_a_vector("diagonal", diagonal));
        }
        let found = self.shape(diagonal)[0];
        if offset == 0 && (rows == 0 || columns == 0) && found == 0 {
            return self.as_type(x, promote_keep_pred(self.dtype(x), self.dtype(diagonal)));
        }
        let indices = self.diagonal(rows, columns, offset)?;
        let length = self.shape(indices)[0];
        if length != found {
            let (found, expected) = (format!("[{found}]"), format!("[{length}]"));
            return Err(self.error(op, ErrorKind::Shape { argument: "diagonal", found, expected }));
        }
        self.indexed_put(x, indices, diagonal, Some(&[0, 1]))
    }

    fn not_a_vector(&self, argument: &'static str, x: ExprId) -> crate::Error {
        let (found, expected) = (self.tensor_type(x).to_string(), "a vector".into());
        self.error("diagonal", ErrorKind::Shape { argument, found, expected })
    }

    /// Returns the rank and the sizes of the last two axes.
    pub(super) fn matrix(&self, x: ExprId) -> Result<(usize, [usize; 2])> {
        let shape = self.shape(x);
        if let [.., rows, columns] = shape[..] {
            return Ok((shape.rank(), [rows, columns]));
        }
        let (found, expected) = (self.tensor_type(x).to_string(), "at least two axes".into());
        Err(self.error("diagonal", ErrorKind::Shape { argument: "operand", found, expected }))
    }

    /// Returns the coordinates of a diagonal, one row each.
    fn diagonal(&mut self, rows: usize, columns: usize, offset: i64) -> Result<ExprId> {
        let distance = usize::try_from(offset.unsigned_abs()).unwrap_or(usize::MAX);
        let (first_row, first_column) = if offset < 0 { (distance, 0) } else { (0, distance) };
        let left = rows.checked_sub(first_row).zip(columns.checked_sub(first_column));
        let Some(length) = left.map(|(rows, columns)| rows.min(columns)).filter(|&left| left > 0)
        else {
            let why = format!("must be inside a matrix of {rows} by {columns}; got {offset}");
            return Err(self.invalid("diagonal", "offset", why));
        };
        let coordinates: Vec<i64> = (0..length)
            .flat_map(|step| [first_row + step, first_column + step])
            .map(to_i64)
            .collect();
        self.positions(&coordinates, [length, 2], counting_dtype(&[rows, columns]))
    }
}
