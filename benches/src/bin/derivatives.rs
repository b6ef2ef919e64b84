//! Benchmark of derivatives: nodes and time of each derivative relative to the function, on the
//! compiler that the first argument names, or on the evaluator.
//!
//! Each derivative is measured alternately with its function, and the minimum of many runs counts.
//! `jvp by two sweeps` transposes reverse mode, which forward mode would do without separate rules.
#![forbid(unsafe_code)]

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nxla::gradient::{DiffCounts, pullback, pushforward};
use nxla::graph::{ExprId, Graph};
use nxla::{DType, Scalar};
use nxla::{
    ExecutableHandle, HostTensor, Options, Program, RunContext, Shape, Tensor, TensorType,
    compile_program,
};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The number of runs of each program.
const TURNS: usize = 25;

#[expect(clippy::print_stdout, reason = "printing a table is what this program is for")]
fn main() -> Outcome<()> {
    let compiler = std::env::args().nth(1).unwrap_or_else(|| "evaluator".into());
    println!("on {compiler}, as multiples of the function");
    println!("{:<28} {:<18} {:>6} {:>6}", "function", "derivative", "nodes", "time");
    for (name, function) in [layers()?, elements()?, recurrent()?] {
        let function = Arc::new(function);
        for (derivative, program) in derivatives(&function)? {
            let nodes = nodes(&program) as f64 / nodes(&function) as f64;
            let time = ratio(&compiler, &function, &Arc::new(program))?;
            println!("{name:<28} {derivative:<18} {nodes:>6.2} {time:>6.2}");
        }
    }
    Ok(())
}

/// The derivatives of the sum of a function, which is its first output.
fn derivatives(function: &Program) -> Outcome<Vec<(&'static str, Program)>> {
    let inputs = function.inputs().len();
    let sides = DiffCounts { inputs, outputs: 1 };
    let gradient = pullback(function, sides)?;
    // The pullback is linear in its last input, so the pullback of the pullback computes the JVP.
    let cotangent_last =
        pullback(&gradient, DiffCounts { inputs: inputs + 1, outputs: inputs + 1 })?;
    let change = cotangent_last.outputs()[cotangent_last.outputs().len() - 1];
    let twice = Program::new(cotangent_last.graph(), cotangent_last.inputs().to_vec(), &[change])?;
    let product = pushforward(&gradient, DiffCounts { inputs, outputs: inputs + 1 })?;
    Ok(vec![
        ("gradient", gradient),
        ("jvp", pushforward(function, sides)?),
        ("jvp by two sweeps", twice),
        ("gradient and hvp", product),
    ])
}

/// The nodes of a program and of all of its regions.
fn nodes(program: &Program) -> usize {
    program.programs().map(|program| program.graph().len()).sum()
}

/// Returns the time of a derivative relative to the function.
fn ratio(compiler: &str, function: &Arc<Program>, derivative: &Arc<Program>) -> Outcome<f64> {
    let options = Options::new().compiler(compiler);
    let both = [function, derivative];
    let mut executables = Vec::new();
    for program in both {
        let compiled = compile_program(program, &options, &[])?;
        executables.push((compiled, inputs(program)?));
    }
    let mut least = [Duration::MAX; 2];
    for _ in 0..TURNS {
        for (least, (executable, inputs)) in least.iter_mut().zip(&executables) {
            *least = (*least).min(run(executable, inputs)?);
        }
    }
    Ok(least[1].as_secs_f64() / least[0].as_secs_f64())
}

/// The time of a run, with its results read.
fn run(executable: &ExecutableHandle, inputs: &[Tensor]) -> Outcome<Duration> {
    let inputs: Vec<_> = inputs.iter().map(|tensor| &**tensor).collect();
    let start = Instant::now();
    for result in executable.run(&inputs, &RunContext::default())? {
        result.to_host()?;
    }
    Ok(start.elapsed())
}

/// Tensors of small numbers for the inputs of a program.
fn inputs(program: &Program) -> Outcome<Vec<Tensor>> {
    let mut tensors = Vec::new();
    for ty in program.inputs() {
        let numbers: Vec<f32> =
            (0..ty.shape.size()).map(|at| ((at * 37 % 101) as f32 - 50.0) / 400.0).collect();
        tensors.push(Tensor::from(HostTensor::from_slice(&numbers, ty.shape.clone())?));
    }
    Ok(tensors)
}

fn parameters(graph: &mut Graph, shapes: &[&[usize]]) -> (Vec<TensorType>, Vec<ExprId>) {
    let types: Vec<TensorType> =
        shapes.iter().map(|&shape| TensorType::new(DType::F32, Shape::from(shape))).collect();
    let ids = types.iter().enumerate().map(|(at, ty)| graph.parameter(at, ty.clone())).collect();
    (types, ids)
}

/// Twelve dense layers of 128 for 64 rows.
fn layers() -> Outcome<(&'static str, Program)> {
    let mut graph = Graph::new();
    let mut shapes: Vec<&[usize]> = vec![&[64, 128]];
    shapes.extend(std::iter::repeat_n(&[128, 128][..], 12));
    let (types, ids) = parameters(&mut graph, &shapes);
    let mut x = ids[0];
    for &weights in &ids[1..] {
        let product = graph.dot(x, weights)?;
        x = graph.tanh(product)?;
    }
    let total = graph.sum(x, None, false)?;
    Ok(("12 dense layers", Program::new(&graph, types, &[total])?))
}

/// A hundred element-wise operations on a hundred thousand numbers.
fn elements() -> Outcome<(&'static str, Program)> {
    let mut graph = Graph::new();
    let (types, ids) = parameters(&mut graph, &[&[100_000], &[100_000]]);
    let mut x = ids[0];
    for _ in 0..50 {
        let product = graph.multiply(x, ids[1])?;
        x = graph.sin(product)?;
    }
    let total = graph.sum(x, None, false)?;
    Ok(("chain of 100", Program::new(&graph, types, &[total])?))
}

/// The sum of all states of a recurrent network of size 128 for 32 sequences of 200 steps.
fn recurrent() -> Outcome<(&'static str, Program)> {
    let mut graph = Graph::new();
    let (types, ids) =
        parameters(&mut graph, &[&[200, 32, 128], &[32, 128], &[128, 128], &[128, 128]]);
    let mark = graph.mark();
    let zero = graph.scalar_constant(Scalar::Int(0), DType::S32)?;
    let total = graph.scalar_constant(Scalar::Float(0.0), DType::F32)?;
    let initial = [zero, ids[1], total];
    let state: Vec<TensorType> = initial.iter().map(|&id| graph.tensor_type(id).clone()).collect();
    let scope = graph.open_scope("while", &state);
    let [step, hidden, total] = scope.parameters[..] else {
        unreachable!("the loop has three states")
    };
    let steps = graph.scalar_constant(Scalar::Int(200), DType::S32)?;
    let is_below = graph.less(step, steps)?;
    let condition = graph.traced(mark, vec![is_below]);
    let row = graph.slice_along_axis(ids[0], step, 1, 0, 1)?;
    let row = graph.squeeze(row, Some(&[0]))?;
    let (from_row, from_hidden) = (graph.dot(row, ids[2])?, graph.dot(hidden, ids[3])?);
    let sum = graph.add(from_row, from_hidden)?;
    let hidden = graph.tanh(sum)?;
    let state_sum = graph.sum(hidden, None, false)?;
    let total = graph.add(total, state_sum)?;
    let one = graph.scalar_constant(Scalar::Int(1), DType::S32)?;
    let step = graph.add(step, one)?;
    let body = graph.traced(mark, vec![step, hidden, total]);
    let results = graph.while_loop(mark, &scope, &initial, condition, body)?;
    Ok(("recurrent, 200 steps", Program::new(&graph, types, &[results[2]])?))
}
