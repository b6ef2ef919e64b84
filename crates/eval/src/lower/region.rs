//! Lowering of regions: the instructions of each step, or a call.

use std::sync::Arc;

use nxla_expr::{Op, TensorType};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::build::{At, Builder, Held, NO_SLOT, lower_program, lower_step, unread};
use super::nest::{lower_nest, total_cost};
use crate::context::Arg;
use crate::execute::code::{Bytecode, Call, CallWork, Handle, Inst};
use crate::schedule::{Schedule, Step, ValueId, Work, is_long, is_long_body};

/// The step that is being lowered.
pub(super) struct Site<'a> {
    pub(super) schedule: &'a Schedule,
    pub(super) step: &'a Step,
    /// The operands, and whether each dies with the step.
    pub(super) operands: &'a [Held],
    pub(super) lasts: &'a [bool],
    /// The types of the results.
    pub(super) types: &'a [TensorType],
}

impl Site<'_> {
    /// The operands as inputs of a region. The region owns the operands that die with the step.
    pub(super) fn inputs(&self) -> Vec<Held> {
        let mut holders = FxHashMap::default();
        for slot in self.operands.iter().filter_map(Held::slot) {
            *holders.entry(slot).or_insert(0_usize) += 1;
        }
        // A region may overwrite an input that it owns, so no other input may use the same slot.
        let is_alone = |held: &Held| held.slot().is_none_or(|slot| holders[&slot] == 1);
        let operands = self.operands.iter().zip(self.lasts);
        let input = |(held, &last): (&Held, &bool)| match last && is_alone(held) {
            true => held.clone(),
            false => held.lent(),
        };
        operands.map(input).collect()
    }
}

/// The values of a region, and the last step that reads each.
struct Region<'a> {
    schedule: &'a Schedule,
    held: Vec<Option<Held>>,
    last_reads: Vec<Option<usize>>,
}

impl<'a> Region<'a> {
    fn new(schedule: &'a Schedule) -> Self {
        let mut last_reads = vec![None; schedule.values];
        for (position, step) in schedule.steps.iter().enumerate() {
            for &value in &step.args {
                last_reads[value as usize] = Some(position);
            }
        }
        for &value in &schedule.outputs {
            last_reads[value as usize] = Some(schedule.steps.len());
        }
        Self { schedule, held: vec![None; schedule.values], last_reads }
    }

    /// Returns for each value that a step reads whether this read is the last one. A step that reads
    /// a value twice reads it last at the later operand.
    fn lasts(&self, values: &[ValueId], position: usize) -> SmallVec<[bool; 4]> {
        let mut later = FxHashSet::default();
        let mut is_last = |value: &ValueId| {
            self.last_reads[*value as usize] == Some(position) && later.insert(*value)
        };
        let mut lasts: SmallVec<[bool; 4]> = values.iter().rev().map(&mut is_last).collect();
        lasts.reverse();
        lasts
    }

    fn value(&self, value: ValueId) -> Held {
        self.held[value as usize].clone().expect("a value is computed before it is read")
    }
}

impl Builder {
    /// Returns true if the current step is in a loop.
    pub(super) fn in_loop(&self) -> bool {
        self.blocks.len() > 2
    }

    /// Lowers all steps of a region, and returns its outputs. The region may move an input that owns its slot.
    pub(super) fn region(&mut self, schedule: &Schedule, inputs: &[Held]) -> Vec<Held> {
        let mut region = Region::new(schedule);
        for (value, input) in schedule.inputs.iter().zip(inputs) {
            if let Some(value) = value {
                // The slot belongs to the caller even after the region has released the value.
                self.hold(input);
                region.held[*value as usize] = Some(input.clone());
            }
        }
        for position in 0..schedule.steps.len() {
            self.step(&mut region, position);
        }
        let lasts = region.lasts(&schedule.outputs, schedule.steps.len());
        let outputs = schedule.outputs.iter().zip(lasts);
        outputs.map(|(&value, is_last)| self.output(region.value(value), is_last)).collect()
    }

    /// An output, which owns its place.
    fn output(&mut self, held: Held, is_last: bool) -> Held {
        match held.at {
            At::Arena(span) if !is_last => self.arena.hold(span.at),
            At::Arena(_) => {}
            At::Slot { is_own: true, .. } if is_last => {}
            At::Slot { slot: from, .. } => {
                let to = self.slots.take();
                self.push(Handle::Share { from, to });
                let (at, level) = (At::Slot { slot: to, is_own: true }, self.depth());
                return Held { at, level, ..held };
            }
        }
        held
    }

    fn step(&mut self, region: &mut Region<'_>, position: usize) {
        let schedule = region.schedule;
        let step = &schedule.steps[position];
        let operands: Vec<Held> = step.args.iter().map(|&value| region.value(value)).collect();
        let lasts = region.lasts(&step.args, position);
        let types = step.types(schedule.program.graph());
        let site = Site { schedule, step, operands: &operands, lasts: &lasts, types: &types };
        let is_read = |value: &ValueId| region.last_reads[*value as usize].is_some();
        let results = match self.instructions(&site) {
            Some(results) => {
                self.release_scratch();
                for (held, _) in operands.iter().zip(&lasts).filter(|(_, last)| **last) {
                    // A result may be the updated operand.
                    let is_result = |result: &Held| held.slot() == result.slot();
                    if held.slot().is_none() || !results.iter().any(is_result) {
                        self.release(held, false);
                    }
                }
                results
            }
            None => {
                let is_read: SmallVec<[bool; 2]> = step.results.iter().map(is_read).collect();
                self.call(&site, &is_read)
            }
        };
        for (&value, last) in step.args.iter().zip(lasts) {
            if last {
                region.held[value as usize] = None;
            }
        }
        for (&value, result) in step.results.iter().zip(results) {
            match region.last_reads[value as usize] {
                Some(_) => region.held[value as usize] = Some(result),
                None => self.release(&result, false),
            }
        }
    }

    /// The results of a step that has instructions.
    fn instructions(&mut self, site: &Site<'_>) -> Option<Vec<Held>> {
        let op = site.schedule.program.graph().op(site.step.id);
        let is_empty = site.types.iter().any(|ty| ty.shape.size() == 0);
        match &site.step.work {
            Work::Loop(_) | Work::Regions(_) if self.is_full() => None,
            Work::Loop(it) => Some(self.while_loop(it, site.operands, site.lasts)),
            Work::Regions(regions) => match op {
                Op::Cond(_) => Some(self.branches(regions, site)),
                Op::Block(_) => Some(self.region(&regions[0], &site.inputs())),
                _ => None,
            },
            Work::Body(_) | Work::Op | Work::Nest(_) if self.checks || is_empty => None,
            Work::Body(code) => self.body(code, site),
            Work::Op => self.op(op, site),
            Work::Nest(_) => None,
        }
    }

    /// Lowers the only step of a program, and returns its results.
    pub(super) fn lone_step(
        &mut self,
        schedule: &Schedule,
        step: &Step,
        operands: &[Held],
    ) -> Vec<Held> {
        let types = step.types(schedule.program.graph());
        let lasts: SmallVec<[bool; 4]> = SmallVec::from_elem(true, operands.len());
        let site = Site { schedule, step, operands, lasts: &lasts, types: &types };
        let results = self.instructions(&site).expect("control flow has instructions");
        results.into_iter().map(|held| self.output(held, true)).collect()
    }

    /// Lowers a step to a call on boxed values.
    fn call(&mut self, site: &Site<'_>, is_read: &[bool]) -> Vec<Held> {
        let origin = self.origin(site.schedule, site.step);
        let (work, is_long) = self.call_work(site);
        let mut args: Vec<Arg> = Vec::with_capacity(site.operands.len());
        // The slot of each value of the arena, and the last operand that reads it.
        let (mut loads, mut boxes) = (Vec::new(), Vec::<(usize, usize)>::new());
        let mut known = FxHashMap::default();
        for (index, (held, &last)) in site.operands.iter().zip(site.lasts).enumerate() {
            args.push(match held.at {
                At::Slot { slot, is_own } => Arg::new(slot, is_own && last),
                At::Arena(span) => {
                    let position = *known.entry(span).or_insert_with(|| {
                        let slot = self.slots.take();
                        loads.push((span, held.ty.clone(), slot));
                        boxes.push((slot, index));
                        boxes.len() - 1
                    });
                    boxes[position].1 = index;
                    Arg::new(boxes[position].0, false)
                }
            });
        }
        // The call drops dead operands before it stores its results, which may take their places.
        for (slot, last) in boxes {
            args[last] = Arg::new(slot, true);
            self.slots.release(slot);
        }
        for (held, _) in site.operands.iter().zip(site.lasts).filter(|(_, last)| **last) {
            self.release(held, true);
        }
        let (mut targets, mut stores, mut results) = (Vec::new(), Vec::new(), Vec::new());
        let depth = self.depth();
        for (ty, &is_read) in site.types.iter().zip(is_read) {
            if !is_read {
                targets.push(None);
                results.push(unread(ty.clone(), depth));
                continue;
            }
            let slot = self.slots.take();
            targets.push(Some(u32::try_from(slot).expect("fewer than 2^32 values")));
            results.push(if self.is_small(ty) {
                let (held, to) = self.result(ty.clone(), depth);
                stores.push((slot, to));
                held
            } else {
                let at = At::Slot { slot, is_own: true };
                Held { ty: ty.clone(), at, level: depth }
            });
        }
        stores.iter().for_each(|&(slot, _)| self.slots.release(slot));
        let (loads, args) = (loads.into(), args.into());
        let (targets, stores) = (targets.into(), stores.into());
        self.push(Inst::Call(Box::new(Call {
            origin,
            work,
            loads,
            args,
            targets,
            stores,
            is_long,
        })));
        for held in &results {
            if let At::Arena(to) = held.at {
                self.pad(to, held.ty.dtype.size(), depth);
            }
        }
        results
    }

    /// The computation of a call, and whether it may run long.
    fn call_work(&mut self, site: &Site<'_>) -> (CallWork, bool) {
        let graph = site.schedule.program.graph();
        match &site.step.work {
            Work::Body(code) => (CallWork::Body(code.clone()), is_long_body(code.total_cost())),
            Work::Nest(nest) => {
                let nest = lower_nest(graph, site.step, nest);
                let is_long = is_long_body(total_cost(&nest));
                (CallWork::Nest(Box::new(nest)), is_long)
            }
            Work::Op => (CallWork::Op, is_long(graph, site.step.id)),
            Work::Loop(_) => (CallWork::Code(self.outlined(site)), false),
            Work::Regions(regions) => match graph.op(site.step.id) {
                Op::ReduceFun(_) | Op::WindowFun(_) => {
                    (CallWork::Fold(self.function(&regions[0])), false)
                }
                _ => (CallWork::Code(self.outlined(site)), false),
            },
        }
    }

    /// The code of a step with regions that is not inlined.
    fn outlined(&mut self, site: &Site<'_>) -> Arc<Bytecode> {
        let key = (&raw const *site.schedule, site.step.id.index());
        if let Some(code) = self.outlined.get(&key) {
            return code.clone();
        }
        let types: Vec<TensorType> = site.operands.iter().map(|held| held.ty.clone()).collect();
        let code = lower_step(site.schedule, site.step, &types, &mut self.outlined);
        let code = Arc::new(code);
        self.outlined.insert(key, code.clone());
        code
    }

    /// The code of the function of a fold, whose values outside of loops are boxed.
    fn function(&mut self, region: &Arc<Schedule>) -> Arc<Bytecode> {
        let key = (Arc::as_ptr(region), NO_SLOT);
        let code = self.outlined.get(&key).cloned();
        let code = code.unwrap_or_else(|| Arc::new(lower_program(region, false)));
        self.outlined.insert(key, code.clone());
        code
    }
}
