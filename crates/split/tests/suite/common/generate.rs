//! Random programs and random decisions.

use nxla_expr::{ExprId, Graph, Metadata, Program, Replay, Result, TensorType};
use nxla_split::Decision;
use nxla_tensor::{DType, Number};
use proptest::prelude::*;

use super::{f32, program};

/// A step of building a program: the operation and the earlier values that it takes.
#[derive(Clone, Debug)]
pub struct Step {
    kind: u8,
    operands: [usize; 3],
}

pub fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (0..22_u8, any::<[u16; 3]>())
        .prop_map(|(kind, operands)| Step { kind, operands: operands.map(usize::from) });
    prop::collection::vec(step, 1..40)
}

pub fn decisions() -> impl Strategy<Value = Vec<Decision>> {
    let decision = prop_oneof![
        6 => Just(Decision::None),
        1 => Just(Decision::Before),
        1 => Just(Decision::After),
        1 => Just(Decision::Both),
    ];
    prop::collection::vec(decision, 1..30)
}

const DTYPES: [DType; 6] = [DType::F32, DType::F64, DType::BF16, DType::F16, DType::S32, DType::U8];

/// Some of these values have no exact `f32`.
const NUMBERS: [f64; 4] = [0.1, 2.0, -1.0 / 3.0, 1e-3];

/// The values from which a step can choose: matrices of 2 by 3, and scalars.
#[derive(Clone, PartialEq, Debug)]
struct Pool {
    matrices: Vec<ExprId>,
    scalars: Vec<ExprId>,
}

impl Pool {
    fn matrix(&self, choice: usize) -> ExprId {
        self.matrices[choice % self.matrices.len()]
    }

    fn scalar(&self, choice: usize) -> ExprId {
        self.scalars[choice % self.scalars.len()]
    }

    fn add(&mut self, graph: &Graph, values: &[ExprId]) {
        for &id in values {
            match graph.shape(id).rank() {
                0 => self.scalars.push(id),
                _ => self.matrices.push(id),
            }
        }
    }
}

/// Adds the results of one step to the pool.
fn take_step(graph: &mut Graph, pool: &mut Pool, step: &Step) -> Result<()> {
    let [first, second, third] = step.operands;
    let (x, y, s) = (pool.matrix(first), pool.matrix(second), pool.scalar(third));
    let results = match step.kind {
        0 => vec![graph.sin(x)?],
        1 => vec![graph.exp(s)?],
        2 | 3 => vec![graph.add(x, y)?],
        4 => vec![graph.multiply(x, s)?],
        5 => vec![graph.subtract(x, y)?],
        6 => vec![graph.sum(x, None, false)?],
        7 => {
            let columns = graph.reduce_max(x, Some(&[0]), true)?;
            vec![graph.subtract(y, columns)?]
        }
        8 => {
            let transposed = graph.transpose(x, None)?;
            vec![graph.reshape(transposed, [2, 3])?]
        }
        9 => {
            let concatenated = graph.concatenate(&[x, y], 0)?;
            let start = i64::try_from(second % 3).expect("small");
            vec![graph.slice_along_axis(concatenated, start, 2, 0, 1)?]
        }
        10 => vec![graph.number(Number::Float(NUMBERS[first % NUMBERS.len()]))?],
        11 => vec![graph.iota([2, 3], Some(0), DType::F32)?],
        12 => {
            let node = graph.metadata(&[x], Metadata::default())?;
            vec![node]
        }
        13 => {
            let node = graph.metadata(&[x, s, y], Metadata::default())?;
            graph.parts(node)?
        }
        14 => graph.hook(&[x], Some("one"), None)?,
        15 => graph.hook(&[s, y], Some("two"), None)?,
        16 => loop_with_hook(graph, x, s)?,
        17 => conditional(graph, x, y, s)?,
        18 => graph.block("block", Vec::new(), &[x, s], |graph, inner| {
            Ok::<_, nxla_expr::Error>(vec![graph.add(inner[0], inner[1])?, graph.cos(inner[1])?])
        })?,
        19 => vec![graph.as_type(x, DTYPES[second % DTYPES.len()])?],
        20 => vec![graph.as_type(s, DTYPES[second % DTYPES.len()])?],
        _ => vec![graph.negate(x)?, graph.cos(s)?],
    };
    pool.add(graph, &results);
    Ok(())
}

/// Builds a loop whose body passes its state to a hook; it terminates, since `exp` is positive.
fn loop_with_hook(graph: &mut Graph, x: ExprId, s: ExprId) -> Result<Vec<ExprId>> {
    let goes_on = |graph: &mut Graph, state: &[ExprId]| {
        let zero = graph.zero_like(state[1])?;
        graph.less(state[1], zero)
    };
    let next = |graph: &mut Graph, state: &[ExprId]| {
        let hooked = graph.hook(&[state[0]], Some("loop"), None)?[0];
        let results = [graph.add(hooked, state[1])?, graph.exp(state[1])?];
        let results = results.into_iter().zip(state);
        results.map(|(id, &old)| graph.as_type(id, graph.dtype(old))).collect()
    };
    graph.repeat_while(&[x, s], Replay::default(), goes_on, next)
}

/// Builds a conditional that captures `x` and `y`.
fn conditional(graph: &mut Graph, x: ExprId, y: ExprId, s: ExprId) -> Result<Vec<ExprId>> {
    let mark = graph.mark();
    let zero = graph.zero_like(s)?;
    let predicate = graph.greater(s, zero)?;
    let predicate = graph.traced(mark, vec![predicate]);
    let sum = graph.add(x, s)?;
    let body = vec![graph.hook(&[sum], Some("branch"), None)?[0], s];
    let body = graph.traced(mark, body);
    let otherwise = vec![y, graph.negate(s)?];
    let otherwise = graph.traced(mark, otherwise);
    graph.cond(mark, vec![(predicate, body)], otherwise)
}

/// Returns the input types of every generated program.
pub fn input_types() -> Vec<TensorType> {
    vec![f32([2, 3]), f32([2, 3]), f32([])]
}

impl Step {
    /// Returns whether running the step is observable: it is or contains a hook.
    fn has_effects(&self) -> bool {
        (14..18).contains(&self.kind)
    }

    /// Returns whether the step traces a region, which has new parameters each time.
    fn has_region(&self) -> bool {
        (16..19).contains(&self.kind)
    }
}

/// Takes each step twice, and then an invalid step. Repeated nodes are shared unless they have
/// effects. `check` receives the graph after each step, and the expected number of nodes if it is
/// known; an invalid step must add no nodes.
pub fn take_twice(steps: &[Step], mut check: impl FnMut(&Graph, Option<usize>)) {
    program(input_types(), |graph, inputs| {
        let mut pool = Pool { matrices: inputs[..2].to_vec(), scalars: inputs[2..].to_vec() };
        for step in steps {
            let mut pool_before = pool.clone();
            take_step(graph, &mut pool, step)?;
            check(graph, None);
            let len = graph.len();
            take_step(graph, &mut pool_before, step)?;
            assert!(
                step.has_effects() || pool_before == pool,
                "a repeated step created another node"
            );
            check(graph, (!step.has_effects() && !step.has_region()).then_some(len));
            let len = graph.len();
            let x = pool.matrix(step.operands[0]);
            graph.reshape(x, [5]).expect_err("six elements are not five");
            graph.dot(x, x).expect_err("axes of 3 and of 2");
            check(graph, Some(len));
        }
        Ok(pool.matrices)
    });
}

/// Builds the program of some steps.
pub fn build(steps: &[Step]) -> Program {
    program(input_types(), |graph, inputs| {
        let mut pool = Pool { matrices: inputs[..2].to_vec(), scalars: inputs[2..].to_vec() };
        for step in steps {
            take_step(graph, &mut pool, step)?;
        }
        // The last values, so that most of the program is needed, and one value from the middle.
        let matrices = pool.matrices.iter().rev().take(3);
        let scalars = pool.scalars.iter().rev().take(2);
        Ok(matrices
            .chain(scalars)
            .chain([&pool.matrix(pool.matrices.len() / 2)])
            .copied()
            .collect())
    })
}
