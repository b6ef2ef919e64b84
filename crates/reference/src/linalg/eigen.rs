//! Eigenvalues and singular values by Jacobi rotations: each rotation makes two columns orthogonal,
//! and repeated passes over all pairs make all columns orthogonal.

use super::factorize::{complete_basis, norm, product, transposed};
use super::{C, Matrix, adjoint};

/// The maximum number of passes; a few suffice for any matrix.
const ROUNDS: usize = 60;

/// Returns the unitary `[[c, s], [-s e^-iφ, c e^-iφ]]` that diagonalizes the Hermitian `[[a, h],
/// [h*, b]]`, where `h = |h| e^iφ` and `t = s/c` is the smaller root of `t² + t (b-a)/|h| = 1`.
/// Returns `None` if the matrix is already diagonal.
fn rotation(a: f64, b: f64, h: C) -> Option<[[C; 2]; 2]> {
    let size = h.norm();
    if size <= f64::EPSILON * f64::EPSILON * (a.abs() + b.abs()) || size == 0.0 {
        return None;
    }
    let half = (b - a) / (2.0 * size);
    let t = 1_f64.copysign(half) / (half.abs() + half.hypot(1.0));
    let c = 1.0 / t.hypot(1.0);
    let (s, turn) = (t * c, h.conj() / size);
    Some([[c.into(), s.into()], [turn * -s, turn * c]])
}

/// Multiplies two columns of a matrix, given as a list of columns, by a rotation from the right.
fn rotate(columns: &mut [Vec<C>], p: usize, q: usize, u: [[C; 2]; 2]) {
    for row in 0..columns[p].len() {
        let (x, y) = (columns[p][row], columns[q][row]);
        columns[p][row] = x * u[0][0] + y * u[1][0];
        columns[q][row] = x * u[0][1] + y * u[1][1];
    }
}

/// Returns the columns of the identity matrix.
fn identity(side: usize) -> Vec<Vec<C>> {
    let element = |row: usize, column: usize| C::new(f64::from(u8::from(row == column)), 0.0);
    (0..side).map(|column| (0..side).map(|row| element(row, column)).collect()).collect()
}

/// Returns the eigenvalues of a Hermitian matrix in increasing order, and its eigenvectors in
/// columns: `v` is the product of the rotations that make `v^H a v` diagonal. The lower triangle is
/// read.
pub(super) fn eigh(a: &Matrix) -> Vec<Matrix> {
    let side = a.len();
    let element = |row: usize, column: usize| match row.cmp(&column) {
        std::cmp::Ordering::Greater => a[row][column],
        std::cmp::Ordering::Equal => a[row][row].re.into(),
        std::cmp::Ordering::Less => a[column][row].conj(),
    };
    let mut columns: Vec<Vec<C>> =
        (0..side).map(|column| (0..side).map(|row| element(row, column)).collect()).collect();
    let mut vectors = identity(side);
    for _ in 0..ROUNDS {
        let mut is_diagonal = true;
        for (p, q) in (0..side).flat_map(|p| (p + 1..side).map(move |q| (p, q))) {
            let found = rotation(columns[p][p].re, columns[q][q].re, columns[q][p]);
            let Some(u) = found else { continue };
            is_diagonal = false;
            // `u^H a u`: rotates the columns of `a`, then the columns of the adjoint of the result.
            rotate(&mut columns, p, q, u);
            let mut adjoints = adjoint(&columns, side);
            rotate(&mut adjoints, p, q, u);
            columns = adjoint(&adjoints, side);
            rotate(&mut vectors, p, q, u);
        }
        if is_diagonal {
            break;
        }
    }
    let mut order: Vec<usize> = (0..side).collect();
    order.sort_by(|&x, &y| columns[x][x].re.total_cmp(&columns[y][y].re));
    let values = order.iter().map(|&at| columns[at][at]).collect();
    let vectors: Vec<Vec<C>> = order.iter().map(|&at| vectors[at].clone()).collect();
    vec![vec![values], transposed(&vectors, side)]
}

/// Returns `u`, the singular values in decreasing order, and `v^H`: `v` is the product of the
/// rotations that make the columns of `a v` orthogonal. Their norms are the singular values, and
/// the normalized columns are `u`. `u` and `v` are square if `full`.
pub(super) fn svd(a: &Matrix, full: bool) -> Vec<Matrix> {
    let (rows, count) = (a.len(), a[0].len());
    if rows < count {
        // `a^H = v s u^H`.
        let mut parts = svd(&adjoint(a, count), full);
        parts.reverse();
        let adjoints = |part: &Matrix| adjoint(part, part[0].len());
        return vec![adjoints(&parts[0]), parts[1].clone(), adjoints(&parts[2])];
    }
    let conjugates = adjoint(a, count);
    let mut columns: Vec<Vec<C>> =
        conjugates.iter().map(|column| column.iter().map(|x| x.conj()).collect()).collect();
    let mut v = identity(count);
    for _ in 0..ROUNDS {
        let mut is_orthogonal = true;
        for (p, q) in (0..count).flat_map(|p| (p + 1..count).map(move |q| (p, q))) {
            let (x, y) = (norm(&columns[p]), norm(&columns[q]));
            let h = product(&columns[p], &columns[q]);
            if h.norm() <= f64::EPSILON * x * y {
                continue;
            }
            let Some(u) = rotation(x * x, y * y, h) else { continue };
            is_orthogonal = false;
            rotate(&mut columns, p, q, u);
            rotate(&mut v, p, q, u);
        }
        if is_orthogonal {
            break;
        }
    }
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|&x, &y| norm(&columns[y]).total_cmp(&norm(&columns[x])));
    let values: Vec<f64> = order.iter().map(|&at| norm(&columns[at])).collect();
    // A column of rounding errors has no direction and is replaced by any orthogonal unit vector.
    let is_there = |size: &f64| *size > 1e-15 * values[0] && *size > 0.0;
    let kept = order.iter().zip(&values).filter(|(_, size)| is_there(size));
    let mut u: Vec<Vec<C>> =
        kept.map(|(&at, size)| columns[at].iter().map(|x| x / size).collect()).collect();
    complete_basis(&mut u, rows);
    u.truncate(if full { rows } else { count });
    let v: Vec<Vec<C>> = order.iter().map(|&at| v[at].clone()).collect();
    let adjoint: Matrix = v.iter().map(|x| x.iter().map(|x| x.conj()).collect()).collect();
    let values = values.into_iter().map(C::from).collect();
    vec![transposed(&u, rows), vec![values], adjoint]
}
