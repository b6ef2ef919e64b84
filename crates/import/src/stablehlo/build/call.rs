//! Custom calls that JAX and its tools write.

use super::factor::routine;
use super::{Builder, Built, Slot, nodes_of, slots_of, unsupported};
use crate::stablehlo::syntax::{Operation, Type};

/// The custom calls that return their operands: annotations of layouts, devices and partitions.
const ANNOTATIONS: [&str; 6] = [
    "Sharding",
    "SPMDFullToShardShape",
    "SPMDShardToFullShape",
    "LayoutConstraint",
    "annotate_device_placement",
    "xla.sdy.FuncResultSharding",
];

/// The calls of functions of Python, which only the process that traced the module can run.
const CALLBACKS: [&str; 6] = [
    "xla_ffi_python_cpu_callback",
    "xla_ffi_python_gpu_callback",
    "xla_ffi_partitioned_python_cpu_callback",
    "xla_ffi_partitioned_python_gpu_callback",
    "xla_python_cpu_callback",
    "xla_python_gpu_callback",
];

impl Builder<'_> {
    pub(super) fn custom_call(&mut self, operation: &Operation, slots: &[Slot]) -> Built {
        let target = operation.text(&["call_target_name", "callee"]).unwrap_or_default();
        if ANNOTATIONS.contains(&target) {
            return Ok(Some(slots.to_vec()));
        }
        if CALLBACKS.contains(&target) {
            return callback(operation);
        }
        match (routine(target), slots) {
            (Some("geqrf"), &[Slot::Node(a)]) => return self.geqrf(a).map(Some),
            (Some("orgqr" | "ungqr"), &[Slot::Node(_), Slot::Reflectors(a)]) => {
                return self.orgqr(operation, a).map(Some);
            }
            (Some("ormqr" | "unmqr"), &[Slot::Node(_), Slot::Reflectors(a), Slot::Node(x)]) => {
                return self.ormqr(operation, a, x);
            }
            _ => {}
        }
        let Some(x) = nodes_of(slots) else {
            return unsupported(format!("the custom call {target:?} of tuples is not supported"));
        };
        if target == "ApproxTopK" {
            return self.approximate_top_k(operation, &x);
        }
        let results = match routine(target) {
            Some(routine) => self.lapack(routine, operation, &x)?,
            None => self.library_call(target, operation, &x)?,
        };
        match results {
            Some(results) => Ok(Some(slots_of(&results))),
            None if is_of_accelerator(target) => unsupported(format!(
                "the custom call {target:?} is of a GPU or TPU: export the function for the \
                 platform cpu"
            )),
            None => unsupported(format!("the custom call {target:?} is not known")),
        }
    }

    /// Builds custom calls that represent operations of other dialects, such as `mhlo.erf`.
    fn library_call(
        &mut self,
        target: &str,
        operation: &Operation,
        x: &[nxla_expr::ExprId],
    ) -> Result<Option<Vec<nxla_expr::ExprId>>, super::Fail> {
        let Some(name) = target.strip_prefix("mhlo.") else { return Ok(None) };
        if name == "topk" {
            let attributes = "mhlo.attributes";
            let k = operation.entry_sizes(&[attributes], "k")?;
            if operation.entry_sizes(&[attributes], "largest")? == [0] {
                return unsupported("largest: must be true; got false");
            }
            let (&[x], &[k]) = (x, &k[..]) else { return Ok(None) };
            return self.top_k(x, k).map(Some);
        }
        let found = self.elementwise(&format!("chlo.{name}"), operation, x)?;
        Ok(found.map(|id| vec![id]))
    }
}

/// Drops a call of a Python function that has only side effects, such as `jax.debug.print`.
fn callback(operation: &Operation) -> Built {
    if operation.result_types.iter().all(Type::is_token) {
        return Ok(Some(vec![Slot::Token; operation.result_types.len()]));
    }
    unsupported(
        "a call of a Python function: remove jax.pure_callback or io_callback; for Equinox set \
         EQX_ON_ERROR=nan",
    )
}

/// Returns whether the target of a custom call is a function of a library for GPUs or TPUs.
fn is_of_accelerator(target: &str) -> bool {
    let libraries = ["cu_", "cublas_", "cusolver_", "hip_", "hipblas_", "hipsolver_"];
    let is_of_tpu = matches!(
        target,
        "Qr" | "LuDecomposition" | "Eigh" | "ProductOfElementaryHouseholderReflectors"
    );
    is_of_tpu || libraries.iter().any(|library| target.starts_with(library))
}
