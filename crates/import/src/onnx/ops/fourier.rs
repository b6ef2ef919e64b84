//! Fourier transforms, whose complex numbers are pairs in the last axis.

use nxla_expr::ExprId;
use nxla_expr::build::{FftNorm, SliceStart};
use nxla_tensor::{DType, HostTensor};

use super::{Operator, operator};
use crate::numbers::to_i64;
use crate::onnx::error::{Built, invalid};
use crate::onnx::node::Call;

/// The operators of this family.
pub(super) const OPERATORS: &[Operator] = &[operator("DFT", dft), operator("STFT", short_time)];

/// Transforms an axis, which is an attribute before operator set 20.
fn dft(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let x = call.input(0)?;
    let rank = call.rank(x);
    let axis = match call.optional(2) {
        Some(axis) => call.integer(axis, "axis")?,
        None => call.int("axis", if call.version < 20 { 1 } else { -2 })?,
    };
    let axis = call.axis(axis, rank)?;
    if rank < 2 || axis + 1 == rank {
        return invalid("axis: must not be the last axis, which holds the parts");
    }
    let length = match call.optional(1) {
        Some(length) => call.sizes(length, "dft_length")?.first().copied(),
        None => None,
    };
    let (inverse, one_sided) = (call.flag("inverse", false)?, call.flag("onesided", false)?);
    let along = to_i64(axis);
    let dtype = call.dtype(x);
    let mut value = complex(call, x)?;
    let size = call.shape(value)[axis];
    let graph = call.graph();
    if inverse && one_sided {
        let length = length.unwrap_or(2 * size.saturating_sub(1));
        let real = graph.irfft(value, Some(length), along, FftNorm::Backward)?;
        let real = graph.as_type(real, dtype)?;
        return Ok(vec![graph.new_axis(real, -1, None)?]);
    }
    value = if inverse {
        graph.ifft(value, length, along, FftNorm::Backward)?
    } else {
        graph.fft(value, length, along, FftNorm::Backward)?
    };
    if one_sided {
        let kept = graph.shape(value)[axis] / 2 + 1;
        value = graph.slice_along_axis(value, SliceStart::at(0), kept, along, 1)?;
    }
    Ok(vec![pairs(call, value, dtype)?])
}

/// Returns the parts of complex numbers in a new last axis. Complex numbers have parts of at least 32
/// bits, and a result has the dtype of the signal.
fn pairs(call: &mut Call<'_, '_, '_>, value: ExprId, dtype: DType) -> Built<ExprId> {
    let graph = call.graph();
    let parts = [graph.real(value)?, graph.imag(value)?];
    let pairs = graph.stack(&parts, -1, None)?;
    Ok(graph.as_type(pairs, dtype)?)
}

/// Transforms frames of a signal `[batch, length, parts]`, or of a real signal `[batch, length]`,
/// multiplied by a window.
fn short_time(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [signal, step] = call.inputs()?;
    let (window, dtype) = (call.optional(2), call.dtype(signal));
    let signal = match call.rank(signal) {
        2 => call.graph().new_axis(signal, -1, None)?,
        _ => signal,
    };
    let signal = complex(call, signal)?;
    let Some(&size) = call.shape(signal).get(1) else {
        let found = call.ty(signal);
        return invalid(format!("signal: must have a batch axis; got {found}"));
    };
    let step = call.sizes(step, "frame_step")?;
    let length = match (call.optional(3), window) {
        (Some(length), _) => call.sizes(length, "frame_length")?,
        (None, Some(window)) => call.shape(window).to_vec(),
        (None, None) => vec![size],
    };
    let (&[step], &[length]) = (&step[..], &length[..]) else {
        return invalid("frame_step, frame_length: must be one number");
    };
    if step == 0 || length == 0 || length > size {
        let why = format!("must be from 1 to {size}; got {step} and {length}");
        return invalid(format!("frame_step, frame_length: {why}"));
    }
    if let Some(window) = window.filter(|&window| call.shape(window)[..] != [length]) {
        let why = format!("must have frame_length = {length} elements; got {}", call.ty(window));
        return invalid(format!("window: {why}"));
    }
    let count = (size - length) / step + 1;
    let mut places = Vec::new();
    places.try_reserve_exact(count.saturating_mul(length)).map_err(|_| {
        let why = format!("must make a number of elements that fits memory; got {count} frames");
        format!("frame_step, frame_length: {why} of {length} elements")
    })?;
    for frame in 0..count {
        places.extend((0..length).map(|at| to_i64(frame * step + at)));
    }
    let graph = call.graph();
    let places = graph.tensor(HostTensor::from_vec(places, [count, length])?)?;
    let mut frames = graph.take(signal, places, 1)?;
    if let Some(window) = window {
        frames = graph.multiply(frames, window)?;
    }
    let mut value = graph.fft(frames, None, -1, FftNorm::Backward)?;
    if call.flag("onesided", true)? {
        value = call.graph().slice_along_axis(value, SliceStart::at(0), length / 2 + 1, -1, 1)?;
    }
    Ok(vec![pairs(call, value, dtype)?])
}

/// Returns complex numbers from pairs, or from single real parts.
fn complex(call: &mut Call<'_, '_, '_>, mut x: ExprId) -> Built<ExprId> {
    let shape = call.shape(x);
    let Some(&parts) = shape.last().filter(|&&parts| parts == 1 || parts == 2) else {
        let found = call.ty(x);
        return invalid(format!("input: must have a last axis of 1 or 2 parts; got {found}"));
    };
    if parts == 1 {
        let zero = call.scalar(0.0, x)?;
        x = call.pad_axis(x, zero, shape.rank() - 1, (0, 1))?;
    }
    let graph = call.graph();
    let mut parts = [x; 2];
    for (index, part) in parts.iter_mut().enumerate() {
        let one = graph.slice_along_axis(x, SliceStart::at(index), 1, -1, 1)?;
        *part = graph.squeeze(one, Some(&[-1]))?;
    }
    Ok(graph.complex(parts[0], parts[1])?)
}
