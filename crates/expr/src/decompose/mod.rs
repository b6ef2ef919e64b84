//! Factorisations as programs of simpler ops, for compilers that have no kernels for them.
//!
//! [`decompose`] replaces every factorisation by a block whose body computes it with products,
//! masks and loops. The bodies work on whole batches at once and keep their shapes, so they suit
//! accelerators; on a processor a kernel is faster by far.

mod jacobi;
mod lu;
mod parts;
mod qr;

use std::sync::Arc;

use nxla_tensor::DType;

use crate::graph::{BlockKind, ExprId, Factorization, Graph, IdMap, Op, Operands, Program, Result};

/// The same program without factorisations, or `None` if it has none, in its regions neither.
///
/// # Errors
/// None for programs that were built by [`Graph::make`]; the result is fallible like that of
/// every builder.
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
/// let decomposed = decompose(&program)?.expect("there is a factorisation");
/// let graph = decomposed.graph();
/// assert!(graph.ids().all(|id| !matches!(graph.op(id), Op::Factorize(_))));
/// assert!(decompose(&decomposed)?.is_none());
/// # Ok::<(), nxla_expr::Error>(())
/// ```
pub fn decompose(program: &Program) -> Result<Option<Program>> {
    if holds_factorization(program) { rebuild(program).map(Some) } else { Ok(None) }
}

/// Regions nest as deep as users nest loops and branches, and so does this call.
fn holds_factorization(program: &Program) -> bool {
    let graph = program.graph();
    graph.ids().any(|id| match graph.op(id) {
        Op::Factorize(_) => true,
        op => op.regions().into_iter().any(|region| holds_factorization(region)),
    })
}

fn rebuild(program: &Program) -> Result<Program> {
    let from = program.graph();
    let mut graph = Graph::with_options(from.options());
    let mut copied = crate::graph::SourceMap::default();
    // The new id of each node, plus one.
    let mut places: IdMap<u32> = IdMap::default();
    let new = |places: &IdMap<u32>, id: ExprId| ExprId::from_index(places.get(id) as usize - 1);
    for id in from.ids() {
        let operands: Operands = from.operands(id).iter().map(|&id| new(&places, id)).collect();
        graph.copy_source(from, id, &mut copied);
        let made = match from.op(id) {
            Op::Factorize(factorization) => block(&mut graph, *factorization, operands[0])?,
            op => {
                let mut failure = None;
                let op = op.map_regions(|region| match decompose(region) {
                    Ok(Some(region)) => Arc::new(region),
                    Ok(None) => region.clone(),
                    Err(error) => {
                        failure = Some(error);
                        region.clone()
                    }
                });
                if let Some(error) = failure {
                    return Err(error);
                }
                graph.make(op, &operands)?
            }
        };
        places.set(id, u32::try_from(made.index() + 1).expect("ids fit in 32 bits"));
    }
    let outputs: Vec<ExprId> = program.outputs().iter().map(|&id| new(&places, id)).collect();
    Program::new(&graph, program.inputs().to_vec(), &outputs)
}

/// A block with the parts of a factorisation.
fn block(graph: &mut Graph, factorization: Factorization, a: ExprId) -> Result<ExprId> {
    let parts = graph.known_block(BlockKind::Factorize(factorization), &[a], |graph, inputs| {
        compose(graph, factorization, inputs[0])
    })?;
    Ok(graph.operands(parts[0])[0])
}

/// The parts of a factorisation by simpler ops. Floats narrower than `f32` compute in `f32`.
fn compose(graph: &mut Graph, factorization: Factorization, a: ExprId) -> Result<Vec<ExprId>> {
    let ty = graph.tensor_type(a).clone();
    let types = factorization.parts(&ty).expect("the operand was checked when the op was made");
    let compute = match ty.dtype.to_floating() {
        dtype @ (DType::F64 | DType::C64 | DType::C128) => dtype,
        _ => DType::F32,
    };
    let [batch @ .., rows, columns] = ty.shape.as_slice() else { unreachable!("a is checked") };
    let (batch, rows, columns) = (batch.iter().product(), *rows, *columns);
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
