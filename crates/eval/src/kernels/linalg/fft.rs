//! The discrete Fourier transform along one axis.
//!
//! A line of real numbers of even length is transformed as a complex line of half the length, whose
//! real and imaginary parts are the elements at even and odd positions. The spectra of both are
//! then separated and combined. The second half of the result is the conjugate mirror image of the
//! first half.

use std::sync::Arc;

use nxla_expr::{Fft, TensorType};
use nxla_fourier::Real;
use nxla_tensor::{Complex, DType, Element, HostTensor};

use crate::context::{self, Cx, Fault};
use crate::kernels::elementwise::{convert, vectorize};
use crate::kernels::reduce::Plane;

/// The axis is truncated to the length of the transform, or padded with zeros.
pub(super) fn fft(
    cx: Cx<'_>,
    attributes: Fft,
    x: &HostTensor,
    ty: &TensorType,
) -> Result<HostTensor, Fault> {
    match (x.dtype(), ty.dtype) {
        (DType::F32, DType::C64) => {
            lines::<f32, f32>(cx, attributes, x, ty, |x| Complex::new(x, 0.0))
        }
        (DType::C64, DType::C64) => lines::<Complex<f32>, f32>(cx, attributes, x, ty, |x| x),
        (DType::C128, _) => lines::<Complex<f64>, f64>(cx, attributes, x, ty, |x| x),
        _ => {
            // The other dtypes are narrow floats and integers. `f32` cannot represent all integers.
            let wide = TensorType::new(DType::C128, ty.shape.clone());
            let x = convert(cx, x, DType::F64)?;
            let spectra = lines::<f64, f64>(cx, attributes, &x, &wide, |x| Complex::new(x, 0.0))?;
            convert(cx, &spectra, ty.dtype)
        }
    }
}

/// The transform of a line.
struct Transform<T> {
    attributes: Fft,
    is_complex: bool,
    plan: Arc<dyn nxla_fourier::Fft<T>>,
    /// The roots of unity, for lines of real numbers that are read as pairs.
    roots: Option<Arc<[Complex<T>]>>,
}

impl<T: Real> Transform<T> {
    fn new(attributes: Fft, is_complex: bool) -> Self {
        let Fft { inverse, length, .. } = attributes;
        // A plan holds a few factors per element.
        context::require::<Complex<T>>(length.saturating_mul(4));
        if is_complex || length % 2 == 1 {
            let plan = T::plan(length, inverse);
            return Transform { attributes, is_complex, plan, roots: None };
        }
        let (plan, roots) = (T::plan(length / 2, false), Some(T::roots(length)));
        Transform { attributes, is_complex, plan, roots }
    }

    /// Fills the input of the plan from a line, and pads it with zeros.
    fn fill<A: Copy>(&self, to: &mut [Complex<T>], line: &[A], read: &impl Fn(A) -> Complex<T>) {
        let line = &line[..line.len().min(self.attributes.length)];
        if self.roots.is_none() {
            to.iter_mut().zip(line).for_each(|(to, &x)| *to = read(x));
            to[line.len()..].fill(Complex::default());
            return;
        }
        let (pairs, last) = line.as_chunks::<2>();
        let (filled, rest) = to.split_at_mut(pairs.len());
        for (to, [x, y]) in filled.iter_mut().zip(pairs) {
            *to = Complex::new(read(*x).re, read(*y).re);
        }
        rest.fill(Complex::default());
        if let [last] = last {
            rest[0] = read(*last);
        }
    }

    /// Writes the spectra of lines of `count` elements. Consecutive lines begin `stride` elements
    /// apart, and their spectra `apart` elements apart.
    fn run<A: Copy>(
        &self,
        lines: &[A],
        (count, stride): (usize, usize),
        (out, apart): (&mut [Complex<T>], usize),
        read: &impl Fn(A) -> Complex<T>,
    ) {
        let mut scratch = context::filled(Complex::default(), self.plan.get_inplace_scratch_len());
        let mut pairs = Vec::new();
        if self.roots.is_some() {
            context::fill(&mut pairs, Complex::default(), self.plan.len());
        }
        for (index, out) in out.chunks_mut(apart).enumerate() {
            let line = &lines[index * stride..][..count];
            let out = &mut out[..self.attributes.length];
            match &self.roots {
                None => {
                    self.fill(out, line, read);
                    self.plan.process_with_scratch(out, &mut scratch);
                    if !self.is_complex {
                        mirror(out);
                    }
                }
                Some(roots) => {
                    self.fill(&mut pairs, line, read);
                    self.plan.process_with_scratch(&mut pairs, &mut scratch);
                    unfold(&pairs, roots, out);
                }
            }
            if self.attributes.inverse {
                self.invert(out);
            }
        }
    }

    /// Writes the spectra of some columns of a matrix with `inner` columns to the same columns of
    /// `rows`. Neighboring columns are transformed together, because they share cache lines.
    fn run_columns<A: Copy + Default>(
        &self,
        x: &[A],
        (count, inner): (usize, usize),
        mut rows: Vec<&mut [Complex<T>]>,
        read: &impl Fn(A) -> Complex<T>,
    ) {
        let columns = rows.first().map_or(0, |row| row.len());
        let (stride, apart) = (count + COLUMN_GAP, self.attributes.length + COLUMN_GAP);
        let (mut lines, mut spectra) = (Vec::new(), Vec::new());
        for first in (0..columns).step_by(COLUMNS_PER_PASS) {
            let together = COLUMNS_PER_PASS.min(columns - first);
            context::fill(&mut lines, A::default(), together * stride);
            context::fill(&mut spectra, Complex::default(), together * apart);
            for (at, row) in x.chunks(inner).take(count).enumerate() {
                let targets = lines[at..].iter_mut().step_by(stride);
                targets.zip(&row[first..][..together]).for_each(|(to, &x)| *to = x);
            }
            self.run(&lines, (count, stride), (&mut spectra, apart), read);
            for (at, row) in rows.iter_mut().enumerate() {
                let column = spectra[at..].iter().step_by(apart);
                row[first..][..together].iter_mut().zip(column).for_each(|(to, &x)| *to = x);
            }
        }
    }

    /// Converts a spectrum to the result of the inverse transform.
    fn invert(&self, spectrum: &mut [Complex<T>]) {
        let scale = T::of(1.0 / self.attributes.length as f64);
        // The inverse transform of real numbers is the conjugate of their forward transform.
        let sign = if self.roots.is_some() { -scale } else { scale };
        vectorize(
            #[inline(always)]
            || {
                for x in spectrum {
                    *x = Complex::new(x.re * scale, x.im * sign);
                }
            },
        );
    }
}

/// Makes the spectrum of an odd number of real elements symmetric, which rounding prevents.
fn mirror<T: Real>(spectrum: &mut [Complex<T>]) {
    let Some((first, rest)) = spectrum.split_first_mut() else { return };
    *first = first.re.into();
    let (low, high) = rest.split_at_mut(rest.len() / 2);
    high.iter_mut().rev().zip(low).for_each(|(high, low)| *high = low.conj());
}

/// Writes the spectrum of a real line from the spectrum of its pairs of neighbors. The second half
/// mirrors the first half.
fn unfold<T: Real>(pairs: &[Complex<T>], roots: &[Complex<T>], out: &mut [Complex<T>]) {
    let half = pairs.len();
    let (first, second) = out.split_at_mut(half);
    first[0] = (pairs[0].re + pairs[0].im).into();
    second[0] = (pairs[0].re - pairs[0].im).into();
    let (first, second) = (&mut first[1..], &mut second[1..]);
    vectorize(
        #[inline(always)]
        || {
            let (blocks, rest) = first.as_chunks_mut::<UNFOLD_BLOCK>();
            let done = blocks.len() * UNFOLD_BLOCK;
            let ahead = pairs[1..].as_chunks().0.iter().zip(roots[1..].as_chunks().0);
            let mirrored = pairs[1..].as_rchunks().1.iter().rev();
            for ((out, (pairs, roots)), mirrored) in blocks.iter_mut().zip(ahead).zip(mirrored) {
                unfold_block(pairs, mirrored, roots, out);
            }
            let ends = pairs[1 + done..].iter().zip(&roots[1 + done..]);
            let mirrored = pairs[1..half - done].iter().rev();
            for ((out, (this, root)), mirrored) in rest.iter_mut().zip(ends).zip(mirrored) {
                *out = unfold_one(*this, *mirrored, *root);
            }
            for (out, number) in second.iter_mut().rev().zip(&*first) {
                *out = number.conj();
            }
        },
    );
}

// The constants are measured by the family `fft` of `benches/python/kernels.py`.

/// Columns that are copied and transformed at a time.
const COLUMNS_PER_PASS: usize = 16;

/// Elements between columns that are transformed together. Columns at a distance of a power of two would share sets of
/// the cache.
const COLUMN_GAP: usize = 8;

/// Tasks for each thread, so that a delayed thread does not delay the transform.
const TASKS_PER_THREAD: usize = 8;

/// Numbers of a spectrum that are unfolded at a time.
const UNFOLD_BLOCK: usize = 16;

/// Computes one block, which is vectorized.
#[inline(always)]
fn unfold_block<T: Real>(
    pairs: &[Complex<T>; UNFOLD_BLOCK],
    mirrored: &[Complex<T>; UNFOLD_BLOCK],
    roots: &[Complex<T>; UNFOLD_BLOCK],
    out: &mut [Complex<T>; UNFOLD_BLOCK],
) {
    for at in 0..UNFOLD_BLOCK {
        out[at] = unfold_one(pairs[at], mirrored[UNFOLD_BLOCK - 1 - at], roots[at]);
    }
}

/// An element of the spectrum, from the element of the pair spectrum at this position and at the
/// mirrored position. Half of the sum with its conjugate is the spectrum of the even positions;
/// half of the difference, divided by `i`, is the spectrum of the odd positions.
#[inline(always)]
fn unfold_one<T: Real>(this: Complex<T>, mirrored: Complex<T>, root: Complex<T>) -> Complex<T> {
    let half = T::of(0.5);
    let (even, odd) = (
        Complex::new((this.re + mirrored.re) * half, (this.im - mirrored.im) * half),
        Complex::new((this.im + mirrored.im) * half, (mirrored.re - this.re) * half),
    );
    even + root * odd
}

/// Transforms each line.
fn lines<A: Element, T: Real>(
    cx: Cx<'_>,
    attributes: Fft,
    x: &HostTensor,
    ty: &TensorType,
    read: impl Fn(A) -> Complex<T> + Sync,
) -> Result<HostTensor, Fault>
where
    Complex<T>: Element,
{
    let Fft { axis, length, .. } = attributes;
    let transform = Transform::<T>::new(attributes, A::DTYPE.is_complex());
    let Plane { count, inner, .. } = Plane::along(x.shape(), axis);
    let x = context::slice::<A>(x);
    let cost = length * (1 + length.ilog2() as usize) * 4;
    context::build(ty.dtype, &ty.shape, |out: &mut [Complex<T>]| {
        if out.is_empty() {
            return;
        }
        if inner == 1 {
            return cx.rows(out, length, cost, |first, out| {
                transform.run(&x[first * count..], (count, count), (out, length), &read);
            });
        }
        let run = |(first, rows): (usize, Vec<&mut [Complex<T>]>)| {
            // Rows that consist only of padding have no elements.
            let x = x.get(first..).unwrap_or_default();
            transform.run_columns(x, (count, inner), rows, &read);
        };
        let is_spread = cx.pays(out.len().saturating_mul(cost / length));
        let width = if is_spread {
            inner.div_ceil(TASKS_PER_THREAD * cx.threads()).next_multiple_of(COLUMNS_PER_PASS)
        } else {
            inner
        };
        let tasks = columns(out, (length, inner), (count, width));
        if is_spread { cx.each(tasks, run) } else { tasks.into_iter().for_each(run) }
    })
}

/// The rows of `length` by `inner` matrices, in parts of `width` columns. Each part contains the
/// start of the same columns in matrices of `count` rows.
fn columns<C>(
    out: &mut [C],
    (length, inner): (usize, usize),
    (count, width): (usize, usize),
) -> Vec<(usize, Vec<&mut [C]>)> {
    let mut tasks = Vec::new();
    for (matrix, out) in out.chunks_exact_mut(length * inner).enumerate() {
        let begun = tasks.len();
        let first = |column: usize| matrix * count * inner + column;
        tasks.extend((0..inner).step_by(width).map(|c| (first(c), Vec::with_capacity(length))));
        for row in out.chunks_exact_mut(inner) {
            let parts = row.chunks_mut(width);
            tasks[begun..].iter_mut().zip(parts).for_each(|((_, rows), part)| rows.push(part));
        }
    }
    tasks
}
