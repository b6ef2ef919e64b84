//! From a step to the file that knows its op.

use nxla_expr::{Family, TensorType};
use nxla_tensor::{HostTensor, TensorError};

use crate::args::Args;
use crate::error::{Fault, Stop};
use crate::run::{Results, Site, one};
use crate::{contract, control, create, index, linalg, movement, reduce, window};

/// Results of more bytes are asked for before a kernel, which may allocate as it likes, sets to work.
const LARGE: usize = 1 << 30;

/// Computes the results of a step. Element-wise ops do not come here: plans turn them into code.
pub(crate) fn evaluate(site: Site<'_>, args: &mut Args<'_>) -> Result<Results, Stop> {
    let op = site.op();
    let types = site.graph.ty(site.id).parts();
    if types.iter().all(|ty| ty.shape.size() == 0) && !op.has_effects() {
        // However large an operand or a window is, there is nothing to compute.
        let empty = types.iter().map(|ty| HostTensor::zeros(ty.dtype, ty.shape.clone()));
        return empty.collect::<Result<_, _>>().map_err(Fault::from).map_err(Stop::from);
    }
    types.iter().try_for_each(fits).map_err(Stop::from)?;
    match op.family() {
        Family::Create => create::evaluate(op, site.ty()).map(one).map_err(Stop::from),
        Family::Elementwise => unreachable!("{} is part of the code of a group", op.name()),
        Family::Movement => movement::evaluate(op, site.ty(), args).map(one).map_err(Stop::from),
        Family::Reduce => reduce::evaluate(site, args).map(one),
        Family::Window => window::evaluate(site, args).map(one),
        Family::Contract => contract::evaluate(op, site.ty(), args).map(one).map_err(Stop::from),
        Family::Index => index::evaluate(op, site.ty(), args).map(one).map_err(Stop::from),
        Family::Linalg => linalg::evaluate(op, site.graph.ty(site.id), args).map_err(Stop::from),
        Family::Control => control::evaluate(site, args),
    }
}

/// Whether there is memory for a result.
fn fits(ty: &TensorType) -> Result<(), Fault> {
    let (dtype, shape) = (ty.dtype, &ty.shape);
    let bytes = shape.checked_size().and_then(|size| size.checked_mul(dtype.size()));
    match bytes {
        Some(bytes) if bytes <= LARGE => Ok(()),
        Some(bytes) if isize::try_from(bytes).is_ok() => {
            let refused = |_| TensorError::OutOfMemory { dtype, shape: shape.clone(), bytes };
            Vec::<u8>::new().try_reserve_exact(bytes).map_err(refused).map_err(Fault::from)
        }
        Some(_) | None => Err(Fault::TooLarge { dtype, shape: shape.clone() }),
    }
}
