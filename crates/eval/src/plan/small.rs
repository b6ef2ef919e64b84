//! Programs over small tensors, which run as code over one piece of memory, see
//! [`bytecode`](crate::bytecode).

use std::sync::Arc;

use nxla_expr::{Family, Graph, Op};

use super::build::Built;
use super::{Action, Plan, Step};
use crate::args::Arg;
use crate::bytecode::{NEAR, Written, is_at_most};

/// Steps of a program that is worth being written: to begin a run takes as long as a few of them.
const LEAST: usize = 4;

/// Steps for which there are instructions, for each that is called.
const MOST: usize = 3;

/// Whether all that a program makes is small, and most of it by what there are instructions for.
pub(super) fn pays(graph: &Graph, built: &Built) -> bool {
    let is_near = |step: &Step| step.types(graph).iter().all(|ty| is_at_most(ty, NEAR));
    let called = built.steps.iter().filter(|step| is_called(graph, step)).count();
    built.steps.len() >= LEAST
        && called * (MOST + 1) <= built.steps.len()
        && built.steps.iter().all(is_near)
}

/// Whether there is no instruction for a step.
fn is_called(graph: &Graph, step: &Step) -> bool {
    match &step.action {
        Action::Code(_) | Action::Written(_) => false,
        Action::Rows(_) | Action::Totals(_) => true,
        Action::Op | Action::Regions(_) => match graph.op(step.id) {
            Op::Constant(_) | Op::Tensor(_) | Op::Slice(_) | Op::PutSlice(_) | Op::Cond(_) => false,
            Op::Reduce(..) | Op::Dot(_) => false,
            op => !matches!(op.family(), Family::Movement | Family::Create),
        },
    }
}

/// A plan of one step, which is all of another one.
pub(super) fn written(plan: Arc<Plan>) -> Plan {
    let number = |index: usize| u32::try_from(index).expect("fewer than 2^32 values");
    let needed = plan.inputs.iter().scan(0, |count, slot| {
        let at = *count;
        *count += usize::from(slot.is_some());
        Some(slot.map(|_| number(at)))
    });
    let inputs: Vec<_> = needed.collect();
    let taken = inputs.iter().flatten().count();
    let outputs = 0..plan.outputs.len();
    let id = plan.steps.last().expect("it has a few").id;
    let action = Action::Written(Box::new(Written::program_of(plan.clone())));
    Plan {
        program: plan.program.clone(),
        steps: vec![Step { id, first_arg: 0, first_target: 0, is_long: false, action }],
        args: (0..taken).map(|slot| Arg::new(number(slot), true)).collect(),
        targets: outputs.clone().map(|slot| Some(number(slot))).collect(),
        inputs,
        outputs: outputs.clone().map(|slot| Arg::new(number(slot), true)).collect(),
        slots: taken.max(outputs.len()),
        checks: false,
        work: plan.work,
    }
}
