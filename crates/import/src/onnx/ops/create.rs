//! Constants, ranges and shapes.

use nxla_expr::{ExprId, TensorType};
use nxla_tensor::{DType, HostTensor, Scalar};

use super::{Operator, operator};
use crate::numbers::{to_f64, to_i64};
use crate::onnx::error::{Built, invalid, unsupported};
use crate::onnx::node::Call;

/// The operators of this family.
pub(super) const OPERATORS: &[Operator] = &[
    operator("BlackmanWindow", |call| window(call, &[0.42, -0.5, 0.08])),
    operator("Constant", constant),
    operator("ConstantOfShape", constant_of_shape),
    operator("EyeLike", eye_like),
    operator("HammingWindow", |call| window(call, &[25.0 / 46.0, -21.0 / 46.0])),
    operator("HannWindow", |call| window(call, &[0.5, -0.5])),
    operator("MelWeightMatrix", mel_weights),
    operator("Range", range),
    operator("Shape", shape),
    operator("Size", |call| {
        let x = call.input(0)?;
        let size = to_i64(call.shape(x).size());
        Ok(vec![call.graph().scalar_constant(Scalar::Int(size), DType::S64)?])
    }),
];

fn constant(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let tensor = if let Some(tensor) = call.tensor("value")? {
        tensor
    } else if let Some(value) = call.maybe_int("value_int")? {
        HostTensor::scalar(Scalar::Int(value), DType::S64)
    } else if let Some(value) = call.maybe_float("value_float")? {
        HostTensor::scalar(Scalar::Float(value), DType::F32)
    } else if let Some(values) = call.ints("value_ints")? {
        HostTensor::from_slice(&values, [values.len()])?
    } else if let Some(values) = call.floats("value_floats")? {
        HostTensor::from_slice(&values, [values.len()])?.cast(DType::F32)
    } else {
        return unsupported("value: strings and sparse tensors are not supported");
    };
    Ok(vec![call.graph().tensor(tensor)?])
}

fn constant_of_shape(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let shape = call.input(0)?;
    let shape = call.sizes(shape, "input")?;
    let (value, dtype) = match call.tensor("value")? {
        Some(value) if value.size() == 1 => (value.get(0), value.dtype()),
        Some(value) => return invalid(format!("value: must be one number; got {value}")),
        None => (Scalar::Float(0.0), DType::F32),
    };
    Ok(vec![call.graph().constant(value, TensorType::new(dtype, shape))?])
}

fn eye_like(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let x = call.input(0)?;
    let (shape, offset) = (call.shape(x), call.int("k", 0)?);
    let dtype = call.data_type("dtype")?.unwrap_or_else(|| call.dtype(x));
    let [rows, columns] = shape[..] else {
        return invalid(format!("input: must be a matrix; got {}", call.ty(x)));
    };
    let graph = call.graph();
    let row = graph.iota([rows, columns], Some(0), DType::S64)?;
    let column = graph.iota([rows, columns], Some(1), DType::S64)?;
    let offset = graph.scalar_constant(Scalar::Int(offset), DType::S64)?;
    let diagonal = graph.add(row, offset)?;
    let is_diagonal = graph.equal(diagonal, column)?;
    Ok(vec![graph.as_type(is_diagonal, dtype)?])
}

fn range(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [start, limit, delta] = call.inputs()?;
    let dtype = call.dtype(start);
    if dtype.is_integer() {
        return integer_range(call, [start, limit, delta], dtype);
    }
    let mut numbers = [0.0; 3];
    for (number, (id, name)) in
        numbers.iter_mut().zip([(start, "start"), (limit, "limit"), (delta, "delta")])
    {
        match call.numbers(id, name)?[..] {
            [value] => *number = value,
            ref other => return invalid(format!("{name}: must be a number; got {other:?}")),
        }
    }
    Ok(vec![call.graph().arange(numbers[0], numbers[1], numbers[2], dtype)?])
}

/// Counts in integers, because a float does not represent all integers of 64 bits.
fn integer_range(
    call: &mut Call<'_, '_, '_>,
    [start, limit, delta]: [ExprId; 3],
    dtype: DType,
) -> Built<Vec<ExprId>> {
    let start = call.integer(start, "start")?;
    let (limit, delta) = (call.integer(limit, "limit")?, call.integer(delta, "delta")?);
    if delta == 0 {
        return invalid("delta: must not be 0");
    }
    let (span, step) = (i128::from(limit) - i128::from(start), i128::from(delta));
    let count = (span * step.signum()).max(0).unsigned_abs().div_ceil(step.unsigned_abs());
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let graph = call.graph();
    let start = graph.scalar_constant(Scalar::Int(start), DType::S64)?;
    let delta = graph.scalar_constant(Scalar::Int(delta), DType::S64)?;
    let steps = graph.iota([count], None, DType::S64)?;
    let steps = graph.multiply(steps, delta)?;
    let numbers = graph.add(steps, start)?;
    Ok(vec![graph.as_type(numbers, dtype)?])
}

fn shape(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let x = call.input(0)?;
    let shape = call.shape(x);
    let rank = to_i64(shape.rank());
    let at = |axis: i64| {
        let axis = if axis < 0 { axis.saturating_add(rank) } else { axis };
        usize::try_from(axis.clamp(0, rank)).unwrap_or(0)
    };
    let (start, end) = (at(call.int("start", 0)?), at(call.int("end", rank)?));
    let sizes = shape.get(start..end).unwrap_or(&[]);
    let sizes: Vec<i64> = sizes.iter().copied().map(to_i64).collect();
    Ok(vec![call.literal(&sizes)?])
}

/// The number of elements beyond which a matrix of mel weights is rejected.
const MEL_ELEMENTS: usize = 1 << 22;

/// Returns triangles that map the bins of a spectrum to bands of equal width on the mel scale,
/// `2595 log10(1 + f / 700)`.
fn mel_weights(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let mut numbers = [0.0; 5];
    let names =
        ["num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz", "upper_edge_hertz"];
    for (index, (number, name)) in numbers.iter_mut().zip(names).enumerate() {
        let id = call.input(index)?;
        match call.numbers(id, name)?[..] {
            [value] if (0.0..1e9).contains(&value) => *number = value,
            ref other => {
                let why = format!("must be one number that is not negative; got {other:?}");
                return invalid(format!("{name}: {why}"));
            }
        }
    }
    let [bands, length, rate, lower, upper] = numbers;
    let dtype = call.data_type("output_datatype")?.unwrap_or(DType::F32);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "was checked")]
    let (columns, rows) = (bands as usize, length as usize / 2 + 1);
    if columns.saturating_mul(rows) > MEL_ELEMENTS || rate == 0.0 {
        let why = format!(
            "must make at most {MEL_ELEMENTS} weights, of a positive rate; got {columns} times \
             {rows} weights of the rate {rate}"
        );
        return invalid(format!("num_mel_bins, dft_length, sample_rate: {why}"));
    }
    let mel = |hertz: f64| 2595.0 * (1.0 + hertz / 700.0).log10();
    let width = (mel(upper) - mel(lower)) / (bands + 2.0);
    // The bins of the spectrum at the edges of the bands.
    let edge = |band: usize| {
        let hertz = 700.0 * (10.0_f64.powf((mel(lower) + width * to_f64(band)) / 2595.0) - 1.0);
        ((length + 1.0) * hertz / rate).floor()
    };
    let mut weights = vec![0.0; rows * columns];
    for band in 0..columns {
        let [low, center, high] = [edge(band), edge(band + 1), edge(band + 2)];
        for row in 0..rows {
            let bin = to_f64(row);
            let is_rising = (low..center).contains(&bin);
            weights[row * columns + band] = match bin {
                bin if bin == center => 1.0,
                bin if is_rising => (bin - low) / (center - low),
                bin if (center..high).contains(&bin) => (high - bin) / (high - center),
                _ => 0.0,
            };
        }
    }
    let weights = HostTensor::from_vec(weights, [rows, columns])?.cast(dtype);
    Ok(vec![call.graph().tensor(weights)?])
}

/// Creates a window that is a sum of cosines with these factors.
fn window(call: &mut Call<'_, '_, '_>, factors: &[f64]) -> Built<Vec<ExprId>> {
    let size = call.input(0)?;
    let size = usize::try_from(call.integer(size, "size")?);
    let size = size.map_err(|_| "size: must not be negative")?;
    let dtype = call.data_type("output_datatype")?.unwrap_or(DType::F32);
    let count = if call.flag("periodic", true)? { size } else { size.saturating_sub(1) };
    let (places, one) = (call.graph().iota([size], None, DType::F64)?, DType::F64);
    let mut sum = call.scalar_of(0.0, one)?;
    for (order, &factor) in (0_u32..).zip(factors) {
        let step = f64::from(order) * std::f64::consts::TAU / to_f64(count.max(1));
        let (step, factor) = (call.scalar_of(step, one)?, call.scalar_of(factor, one)?);
        let graph = call.graph();
        let angle = graph.multiply(places, step)?;
        let wave = graph.cos(angle)?;
        let term = graph.multiply(wave, factor)?;
        sum = graph.add(sum, term)?;
    }
    let sum = call.broadcast(sum, &[size])?;
    Ok(vec![call.graph().as_type(sum, dtype)?])
}
