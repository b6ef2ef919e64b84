//! Control flow, literals and hooks.

use nxla_expr::{Cond, HookOp, Op};
use nxla_tensor::HostTensor;
use smallvec::SmallVec;

use crate::args::Args;
use crate::block;
use crate::error::{Fault, Stop};
use crate::run::{Frame, Results, Site, named, one};

pub(crate) fn evaluate(site: Site<'_>, args: &mut Args<'_>) -> Result<Results, Stop> {
    match site.op() {
        Op::Constant(constant) => {
            let ty = &constant.ty;
            let tensor = HostTensor::full(constant.value, ty.dtype, ty.shape.clone());
            Ok(one(tensor.map_err(Fault::from)?))
        }
        Op::Tensor(literal) => Ok(one(HostTensor::clone(&literal.0))),
        Op::Cond(cond) => run_cond(cond, site, args),
        Op::Block(block) => match site.regions {
            [] => Ok(block::evaluate(block, args)?),
            [body, ..] => {
                Ok(body.call(&mut Frame::default(), site.context, |index| args.take(index))?)
            }
        },
        Op::Hook(hook) => run_hook(hook, site, args),
        // Loops are written as code.
        Op::While(_) | Op::Parameter(_) | Op::Metadata(_) | Op::Elem(_) => {
            unreachable!("{} takes no such step", site.op().name())
        }
        op @ nxla_expr::outside!(control) => unreachable!("{} is of another family", op.name()),
    }
}

/// Whether a predicate, a tensor of one element, holds.
fn is_true(predicate: &HostTensor) -> bool {
    !predicate.get(0).is_zero()
}

/// Predicates are tried in order; only the chosen branch runs.
fn run_cond(cond: &Cond, site: Site<'_>, args: &mut Args<'_>) -> Result<Results, Stop> {
    let mut chosen = 2 * cond.clauses.len();
    for clause in 0..cond.clauses.len() {
        let predicate = &site.regions[2 * clause];
        let holds =
            predicate.call(&mut Frame::default(), site.context, |index| args.get(index).clone())?;
        if is_true(&holds[0]) {
            chosen = 2 * clause + 1;
            break;
        }
    }
    Ok(site.regions[chosen].call(&mut Frame::default(), site.context, |index| args.take(index))?)
}

/// Shows the operands to the listener. The plan passes on those of a hook; a runtime call gives
/// what the function computes.
fn run_hook(hook: &HookOp, site: Site<'_>, args: &Args<'_>) -> Result<Results, Stop> {
    let Some(listener) = site.context.hooks.listener(hook) else {
        return match &hook.results {
            Some(_) => Err(Fault::NoFunction.into()),
            None => Ok(Results::new()),
        };
    };
    let types = site.graph.operands(site.id).iter().map(|&id| site.graph.tensor_type(id));
    let values: SmallVec<[HostTensor; 2]> =
        types.enumerate().map(|(index, ty)| named((args.get(index).clone(), ty))).collect();
    let results = match &hook.results {
        Some(types) => listener.compute(&values, types),
        None => listener.call(&values).map(|()| Vec::new()),
    };
    results.map(Results::from_vec).map_err(|error| {
        let error = error.into();
        Stop::from(match &hook.results {
            Some(_) => Fault::RuntimeCall { error },
            None => Fault::Hook { name: hook.name.as_deref().map(Into::into), error },
        })
    })
}
