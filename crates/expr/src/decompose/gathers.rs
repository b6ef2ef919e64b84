//! Gathers with one offset for each window.
//!
//! `x[i, j]` and `take_along_axis` have a coordinate for each of several axes, which are stacked. With
//! these axes merged into one, the coordinates become one offset by element-wise ops, without a tensor
//! of all coordinates.

use nxla_tensor::{DType, Shape, to_i64};

use super::rebuild::Rewrite;
use crate::build::{Formula, counting_dtype};
use crate::graph::{ExprId, Graph, Op, Program, Result};

/// Returns the program in which gathers of several leading axes read one merged axis, or `None` if there
/// are no such gathers with stacked coordinates in the program and its regions. The elements are the
/// same, also for coordinates out of range.
///
/// # Errors
/// Returns the error of [`Graph::make`], which accepts every node of a well-typed program.
///
/// ```
/// use nxla_expr::{Graph, Program, TensorType, merge_gathers};
/// use nxla_tensor::DType;
///
/// let types = vec![TensorType::new(DType::F32, [5, 3]), TensorType::new(DType::S32, [4, 3])];
/// let mut graph = Graph::new();
/// let x = graph.parameter(0, types[0].clone());
/// let indices = graph.parameter(1, types[1].clone());
/// let coordinates = graph.stack(&[indices, indices], -1, None)?;
/// let taken = graph.gather(x, coordinates, None)?;
/// let program = Program::new(&graph, types, &[taken])?;
///
/// let merged = merge_gathers(&program)?.expect("there is a gather of two axes");
/// assert!(merged.output_types().eq(program.output_types()));
/// assert!(merge_gathers(&merged)?.is_none());
/// # Ok::<(), nxla_expr::Error>(())
/// ```
pub fn merge_gathers(program: &Program) -> Result<Option<Program>> {
    let rewrite = Rewrite {
        changes: &|graph, id| columns(graph, graph.op(id), graph.operands(id)).is_some(),
        make: |graph, op, operands| match (columns(graph, op, operands), operands) {
            (Some(columns), &[x, indices]) => merge(graph, [x, indices], &columns),
            _ => graph.make(op.clone(), operands),
        },
    };
    rewrite.apply(program)
}

/// Returns the coordinates along each indexed axis of a gather of several leading axes. The last axis
/// of the coordinates may have size 1.
fn columns(graph: &Graph, op: &Op, operands: &[ExprId]) -> Option<Vec<ExprId>> {
    let (Op::Gather(axes), &[_, indices]) = (op, operands) else { return None };
    let is_leading = axes.len() > 1 && axes.iter().copied().eq(0..axes.len());
    let (last, columns) = (graph.shape(indices).rank() - 1, graph.operands(indices));
    let is_stacked = match graph.op(indices) {
        Op::Stack(stack) => stack.axis == last,
        Op::Concatenate(axis) => {
            *axis == last && columns.iter().all(|&column| graph.shape(column)[last] == 1)
        }
        _ => false,
    };
    (is_leading && is_stacked).then(|| columns.to_vec())
}

/// Creates the gather along the merged axis.
fn merge(graph: &mut Graph, [x, indices]: [ExprId; 2], columns: &[ExprId]) -> Result<ExprId> {
    let (shape, mut single) = (graph.shape(x).clone(), graph.shape(indices).clone());
    let (indexed, window) = shape.split_at(columns.len());
    let merged: usize = indexed.iter().product();
    let dtype = counting_dtype(&[merged]);
    let last = single.rank() - 1;
    single.as_mut_slice()[last] = 1;
    let mut coordinates = Vec::with_capacity(columns.len());
    for &column in columns {
        coordinates.push(signed_column(graph, column, &single, dtype)?);
    }
    let formula = Formula::new(graph);
    let mut offset = None;
    for (column, &size) in coordinates.into_iter().zip(indexed) {
        let size = to_i64(size);
        let column = formula.term(column).clip(0_i64, size - 1).as_type(dtype);
        offset = Some(offset.map_or(column, |offset| offset * size + column));
    }
    let offset = offset.expect("there are several axes").id()?;
    let offset = graph.broadcast(offset, single, None)?;
    let windows: Shape = std::iter::once(merged).chain(window.iter().copied()).collect();
    let windows = graph.reshape(x, windows)?;
    graph.make(Op::Gather([0].into()), &[windows, offset])
}

/// Returns coordinates along one axis, which broadcast to `shape`, in a signed dtype that represents all
/// sizes.
fn signed_column(graph: &mut Graph, column: ExprId, shape: &Shape, dtype: DType) -> Result<ExprId> {
    // A broadcast count is read without a tensor of all counts.
    let count = match graph.op(column) {
        Op::Iota(iota) => iota.axis.map(|axis| (axis, iota.ty.dtype)),
        _ => None,
    };
    let column = match count {
        Some((axis, counted)) => {
            let mut line = Shape::from(vec![1; shape.rank()]);
            line.as_mut_slice()[axis] = shape[axis];
            graph.iota(line, i64::try_from(axis).ok(), counted)?
        }
        None => graph.reshape(column, shape.clone())?,
    };
    match graph.dtype(column) {
        DType::S64 | DType::U64 | DType::U32 => graph.signed_indices(column),
        _ => graph.as_type(column, dtype),
    }
}
