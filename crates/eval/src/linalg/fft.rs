//! The discrete Fourier transform along one axis.
//!
//! A line of real numbers whose length is even is transformed as half as many complex ones: the
//! spectra of its elements at even and at odd places are the two halves of theirs, and the second
//! half of the result mirrors the first.

use std::cell::RefCell;
use std::f64::consts::TAU;
use std::sync::Arc;

use nxla_expr::{Fft, TensorType};
use nxla_tensor::{Complex, DType, Element, HostTensor};
use rustfft::FftPlanner;

use crate::elementwise::convert;
use crate::error::Fault;
use crate::reduce::{Plane, narrow, wide};
use crate::{memory, parallel, value};

thread_local! {
    /// Planners remember the transforms they have planned.
    static PLANNER: RefCell<FftPlanner<f64>> = RefCell::new(FftPlanner::new());
}

fn planned(length: usize, inverse: bool) -> Arc<dyn rustfft::Fft<f64>> {
    // Plans hold some factors for each element.
    memory::expect::<Complex<f64>>(length.saturating_mul(4));
    PLANNER.with_borrow_mut(|planner| {
        if inverse { planner.plan_fft_inverse(length) } else { planner.plan_fft_forward(length) }
    })
}

/// The axis is cut to the length of the transform, or padded with zeros.
pub(super) fn fft(attributes: Fft, x: &HostTensor, ty: &TensorType) -> Result<HostTensor, Fault> {
    let Fft { inverse, length, .. } = attributes;
    let scale = if inverse { 1.0 / length as f64 } else { 1.0 };
    if x.dtype().is_complex() || length % 2 == 1 {
        let plan = planned(length, inverse);
        let scratch = plan.get_inplace_scratch_len();
        return along(attributes, x, ty, || {
            let (plan, mut scratch) = (plan.clone(), memory::filled(Complex::default(), scratch));
            move |line: &mut [Complex<f64>]| {
                plan.process_with_scratch(line, &mut scratch);
                line.iter_mut().for_each(|x| *x *= scale);
            }
        });
    }
    let half = length / 2;
    let (plan, turns) = (planned(half, false), turns(length));
    let scratch = plan.get_inplace_scratch_len();
    along(attributes, x, ty, || {
        let (plan, mut scratch) = (plan.clone(), memory::filled(Complex::default(), scratch));
        let (turns, mut pairs) = (&turns, memory::filled(Complex::default(), half));
        move |line: &mut [Complex<f64>]| {
            let places = line.chunks_exact(2);
            pairs.iter_mut().zip(places).for_each(|(to, x)| *to = Complex::new(x[0].re, x[1].re));
            plan.process_with_scratch(&mut pairs, &mut scratch);
            unfold(&pairs, turns, line);
            // The inverse of real numbers is the conjugate of their transform.
            line.iter_mut().for_each(|x| *x = if inverse { x.conj() } else { *x } * scale);
        }
    })
}

/// `exp(-2πi k / length)` for the first half of the circle, its quarter without a rounding error.
fn turns(length: usize) -> Vec<Complex<f64>> {
    let turn = |k: usize| match 4 * k == length {
        true => Complex::new(0.0, -1.0),
        false => Complex::from_polar(1.0, -TAU * k as f64 / length as f64),
    };
    memory::collected((0..length / 2).map(turn))
}

/// The spectrum of a real line from that of its pairs of neighbours.
fn unfold(pairs: &[Complex<f64>], turns: &[Complex<f64>], line: &mut [Complex<f64>]) {
    let half = pairs.len();
    let (sum, difference) = (pairs[0].re + pairs[0].im, pairs[0].re - pairs[0].im);
    (line[0], line[half]) = (sum.into(), difference.into());
    for k in 1..half {
        let (this, mirrored) = (pairs[k], pairs[half - k].conj());
        let (even, odd) = ((this + mirrored) * 0.5, (this - mirrored) * Complex::new(0.0, -0.5));
        line[k] = even + turns[k] * odd;
    }
    for k in 1..half {
        line[2 * half - k] = line[k].conj();
    }
}

/// Transforms each line along the axis; `each` makes the transform of a thread.
fn along<F: FnMut(&mut [Complex<f64>])>(
    attributes: Fft,
    x: &HostTensor,
    ty: &TensorType,
    each: impl Fn() -> F + Sync,
) -> Result<HostTensor, Fault> {
    let x = match x.dtype() {
        DType::F32 | DType::F64 | DType::C64 | DType::C128 => x.clone(),
        _ => convert(x, DType::F64)?,
    };
    macro_rules! lines {
        ($from:ty, $read:expr) => {
            match ty.dtype {
                DType::C64 => {
                    lines::<$from, Complex<f32>, F>(attributes, &x, ty, each, $read, narrow)
                }
                _ => lines::<$from, Complex<f64>, F>(attributes, &x, ty, each, $read, |z| z),
            }
        };
    }
    match x.dtype() {
        DType::F32 => lines!(f32, |x| Complex::from(f64::from(x))),
        DType::C64 => lines!(Complex<f32>, wide),
        DType::C128 => lines!(Complex<f64>, |z| z),
        _ => lines!(f64, Complex::from),
    }
}

/// Lines of one kind of elements, to those of another.
fn lines<A: Element, B: Element, F: FnMut(&mut [Complex<f64>])>(
    attributes: Fft,
    x: &HostTensor,
    ty: &TensorType,
    each: impl Fn() -> F + Sync,
    read: impl Fn(A) -> Complex<f64> + Sync,
    write: impl Fn(Complex<f64>) -> B + Sync,
) -> Result<HostTensor, Fault> {
    let from = Plane::along(x.shape(), attributes.axis);
    let x = value::slice::<A>(x);
    let (length, inner) = (attributes.length, from.inner);
    let block = length * inner;
    let cost = block * (1 + length.ilog2() as usize) * 4;
    value::build(ty.dtype, &ty.shape, |out: &mut [B]| {
        parallel::rows(out, block, cost, |first, out| {
            let mut line = memory::filled(Complex::default(), length);
            let mut transform = each();
            let size = from.count * inner;
            for (index, out) in out.chunks_exact_mut(block).enumerate() {
                let x = &x[(first + index) * size..][..size];
                for column in 0..inner {
                    let elements = x.iter().skip(column).step_by(inner);
                    line.iter_mut().zip(elements).for_each(|(to, &from)| *to = read(from));
                    line[from.count.min(length)..].fill(Complex::default());
                    transform(&mut line);
                    let places = out[column..].iter_mut().step_by(inner);
                    places.zip(&line).for_each(|(out, &x)| *out = write(x));
                }
            }
        });
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Straight from the definition, in double precision.
    fn slow(line: &[f64], length: usize, inverse: bool) -> Vec<Complex<f64>> {
        let sign = if inverse { TAU } else { -TAU };
        let scale = if inverse { 1.0 / length as f64 } else { 1.0 };
        (0..length)
            .map(|k| {
                let terms = line.iter().take(length).enumerate().map(|(j, &x)| {
                    Complex::from_polar(x, sign * (j * k % length) as f64 / length as f64)
                });
                terms.sum::<Complex<f64>>() * scale
            })
            .collect()
    }

    #[test]
    fn real_lines_of_any_length() {
        for length in 1..=17 {
            for inverse in [false, true] {
                for size in [length, length + 2, 1] {
                    let line: Vec<f64> = (0..size).map(|j| (j * j % 7) as f64 - 2.5).collect();
                    let x = HostTensor::from_slice(&line, [size]).unwrap();
                    let attributes = Fft { inverse, length, axis: 0 };
                    let found = fft(attributes, &x, &TensorType::new(DType::C128, [length]));
                    let found = found.unwrap();
                    let found = value::slice::<Complex<f64>>(&found);
                    for (found, wanted) in found.iter().zip(slow(&line, length, inverse)) {
                        assert!((found - wanted).norm() < 1e-12, "{length} {inverse} {size}");
                    }
                }
            }
        }
    }

    #[test]
    fn lines_stay_apart() {
        let x = HostTensor::from_slice(&[1.0, f64::NAN, 2.0, 0.0, 3.0, 1e200, 4.0, 0.0], [4, 2]);
        let attributes = Fft { inverse: false, length: 4, axis: 0 };
        let found = fft(attributes, &x.unwrap(), &TensorType::new(DType::C128, [4, 2])).unwrap();
        let found = value::slice::<Complex<f64>>(&found);
        let first: Vec<Complex<f64>> = found.iter().step_by(2).copied().collect();
        let whole = |re: f64, im: f64| Complex::new(re, im);
        let wanted = [whole(10.0, 0.0), whole(-2.0, 2.0), whole(-2.0, 0.0), whole(-2.0, -2.0)];
        assert_eq!(first, wanted);
    }
}
