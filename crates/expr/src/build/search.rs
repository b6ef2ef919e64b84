//! Searches in sorted vectors: the block, and its body by bisection.

use nxla_tensor::{DType, Number, Scalar, promote_keep_pred, to_i64};

use super::index::counting_dtype;
use crate::graph::{BlockKind, ErrorKind, ExprId, Graph, Order, Result};

/// The side of equal elements on which a value is inserted, see [`Graph::searchsorted`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Before equal elements.
    Left,
    /// After equal elements.
    Right,
}

impl Graph {
    /// Returns the indices at which the elements of `x` must be inserted into an increasing vector,
    /// before or after equal elements. NaN is largest. The result is `s32` (or `s64`).
    ///
    /// # Errors
    /// Returns an error if `sorted` is not a vector, or if a dtype is complex.
    pub fn searchsorted(&mut self, sorted: ExprId, x: ExprId, side: Side) -> Result<ExprId> {
        let order = Order { equal: side == Side::Right, nan_last: self.dtype(x).is_float() };
        self.count_in_order(sorted, x, order)
    }

    /// Returns for each element of `x` the number of smaller elements of an increasing vector, or
    /// with `equal` the number of elements that are not greater. The result is `s32` (or `s64`), by
    /// bisection. NaN precedes nothing.
    ///
    /// # Errors
    /// Returns an error if `sorted` is not a vector, or if a dtype is complex.
    pub(super) fn count_before(
        &mut self,
        sorted: ExprId,
        x: ExprId,
        equal: bool,
    ) -> Result<ExprId> {
        self.count_in_order(sorted, x, Order { equal, nan_last: false })
    }

    fn count_in_order(&mut self, sorted: ExprId, x: ExprId, order: Order) -> Result<ExprId> {
        let &[count] = self.shape(sorted).as_slice() else {
            let (found, expected) = (self.tensor_type(sorted).to_string(), "a vector".to_owned());
            return Err(self
                .error("searchsorted", ErrorKind::Shape { argument: "sorted", found, expected }));
        };
        let (sorted, x) = self.comparable(sorted, x)?;
        let ty = self.tensor_type(x);
        let is_known = count > 0
            && ty.dtype == self.dtype(sorted)
            && !ty.dtype.is_complex()
            && ty.names.is_none();
        if is_known { self.search(sorted, x, order) } else { self.bisect(sorted, x, order) }
    }

    /// Converts two operands to the dtype in which they are compared. `u64` and a signed dtype have
    /// no such dtype: see `make/signs.rs`.
    fn comparable(&mut self, x: ExprId, y: ExprId) -> Result<(ExprId, ExprId)> {
        let dtypes = [self.dtype(x), self.dtype(y)];
        let has_mixed_signs =
            dtypes.contains(&DType::U64) && dtypes.into_iter().any(DType::is_signed);
        if has_mixed_signs {
            return Ok((x, y));
        }
        let common = promote_keep_pred(dtypes[0], dtypes[1]);
        Ok((self.as_type(x, common)?, self.as_type(y, common)?))
    }

    /// Creates the block for [`Graph::count_in_order`], for real operands of one dtype.
    pub(crate) fn search(&mut self, sorted: ExprId, x: ExprId, order: Order) -> Result<ExprId> {
        let kind = BlockKind::Search(order);
        self.single_block(kind, [sorted, x], |graph, [sorted, x]| graph.bisect(sorted, x, order))
    }

    /// The body of the block: bisection as a composition.
    fn bisect(&mut self, sorted: ExprId, x: ExprId, order: Order) -> Result<ExprId> {
        let count = self.shape(sorted)[0];
        let dtype = counting_dtype(&[count]);
        let number = |graph: &mut Graph, value: usize| {
            graph.scalar_constant(Scalar::Int(to_i64(value)), dtype)
        };
        let zero = number(self, 0)?;
        let mut before = zero;
        // The remaining number of elements is equal for all of `x`, so that no index is out of
        // range.
        let mut left = count;
        while left > 0 {
            let half = (left / 2).max(1);
            let offset = number(self, half - 1)?;
            let last = self.add(before, offset)?;
            let element = self.take(sorted, last, 0)?;
            let precedes =
                if order.equal { self.less_equal(element, x)? } else { self.less(element, x)? };
            let step = number(self, half)?;
            let further = self.add(before, step)?;
            before = self.select(precedes, further, before)?;
            left -= half;
        }
        if count == 0 {
            let shape = self.shape(x).clone();
            before = self.broadcast(zero, shape, None)?;
        }
        if !order.nan_last {
            return Ok(before);
        }
        // NaN equals NaN here and is larger than all numbers.
        let numbers = if order.equal {
            self.weak_number(Number::Int(count as i128), before)?
        } else {
            let is_nan = self.is_nan(sorted)?;
            let is_number = self.logical_not(is_nan)?;
            self.sum(is_number, None, false)?
        };
        let numbers = self.as_type(numbers, dtype)?;
        let is_nan = self.is_nan(x)?;
        self.select(is_nan, numbers, before)
    }
}
