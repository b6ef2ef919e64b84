//! Lowering of regions: the instructions of each step, or a call.

use std::sync::Arc;

use nxla_expr::{Op, TensorType};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::build::{BytecodeBuilder, Location, Value, lower_program, lower_step};
use super::nest::{lower_nest, total_cost};
use crate::context::Arg;
use crate::execute::code::{Bytecode, Call, CallWork, Handle, Inst, Span};
use crate::schedule::{Schedule, Step, ValueId, Work, is_long, is_long_body};

/// The step that is being lowered.
pub(super) struct StepContext<'a> {
    pub(super) schedule: &'a Schedule,
    pub(super) step: &'a Step,
    /// The operands, and whether each dies with the step.
    pub(super) operands: &'a [Value],
    pub(super) lasts: &'a [bool],
    /// The types of the results.
    pub(super) types: &'a [TensorType],
}

impl StepContext<'_> {
    /// The operands as inputs of a region. The region owns the operands that die with the step.
    pub(super) fn inputs(&self) -> Vec<Value> {
        let mut counts = FxHashMap::default();
        for slot in self.operands.iter().filter_map(Value::slot) {
            *counts.entry(slot).or_insert(0_usize) += 1;
        }
        // A region may overwrite an input that it owns, so no other input may use the same slot.
        let is_alone = |value: &Value| value.slot().is_none_or(|slot| counts[&slot] == 1);
        let operands = self.operands.iter().zip(self.lasts);
        let input = |(value, &last): (&Value, &bool)| {
            if last && is_alone(value) { value.clone() } else { value.to_borrowed() }
        };
        operands.map(input).collect()
    }
}

/// A value of the arena that is boxed for a call: its span, its type, and its slot.
type BoxedArg = (Span, TensorType, usize);

/// A result of a call that a step reads.
struct CallResult {
    value: Value,
    /// The slot to which the call writes the tensor.
    slot: usize,
}

impl CallResult {
    /// The slot and the span of a result that is unboxed: copied to the arena.
    fn unbox(&self) -> Option<(usize, Span)> {
        match self.value.location {
            Location::Arena(to) => Some((self.slot, to)),
            Location::Slot { .. } => None,
        }
    }
}

/// The values of a region, and the last step that reads each.
struct Region<'a> {
    schedule: &'a Schedule,
    values: Vec<Option<Value>>,
    last_reads: Vec<Option<usize>>,
}

impl<'a> Region<'a> {
    fn new(schedule: &'a Schedule) -> Self {
        let mut last_reads = vec![None; schedule.values];
        for (position, step) in schedule.steps.iter().enumerate() {
            for &value in &step.args {
                last_reads[value] = Some(position);
            }
        }
        for &value in &schedule.outputs {
            last_reads[value] = Some(schedule.steps.len());
        }
        Self { schedule, values: vec![None; schedule.values], last_reads }
    }

    /// Returns for each value that a step reads whether this read is the last one. A step that reads
    /// a value twice reads it last at the later operand.
    fn lasts(&self, values: &[ValueId], position: usize) -> SmallVec<[bool; 4]> {
        let mut later = FxHashSet::default();
        let mut is_last =
            |value: &ValueId| self.last_reads[*value] == Some(position) && later.insert(*value);
        let mut lasts: SmallVec<[bool; 4]> = values.iter().rev().map(&mut is_last).collect();
        lasts.reverse();
        lasts
    }

    fn value(&self, value: ValueId) -> Value {
        self.values[value].clone().expect("a value is computed before it is read")
    }
}

impl BytecodeBuilder {
    /// Lowers all steps of a region, and returns its outputs. The region may move an input that owns its slot.
    pub(super) fn region(&mut self, schedule: &Schedule, inputs: &[Value]) -> Vec<Value> {
        let mut region = Region::new(schedule);
        for (value, input) in schedule.inputs.iter().zip(inputs) {
            if let Some(value) = value {
                // The slot belongs to the caller even after the region has released the value.
                self.retain(input);
                region.values[*value] = Some(input.clone());
            }
        }
        for position in 0..schedule.steps.len() {
            self.step(&mut region, position);
        }
        let lasts = region.lasts(&schedule.outputs, schedule.steps.len());
        let outputs = schedule.outputs.iter().zip(lasts);
        outputs.map(|(&value, is_last)| self.output(region.value(value), is_last)).collect()
    }

    /// An output, which owns its location.
    fn output(&mut self, value: Value, is_last: bool) -> Value {
        match value.location {
            Location::Arena(span) if !is_last => self.arena.retain(span.at),
            Location::Arena(_) => {}
            Location::Slot { owned: true, .. } if is_last => {}
            Location::Slot { slot: from, .. } => {
                let to = self.slots.take();
                self.push(Handle::Share { from, to });
                let location = Location::Slot { slot: to, owned: true };
                return Value { location, level: self.depth(), ..value };
            }
        }
        value
    }

    fn step(&mut self, region: &mut Region<'_>, position: usize) {
        let schedule = region.schedule;
        let step = &schedule.steps[position];
        let operands: Vec<Value> = step.args.iter().map(|&value| region.value(value)).collect();
        let lasts = region.lasts(&step.args, position);
        let types = step.types(schedule.program.graph());
        let site =
            StepContext { schedule, step, operands: &operands, lasts: &lasts, types: &types };
        let is_read = |value: &ValueId| region.last_reads[*value].is_some();
        let results = match self.instructions(&site) {
            Some(results) => {
                self.release_scratch();
                for (value, _) in operands.iter().zip(&lasts).filter(|(_, last)| **last) {
                    // A result may be the updated operand.
                    let is_result = |result: &Value| value.slot() == result.slot();
                    if value.slot().is_none() || !results.iter().any(is_result) {
                        self.release(value);
                    }
                }
                results.into_iter().map(Some).collect()
            }
            None => {
                let is_read: SmallVec<[bool; 2]> = step.results.iter().map(is_read).collect();
                self.call(&site, &is_read)
            }
        };
        for (&value, last) in step.args.iter().zip(lasts) {
            if last {
                region.values[value] = None;
            }
        }
        for (&value, result) in step.results.iter().zip(results) {
            match (region.last_reads[value], result) {
                (Some(_), result) => region.values[value] = result,
                (None, Some(result)) => self.release(&result),
                (None, None) => {}
            }
        }
    }

    /// The results of a step that has instructions.
    fn instructions(&mut self, site: &StepContext<'_>) -> Option<Vec<Value>> {
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
        operands: &[Value],
    ) -> Vec<Value> {
        let types = step.types(schedule.program.graph());
        let lasts: SmallVec<[bool; 4]> = SmallVec::from_elem(true, operands.len());
        let site = StepContext { schedule, step, operands, lasts: &lasts, types: &types };
        let results = self.instructions(&site).expect("control flow has instructions");
        results.into_iter().map(|value| self.output(value, true)).collect()
    }

    /// Lowers a step to a call on boxed values. Returns no value for results that no step reads.
    fn call(&mut self, site: &StepContext<'_>, is_read: &[bool]) -> Vec<Option<Value>> {
        let origin = self.origin(site.schedule, site.step);
        let (work, is_long) = self.call_work(site);
        let (args, boxed_args) = self.box_operands(site);
        let results = self.bind_results(site.types, is_read);
        let slot = |result: &Option<CallResult>| result.as_ref().map(|result| result.slot);
        let targets = results.iter().map(slot).collect();
        let unboxed_results = results.iter().flatten().filter_map(CallResult::unbox).collect();
        let call = Call { origin, work, boxed_args, args, targets, unboxed_results, is_long };
        self.push(Inst::Call(Box::new(call)));
        for CallResult { value, .. } in results.iter().flatten() {
            if let Location::Arena(to) = value.location {
                self.pad(to, value.ty.dtype.size(), value.level);
            }
        }
        results.into_iter().map(|result| Some(result?.value)).collect()
    }

    /// The operands of a call, and the values of the arena that are boxed for the call. Ends the life of operands that
    /// die with the step.
    fn box_operands(&mut self, site: &StepContext<'_>) -> (Box<[Arg]>, Box<[BoxedArg]>) {
        let mut boxed_args: Vec<BoxedArg> = Vec::new();
        // The slot of each boxed value, and the last operand that reads it. A reshaped value shares the span of its
        // operand, so a span alone does not identify a tensor.
        let mut boxes: FxHashMap<(Span, &TensorType), (usize, usize)> = FxHashMap::default();
        for (index, value) in site.operands.iter().enumerate() {
            let Location::Arena(span) = value.location else { continue };
            let box_arg = || {
                let slot = self.slots.take();
                boxed_args.push((span, value.ty.clone(), slot));
                (slot, index)
            };
            boxes.entry((span, &value.ty)).or_insert_with(box_arg).1 = index;
        }
        let operands = site.operands.iter().zip(site.lasts).enumerate();
        let args = operands.map(|(index, (value, &is_last))| match value.location {
            Location::Slot { slot, owned } => Arg { slot, is_last: owned && is_last },
            Location::Arena(span) => {
                let (slot, last) = boxes[&(span, &value.ty)];
                Arg { slot, is_last: index == last }
            }
        });
        let args = args.collect();
        // The call drops dead operands before it stores its results, which may take their slots.
        boxed_args.iter().for_each(|&(_, _, slot)| self.slots.release(slot));
        for (value, _) in site.operands.iter().zip(site.lasts).filter(|(_, is_last)| **is_last) {
            self.release_moved(value);
        }
        (args, boxed_args.into())
    }

    /// Locations for the results of a call that a step reads.
    fn bind_results(&mut self, types: &[TensorType], is_read: &[bool]) -> Vec<Option<CallResult>> {
        let depth = self.depth();
        let mut results = Vec::with_capacity(types.len());
        for (ty, &is_read) in types.iter().zip(is_read) {
            if !is_read {
                results.push(None);
                continue;
            }
            let slot = self.slots.take();
            let value = if self.is_small(ty) {
                self.result(ty.clone(), depth).0
            } else {
                let location = Location::Slot { slot, owned: true };
                Value { ty: ty.clone(), location, level: depth }
            };
            results.push(Some(CallResult { value, slot }));
        }
        // The call leaves these slots empty.
        for (slot, _) in results.iter().flatten().filter_map(CallResult::unbox) {
            self.slots.release(slot);
        }
        results
    }

    /// The computation of a call, and whether it may run long.
    fn call_work(&mut self, site: &StepContext<'_>) -> (CallWork, bool) {
        let graph = site.schedule.program.graph();
        match &site.step.work {
            Work::Body(code) => (CallWork::Body(code.clone()), is_long_body(code.total_cost())),
            Work::Nest(nest) => {
                let nest = lower_nest(graph, site.step, nest);
                let is_long = is_long_body(total_cost(&nest));
                (CallWork::Nest(Box::new(nest)), is_long)
            }
            Work::Op => (CallWork::Op, is_long(graph, site.step.id)),
            Work::Loop(_) => (CallWork::Outlined(self.outline(site)), false),
            Work::Regions(regions) => match graph.op(site.step.id) {
                Op::ReduceFun(_) | Op::WindowFun(_) => {
                    (CallWork::Fold(self.function(&regions[0])), false)
                }
                _ => (CallWork::Outlined(self.outline(site)), false),
            },
        }
    }

    /// The code of a step with regions that is not inlined.
    fn outline(&mut self, site: &StepContext<'_>) -> Arc<Bytecode> {
        let key = (&raw const *site.schedule, Some(site.step.id));
        if let Some(code) = self.outlined.get(&key) {
            return code.clone();
        }
        let types: Vec<TensorType> = site.operands.iter().map(|value| value.ty.clone()).collect();
        let code = lower_step(site.schedule, site.step, &types, &mut self.outlined);
        let code = Arc::new(code);
        self.outlined.insert(key, code.clone());
        code
    }

    /// The code of the function of a fold, whose values outside of loops are boxed.
    fn function(&mut self, region: &Arc<Schedule>) -> Arc<Bytecode> {
        let key = (Arc::as_ptr(region), None);
        let code = self.outlined.get(&key).cloned();
        let code = code.unwrap_or_else(|| Arc::new(lower_program(region, false)));
        self.outlined.insert(key, code.clone());
        code
    }
}
