//! Custom calls: nodes that the host computes, called by the compiled program.
//!
//! The caller decides which nodes become custom calls ([`LowerOptions::custom_call`]). Such a node
//! is a call of the host function [`KERNEL_ID`], which carries a program of this one op.
//!
//! [`LowerOptions::custom_call`]: crate::LowerOptions::custom_call

use std::fmt::Write;

use nxla_expr::serialize::{SerializeError, from_bytes, to_bytes};
use nxla_expr::{ExprId, Graph, Node, Op, Program, TensorType};
use nxla_tensor::Scalar;

use crate::context::Cx;
use crate::options::KERNEL_ID;
use crate::region::{Frame, Source, Sources};
use crate::types::Ty;
use crate::widen;
use crate::writer::{Value, Values};

/// Lowers a node to a custom call if the caller wants one.
pub(crate) fn lower(
    cx: &mut Cx<'_>,
    frame: &Frame<'_>,
    id: ExprId,
    node: &Node<'_>,
) -> Option<Sources> {
    if !cx.options.custom_call.is_some_and(|is_wanted| is_wanted(frame.graph, id)) {
        return None;
    }
    let types = node.ty.parts();
    if let Some(nothing) = empty_results(cx, types) {
        return Some(nothing);
    }
    let operands = operands(cx, frame, node);
    let inputs = match node.op {
        // Call the block instead of its body: the host may have an algorithm for the whole block.
        Op::Block(block) => block.body.inputs().to_vec(),
        _ => {
            let ty = |x: &Value| TensorType::new(cx.dtype(x.ty), cx.shape(x.ty).clone());
            operands.iter().map(ty).collect()
        }
    };
    let parts = call(cx, &of_op(node.op, inputs), &operands);
    Some(results(cx, &parts, types))
}

/// Returns the results of a call for which all results are empty; no call is needed.
pub(crate) fn empty_results(cx: &mut Cx<'_>, types: &[TensorType]) -> Option<Sources> {
    let nothing = |ty| Source::Splat(Scalar::UInt(0), cx.tensor_ty(ty));
    let is_empty = types.iter().all(|ty| ty.shape.size() == 0);
    is_empty.then(|| types.iter().map(nothing).collect())
}

/// Returns the results of a call in the shapes and dtypes of its node.
pub(crate) fn results(cx: &mut Cx<'_>, parts: &[Value], types: &[TensorType]) -> Sources {
    let convert = |(&part, ty): (&Value, &TensorType)| {
        let part = cx.reshape(part, &ty.shape);
        cx.convert(part, ty.dtype).into()
    };
    parts.iter().zip(types).map(convert).collect()
}

/// Returns the arguments of a custom call. Narrow floats and integers are widened for
/// factorizations here, so that their kernels need few dtypes.
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

/// Makes a program of one op on operands of these types.
fn of_op(op: &Op, types: Vec<TensorType>) -> Program {
    let mut graph = Graph::new();
    let inputs: Vec<ExprId> =
        types.iter().enumerate().map(|(index, ty)| graph.parameter(index, ty.clone())).collect();
    let refused = "operands of the shapes and kinds of numbers that type inference has accepted";
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
/// The program has the arguments and the results of the call.
///
/// # Errors
/// Returns an error for a string that [`lower`](crate::lower) does not write.
pub fn kernel_program(text: &str) -> Result<Program, SerializeError> {
    let digit = |at: usize| text.as_bytes().get(at).and_then(|&byte| char::from(byte).to_digit(16));
    let bytes: Option<Vec<u8>> = (0..text.len().div_ceil(2))
        .map(|at| Some((digit(2 * at)? << 4 | digit(2 * at + 1)?) as u8))
        .collect();
    from_bytes(&bytes.ok_or(SerializeError::NotAProgram)?)
}

#[cfg(test)]
mod tests {
    use nxla_tensor::DType;

    use super::*;

    #[test]
    fn programs_round_trip_as_text() {
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
