//! From a step to the file that knows its op.

use nxla_expr::Family;

use crate::args::Args;
use crate::error::Stop;
use crate::run::{Results, Site, one};
use crate::{contract, control, create, index, linalg, movement, reduce, window};

/// Computes the results of a step. Element-wise ops do not come here: plans turn them into code.
pub(crate) fn evaluate(site: Site<'_>, args: &mut Args<'_>) -> Result<Results, Stop> {
    let op = site.op();
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
