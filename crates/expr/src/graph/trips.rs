//! Trip counts of counting loops, which are known before the loop runs.

use nxla_tensor::{DType, Scalar};

use super::{BinaryOp, ExprId, Graph, Op, Program, While};

/// A loop state that counts iterations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// The index of the state.
    pub state: usize,
    /// The value before the first iteration.
    pub first: i64,
    /// The increment of each iteration.
    pub step: i64,
    /// The trip count.
    pub trips: usize,
    /// True if the count is exact. Otherwise another condition may end the loop earlier.
    pub is_exact: bool,
}

/// Returns the counter of a loop that runs while one of its states is below, or above, a constant
/// and adds a constant to the state in each iteration. With further conditions, the count is an
/// upper bound.
pub fn counter(graph: &Graph, op: &While, operands: &[ExprId]) -> Option<Counter> {
    let around = LoopContext { graph, op, operands };
    let mut open = vec![op.condition.outputs()[0]];
    let (mut found, mut more) = (None::<Counter>, false);
    while let Some(id) = open.pop() {
        match binary(&op.condition, id) {
            Some((BinaryOp::LogicalAnd, left, right)) => open.extend([left, right]),
            Some((compared, left, right)) => match around.counter(compared, left, right) {
                Some(counter) => {
                    more |= found.is_some();
                    let is_less = found.is_none_or(|found| counter.trips < found.trips);
                    found = if is_less { Some(counter) } else { found };
                }
                None => more = true,
            },
            None => more = true,
        }
    }
    found.map(|counter| Counter { is_exact: !more, ..counter })
}

/// The supported comparisons: whether the counter increases, and whether it reaches the bound.
const COMPARISONS: [(BinaryOp, bool, bool); 4] = [
    (BinaryOp::Less, true, false),
    (BinaryOp::LessEqual, true, true),
    (BinaryOp::Greater, false, false),
    (BinaryOp::GreaterEqual, false, true),
];

/// Returns the number of increments until the comparison with the bound fails.
fn trips(compared: BinaryOp, first: i64, step: i64, bound: i64) -> Option<i64> {
    let (_, up, reached) = COMPARISONS.into_iter().find(|(op, ..)| *op == compared)?;
    let (from, to, stride) =
        if up { (first, bound, step) } else { (bound, first, step.checked_neg()?) };
    let way = to.checked_sub(from)?.checked_add(i64::from(reached))?;
    match (way, stride) {
        (..=0, _) => Some(0),
        (_, ..=0) => None,
        (way, stride) => Some((way - 1) / stride + 1),
    }
}

/// Returns whether an integer dtype can represent a value.
fn holds(dtype: DType, number: i64) -> bool {
    let as_i64 = |scalar: Scalar| scalar.as_i64();
    let (low, high) = (as_i64(dtype.min_value()), as_i64(dtype.max_value()));
    low.is_none_or(|low| low <= number) && high.is_none_or(|high| number <= high)
}

/// A loop with its operands and the surrounding graph.
struct LoopContext<'a> {
    graph: &'a Graph,
    op: &'a While,
    operands: &'a [ExprId],
}

impl LoopContext<'_> {
    /// Returns the counter that a comparison bounds.
    fn counter(&self, compared: BinaryOp, left: ExprId, right: ExprId) -> Option<Counter> {
        let While { state: states, condition, body, .. } = self.op;
        let (state, compared, bound) = match (input(condition, left), input(condition, right)) {
            (Some(state), _) if state < *states => {
                (state, compared, self.number(condition, right)?)
            }
            (_, Some(state)) if state < *states => {
                (state, compared.swap_operands()?, self.number(condition, left)?)
            }
            _ => return None,
        };
        let step = self.step(state)?;
        let first = constant(self.graph, self.operands[state])?;
        let trips = trips(compared, first, step, bound)?;
        let last = first.checked_add(step.checked_mul(trips)?)?;
        let dtype = body.inputs()[state].dtype;
        let trips = usize::try_from(trips).ok()?;
        let counter = Counter { state, first, step, trips, is_exact: true };
        holds(dtype, last).then_some(counter)
    }

    /// Returns the increment of a state, if it is constant.
    fn step(&self, state: usize) -> Option<i64> {
        let body = &self.op.body;
        let (op, left, right) = binary(body, body.outputs()[state])?;
        let own = Some(state);
        match op {
            BinaryOp::Add if input(body, left) == own => self.number(body, right),
            BinaryOp::Add if input(body, right) == own => self.number(body, left),
            BinaryOp::Subtract if input(body, left) == own => {
                self.number(body, right)?.checked_neg()
            }
            _ => None,
        }
    }

    /// Returns the value of a node that is the same constant in every iteration.
    fn number(&self, program: &Program, id: ExprId) -> Option<i64> {
        match input(program, id) {
            Some(at) => self.is_invariant(at).then(|| constant(self.graph, self.operands[at]))?,
            None => constant(program.graph(), id),
        }
    }

    /// Returns whether an input is a capture, or a state that the body returns unchanged.
    fn is_invariant(&self, at: usize) -> bool {
        let body = &self.op.body;
        body.outputs().get(at).is_none_or(|&output| output == body.parameters()[at])
    }
}

/// Returns the operands of a binary node.
fn binary(program: &Program, id: ExprId) -> Option<(BinaryOp, ExprId, ExprId)> {
    let Op::Binary(op) = program.graph().op(id) else { return None };
    let operands = program.graph().operands(id);
    Some((*op, operands[0], operands[1]))
}

/// Returns the input of a program that a node is.
fn input(program: &Program, id: ExprId) -> Option<usize> {
    match program.graph().op(id) {
        Op::Parameter(parameter) => Some(parameter.index as usize),
        _ => None,
    }
}

/// Returns the value of an integer constant.
fn constant(graph: &Graph, id: ExprId) -> Option<i64> {
    match graph.op(id) {
        Op::Constant(constant) if !constant.ty.dtype.is_float() => constant.value.as_i64(),
        _ => None,
    }
}
