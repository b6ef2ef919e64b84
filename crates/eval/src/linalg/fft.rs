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
    let x = match x.dtype() {
        DType::F32 | DType::F64 | DType::C64 | DType::C128 => x.clone(),
        _ => convert(x, DType::F64)?,
    };
    let transform = &Transform::new(attributes, x.dtype().is_complex());
    macro_rules! lines {
        ($from:ty, $read:expr) => {
            match ty.dtype {
                DType::C64 => lines::<$from, Complex<f32>>(transform, &x, ty, $read, narrow),
                _ => lines::<$from, Complex<f64>>(transform, &x, ty, $read, |z| z),
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

/// The transform of a line.
struct Transform {
    attributes: Fft,
    plan: Arc<dyn rustfft::Fft<f64>>,
    /// For lines of real numbers that are read as pairs.
    turns: Option<Vec<Complex<f64>>>,
}

impl Transform {
    fn new(attributes: Fft, is_complex: bool) -> Transform {
        let Fft { inverse, length, .. } = attributes;
        if is_complex || length % 2 == 1 {
            return Transform { attributes, plan: planned(length, inverse), turns: None };
        }
        Transform { attributes, plan: planned(length / 2, false), turns: Some(turns(length)) }
    }

    /// Fills what the plan transforms from a line, and the rest with zeros.
    fn fill<A: Copy>(
        &self,
        to: &mut [Complex<f64>],
        line: &[A],
        read: &impl Fn(A) -> Complex<f64>,
    ) {
        let line = &line[..line.len().min(self.attributes.length)];
        if self.turns.is_none() {
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

    /// Gives each number of the spectrum, and its place, from what the plan has made.
    fn put(&self, from: &[Complex<f64>], mut put: impl FnMut(usize, Complex<f64>)) {
        let Fft { inverse, length, .. } = self.attributes;
        let scale = if inverse { 1.0 / length as f64 } else { 1.0 };
        match &self.turns {
            None => from.iter().enumerate().for_each(|(k, &x)| put(k, x * scale)),
            // The inverse of real numbers is the conjugate of their transform.
            Some(turns) if inverse => unfold(from, turns, |k, x| put(k, x.conj() * scale)),
            Some(turns) => unfold(from, turns, put),
        }
    }
}

/// `exp(-2πi k / length)` for the first half of the circle, its quarter without a rounding error.
fn turns(length: usize) -> Vec<Complex<f64>> {
    let turn = |k: usize| match 4 * k == length {
        true => Complex::new(0.0, -1.0),
        false => Complex::from_polar(1.0, -TAU * k as f64 / length as f64),
    };
    memory::collected((0..length / 2).map(turn))
}

/// Gives the spectrum of a real line from that of its pairs of neighbours.
fn unfold(
    pairs: &[Complex<f64>],
    turns: &[Complex<f64>],
    mut put: impl FnMut(usize, Complex<f64>),
) {
    let half = pairs.len();
    put(0, (pairs[0].re + pairs[0].im).into());
    put(half, (pairs[0].re - pairs[0].im).into());
    for (k, (this, turn)) in pairs.iter().zip(turns).enumerate().skip(1) {
        let mirrored = pairs[half - k].conj();
        let (even, odd) = ((this + mirrored) * 0.5, (this - mirrored) * Complex::new(0.0, -0.5));
        let number = even + turn * odd;
        put(k, number);
        put(2 * half - k, number.conj());
    }
}

/// Transforms lines of one kind of elements to those of another.
fn lines<A: Element, B: Element>(
    transform: &Transform,
    x: &HostTensor,
    ty: &TensorType,
    read: impl Fn(A) -> Complex<f64> + Sync,
    write: impl Fn(Complex<f64>) -> B + Sync,
) -> Result<HostTensor, Fault> {
    let Fft { axis, length, .. } = transform.attributes;
    let from = Plane::along(x.shape(), axis);
    let x = value::slice::<A>(x);
    let inner = from.inner;
    let block = length * inner;
    let cost = block * (1 + length.ilog2() as usize) * 4;
    value::build(ty.dtype, &ty.shape, |out: &mut [B]| {
        parallel::rows(out, block, cost, |first, out| {
            let plan = &transform.plan;
            let mut line = memory::filled(Complex::default(), plan.len());
            let mut scratch = memory::filled(Complex::default(), plan.get_inplace_scratch_len());
            let mut column_elements = Vec::new();
            let size = from.count * inner;
            for (index, out) in out.chunks_exact_mut(block).enumerate() {
                let x = &x[(first + index) * size..][..size];
                for column in 0..inner {
                    let elements = if inner == 1 {
                        x
                    } else {
                        column_elements.clear();
                        column_elements.extend(x.iter().skip(column).step_by(inner));
                        &column_elements
                    };
                    transform.fill(&mut line, elements, &read);
                    plan.process_with_scratch(&mut line, &mut scratch);
                    transform.put(&line, |k, x| out[k * inner + column] = write(x));
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
