//! Tests of programs for accelerators, run on a CPU.
//!
//! Factorizations are calls of a library for the device. A host function replaces it, and computes
//! what `nxla_pjrt` documents for each routine by the kernels of the evaluator.

use std::sync::{Arc, Once};

use nxla_eval::evaluate;
use nxla_expr::{ExprId, Factorization, Graph, Op, Padding, Program, TensorType};
use nxla_pjrt::{
    ExecuteOptions, FACTORIZE_TARGET, HOST_CALL_TARGET, HostAttribute, HostCallFrame, HostView,
    register_host_fn,
};
use nxla_stablehlo::{LowerOptions, lower};
use nxla_tensor::{DType, HostTensor, Scalar, Shape};

use super::client::{Target, target};
use crate::options::Settings;

/// The number of the host function, which replaces the library.
const LIBRARY: i64 = 0x4c41_5041;

/// Builds the results of a routine from its argument.
type Routine<'a> = dyn Fn(&mut Graph, ExprId) -> nxla_expr::Result<Vec<ExprId>> + 'a;

/// Applies a function of matrices by rows to matrices by columns.
fn by_columns(x: HostTensor, routine: &Routine<'_>) -> Vec<HostTensor> {
    let ty = TensorType::new(x.dtype(), x.shape().clone());
    let mut graph = Graph::new();
    let parameter = graph.parameter(0, ty.clone());
    let rows = graph.transpose(parameter, Some(&[0, 2, 1])).unwrap();
    let parts = routine(&mut graph, rows).unwrap();
    let parts: Vec<ExprId> = parts
        .into_iter()
        .map(|part| match graph.shape(part).rank() {
            3 => graph.transpose(part, Some(&[0, 2, 1])).unwrap(),
            _ => part,
        })
        .collect();
    evaluate(&Program::new(&graph, vec![ty], &parts).unwrap(), vec![x]).unwrap()
}

/// Fills the rest of a larger matrix with a number that no result may show.
fn pad_with_garbage(
    graph: &mut Graph,
    x: ExprId,
    rows: usize,
    columns: usize,
) -> nxla_expr::Result<ExprId> {
    let [_, has_rows, has_columns] = graph.shape(x)[..] else { unreachable!("a batch") };
    let garbage = graph.scalar_constant(Scalar::Float(77.0), graph.dtype(x))?;
    let high_padding = |count: usize| Padding { low: 0, high: count as i64, interior: 0 };
    graph.pad(
        x,
        garbage,
        &[high_padding(0), high_padding(rows - has_rows), high_padding(columns - has_columns)],
    )
}

/// Adds garbage to the triangle that a routine leaves undefined.
fn add_garbage(graph: &mut Graph, upper: ExprId) -> nxla_expr::Result<ExprId> {
    let garbage = graph.constant(Scalar::Float(77.0), graph.tensor_type(upper).clone())?;
    let garbage = graph.tril(garbage, -1)?;
    let upper = graph.triu(upper, 0)?;
    graph.add(upper, garbage)
}

/// The library.
fn library(call: &mut HostCallFrame<'_>) -> Result<(), String> {
    let Some(HostAttribute::Str(routine)) = call.attribute("routine") else {
        return Err("the call names no routine".to_owned());
    };
    let a = HostView::to_tensor(&call.args[0]);
    let [count, columns, rows] = a.shape()[..] else { return Err("no batch".to_owned()) };
    let shape = call.results[0].shape.clone();
    let r_columns = call.results[1].shape.get(1).copied().unwrap_or_default();
    let mut parts = match routine {
        "cholesky" => by_columns(a, &|graph, m| {
            let m = graph.adjoint(m)?;
            let l = graph.cholesky(m)?;
            let r = graph.adjoint(l)?;
            Ok(vec![add_garbage(graph, r)?])
        }),
        "lu" => by_columns(a, &|graph, m| {
            let node = graph.make(Op::Factorize(Factorization::Lu), &[m])?;
            Ok(vec![graph.elem(node, 0)?, graph.elem(node, 1)?])
        }),
        "qr" => by_columns(a, &|graph, m| {
            let m = graph.slice_along_axis(m, 0, r_columns, 2, 1)?;
            let complete = columns.min(rows) > r_columns.min(rows);
            let (q, r) = graph.qr(m, complete)?;
            // LAPACK's diagonal may be negative.
            let (q, r) = (graph.negate(q)?, graph.negate(r)?);
            let r = pad_with_garbage(graph, r, rows, r_columns)?;
            Ok(vec![pad_with_garbage(graph, q, rows, columns)?, add_garbage(graph, r)?])
        }),
        "eigh" => by_columns(a, &|graph, m| {
            let m = graph.adjoint(m)?;
            let (w, v) = graph.eigh(m)?;
            Ok(vec![v, w])
        }),
        "svd" => by_columns(a, &|graph, m| {
            let (u, s, vh) = graph.svd(m, shape[1] > columns)?;
            Ok(vec![u, s, vh])
        }),
        other => return Err(format!("{other}: must be a routine of the library")),
    };
    if parts.len() < call.results.len() {
        let values = parts[0].cast(DType::C128);
        let matrix = values.size() / count;
        let is_nan = |index: usize| {
            let (re, im) = values.get(index).parts();
            re.is_nan() || im.is_nan()
        };
        let info = |index: usize| i32::from((0..matrix).any(|at| is_nan(index * matrix + at)));
        let info: Vec<i32> = (0..count).map(info).collect();
        parts.push(HostTensor::from_slice(&info, [count]).unwrap());
    }
    call.results.iter_mut().zip(&parts).try_for_each(|(result, part)| result.write(part))
}

/// Runs a program on a CPU, whose factorizations call [`library`].
fn run(target: &Target, program: &Program, input: &HostTensor) -> Vec<HostTensor> {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| drop(register_host_fn(LIBRARY, Arc::new(library))));
    let options = LowerOptions {
        library_call: Some(&|_, _| true),
        scatters_in_order: false,
        ..LowerOptions::default()
    };
    let text = lower(program, &options).unwrap().text;
    let text = text
        .replace(FACTORIZE_TARGET, HOST_CALL_TARGET)
        .replace("{routine", &format!("{{id = {LIBRARY} : i64, routine"));
    let program = target.client.compile(&text, &nxla_pjrt::CompileOptions::default()).unwrap();
    let input = target.client.buffer_from_host(input, target.description()).unwrap();
    let results = program.execute(&[&input], &ExecuteOptions::default()).unwrap();
    results.iter().map(|result| result.to_host().unwrap()).collect()
}

/// Unordered numbers between -1 and 1, of a positive definite matrix on request.
fn samples(dtype: DType, shape: &[usize], definite: bool) -> HostTensor {
    let size: usize = shape.iter().product();
    let noise = |index: usize| ((index as f64 + 1.0).sin() * 43_758.545_3).fract();
    let part = |from: usize| {
        let numbers: Vec<f64> = (from..from + size).map(noise).collect();
        HostTensor::from_slice(&numbers, Shape::from(shape)).unwrap()
    };
    let mut graph = Graph::new();
    let ty = TensorType::new(DType::F64, shape);
    let (re, im) = (graph.parameter(0, ty.clone()), graph.parameter(1, ty.clone()));
    let i = graph.scalar_constant(Scalar::Complex(0.0, 1.0), DType::C128).unwrap();
    let mut x = re;
    if dtype.is_complex() {
        let im = graph.multiply(i, im).unwrap();
        x = graph.add(re, im).unwrap();
    }
    if definite {
        let adjoint = graph.adjoint(x).unwrap();
        let square = multiply(&mut graph, x, adjoint);
        let eye = graph.eye([shape[shape.len() - 1]; 2], DType::F64).unwrap();
        x = graph.add(square, eye).unwrap();
    }
    let x = graph.as_type(x, dtype).unwrap();
    let program = Program::new(&graph, vec![ty.clone(), ty], &[x]).unwrap();
    evaluate(&program, vec![part(0), part(size)]).unwrap().remove(0)
}

fn multiply(graph: &mut Graph, x: ExprId, y: ExprId) -> ExprId {
    let rank = graph.shape(x).rank() as i64;
    let batch: Vec<i64> = (0..rank - 2).collect();
    graph.dot_general(x, &[rank - 1], &batch, y, &[rank - 2], &batch).unwrap()
}

/// Builds the product of the factors, and the other properties of a factorization as pairs of equal
/// tensors.
fn expected_pairs(
    graph: &mut Graph,
    a: ExprId,
    kind: Option<Factorization>,
) -> Vec<(ExprId, ExprId)> {
    let unitary = |graph: &mut Graph, x: ExprId| {
        let adjoint = graph.adjoint(x).unwrap();
        let product = multiply(graph, adjoint, x);
        let side = *graph.shape(product).last().unwrap();
        let eye = graph.eye([side, side], DType::F64).unwrap();
        (product, eye)
    };
    match kind {
        None => {
            let l = graph.cholesky(a).unwrap();
            let adjoint = graph.adjoint(l).unwrap();
            let triangle = graph.tril(l, 0).unwrap();
            vec![(multiply(graph, l, adjoint), a), (l, triangle)]
        }
        Some(Factorization::Lu) => {
            let (p, l, u) = graph.lu(a).unwrap();
            let lu = multiply(graph, l, u);
            vec![(multiply(graph, p, lu), a)]
        }
        Some(Factorization::Qr { complete }) => {
            let (q, r) = graph.qr(a, complete).unwrap();
            let triangle = graph.triu(r, 0).unwrap();
            let diagonal = graph.take_diagonal(r, 0).unwrap();
            let size = graph.abs(diagonal).unwrap();
            vec![(multiply(graph, q, r), a), unitary(graph, q), (r, triangle), (diagonal, size)]
        }
        Some(Factorization::Eigh) => {
            let (w, v) = graph.eigh(a).unwrap();
            let w = graph.new_axis(w, -2, None).unwrap();
            let scaled = graph.multiply(v, w).unwrap();
            let adjoint = graph.adjoint(v).unwrap();
            vec![(multiply(graph, scaled, adjoint), a), unitary(graph, v)]
        }
        Some(Factorization::Svd { full }) => {
            let (u, s, vh) = graph.svd(a, full).unwrap();
            let count = *graph.shape(s).last().unwrap();
            let first = graph.slice_along_axis(u, 0, count, -1, 1).unwrap();
            let last = graph.slice_along_axis(vh, 0, count, -2, 1).unwrap();
            let s = graph.new_axis(s, -2, None).unwrap();
            let scaled = graph.multiply(first, s).unwrap();
            let v = graph.adjoint(vh).unwrap();
            vec![(multiply(graph, scaled, last), a), unitary(graph, u), unitary(graph, v)]
        }
    }
}

/// The target of the tests; `None` without a plugin for CPUs.
fn cpu() -> Option<Target> {
    let target = target(&Settings::new()).ok()?;
    (target.is_cpu() && target.client.calls_host()).then_some(target)
}

/// `None` for Cholesky, which is a separate op, and all factorizations.
fn kinds() -> impl Iterator<Item = Option<Factorization>> {
    std::iter::once(None).chain(Factorization::ALL.iter().copied().map(Some))
}

/// Builds the largest error of each promise of each factorization that a matrix has.
fn errors(graph: &mut Graph, a: ExprId) -> (Vec<String>, Vec<ExprId>) {
    let is_square = matches!(graph.shape(a)[..], [.., rows, columns] if rows == columns);
    let mut errors = (Vec::new(), Vec::new());
    for kind in kinds() {
        let takes_all = matches!(kind, Some(Factorization::Qr { .. } | Factorization::Svd { .. }));
        if !is_square && !takes_all {
            continue;
        }
        for (index, (x, y)) in expected_pairs(graph, a, kind).into_iter().enumerate() {
            let difference = graph.subtract(x, y).unwrap();
            let size = graph.abs(difference).unwrap();
            errors.0.push(format!("{kind:?}, promise {index}"));
            errors.1.push(graph.reduce_max(size, None, false).unwrap());
        }
    }
    errors
}

#[test]
fn library_call_selects_factorizations() {
    for kind in kinds() {
        let ty = TensorType::new(DType::F32, [3, 3]);
        let mut graph = Graph::new();
        let a = graph.parameter(0, ty.clone());
        let op = kind.map_or(Op::Cholesky, Op::Factorize);
        let node = graph.make(op, &[a]).unwrap();
        let part = if kind.is_some() { graph.elem(node, 0).unwrap() } else { node };
        let program = Program::new(&graph, vec![ty], &[part]).unwrap();
        for wanted in [false, true] {
            let is_call = |_: &Graph, _| wanted;
            let options = LowerOptions { library_call: Some(&is_call), ..LowerOptions::default() };
            let text = lower(&program, &options).unwrap().text;
            assert_eq!(text.matches(FACTORIZE_TARGET).count(), usize::from(wanted), "{kind:?}");
        }
    }
}

#[test]
fn factorizations_reproduce_their_matrices() {
    let Some(target) = cpu() else { return };
    for dtype in [DType::F32, DType::F64, DType::C64, DType::C128, DType::F16] {
        for shape in [&[4, 4][..], &[1, 1], &[5, 3], &[3, 5], &[2, 2, 3, 3]] {
            let is_square = shape[shape.len() - 1] == shape[shape.len() - 2];
            let a = samples(dtype, shape, is_square);
            let ty = TensorType::new(dtype, shape);
            let mut graph = Graph::new();
            let x = graph.parameter(0, ty.clone());
            let (names, errors) = errors(&mut graph, x);
            let program = Program::new(&graph, vec![ty], &errors).unwrap();
            let allowed = match dtype {
                DType::F64 | DType::C128 => 1e-12,
                DType::F16 => 3e-2,
                _ => 1e-5,
            };
            for (name, error) in names.iter().zip(run(&target, &program, &a)) {
                let error = error.get(0).as_f64();
                assert!(error <= allowed, "{name} of {dtype}{shape:?}: {error}");
            }
        }
    }
    nxla_pjrt::wait_until_all_idle();
}

#[test]
fn nan_and_failures_do_not_spread_to_other_matrices() {
    let Some(target) = cpu() else { return };
    let nan = [f64::NAN, 2.0, 2.0, 1.0, 5.0, 1.0, 1.0, 5.0];
    let indefinite = [1.0, 2.0, 2.0, 1.0, 5.0, 1.0, 1.0, 5.0];
    for kind in kinds() {
        let numbers = if kind.is_none() { indefinite } else { nan };
        let a = HostTensor::from_slice(&numbers, [2, 2, 2]).unwrap();
        let ty = TensorType::new(DType::F64, a.shape().clone());
        let mut graph = Graph::new();
        let x = graph.parameter(0, ty.clone());
        let part = match kind {
            None => graph.cholesky(x).unwrap(),
            Some(kind) => {
                let node = graph.make(Op::Factorize(kind), &[x]).unwrap();
                graph.elem(node, 0).unwrap()
            }
        };
        let program = Program::new(&graph, vec![ty], &[part]).unwrap();
        let values = run(&target, &program, &a).remove(0).to_vec::<f64>().unwrap();
        let (first, second) = values.split_at(values.len() / 2);
        assert!(first.iter().all(|x| x.is_nan()), "{kind:?}: {first:?}");
        assert!(second.iter().all(|x| x.is_finite()), "{kind:?}: {second:?}");
    }
    nxla_pjrt::wait_until_all_idle();
}

/// XLA's compiler for CPUs applies updates in order, so the last writes are also counted.
#[test]
fn last_update_of_an_index_wins() {
    let Some(target) = cpu() else { return };
    let x = HostTensor::from_vec((0..24_i32).collect(), [4, 3, 2]).unwrap();
    let indices: [i32; 12] = [1, 0, 3, 1, 1, 0, 3, 2, 1, 0, 9, 9];
    let indices = HostTensor::from_slice(&indices, [2, 3, 2]).unwrap();
    let ty = TensorType::new(DType::S32, [4, 3, 2]);
    let mut graph = Graph::new();
    let parameter = graph.parameter(0, ty.clone());
    let indices = graph.tensor(indices).unwrap();
    let updates = graph.iota([2, 3, 2], None, DType::S32).unwrap();
    let axes = Box::from([0, 1]);
    let written = graph.make(Op::IndexedPut(axes), &[parameter, indices, updates]).unwrap();
    let program = Program::new(&graph, vec![ty], &[written]).unwrap();
    let expected = evaluate(&program, vec![x.clone()]).unwrap();
    assert_eq!(run(&target, &program, &x)[0].bytes(), expected[0].bytes());
    nxla_pjrt::wait_until_all_idle();
}
