//! Rewrites of programs for backends.
//!
//! [`decompose`] is for backends without kernels for factorizations. It replaces each factorization
//! by a block whose body uses products, masks and loops. The bodies compute whole batches with
//! static shapes, which suits accelerators; a kernel is much faster on a CPU.
//!
//! [`merge_transposes`] is for all backends: products read transposed and broadcast operands
//! directly.
//!
//! [`merge_gathers`] is for backends that read windows one after the other: gathers have one offset
//! for each window.

mod gathers;
mod jacobi;
mod lu;
mod parts;
mod products;
mod qr;
mod rebuild;

use nxla_tensor::Shape;

use crate::graph::{BlockKind, ExprId, Factorization, Graph, Op, Program, Result};
use rebuild::Rewrite;

pub use gathers::merge_gathers;
pub use products::merge_transposes;

/// Returns the program without the factorizations for which `keeps` is false, or `None` if there are
/// none in the program and its regions.
///
/// # Errors
/// Returns the error of [`Graph::make`], which accepts every node of a well-typed program.
///
/// ```
/// use nxla_expr::{Factorization, Graph, Op, Program, TensorType, decompose};
/// use nxla_tensor::DType;
///
/// let ty = TensorType::new(DType::F32, [3, 3]);
/// let mut graph = Graph::new();
/// let a = graph.parameter(0, ty.clone());
/// let (q, _) = graph.qr(a, false)?;
/// let program = Program::new(&graph, vec![ty], &[q])?;
///
/// let decomposed = decompose(&program, |_, _| false)?.expect("there is a factorization");
/// let graph = decomposed.graph();
/// assert!(graph.ids().all(|id| !matches!(graph.op(id), Op::Factorize(_))));
/// assert!(decompose(&decomposed, |_, _| false)?.is_none());
/// assert!(decompose(&program, |_, _| true)?.is_none());
/// # Ok::<(), nxla_expr::Error>(())
/// ```
pub fn decompose(
    program: &Program,
    keeps: impl Fn(&Graph, ExprId) -> bool,
) -> Result<Option<Program>> {
    let rewrite = Rewrite {
        changes: &|graph, id| matches!(graph.op(id), Op::Factorize(_)) && !keeps(graph, id),
        make: |graph, op, operands| match op {
            Op::Factorize(factorization) => block(graph, *factorization, operands[0]),
            op => unreachable!("{} is not a factorization", op.name()),
        },
    };
    rewrite.apply(program)
}

/// Creates a block that computes the factors.
fn block(graph: &mut Graph, factorization: Factorization, a: ExprId) -> Result<ExprId> {
    let parts = graph.known_block(BlockKind::Factorize(factorization), &[a], |graph, inputs| {
        compose(graph, factorization, inputs[0])
    })?;
    Ok(graph.operands(parts[0])[0])
}

/// Builds the factors from simpler ops. Floats narrower than `f32` are computed in `f32`.
fn compose(graph: &mut Graph, factorization: Factorization, a: ExprId) -> Result<Vec<ExprId>> {
    let ty = graph.tensor_type(a).clone();
    let types = factorization.parts(&ty).expect("the operand was checked when the op was made");
    let compute = ty.dtype.to_floating().at_least_f32();
    let [batch @ .., rows, columns] = ty.shape.as_slice() else { unreachable!("a is checked") };
    let (batch, rows, columns) = (Shape::from(batch).size(), *rows, *columns);
    let a = graph.rename(a, None)?;
    let a = graph.as_type(a, compute)?;
    let a = graph.reshape(a, [batch, rows, columns])?;
    let parts = match factorization {
        Factorization::Lu => lu::lu(graph, a)?.to_vec(),
        Factorization::Qr { complete } => {
            let inner = if complete { rows } else { rows.min(columns) };
            qr::qr(graph, a, inner)?.to_vec()
        }
        Factorization::Eigh => jacobi::eigh(graph, a)?.to_vec(),
        Factorization::Svd { full } => jacobi::svd(graph, a, full)?.to_vec(),
    };
    let finish = |(part, ty): (ExprId, &crate::TensorType)| {
        let part = graph.reshape(part, ty.shape.clone())?;
        graph.as_type(part, ty.dtype)
    };
    parts.into_iter().zip(&types).map(finish).collect()
}
