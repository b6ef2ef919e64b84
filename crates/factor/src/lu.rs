//! LU factorization with pivoting.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::lu::partial_pivoting::factor::{lu_in_place, lu_in_place_scratch};
use faer::{MatMut, Par};

use crate::{Field, Out, squares};

/// The number of rows up to which the blocked algorithm is not faster.
const FEW_ROWS: usize = 32;

/// The number of unused elements between columns. Without them, the elements of a row share few
/// cache sets if the side is a power of two, and displace each other.
const GAP: usize = 16;

/// Implements [`FactorElement::lu`](crate::FactorElement::lu).
pub(crate) fn lu<T: Field>(a: &[T], side: usize, out: &mut [T]) {
    if side <= FEW_ROWS {
        return plain_lu(a, side, out);
    }
    // Processing columns takes half of the time of processing rows.
    let stride = side + GAP;
    let mut factors = vec![T::from_real(0.0); side * stride];
    squares(side, side, |column, rows| {
        let factors = &mut factors[column * stride..][rows.clone()];
        factors.iter_mut().zip(rows).for_each(|(x, row)| *x = a[row * side + column]);
    });
    let (mut order, mut inverse) = (vec![0_usize; side], vec![0_usize; side]);
    let needed = lu_in_place_scratch::<usize, T>(side, side, Par::Seq, Default::default());
    lu_in_place(
        MatMut::from_column_major_slice_with_stride_mut(&mut factors, side, side, stride),
        &mut order,
        &mut inverse,
        Par::Seq,
        MemStack::new(&mut MemBuffer::new(needed)),
        Default::default(),
    );
    let is_singular = (0..side).any(|index| {
        let pivot = factors[index * stride + index].size();
        pivot == 0.0 || !pivot.is_finite()
    });
    if is_singular {
        return plain_lu(a, side, out);
    }
    let mut out = Out { rest: out };
    out.matrix(side, side, |row, column| factors[column * stride + row]);
    out.push(order.iter().map(|&row| T::from_real(row as f64)));
}

/// Factorizes row by row, which is fast for small matrices. It continues after a column without a
/// pivot, for which the diagonal of `u` has a zero.
fn plain_lu<T: Field>(a: &[T], side: usize, out: &mut [T]) {
    let (factors, order) = out.split_at_mut(side * side);
    factors.copy_from_slice(a);
    order.iter_mut().enumerate().for_each(|(row, order)| *order = T::from_real(row as f64));
    for step in 0..side {
        let size = |row: usize| factors[row * side + step].size();
        let pivot = (step..side).max_by(|&x, &y| size(x).total_cmp(&size(y)).then(y.cmp(&x)));
        let pivot = pivot.expect("there is a row at least");
        order.swap(step, pivot);
        let (above, below) = factors.split_at_mut((step + 1) * side);
        let first = &mut above[step * side..];
        if pivot != step {
            first.swap_with_slice(&mut below[(pivot - step - 1) * side..][..side]);
        }
        if first[step].size() == 0.0 {
            continue;
        }
        for row in below.chunks_exact_mut(side) {
            let factor = row[step].over(first[step]);
            row[step] = factor;
            for (x, &y) in row[step + 1..].iter_mut().zip(&first[step + 1..]) {
                *x -= factor * y;
            }
        }
    }
}
