//! Writing the steps of a plan: each as instructions, or as a call.

use std::sync::Arc;

use nxla_expr::{Op, TensorType};

use super::build::{At, Builder, Held, NOWHERE};
use super::{Call, Handle, Inst, Load, Origin, What};
use crate::args::Arg;
use crate::plan::{Action, Plan};

/// A plan that is being written into the code of a loop.
pub(super) struct Region<'a> {
    pub(super) plan: &'a Arc<Plan>,
    /// Its number, once the run has to know it.
    number: Option<u32>,
    /// The values in its slots.
    held: Vec<Option<Held>>,
}

/// The step that is being written.
pub(super) struct Site<'a> {
    pub(super) plan: &'a Plan,
    pub(super) position: usize,
    /// Its operands, and whether each dies with it.
    pub(super) operands: &'a [Held],
    pub(super) lasts: &'a [bool],
    /// The types of its results.
    pub(super) types: &'a [TensorType],
}

impl Builder {
    /// Writes all steps of a plan, and gives its outputs. What an input owns may be moved away.
    pub(super) fn region(&mut self, plan: &Arc<Plan>, inputs: &[Held]) -> Vec<Held> {
        let mut region = Region { plan, number: None, held: vec![None; plan.slots] };
        for (&slot, input) in plan.inputs.iter().zip(inputs) {
            if let Some(slot) = slot {
                // It is given, and is there when the region has been run.
                if let At::Near(span) = input.at {
                    self.memory.hold(span.at);
                }
                region.held[slot as usize] = Some(input.clone());
            }
        }
        for position in 0..plan.steps.len() {
            self.step(&mut region, position);
        }
        let outputs = plan.outputs.iter();
        outputs.map(|&arg| self.output(&region, arg)).collect()
    }

    /// An output, which is its own.
    fn output(&mut self, region: &Region<'_>, arg: Arg) -> Held {
        let held = region.held[arg.slot()].clone().expect("an output has been computed");
        match held.at {
            At::Near(span) if !arg.is_last() => self.memory.hold(span.at),
            At::Near(_) => {}
            At::Far { is_own: true, .. } if arg.is_last() => {}
            At::Far { slot: from, .. } => {
                let to = self.new_slot();
                self.push(Handle::Share { from, to });
                return Held {
                    at: At::Far { slot: to, is_own: true },
                    level: self.depth(),
                    ..held
                };
            }
        }
        held
    }

    fn step(&mut self, region: &mut Region<'_>, position: usize) {
        let plan = region.plan;
        let args = plan.args_of(position);
        let operand = |arg: &Arg| region.held[arg.slot()].clone().expect("it has been computed");
        let operands: Vec<Held> = args.iter().map(operand).collect();
        let lasts: Vec<bool> = args.iter().map(|arg| arg.is_last()).collect();
        let types = plan.types_of(position);
        let site = Site { plan, position, operands: &operands, lasts: &lasts, types: &types };
        let written = self.written(region, &site);
        self.forget_scratch();
        let is_called = written.is_none();
        let results = written.unwrap_or_else(|| self.call(region, &site));
        for (arg, held) in args.iter().zip(&operands).filter(|(arg, _)| arg.is_last()) {
            region.held[arg.slot()] = None;
            let is_kept = results.iter().any(|result| result.slot() == held.slot());
            self.release(held, is_called || is_kept && held.slot().is_some());
        }
        for (target, result) in plan.targets_of(position).iter().zip(results) {
            match target {
                Some(slot) => region.held[*slot as usize] = Some(result),
                None => self.release(&result, is_called),
            }
        }
    }

    /// Names a step for the run, which may call it.
    pub(super) fn origin(&mut self, region: &mut Region<'_>, position: usize) -> Origin {
        let plan = *region.number.get_or_insert_with(|| {
            self.plans.push((region.plan.clone(), self.slots));
            self.slots += region.plan.slots;
            u32::try_from(self.plans.len() - 1).expect("few regions are written")
        });
        Origin { plan, position: u32::try_from(position).expect("fewer than 2^32 steps") }
    }

    /// The results of a step for which there are instructions.
    fn written(&mut self, region: &mut Region<'_>, site: &Site<'_>) -> Option<Vec<Held>> {
        let plan = site.plan;
        if plan.checks || site.types.iter().any(|ty| ty.shape.size() == 0) {
            return None;
        }
        let op = plan.program().graph().op(plan.steps[site.position].id);
        match &plan.steps[site.position].action {
            Action::Code(code) => self.code(code, site),
            Action::Rows(_) | Action::Totals(_) => None,
            Action::Written(_) | Action::Regions(_) if self.is_full() => None,
            Action::Written(written) => match &written.what {
                What::Loop(inner) => Some(self.while_loop(inner, site.operands, site.lasts)),
                What::Program(_) => unreachable!("no region is written by itself"),
            },
            Action::Regions(regions) => match op {
                Op::Cond(_) => Some(self.branches(regions, site)),
                Op::Block(_) => Some(self.whole(&regions[0], site)),
                _ => None,
            },
            Action::Op => self.op(op, region, site),
        }
    }

    /// Leaves a step to its plan.
    fn call(&mut self, region: &mut Region<'_>, site: &Site<'_>) -> Vec<Held> {
        let origin = self.origin(region, site.position);
        let first = self.plans[origin.plan as usize].1;
        let args = site.plan.args_of(site.position);
        let (mut loads, mut dead) = (Vec::new(), Vec::new());
        for (index, (arg, held)) in args.iter().zip(site.operands).enumerate() {
            let slot = first + arg.slot();
            let is_loaded = args[..index].iter().any(|before| before.slot() == arg.slot());
            if is_loaded || held.at == (At::Far { slot, is_own: true }) {
                continue;
            }
            let dies = args.iter().any(|other| other.slot() == arg.slot() && other.is_last());
            let load = match held.at {
                At::Near(span) => Load::Near(span, held.ty.clone()),
                At::Far { slot, is_own: true } if dies => Load::Move(slot),
                At::Far { slot, .. } => Load::Share(slot),
            };
            loads.push((load, slot));
            if !dies {
                dead.push(slot);
            }
        }
        let (mut stores, mut results) = (Vec::new(), Vec::new());
        let depth = self.depth();
        for (ty, target) in site.types.iter().zip(site.plan.targets_of(site.position)) {
            let slot = target.map(|target| first + target as usize);
            results.push(match slot {
                Some(slot) if self.is_near(ty) => {
                    let (held, to) = self.result(ty.clone(), depth);
                    stores.push((slot, to));
                    held
                }
                // What nobody needs is in no slot.
                slot => {
                    let at = At::Far { slot: slot.unwrap_or(NOWHERE), is_own: true };
                    Held { ty: ty.clone(), at, level: depth }
                }
            });
        }
        let (loads, dead, stores) = (loads.into(), dead.into(), stores.into());
        self.push(Inst::Call(Box::new(Call { origin, loads, dead, stores })));
        for held in &results {
            if let At::Near(to) = held.at {
                self.spread(to, held.ty.dtype.size(), depth);
            }
        }
        results
    }

    /// What a region gives that runs once.
    fn whole(&mut self, plan: &Arc<Plan>, site: &Site<'_>) -> Vec<Held> {
        let inputs = given(site);
        self.region(plan, &inputs)
    }
}

/// The operands for a region, which may take those that die.
pub(super) fn given(site: &Site<'_>) -> Vec<Held> {
    let operands = site.operands.iter().zip(site.lasts);
    operands.map(|(held, &last)| if last { held.clone() } else { held.lent() }).collect()
}
