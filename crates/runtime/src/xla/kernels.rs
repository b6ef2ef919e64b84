//! Factorisations of matrices inside compiled programs: the evaluator's, called by XLA.

use std::sync::{Arc, Once};

use nxla_expr::Factorization;
use nxla_pjrt::{HostAttribute, HostCall, register_host_fn};
use nxla_stablehlo::KERNEL_ID;

/// Makes the kernels callable for all programs of the process.
pub(super) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        register_host_fn(KERNEL_ID, Arc::new(factorize));
    });
}

fn factorize(call: &mut HostCall<'_>) -> Result<(), String> {
    let kernel = match call.attribute("kernel") {
        Some(HostAttribute::Str(name)) => Factorization::from_kernel_name(name),
        _ => None,
    };
    let (Some(kernel), [a]) = (kernel, &call.args[..]) else {
        return Err(format!("a call of the host function {KERNEL_ID} names no factorization"));
    };
    let parts = nxla_eval::factorize(kernel, &a.to_tensor()).map_err(|fault| fault.to_string())?;
    for (result, part) in call.results.iter_mut().zip(&parts) {
        result.write(part)?;
    }
    Ok(())
}
