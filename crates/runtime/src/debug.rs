//! Tools for programs with wrong results: the origin of NaN, and the distance between two
//! compilers.

use std::sync::Arc;

use nxla_eval::{Hooks, Plan};
use nxla_expr::{ExprId, Op, Program};
use nxla_split::{StageGraph, StageScheduler};
use nxla_tensor::{DType, HostTensor};

use crate::error::Result;
use crate::tensor::RawTensor;

pub use nxla_eval::{first_nan, first_not_finite};

/// Runs a program on the evaluator, and ends at the first operation that makes NaN or an infinity
/// from finite operands, inside of loops and branches too. Hooks are not called. Returns the results.
///
/// ```
/// use nxla::{DType, Expr, Tensor, TensorType, debug, jit};
///
/// let f = jit(|[x]: [Expr; 1]| (x - 1.0).log() * 2.0);
/// let (program, _) = f.trace([TensorType::scalar(DType::F32)])?;
/// assert!(debug::check_finite(&program, &[&Tensor::from(2.0f32)]).is_ok());
/// let error = debug::check_finite(&program, &[&Tensor::from(1.0f32)]).unwrap_err();
/// assert!(error.to_string().starts_with("log: produced -inf"));
/// # Ok::<(), nxla::Error>(())
/// ```
///
/// # Errors
/// Returns [`Fault::NotFinite`](nxla_eval::Fault::NotFinite) with the operation and its line, or
/// another error of the run.
pub fn check_finite(program: &Arc<Program>, inputs: &[&RawTensor]) -> Result<Vec<HostTensor>> {
    let inputs = inputs.iter().map(|input| input.to_host()).collect::<Result<_>>()?;
    Ok(Plan::checked(program.clone()).run(inputs, &Hooks::new())?)
}

/// Runs stages on the evaluator, one after another, with the checks of [`check_finite`].
///
/// ```
/// use nxla::split::{Decision, split};
/// use nxla::{DType, Expr, Tensor, TensorType, debug, jit};
///
/// let f = jit(|[x]: [Expr; 1]| (x - 1.0).log() * 2.0);
/// let (program, _) = f.trace([TensorType::scalar(DType::F32)])?;
/// let stages = split(&program, |_| Decision::After)?;
/// let error = debug::check_stages_finite(&stages, &[&Tensor::from(1.0f32)]).unwrap_err();
/// assert!(error.to_string().starts_with("log: produced -inf"));
/// # Ok::<(), nxla::Error>(())
/// ```
///
/// # Errors
/// Returns the errors of [`check_finite`] for the first stage that has one.
pub fn check_stages_finite(graph: &StageGraph, inputs: &[&RawTensor]) -> Result<Vec<HostTensor>> {
    let inputs = inputs.iter().map(|input| input.to_host()).collect::<Result<_>>()?;
    let mut schedule = StageScheduler::new(graph, inputs)?;
    while let Some(task) = schedule.next_ready() {
        let plan = Plan::checked(graph.stage(task.stage).program.clone());
        schedule.complete(task.stage, plan.run(task.arguments, &Hooks::new())?)?;
    }
    Ok(schedule.finish()?)
}

/// A program that returns every value of another one, and the nodes of these values. Inputs and
/// constants are left out, and so are values inside of loops and branches.
///
/// # Errors
/// Returns the error of [`Program::new`], which accepts the values of every program.
pub fn every_value(program: &Program) -> Result<(Program, Vec<ExprId>)> {
    let graph = program.graph();
    let nodes: Vec<ExprId> = graph
        .ids()
        .filter(|&id| {
            let known = matches!(graph.op(id), Op::Parameter(_) | Op::Constant(_) | Op::Tensor(_));
            graph.ty(id).as_tensor().is_some() && !known
        })
        .collect();
    Ok((Program::new(graph, program.inputs().to_vec(), &nodes)?, nodes))
}

/// The distance between two tensors of one type.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Distance {
    /// The largest distance in units in the last place, which is the number of representable values
    /// between the numbers; for integers, the difference. NaN has distance 0 from NaN, and `u64::MAX`
    /// from every number.
    pub ulps: u64,
    /// The position of the largest distance, in row-major order.
    pub position: usize,
    /// The largest difference that is finite.
    pub absolute: f64,
    /// The number of elements that differ.
    pub differing: usize,
}

/// Compares two tensors; `None` if their dtypes or shapes differ.
///
/// ```
/// use nxla::HostTensor;
/// use nxla::debug::distance;
///
/// let left = HostTensor::from_slice(&[1.0_f32, 2.0], [2])?;
/// let right = HostTensor::from_slice(&[1.0_f32, 2.0_f32.next_up()], [2])?;
/// let distance = distance(&left, &right).expect("they have one type");
/// assert_eq!((distance.ulps, distance.position, distance.differing), (1, 1, 1));
/// # Ok::<(), nxla::Error>(())
/// ```
pub fn distance(left: &HostTensor, right: &HostTensor) -> Option<Distance> {
    let dtype = left.dtype();
    if dtype != right.dtype() || left.shape() != right.shape() {
        return None;
    }
    let mut distance = Distance { ulps: 0, position: 0, absolute: 0.0, differing: 0 };
    let parts = if dtype.is_complex() { 2 } else { 1 };
    let size = dtype.size() / parts;
    let pairs = left.bytes().chunks_exact(size).zip(right.bytes().chunks_exact(size));
    for (at, (left_bytes, right_bytes)) in pairs.enumerate() {
        if left_bytes == right_bytes {
            continue;
        }
        let position = at / parts;
        let (left, right) = (left.get(position).parts(), right.get(position).parts());
        let (left, right) = if at % parts == 0 { (left.0, right.0) } else { (left.1, right.1) };
        let ulps = match (left.is_nan(), right.is_nan()) {
            (true, true) => continue,
            (true, false) | (false, true) => u64::MAX,
            (false, false) => between(dtype, left_bytes, right_bytes),
        };
        if ulps == 0 {
            // Zeros of both signs.
            continue;
        }
        distance.differing += 1;
        if ulps > distance.ulps {
            (distance.ulps, distance.position) = (ulps, position);
        }
        // Integers of 64 bits may differ by less than their rounding to floats.
        let absolute = if dtype.is_integer() { ulps as f64 } else { (left - right).abs() };
        if absolute.is_finite() {
            distance.absolute = distance.absolute.max(absolute);
        }
    }
    Some(distance)
}

/// Returns the number of values between two numbers by their bits: floats are ordered like integers in
/// sign-magnitude representation.
fn between(dtype: DType, left: &[u8], right: &[u8]) -> u64 {
    let bits = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    };
    let sign = 1_u64 << (8 * left.len() - 1);
    let ordinal = |bytes: &[u8]| -> i128 {
        let bits = bits(bytes);
        let magnitude = i128::from(bits & (sign - 1));
        match (dtype.is_float() || dtype.is_complex(), bits & sign != 0) {
            (true, true) => -magnitude,
            (true, false) => magnitude,
            (false, _) if dtype.is_signed() && bits & sign != 0 => {
                i128::from(bits) - 2 * i128::from(sign)
            }
            (false, _) => i128::from(bits),
        }
    };
    u64::try_from((ordinal(left) - ordinal(right)).unsigned_abs()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ulps<T: nxla_tensor::Element>(left: T, right: T) -> u64 {
        let [left, right] = [left, right].map(|x| HostTensor::from_slice(&[x], [1]).unwrap());
        distance(&left, &right).unwrap().ulps
    }

    #[test]
    fn ulps_counts_representable_numbers() {
        assert_eq!(ulps(1.0_f32, 1.0_f32.next_up()), 1);
        assert_eq!(ulps(0.0_f64, -0.0), 0);
        assert_eq!(ulps(0.0_f64.next_up(), 0.0_f64.next_down()), 2);
        assert_eq!(ulps(f32::NAN, -f32::NAN), 0);
        assert_eq!(ulps(f32::NAN, 1.0), u64::MAX);
        assert_eq!(ulps(f32::MAX, f32::INFINITY), 1);
        assert_eq!(ulps(-3_i32, 4), 7);
        assert_eq!(ulps(u64::MAX, 0), u64::MAX);
    }

    #[test]
    fn integers_that_round_to_one_float_differ() {
        fn check<T: nxla_tensor::Element>(left: T, right: T) {
            let [left, right] = [left, right].map(|x| HostTensor::from_slice(&[x], [1]).unwrap());
            let expected = Distance { ulps: 1, position: 0, absolute: 1.0, differing: 1 };
            assert_eq!(distance(&left, &right), Some(expected));
        }
        check(1_i64 << 60, (1 << 60) + 1);
        check(i64::MIN, i64::MIN + 1);
        check(u64::MAX, u64::MAX - 1);
    }
}
