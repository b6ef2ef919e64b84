//! Matrix factorizations by elimination and by projection.

use super::{C, Matrix, NAN, adjoint, divide, zeros};

/// Returns the lower-triangular `l` with `l l^H = a`. Row by row, `l[i][j] = (a[i][j] - Σ over k <
/// j of l[i][k] l[j][k]*) / l[j][j]`, and on the diagonal the square root of this difference. The
/// result is NaN unless the matrix is positive definite. Only the lower triangle is read.
pub(super) fn cholesky(a: &Matrix) -> Matrix {
    let side = a.len();
    let mut l = zeros(side, side);
    for row in 0..side {
        for column in 0..=row {
            let known: C = (0..column).map(|k| l[row][k] * l[column][k].conj()).sum();
            let rest = a[row][column] - known;
            if column < row {
                l[row][column] = divide(rest, l[column][column]);
            } else if rest.re > 0.0 {
                l[row][row] = rest.re.sqrt().into();
            } else {
                return vec![vec![NAN; side]; side];
            }
        }
    }
    l
}

/// Returns `l` without its unit diagonal and `u` in one matrix, and the order of the rows of `a` in
/// `l u`. Each step selects the largest remaining element of a column as the pivot, and subtracts
/// multiples of its row from the rows below, which become zero in this column. The multiples are
/// the elements of `l`. A column without a pivot is unchanged.
pub(super) fn lu(a: &Matrix) -> Vec<Matrix> {
    let side = a.len();
    let mut rows = a.clone();
    let mut order: Vec<usize> = (0..side).collect();
    for step in 0..side {
        let size = |row: usize| rows[row][step].l1_norm();
        // The first of several largest elements.
        let pivot = (step..side).rev().max_by(|&x, &y| size(x).total_cmp(&size(y)));
        let pivot = pivot.expect("a row is left");
        rows.swap(step, pivot);
        order.swap(step, pivot);
        let top = rows[step].clone();
        if top[step] == C::ZERO {
            continue;
        }
        for row in &mut rows[step + 1..] {
            let factor = divide(row[step], top[step]);
            row[step] = factor;
            for column in step + 1..side {
                row[column] -= factor * top[column];
            }
        }
    }
    vec![rows, vec![order.into_iter().map(|row| C::new(row as f64, 0.0)).collect()]]
}

/// Returns `q` with orthonormal columns and upper-triangular `r` with `q r = a` (Gram–Schmidt).
/// Each column of `q` is the normalized component of a column of `a` orthogonal to the previous
/// columns. Its norm is the diagonal element of `r`, which is therefore nonnegative. `q` is square
/// if `complete`.
pub(super) fn qr(a: &Matrix, complete: bool) -> Vec<Matrix> {
    let (rows, columns) = (a.len(), a[0].len());
    let smaller = rows.min(columns);
    let conjugates = adjoint(a, columns);
    let column = |at: usize| conjugates[at].iter().map(|x| x.conj()).collect::<Vec<C>>();
    let mut q: Vec<Vec<C>> = Vec::new();
    for at in 0..smaller {
        let next = direction(&q, column(at)).unwrap_or_else(|| free_direction(&q, rows));
        q.push(next);
    }
    if complete {
        complete_basis(&mut q, rows);
    }
    let mut r = zeros(q.len(), columns);
    for (row, direction) in q.iter().enumerate().take(smaller) {
        let part = |at: usize| if at < row { C::ZERO } else { product(direction, &column(at)) };
        r[row] = (0..columns).map(part).collect();
        // Rounding may leave a small imaginary part, or a negative zero.
        r[row][row] = r[row][row].re.max(0.0).into();
    }
    vec![transposed(&q, rows), r]
}

/// Returns `x^H y`.
pub(super) fn product(x: &[C], y: &[C]) -> C {
    x.iter().zip(y).map(|(x, y)| x.conj() * y).sum()
}

/// Returns the norm of a vector.
pub(super) fn norm(x: &[C]) -> f64 {
    x.iter().map(|x| x.norm_sqr()).sum::<f64>().sqrt()
}

/// Returns the normalized component of a vector orthogonal to a basis, or `None` if it is zero.
fn direction(basis: &[Vec<C>], mut x: Vec<C>) -> Option<Vec<C>> {
    let before = norm(&x);
    // The second pass removes rounding errors of the first.
    for _ in 0..2 {
        for unit in basis {
            let part = product(unit, &x);
            x.iter_mut().zip(unit).for_each(|(x, unit)| *x -= part * unit);
        }
    }
    let size = norm(&x);
    (size > 1e-13 * before).then(|| x.iter().map(|x| x / size).collect())
}

/// Returns a unit vector orthogonal to an incomplete basis: the normalized component of the unit
/// vector with the longest orthogonal component.
fn free_direction(basis: &[Vec<C>], rows: usize) -> Vec<C> {
    let inside = |axis: usize| basis.iter().map(|unit| unit[axis].norm_sqr()).sum::<f64>();
    let axis = (0..rows).min_by(|&x, &y| inside(x).total_cmp(&inside(y)));
    let axis = axis.expect("there is an axis");
    let unit = (0..rows).map(|row| C::new(f64::from(u8::from(row == axis)), 0.0)).collect();
    direction(basis, unit).expect("the basis is not complete")
}

/// Extends the basis to as many vectors as there are axes.
pub(super) fn complete_basis(basis: &mut Vec<Vec<C>>, rows: usize) {
    while basis.len() < rows {
        let next = free_direction(basis, rows);
        basis.push(next);
    }
}

/// Returns the matrix with these columns.
pub(super) fn transposed(columns: &[Vec<C>], rows: usize) -> Matrix {
    (0..rows).map(|row| columns.iter().map(|column| column[row]).collect()).collect()
}
