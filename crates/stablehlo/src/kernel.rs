//! Parts of a program that XLA leaves to the host's own kernels.
//!
//! Factorisations have no words in StableHLO, and XLA's code for the processor is slow for sorts,
//! triangular matrices, Fourier transforms, scans, positions of extrema, random words, bisection, pooling, many
//! convolutions and functions, products of transposed matrices and vectors, and large sums and extrema.
//! Where [`LowerOptions::kernels`](crate::LowerOptions) allows it, such a node is a call of the host
//! function [`KERNEL_ID`]. The call carries the program to run, of one op and what it takes [`along`], so that
//! whoever computes it needs no list of kernels.

use std::fmt::Write;

use nxla_expr::serialize::{SerializeError, from_bytes, to_bytes};
use nxla_expr::{Block, BlockKind, ExprId, Graph, Node, Op, Program, Reduce, TensorType};
use nxla_tensor::{DType, Scalar};

use crate::along;
use crate::context::Cx;
use crate::contract;
use crate::joint::Set;
use crate::options::KERNEL_ID;
use crate::reduce;
use crate::region::{Frame, Source, Sources};
use crate::types::Ty;
use crate::widen;
use crate::writer::{Value, Values};

/// Elements below which XLA's own code has sorted before a host function has been called.
const LEAST_SORTED: usize = 1 << 7;

/// The same for running sums and extrema, for positions of extrema, which XLA finds one element after
/// the other, for random words, for bisection, which gathers as often as it halves, and for transforms.
const LEAST_CUMULATED: usize = 1 << 7;
const LEAST_SEARCHED: usize = 1 << 8;
const LEAST_RANDOM: usize = 1 << 8;
const LEAST_BISECTED: usize = 1 << 8;
const LEAST_TRANSFORMED: usize = 1 << 9;

/// The same for products of transposed matrices and vectors.
const LEAST_MULTIPLIED: usize = 1 << 12;

/// The same for functions of elements.
const LEAST_COMPUTED: usize = 1 << 12;

/// Elements of transforms beyond which copying what the kernel gives takes longer than it spares. Lengths that are
/// no power of two are as fast in XLA.
const MOST_TRANSFORMED: usize = 1 << 16;

/// The same for reductions of `f64`, which XLA makes trees of windows of, and of other numbers: of what a
/// program is given, and of what it computes, which XLA does along with other things.
const LEAST_REDUCED_F64: usize = 1 << 15;
const LEAST_REDUCED_GIVEN: usize = 1 << 16;
const LEAST_REDUCED: usize = 1 << 18;

/// The same for short rows of `f32` that a kernel computes along with their reduction.
const LEAST_SHORT: usize = 1 << 15;

/// The same for pooling of what a program is given. What is before it XLA computes along with it.
const LEAST_POOLED: usize = 1 << 12;

/// From how many `f64` on it takes longer to copy what the kernel gives than XLA takes for all of it, if
/// no two windows share elements.
const MOST_POOLED_F64: usize = 1 << 19;

/// A node as a call of a kernel, if it is to be one.
pub(crate) fn lower(cx: &mut Cx<'_>, frame: &Frame<'_>, node: &Node<'_>) -> Option<Sources> {
    if !cx.options.kernels || !is_kernel(cx, frame, node) {
        return None;
    }
    let types = node.ty.parts();
    if types.iter().all(|ty| ty.shape.size() == 0) {
        let nothing = |ty| Source::Splat(Scalar::UInt(0), cx.tensor_ty(ty));
        return Some(types.iter().map(nothing).collect());
    }
    let results = match node.op {
        Op::Reduce(..) => {
            let (program, operands) = along::reduction(cx, frame, node);
            call(cx, &program, &operands)
        }
        Op::Unary(_) | Op::Binary(_) => {
            let (program, operands) = along::function(cx, frame, node);
            call(cx, &program, &operands)
        }
        // The block and not its body: whoever computes it may know it, too.
        op @ Op::Block(block) => {
            let operands = operands(cx, frame, node);
            call(cx, &of_op(op, block.body.inputs().to_vec()), &operands)
        }
        op => {
            let operands = operands(cx, frame, node);
            let ty = |x: &Value| TensorType::new(cx.dtype(x.ty), cx.shape(x.ty).clone());
            let program = of_op(op, operands.iter().map(ty).collect());
            call(cx, &program, &operands)
        }
    };
    let convert = |(&part, ty): (&Value, &TensorType)| {
        let part = cx.reshape(part, &ty.shape);
        cx.convert(part, ty.dtype).into()
    };
    Some(results.iter().zip(types).map(convert).collect())
}

/// Calls the kernel of several reductions, and gives what stands for each.
pub(crate) fn lower_set(cx: &mut Cx<'_>, frame: &Frame<'_>, set: &Set) -> Vec<(ExprId, Source)> {
    let (program, operands) = along::together(cx, frame, &set.nodes, &set.reductions);
    let results = call(cx, &program, &operands);
    let results = results.iter().map(|&result| Source::from(result));
    set.reductions.iter().copied().zip(results).collect()
}

/// What a kernel of one op is called with. Narrow floats and integers are widened for factorizations
/// here, so that their kernels are of few dtypes.
fn operands(cx: &mut Cx<'_>, frame: &Frame<'_>, node: &Node<'_>) -> Values {
    let operands = frame.operands(node);
    let value = |&operand: &Source| match node.op {
        Op::Factorize(_) | Op::Cholesky | Op::TriangularSolve(_) => {
            cx.cast(operand, widen::linalg(cx.dtype(operand.ty()).to_floating()))
        }
        _ => cx.value(operand),
    };
    operands.iter().map(value).collect()
}

fn is_kernel(cx: &Cx<'_>, frame: &Frame<'_>, node: &Node<'_>) -> bool {
    let operand = |index: usize| frame.tensor(node.operands[index]).ty();
    // Elements that share a byte are not worth spreading and gathering.
    let has = |elements: usize| {
        let ty = operand(0);
        cx.dtype(ty).bits() >= 8 && cx.shape(ty).size() >= elements
    };
    let is_given = || is_given(frame, node.operands[0]);
    match node.op {
        Op::Factorize(_) | Op::Cholesky | Op::TriangularSolve(_) => true,
        // Each device has lines of its own.
        Op::Fft(fft) if cx.options.partition.is_none() => {
            let dtype = cx.dtype(operand(0));
            let is_known = matches!(dtype, DType::F32 | DType::F64 | DType::C64 | DType::C128);
            cx.options.transforms
                && is_known
                && fft.length.is_power_of_two()
                && has(LEAST_TRANSFORMED)
                && !has(MOST_TRANSFORMED + 1)
        }
        // Each device computes its part by itself.
        op @ (Op::Unary(_) | Op::Binary(_)) if cx.options.partition.is_none() => {
            let size = node.ty.as_tensor().map_or(0, |ty| ty.shape.size());
            size >= LEAST_COMPUTED && along::is_slow(frame.graph, op, node.operands)
        }
        // Each device multiplies its part by itself.
        Op::Dot(dot) if cx.options.partition.is_none() => {
            let (graph, left, right) = (frame.graph, node.operands[0], node.operands[1]);
            let largest = graph.shape(left).size().max(graph.shape(right).size());
            largest >= LEAST_MULTIPLIED && contract::is_tall(dot, graph, left, right)
        }
        Op::Sort(_) | Op::Argsort(..) => has(LEAST_SORTED),
        Op::ArgReduce(..) => has(LEAST_SEARCHED),
        // Each device reduces its part by itself.
        Op::Reduce(_, attributes) if cx.options.partition.is_none() => {
            is_reduced_sooner(cx, frame, node.operands[0], attributes, has)
        }
        Op::Window(_, window) if cx.options.partition.is_none() => {
            let mut axes = window.dimensions.iter().zip(&window.strides);
            let is_faster = match cx.dtype(operand(0)) {
                DType::F32 => true,
                DType::F64 => !has(MOST_POOLED_F64) || axes.any(|(size, stride)| size > stride),
                _ => false,
            };
            is_faster && has(LEAST_POOLED) && is_given()
        }
        // Each device convolves its part by itself.
        Op::Conv(conv) if cx.options.partition.is_none() => {
            let kernel = cx.shape(operand(1));
            node.ty.as_tensor().is_some_and(|result| contract::is_slow(conv, kernel, result))
        }
        Op::Block(block) if block.body.effects().is_empty() => is_for_host(cx, block, has),
        _ => false,
    }
}

/// Whether a tensor is one that a program is given.
fn is_given(frame: &Frame<'_>, id: ExprId) -> bool {
    matches!(frame.graph.op(id), Op::Parameter(_))
}

/// Whether a kernel reduces a tensor sooner than XLA does, by how many elements it has.
fn is_reduced_sooner(
    cx: &Cx<'_>,
    frame: &Frame<'_>,
    operand: ExprId,
    attributes: &Reduce,
    has: impl Fn(usize) -> bool,
) -> bool {
    let ty = frame.tensor(operand).ty();
    let (shape, dtype) = (cx.shape(ty), cx.dtype(ty));
    // Otherwise XLA computes the operand while it reduces it.
    let is_written =
        || along::reads_memory(frame, operand, attributes) || reduce::is_written(shape, attributes);
    let is_given = is_given(frame, operand);
    let is_given_few = is_given && !has(LEAST_REDUCED);
    match dtype {
        _ if reduce::is_fast(shape, attributes, dtype, is_given_few) => {
            has(LEAST_SHORT) && along::takes_short_rows(frame, operand, attributes)
        }
        DType::F64 => has(LEAST_REDUCED_F64) && is_written(),
        // Others are computed in a wider dtype.
        dtype if dtype.is_complex() || dtype.is_float() && dtype.bits() < 32 => false,
        // XLA does not read faster what a kernel compares along with counting it.
        _ if is_given || along::compares_given(frame.graph, operand) => has(LEAST_REDUCED_GIVEN),
        _ => has(LEAST_REDUCED) && is_written(),
    }
}

/// Whether the host computes a block rather than XLA its body: what the body says becomes a chain of
/// loops over the whole tensor, or a sort, in XLA.
fn is_for_host(cx: &Cx<'_>, block: &Block, has: impl Fn(usize) -> bool) -> bool {
    // Each device makes its part by itself.
    let is_whole = cx.options.partition.is_none();
    match (&block.kind, block.body.inputs()) {
        (BlockKind::Solve { .. }, _) => true,
        (BlockKind::Cumulative { .. }, [_]) => has(LEAST_CUMULATED),
        (BlockKind::TopK { .. }, [_]) => has(LEAST_SORTED),
        (BlockKind::Threefry { count, .. }, [_]) => is_whole && *count >= LEAST_RANDOM,
        // The kernel knows one vector for all numbers.
        (BlockKind::Search(_), [sorted, x]) => {
            let is_known = !sorted.dtype.is_float() || sorted.dtype.bits() >= 32;
            is_whole
                && is_known
                && has(0)
                && block.batch_axes == 0
                && x.shape.size() >= LEAST_BISECTED
        }
        // Operands that the body has from outside.
        (
            BlockKind::Cumulative { .. }
            | BlockKind::TopK { .. }
            | BlockKind::Threefry { .. }
            | BlockKind::Search(_),
            _,
        )
        | (
            BlockKind::Scatter { .. }
            | BlockKind::Checkpoint { .. }
            | BlockKind::Named { .. }
            | BlockKind::Factorize(_),
            _,
        ) => false,
    }
}

/// A program of one op on operands of these types.
fn of_op(op: &Op, types: Vec<TensorType>) -> Program {
    let mut graph = Graph::new();
    let inputs: Vec<ExprId> =
        types.iter().enumerate().map(|(index, ty)| graph.parameter(index, ty.clone())).collect();
    let refused = "operands of the shapes and kinds of numbers that inference has accepted";
    let node = graph.make(op.clone(), &inputs).expect(refused);
    let outputs: Vec<ExprId> = match graph.ty(node).as_tensor() {
        Some(_) => vec![node],
        None => (0..graph.ty(node).parts().len())
            .map(|index| graph.elem(node, index).expect("a node has its parts"))
            .collect(),
    };
    Program::new(&graph, types, &outputs).expect("inputs are the types of the parameters")
}

/// Calls the kernel of a program.
fn call(cx: &mut Cx<'_>, program: &Program, operands: &[Value]) -> Values {
    let results: Vec<Ty> = program.output_types().map(|ty| cx.tensor_ty(ty)).collect();
    let text = to_text(program);
    let config = format_args!("id = {KERNEL_ID} : i64, program = \"{text}\"");
    cx.call_host(operands, "", config, &results)
}

/// The bytes of a program in hexadecimal digits.
fn to_text(program: &Program) -> String {
    let bytes = to_bytes(program);
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        write!(text, "{byte:02x}").expect("writing to a string cannot fail");
    }
    text
}

/// The program that a call of the host function [`KERNEL_ID`] carries in its attribute `program`.
/// It takes the arguments of the call and gives its results.
///
/// # Errors
/// Where the text is not what [`lower`](crate::lower) writes.
pub fn kernel_program(text: &str) -> Result<Program, SerializeError> {
    let digit = |at: usize| text.as_bytes().get(at).and_then(|&byte| char::from(byte).to_digit(16));
    let bytes: Option<Vec<u8>> = (0..text.len().div_ceil(2))
        .map(|at| Some((digit(2 * at)? << 4 | digit(2 * at + 1)?) as u8))
        .collect();
    from_bytes(&bytes.ok_or(SerializeError::NotAProgram)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_survive_as_text() {
        let mut graph = Graph::new();
        let ty = TensorType::new(DType::F32, [3, 3]);
        let x = graph.parameter(0, ty.clone());
        let l = graph.make(Op::Cholesky, &[x]).unwrap();
        let program = Program::new(&graph, vec![ty], &[l]).unwrap();
        let text = to_text(&program);
        assert_eq!(kernel_program(&text).unwrap().digest(), program.digest());
        assert!(kernel_program(&text[1..]).is_err() && kernel_program("").is_err());
        assert!(matches!(kernel_program("xy"), Err(SerializeError::NotAProgram)));
    }
}
