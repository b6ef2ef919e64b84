//! Custom calls: nodes of compiled programs that the evaluator computes.
//!
//! They are the ops that StableHLO lacks, and the ops for which XLA's code for CPUs takes at least
//! three times as long: factorizations, triangular and linear solves, sorts, top-k, cumulative
//! reductions and Fourier transforms.

use std::sync::{Arc, LazyLock, Mutex, Once, PoisonError};

use nxla_eval::{Hooks, Plan};
use nxla_expr::{BlockKind, ExprId, Factorization, Graph, Op, family_ops};
use nxla_pjrt::{HostAttribute, HostCallFrame, HostView, register_host_fn};
use nxla_stablehlo::{KERNEL_ID, kernel_program};
use nxla_tensor::DType;
use rustc_hash::FxHashMap;

use crate::thresholds::{FFT_ELEMENTS, MIN_SORT_ELEMENTS};

/// Returns `true` if a node of a program for a CPU is a custom call.
pub(super) fn is_custom_call(graph: &Graph, id: ExprId) -> bool {
    let operand = || graph.operands(id)[0];
    // Dtypes with several elements per byte are not worth unpacking.
    let has = |elements: usize| {
        graph.dtype(operand()).bits() >= 8 && graph.shape(operand()).size() >= elements
    };
    match graph.op(id) {
        Op::Factorize(_) | Op::Cholesky | Op::TriangularSolve(_) => true,
        Op::Sort(_) | Op::Argsort(..) => has(MIN_SORT_ELEMENTS),
        Op::Fft(fft) => {
            let dtypes = [DType::F32, DType::F64, DType::C64, DType::C128];
            cfg!(feature = "fft")
                && fft.length.is_power_of_two()
                && dtypes.contains(&graph.dtype(operand()))
                && FFT_ELEMENTS.contains(&graph.shape(operand()).size())
        }
        Op::Block(block) => match block.kind {
            BlockKind::Solve { .. } => block.body.effects().is_empty(),
            // The kernel does not support bodies with captured values or hooks.
            BlockKind::Cumulative { .. } | BlockKind::TopK { .. } => {
                let is_plain = block.body.inputs().len() == 1 && block.body.effects().is_empty();
                is_plain && has(MIN_SORT_ELEMENTS)
            }
            BlockKind::Threefry { .. }
            | BlockKind::Search(_)
            | BlockKind::Scatter { .. }
            | BlockKind::Checkpoint { .. }
            | BlockKind::Named { .. }
            | BlockKind::Factorize(_) => false,
        },
        family_ops!(@ create elementwise movement reduce window contract) => false,
        Op::Slice(_) | Op::PutSlice(_) | Op::Gather(_) => false,
        Op::IndexedAdd(_) | Op::IndexedPut(_) => false,
        Op::Parameter(_) | Op::Constant(_) | Op::Tensor(_) | Op::Metadata(_) => false,
        Op::Elem(_) | Op::Cond(_) | Op::While(_) | Op::Hook(_) => false,
    }
}

/// Returns `true` if a factorization of a program for a CUDA device is a call of cuSOLVER.
///
/// A call factorizes one matrix after another, except for Cholesky factors and eigenvalues.
/// Composed ops take a number of steps that grows with the sides of the matrices and computes all
/// matrices in each step.
pub(super) fn is_library_call(graph: &Graph, id: ExprId) -> bool {
    let factorization = match graph.op(id) {
        Op::Cholesky => return true,
        Op::Factorize(factorization) => factorization,
        _ => return false,
    };
    let shape = graph.shape(graph.operands(id)[0]);
    let [batch @ .., rows, columns] = &shape[..] else { return false };
    match factorization {
        Factorization::Eigh => true,
        Factorization::Lu | Factorization::Qr { .. } | Factorization::Svd { .. } => {
            batch.iter().product::<usize>() <= *rows.max(columns)
        }
    }
}

/// The number of plans kept; a process with more kinds of kernels plans some of them again.
const PLANS: usize = 1024;

/// The plans of the kernels that have been called, by the text of their programs.
static KNOWN: LazyLock<Mutex<FxHashMap<String, Arc<Plan>>>> = LazyLock::new(Mutex::default);

/// Makes the kernels callable for all programs of the process.
pub(super) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        register_host_fn(KERNEL_ID, Arc::new(run));
    });
}

fn run(call: &mut HostCallFrame<'_>) -> Result<(), String> {
    let Some(HostAttribute::Str(text)) = call.attribute("program") else {
        return Err(format!("a call of the host function {KERNEL_ID} contains no program"));
    };
    let plan = plan(text)?;
    let inputs = call.args.iter().map(HostView::to_tensor).collect();
    let results = plan.run(inputs, &Hooks::new()).map_err(|error| error.to_string())?;
    let buffers = call.results.iter_mut();
    buffers.zip(&results).try_for_each(|(buffer, result)| buffer.write(result))
}

fn plan(text: &str) -> Result<Arc<Plan>, String> {
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(plan) = known().get(text) {
        return Ok(plan.clone());
    }
    let program = kernel_program(text).map_err(|error| error.to_string())?;
    let plan = Arc::new(Plan::new(Arc::new(program)));
    let mut known = known();
    if known.len() >= PLANS {
        known.clear();
    }
    Ok(known.entry(text.to_owned()).or_insert(plan).clone())
}
