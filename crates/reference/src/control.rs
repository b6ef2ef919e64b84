//! Parameters, literals, tuples, conditionals, loops, hooks and blocks.

use nxla_expr::{self as expr, Cond, HookOp, Op, While};

use crate::array::Array;
use crate::error::Error;
use crate::run::{HostFnLookup, Site, call};

pub(crate) fn evaluate(site: Site<'_>, operands: &[&[Array]]) -> Result<Vec<Array>, Error> {
    let x: Vec<&Array> = operands.iter().filter_map(|parts| parts.first()).collect();
    match site.op() {
        Op::Parameter(parameter) => Ok(vec![site.inputs[parameter.index as usize].clone()]),
        Op::Constant(constant) => {
            let value = crate::number::Number::of(constant.value);
            Ok(vec![Array::from_fn(&constant.ty, |_| value)])
        }
        Op::Tensor(literal) => Ok(vec![Array::of(&literal.0)]),
        // The operands are unchanged. A custom rule matters only to `grad`; the operands that only
        // the rule needs are not results.
        Op::Metadata(_) => {
            let results = site.graph.ty(site.id).parts().len();
            Ok(x[..results].iter().map(|&x| x.clone()).collect())
        }
        Op::Elem(part) => Ok(vec![operands[0][*part].clone()]),
        Op::Cond(cond) => conditional(cond, &x, site.listener),
        Op::While(op) => repeated(op, &x, site.listener),
        Op::Hook(hook) => hooked(hook, site, &x),
        // The default body defines the results.
        Op::Block(block) => call(&block.body, &x, site.listener),
        op @ nxla_expr::outside!(control) => unreachable!("{} is of another family", op.name()),
    }
}

/// Returns the results of the first body whose predicate is nonzero, or of the last body. Later
/// predicates and other bodies do not run.
fn conditional(
    cond: &Cond,
    x: &[&Array],
    listener: &HostFnLookup<'_>,
) -> Result<Vec<Array>, Error> {
    for (predicate, body) in &cond.clauses {
        if !call(predicate, x, listener)?[0].item().is_zero() {
            return call(body, x, listener);
        }
    }
    call(&cond.otherwise, x, listener)
}

/// Returns the final state: the body replaces the state while the condition is nonzero.
fn repeated(op: &While, x: &[&Array], listener: &HostFnLookup<'_>) -> Result<Vec<Array>, Error> {
    let (state, captures) = x.split_at(op.state);
    let mut state: Vec<Array> = state.iter().map(|&x| x.clone()).collect();
    loop {
        let inputs: Vec<&Array> = state.iter().chain(captures.iter().copied()).collect();
        if call(&op.condition, &inputs, listener)?[0].item().is_zero() {
            return Ok(state);
        }
        state = call(&op.body, &inputs, listener)?;
    }
}

/// Passes the operands to a host function and returns them; a runtime call returns the results of
/// its function. A hook without a function does nothing.
fn hooked(hook: &HookOp, site: Site<'_>, x: &[&Array]) -> Result<Vec<Array>, Error> {
    let types = site.graph.operands(site.id).iter().map(|&id| site.graph.tensor_type(id));
    let values = x.iter().zip(types).map(|(x, ty)| x.host(ty)).collect::<Result<Vec<_>, _>>()?;
    let function = (site.listener)(hook);
    match (&hook.results, expr::Listener::of(None, function.as_ref())) {
        (Some(results), Some(listener)) => {
            let computed = listener.compute(&values, results).map_err(Error::Hook)?;
            Ok(computed.iter().map(Array::of).collect())
        }
        (Some(_), None) => Err(Error::NoFunction),
        (None, listener) => {
            if let Some(listener) = listener {
                listener.call(&values).map_err(Error::Hook)?;
            }
            Ok(x.iter().map(|&x| x.clone()).collect())
        }
    }
}
