//! Which code runs together with a reduction of all that it computes, see
//! [`Totals`].
//!
//! One pass over the steps: code joins with the step behind it, if that reduces one of its results.

use nxla_expr::{Graph, Op};

use super::build::Built;
use super::whole::{Whole, taken_apart, uses, write};
use super::{Action, Step};
use crate::totals::{LEAST, Totals};
use crate::{long, reduce};

/// Steps that an element of cheap code takes.
const CHEAP: usize = 4;

/// Puts steps together.
pub(super) fn join(graph: &Graph, built: Built) -> Built {
    let uses = uses(&built);
    let (mut built, wholes) = taken_apart(built);
    let mut wholes = wholes.into_iter().peekable();
    while let Some(whole) = wholes.next() {
        let Some(reduced) = wholes.peek().and_then(|next| reduced(graph, &whole, next)) else {
            write(&mut built, whole);
            continue;
        };
        let next = wholes.next().expect("it was looked at");
        write(&mut built, joined(graph, whole, next, reduced, &uses));
    }
    built
}

/// Which result of code the next step reduces, if it pays to do both at once.
fn reduced(graph: &Graph, whole: &Whole, next: &Whole) -> Option<usize> {
    let (Action::Code(code), Action::Op) = (&whole.step.action, &next.step.action) else {
        return None;
    };
    let id = next.step.id;
    let Op::Reduce(op, attributes) = graph.op(id) else { return None };
    let result = whole.results.iter().position(|&value| value == next.args[0])?;
    let x = graph.tensor_type(graph.operands(id)[0]);
    let inner = reduce::results_of_made(*op, attributes, x, graph.tensor_type(id))?;
    let len = code.shape.size();
    // Of a single piece, code that takes long is better spread.
    let is_spread = reduce::piece(len, inner) < len || code.cost <= CHEAP;
    (len >= LEAST && is_spread).then_some(result)
}

fn joined(graph: &Graph, code: Whole, total: Whole, reduced: usize, uses: &[u32]) -> Whole {
    let (Action::Code(action), Op::Reduce(op, _)) = (code.step.action, graph.op(total.step.id))
    else {
        unreachable!("code joins a reduction");
    };
    let is_kept = uses[code.results[reduced] as usize] > 1;
    let mut results = code.results;
    if !is_kept {
        results.remove(reduced);
    }
    results.extend(total.results);
    let id = total.step.id;
    let is_long = long::is_long_code(action.shape.size().saturating_mul(action.cost));
    let shape = graph.shape(id).clone();
    let action = Totals { code: action, reduced, is_kept, op: *op, shape };
    let action = Action::Totals(Box::new(action));
    let step = Step { id, first_arg: 0, first_target: 0, is_long, action };
    Whole { step, args: code.args, results }
}
