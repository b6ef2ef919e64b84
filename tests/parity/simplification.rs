//! Tests that simplification does not change results. A program with constants returns the same bits as
//! the program that receives the constants as inputs, to which no rule about constants applies.

use nxla::graph::{BinaryOp, Constant, ExprId, Graph, Op, UnaryOp};
use nxla::{DType, HostTensor, Program, Scalar, TensorType};

use crate::values::host;

/// The shapes of constants and of tensors, which all broadcast against each other.
const SHAPES: [&[usize]; 4] = [&[], &[1], &[3], &[2, 1]];

/// The number of random operands for each combination of ops and dtypes.
const DRAWS: usize = 3;

/// A linear congruential generator, so that each run draws the same numbers.
struct Draws(u64);

impl Draws {
    fn draw_below(&mut self, count: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % count
    }

    fn dtype(&mut self) -> DType {
        DType::ALL[self.draw_below(DType::ALL.len())]
    }

    fn shape(&mut self) -> &'static [usize] {
        SHAPES[self.draw_below(SHAPES.len())]
    }

    /// Returns a number that is often neutral, at a limit, or not exact in narrow dtypes.
    fn scalar(&mut self, dtype: DType) -> Scalar {
        let floats =
            [0.0, -0.0, 1.0, -1.0, 0.1, 3.0, 1e6, 1e30, 16_777_217.0, f64::INFINITY, f64::NAN];
        let limits = [dtype.min_value(), dtype.max_value()];
        match self.draw_below(floats.len() + limits.len() + 1) {
            index if index < floats.len() => Scalar::Float(floats[index]),
            index if index < floats.len() + limits.len() => limits[index - floats.len()],
            _ => Scalar::Complex(0.1, -0.0),
        }
    }

    /// Returns an operand that is a constant in one of the programs.
    fn constant(&mut self, dtype: DType) -> Operand {
        let (value, shape) = (self.scalar(dtype), self.shape());
        let elements = vec![value; shape.iter().product()];
        Operand { value: host(dtype, shape, &elements), literal: Some(value) }
    }

    fn tensor(&mut self, dtype: DType) -> Operand {
        let shape = self.shape();
        let elements: Vec<Scalar> =
            (0..shape.iter().product()).map(|_| self.scalar(dtype)).collect();
        Operand { value: host(dtype, shape, &elements), literal: None }
    }

    fn operand(&mut self) -> Operand {
        let dtype = self.dtype();
        if self.draw_below(2) == 0 { self.constant(dtype) } else { self.tensor(dtype) }
    }
}

#[derive(Clone, Debug)]
struct Operand {
    value: HostTensor,
    literal: Option<Scalar>,
}

/// An expression in Polish notation: an op takes the operands and expressions that follow.
#[derive(Clone, Debug)]
enum Token {
    Operand(Operand),
    Unary(Op),
    Binary(BinaryOp),
}

/// Builds an expression and returns `None` if a type rule rejects it.
fn build(
    graph: &mut Graph,
    tokens: &mut std::slice::Iter<'_, Token>,
    leaf: &mut dyn FnMut(&mut Graph, &Operand) -> ExprId,
) -> Option<ExprId> {
    match tokens.next()? {
        Token::Operand(operand) => Some(leaf(graph, operand)),
        Token::Unary(op) => {
            let x = build(graph, tokens, leaf)?;
            graph.make(op.clone(), &[x]).ok()
        }
        Token::Binary(op) => {
            let x = build(graph, tokens, leaf);
            let y = build(graph, tokens, leaf);
            graph.make(Op::Binary(*op), &[x?, y?]).ok()
        }
    }
}

/// Returns the results of all expressions, where constants are constants or inputs.
fn results(cases: &[Vec<Token>], has_constants: bool) -> Vec<Option<HostTensor>> {
    let mut graph = Graph::new();
    let (mut types, mut inputs) = (Vec::new(), Vec::new());
    let mut leaf = |graph: &mut Graph, operand: &Operand| {
        let ty = TensorType::new(operand.value.dtype(), operand.value.shape().clone());
        match operand.literal {
            Some(value) if has_constants => {
                graph.make(Op::Constant(Box::new(Constant { value, ty })), &[]).unwrap()
            }
            _ => {
                types.push(ty.clone());
                inputs.push(operand.value.clone());
                graph.parameter(types.len() - 1, ty)
            }
        }
    };
    let built: Vec<Option<ExprId>> =
        cases.iter().map(|case| build(&mut graph, &mut case.iter(), &mut leaf)).collect();
    let outputs: Vec<ExprId> = built.iter().flatten().copied().collect();
    let program = Program::new(&graph, types, &outputs).unwrap();
    let mut results = nxla_reference::run(&program, &inputs).unwrap().into_iter();
    built.iter().map(|id| id.and_then(|_| results.next())).collect()
}

/// Returns the type and the elements, in which all NaN are equal.
fn contents(result: &HostTensor) -> (DType, Vec<usize>, Vec<String>) {
    let elements = (0..result.size()).map(|index| result.get(index).to_string()).collect();
    (result.dtype(), result.shape().to_vec(), elements)
}

fn check(cases: &[Vec<Token>]) {
    let pairs = results(cases, true).into_iter().zip(results(cases, false));
    let wrong: Vec<String> = pairs
        .zip(cases)
        .filter_map(|((found, expected), case)| {
            let (found, expected) = (found.as_ref().map(contents), expected.as_ref().map(contents));
            (found != expected)
                .then(|| format!("{case:?}\n  is {found:?}\n  instead of {expected:?}"))
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "{} of {}\n{}",
        wrong.len(),
        cases.len(),
        wrong[..wrong.len().min(20)].join("\n")
    );
}

#[test]
fn unary_ops_and_conversions_of_constants() {
    let draws = &mut Draws(1);
    let ops = UnaryOp::ALL.iter().map(|&op| Op::Unary(op)).chain(DType::ALL.map(Op::AsType));
    let mut cases = Vec::new();
    for op in ops {
        for dtype in DType::ALL {
            for _ in 0..4 * DRAWS {
                let c = Token::Operand(draws.constant(dtype));
                cases.push(vec![Token::Unary(op.clone()), c]);
            }
        }
    }
    check(&cases);
}

#[test]
fn binary_ops_with_constants() {
    let draws = &mut Draws(2);
    for &op in BinaryOp::ALL {
        let mut cases = Vec::new();
        for (left, right) in DType::ALL.iter().flat_map(|&x| DType::ALL.map(|y| (x, y))) {
            for _ in 0..DRAWS {
                let (c1, c2) = (draws.constant(left), draws.constant(right));
                let (x, y) = (draws.tensor(left), draws.tensor(right));
                for operands in [[c1.clone(), c2.clone()], [c1, y], [x, c2]] {
                    let operands = operands.map(Token::Operand);
                    cases.push([Token::Binary(op)].into_iter().chain(operands).collect());
                }
            }
        }
        check(&cases);
    }
}

#[test]
fn sums_and_products_of_three_operands() {
    let draws = &mut Draws(3);
    let arithmetic = [BinaryOp::Add, BinaryOp::Subtract, BinaryOp::Multiply, BinaryOp::Divide];
    let mut cases = Vec::new();
    for _ in 0..40_000 {
        let outer = arithmetic[draws.draw_below(4)];
        // Rules combine equal ops and inverse ops.
        let inner = arithmetic
            [arithmetic.iter().position(|&op| op == outer).unwrap() & 2 | draws.draw_below(2)];
        let [outer, inner] = [outer, inner].map(Token::Binary);
        // Few dtypes, so that equal dtypes and promotions to one of them are frequent.
        let dtypes = [draws.dtype(), draws.dtype()];
        let [x, y, z] = std::array::from_fn(|_| {
            let dtype = dtypes[draws.draw_below(2)];
            let is_constant = draws.draw_below(2) == 0;
            Token::Operand(if is_constant { draws.constant(dtype) } else { draws.tensor(dtype) })
        });
        cases.push(match draws.draw_below(2) {
            0 => vec![outer, x, inner, y, z],
            _ => vec![outer, inner, x, y, z],
        });
    }
    cases.chunks(4000).for_each(check);
}

#[test]
fn random_expressions() {
    let draws = &mut Draws(4);
    let mut cases = Vec::new();
    for _ in 0..20_000 {
        let mut tokens = Vec::new();
        let mut missing = 1;
        while missing > 0 {
            let token = match draws.draw_below(if tokens.len() > 8 { 1 } else { 4 }) {
                0 => Token::Operand(draws.operand()),
                1 => Token::Unary(Op::AsType(draws.dtype())),
                _ => Token::Binary(BinaryOp::ALL[draws.draw_below(BinaryOp::ALL.len())]),
            };
            missing = match token {
                Token::Operand(_) => missing - 1,
                Token::Unary(_) => missing,
                Token::Binary(_) => missing + 1,
            };
            tokens.push(token);
        }
        cases.push(tokens);
    }
    cases.chunks(4000).for_each(check);
}
