//! The discrete Fourier transform along one axis.

use std::cell::RefCell;
use std::sync::Arc;

use nxla_expr::{Fft, TensorType};
use nxla_tensor::{Complex, DType, HostTensor};
use rustfft::FftPlanner;

use crate::elementwise::convert;
use crate::error::Fault;
use crate::reduce::Plane;
use crate::{parallel, value};

thread_local! {
    /// Planners remember the transforms they have planned.
    static PLANNER: RefCell<FftPlanner<f64>> = RefCell::new(FftPlanner::new());
}

fn planned(attributes: Fft) -> Arc<dyn rustfft::Fft<f64>> {
    PLANNER.with_borrow_mut(|planner| {
        if attributes.inverse {
            planner.plan_fft_inverse(attributes.length)
        } else {
            planner.plan_fft_forward(attributes.length)
        }
    })
}

/// The axis is cut to the length of the transform, or padded with zeros.
pub(super) fn fft(attributes: Fft, x: &HostTensor, ty: &TensorType) -> Result<HostTensor, Fault> {
    let from = Plane::along(x.shape(), attributes.axis);
    let x = convert(x, DType::C128)?;
    let x = value::slice::<Complex<f64>>(&x);
    let length = attributes.length;
    let inner = from.inner;
    let scale = if attributes.inverse { 1.0 / length as f64 } else { 1.0 };
    let plan = planned(attributes);
    let block = length * inner;
    let cost = block * (1 + length.ilog2() as usize) * 4;
    let result = value::build(DType::C128, &ty.shape, |out: &mut [Complex<f64>]| {
        parallel::rows(out, block, cost, |first, out| {
            let mut line = vec![Complex::default(); length];
            let mut scratch = vec![Complex::default(); plan.get_inplace_scratch_len()];
            let size = from.count * inner;
            for (index, out) in out.chunks_exact_mut(block).enumerate() {
                let x = &x[(first + index) * size..][..size];
                for column in 0..inner {
                    line.fill(Complex::default());
                    let elements = x.iter().skip(column).step_by(inner);
                    line.iter_mut().zip(elements).for_each(|(to, &from)| *to = from);
                    plan.process_with_scratch(&mut line, &mut scratch);
                    let places = out[column..].iter_mut().step_by(inner);
                    places.zip(&line).for_each(|(out, &x)| *out = x * scale);
                }
            }
        });
    })?;
    convert(&result, ty.dtype)
}
