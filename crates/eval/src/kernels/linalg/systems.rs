//! Systems of linear equations for small factors, which substitution solves in one step.
//!
//! A Kalman filter or a Newton iteration solves a system of a few unknowns in each iteration of its loop, where
//! starting several steps takes longer than computing them.

use nxla_expr::Program;
use nxla_tensor::{DType, HostTensor};

use super::field::{Field, match_field, matrix_dtype};
use crate::context::{self, Cx, Fault};
use crate::kernels::elementwise::convert;

/// The number of rows up to which processing row by row is faster than processing blocks.
const MOST_ROWS: usize = 32;

/// Returns true if [`solve`] computes the results of a program on `[factors, order, b]`.
pub(crate) fn is_small(program: &Program) -> bool {
    // Captured values of the body follow these three inputs.
    let [factors, order, b, ..] = program.inputs() else { return false };
    let [batch @ .., rows, columns] = &factors.shape[..] else { return false };
    let [of_order @ .., positions] = &order.shape[..] else { return false };
    let [of_b @ .., unknowns, _] = &b.shape[..] else { return false };
    let is_known = matches!(factors.dtype, DType::F32 | DType::F64 | DType::C64 | DType::C128);
    let is_one_batch = batch == of_order && batch == of_b;
    is_known
        && factors.dtype == b.dtype
        && order.dtype == DType::S32
        && is_one_batch
        && [columns, positions, unknowns] == [rows; 3]
        && *rows <= MOST_ROWS
        && b.shape.size() > 0
}

/// The solutions of `a x = b`, or of the transposed `a`, from the factors of `a`.
pub(crate) fn solve(
    cx: Cx<'_>,
    factors: &HostTensor,
    order: &HostTensor,
    b: &HostTensor,
    transposed: bool,
) -> Result<HostTensor, Fault> {
    let dtype = matrix_dtype(b.dtype());
    let (factors, wide) = (&convert(cx, factors, dtype)?, &convert(cx, b, dtype)?);
    let x = match_field!(dtype, T => solutions::<T>(cx, factors, order, wide, transposed))?;
    convert(cx, &x, b.dtype())
}

fn solutions<T: Field>(
    cx: Cx<'_>,
    factors: &HostTensor,
    order: &HostTensor,
    b: &HostTensor,
    transposed: bool,
) -> Result<HostTensor, Fault> {
    let [.., side, width] = b.shape()[..] else {
        unreachable!("the right-hand side has at least two axes")
    };
    let (factors, order) = (context::slice::<T>(factors), context::slice::<i32>(order));
    let right = context::slice::<T>(b);
    context::build(b.dtype(), b.shape(), |x: &mut [T]| {
        cx.rows(x, side * width, side * side * width, |first, x| {
            let mut permuted = Vec::new();
            for (index, x) in x.chunks_exact_mut(side * width).enumerate() {
                let at = first + index;
                let system = LinearSystem {
                    factors: &factors[at * side * side..][..side * side],
                    order: &order[at * side..][..side],
                    width,
                };
                let b = &right[at * side * width..][..side * width];
                if transposed {
                    context::fill(&mut permuted, T::default(), side * width);
                    system.solve_transposed(b, &mut permuted, x);
                } else {
                    system.solve(b, x);
                }
            }
        });
    })
}

/// The factors of a matrix, and the number of right-hand sides.
#[derive(Clone, Copy)]
struct LinearSystem<'a, T> {
    factors: &'a [T],
    order: &'a [i32],
    width: usize,
}

impl<T: Field> LinearSystem<'_, T> {
    fn solve(self, b: &[T], x: &mut [T]) {
        let Self { factors, order, width } = self;
        let side = order.len();
        if factors.iter().step_by(side + 1).any(|&pivot| pivot == T::default()) {
            return x.fill(T::NAN);
        }
        for (x, &row) in x.chunks_exact_mut(width).zip(order) {
            x.copy_from_slice(&b[row as usize * width..][..width]);
        }
        for row in 0..side {
            let lower = &factors[row * side..][..row];
            subtract(x, row, (0..row).zip(lower), width);
        }
        for row in (0..side).rev() {
            let upper = &factors[row * side..][..side];
            subtract(x, row, (row + 1..side).zip(&upper[row + 1..]), width);
            divide(&mut x[row * width..][..width], upper[row]);
        }
    }

    /// Solves the transposed system. `y` holds the solution before its rows are permuted.
    fn solve_transposed(self, b: &[T], y: &mut [T], x: &mut [T]) {
        let Self { factors, order, width } = self;
        let side = order.len();
        let column = |row: usize| factors[row..].iter().step_by(side);
        y.copy_from_slice(b);
        for row in 0..side {
            subtract(y, row, (0..row).zip(column(row)), width);
            divide(&mut y[row * width..][..width], factors[row * side + row]);
        }
        for row in (0..side).rev() {
            subtract(y, row, (row + 1..side).zip(column(row).skip(row + 1)), width);
        }
        for (y, &row) in y.chunks_exact(width).zip(order) {
            x[row as usize * width..][..width].copy_from_slice(y);
        }
    }
}

fn divide<T: Field>(row: &mut [T], pivot: T) {
    row.iter_mut().for_each(|x| *x = x.over(pivot));
}

/// Subtracts multiples of other rows from a row.
fn subtract<'a, T: Field>(
    x: &mut [T],
    row: usize,
    others: impl Iterator<Item = (usize, &'a T)>,
    width: usize,
) {
    for (other, &factor) in others {
        let [to, from] = x
            .get_disjoint_mut([row * width..(row + 1) * width, other * width..(other + 1) * width])
            .expect("another row");
        to.iter_mut().zip(from).for_each(|(to, from)| *to = *to - factor * *from);
    }
}
