//! Functions that move elements, as compositions of ops.

use nxla_tensor::{DType, HostTensor, Shape, broadcast_shapes, to_i64};

use crate::graph::{ErrorKind, ExprId, Graph, Op, Result};

impl Graph {
    /// Broadcasts values to their common shape.
    ///
    /// # Errors
    /// Returns an error for shapes that do not broadcast.
    pub fn broadcast_together(&mut self, values: &[ExprId]) -> Result<Vec<ExprId>> {
        let mut shape = Shape::scalar();
        for &id in values {
            shape = broadcast_shapes(&shape, self.shape(id))
                .map_err(|error| self.error("broadcast_together", ErrorKind::from(error)))?;
        }
        values.iter().map(|&id| self.broadcast(id, shape.clone(), None)).collect()
    }

    /// Broadcasts vectors over a grid: result `i` has the elements of vector `i` along axis `i`,
    /// repeated along the other axes.
    ///
    /// # Errors
    /// Returns an error if an operand is not a vector.
    pub fn meshgrid(&mut self, vectors: &[ExprId]) -> Result<Vec<ExprId>> {
        let mut shape = Vec::with_capacity(vectors.len());
        for &vector in vectors {
            let [size] = self.shape(vector)[..] else {
                let (found, expected) = (self.tensor_type(vector).to_string(), "one axis".into());
                let kind = ErrorKind::Shape { argument: "vector", found, expected };
                return Err(self.error("meshgrid", kind));
            };
            shape.push(size);
        }
        let spread = |(&vector, axis)| self.broadcast(vector, shape.clone(), Some(&[axis]));
        vectors.iter().zip(0..).map(spread).collect()
    }

    /// Moves the axes `from` of `x` to the positions `to`; the other axes keep their order.
    ///
    /// # Errors
    /// Returns an error for axes out of range or named twice or lists of different lengths.
    pub fn move_axes(&mut self, x: ExprId, from: &[i64], to: &[i64]) -> Result<ExprId> {
        const OP: &str = "move_axes";
        if from.len() != to.len() {
            let why = format!("must have {} axes like the source; got {}", from.len(), to.len());
            return Err(self.invalid(OP, "destination", why));
        }
        let rank = self.shape(x).rank();
        let from = self.axes(OP, x, from)?;
        let to = self.axes(OP, x, to)?;
        let mut order: Vec<usize> = (0..rank).filter(|axis| !from.contains(axis)).collect();
        let mut pairs: Vec<(usize, usize)> = to.into_iter().zip(from).collect();
        pairs.sort_unstable();
        for (position, axis) in pairs {
            order.insert(position, axis);
        }
        let order: Vec<i64> = order.into_iter().map(to_i64).collect();
        self.transpose(x, Some(&order))
    }

    /// Exchanges two axes of `x`.
    ///
    /// # Errors
    /// Returns an error for an axis out of range.
    pub fn swap_axes(&mut self, x: ExprId, first: i64, second: i64) -> Result<ExprId> {
        let op = "swapaxes";
        let (first, second) = (self.axis(op, x, first)?, self.axis(op, x, second)?);
        let mut order: Vec<usize> = (0..self.shape(x).rank()).collect();
        order.swap(first, second);
        self.make(Op::Transpose(order.into()), &[x])
    }

    /// Rotates `x` by `quarters` times 90 degrees in the plane of two axes, from the first to the
    /// second.
    ///
    /// # Errors
    /// Returns an error for an axis out of range or the same axis twice.
    pub fn rotate(&mut self, x: ExprId, quarters: i64, [from, to]: [i64; 2]) -> Result<ExprId> {
        self.axes("rot90", x, &[from, to])?;
        match quarters.rem_euclid(4) {
            0 => Ok(x),
            1 => {
                let flipped = self.reverse(x, Some(&[to]))?;
                self.swap_axes(flipped, from, to)
            }
            2 => self.reverse(x, Some(&[from, to])),
            _ => {
                let swapped = self.swap_axes(x, from, to)?;
                self.reverse(swapped, Some(&[to]))
            }
        }
    }

    /// Shifts `x` by `shift` along an axis; elements beyond one end enter at the other end.
    ///
    /// # Errors
    /// Returns an error for an axis out of range.
    pub fn roll(&mut self, x: ExprId, shift: i64, axis: i64) -> Result<ExprId> {
        let position = self.axis("roll", x, axis)?;
        let size = to_i64(self.shape(x)[position]);
        let cut = if size == 0 { 0 } else { shift.wrapping_neg().rem_euclid(size) };
        if cut == 0 {
            return Ok(x);
        }
        let (left, right) = self.split(x, cut, axis)?;
        self.concatenate(&[right, left], axis)
    }

    /// Repeats each element of `x` along an axis. `counts` holds a count for each element, or one
    /// for all.
    ///
    /// # Errors
    /// Returns an error for an axis out of range or another number of counts than the axis has
    /// elements.
    pub fn repeat(&mut self, x: ExprId, counts: &[usize], axis: i64) -> Result<ExprId> {
        let position = self.axis("repeat", x, axis)?;
        let size = self.shape(x)[position];
        if let &[count] = counts {
            return self.repeat_each(x, count, position);
        }
        if counts.len() != size {
            let why =
                format!("must have {size} entries, the size of the axis; got {}", counts.len());
            return Err(self.invalid("repeat", "counts", why));
        }
        let length = counts.iter().try_fold(0, |sum: usize, &count| sum.checked_add(count));
        let mut places: Vec<i64> = Vec::new();
        let Some(length) = length.filter(|&length| places.try_reserve_exact(length).is_ok()) else {
            let sum: u128 = counts.iter().map(|&count| count as u128).sum();
            let why = format!("must have a sum that fits in memory; got {sum}");
            return Err(self.invalid("repeat", "counts", why));
        };
        for (place, &count) in (0..).zip(counts) {
            places.extend(std::iter::repeat_n(place, count));
        }
        let places = HostTensor::from_vec(places, [length]).expect("the shape matches the length");
        let places = self.tensor(places)?;
        let places = self.as_type(places, DType::S32)?;
        self.take(x, places, axis)
    }

    /// Repeats each element of `x` along an axis `count` times, through a new axis for the copies.
    fn repeat_each(&mut self, x: ExprId, count: usize, axis: usize) -> Result<ExprId> {
        let (shape, names) = (self.shape(x).to_vec(), self.tensor_type(x).names.clone());
        let Some(length) = shape[axis].checked_mul(count) else {
            return Err(self.invalid(
                "repeat",
                "counts",
                format!("must fit 64-bit sizes; got {count}"),
            ));
        };
        let (mut apart, mut copied, mut joined) = (shape.clone(), shape.clone(), shape);
        apart.insert(axis + 1, 1);
        copied.insert(axis + 1, count);
        joined[axis] = length;
        let x = self.rename(x, None)?;
        let x = self.reshape(x, apart)?;
        let x = self.broadcast(x, copied, None)?;
        let x = self.reshape(x, joined)?;
        self.rename(x, names)
    }

    /// Splits `x` along an axis into parts without this axis.
    ///
    /// # Errors
    /// Returns an error for an axis out of range.
    pub fn unstack(&mut self, x: ExprId, axis: i64) -> Result<Vec<ExprId>> {
        let position = self.axis("unstack", x, axis)?;
        let size = self.shape(x)[position];
        (0..size).map(|place| self.element_along(x, place, axis, false)).collect()
    }
}
