//! Fusion of steps into loop nests.
//!
//! A nest ranges over a domain of rows and columns. Its parts are element-wise bodies and reductions. The executor
//! passes a tile of rows through all parts before it begins the next tile, so that values between
//! the parts stay in the cache. Without a nest, a softmax passes over memory three times, a layer
//! norm passes over memory four times, and a loss writes all of its terms before it sums them. Each
//! part computes a row in the same order as without the nest, so fusion does not change bits.
//!
//! Fusion is one pass over the steps. At most one nest is open at a time. A step that cannot join moves before the
//! open nest if it reads none of its values, and closes the nest otherwise. Parts of a nest without a reduction
//! become steps again.

use nxla_expr::{Graph, Op, Program, TensorType};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::limits::{
    CHEAP_COST, MANY_ROWS, MAX_COLUMNS, MAX_MOVED, MAX_NODES, ONE_THREAD_ELEMENTS,
};
use super::{Schedule, Step, ValueId, Work, count_uses};
use crate::kernels::elementwise::{Access, Broadcast, Domain};
use crate::kernels::reduce::Reduction;
use crate::kernels::{BLOCK_ELEMENTS, reduce};

/// A loop nest over a domain.
#[derive(Clone)]
pub(crate) struct Nest {
    pub(crate) domain: Domain,
    pub(crate) parts: Vec<NestPart>,
    /// The types of the results, which are the values that other steps read.
    pub(crate) types: Vec<TensorType>,
}

/// One step of a nest.
#[derive(Clone)]
pub(crate) struct NestPart {
    pub(crate) step: Step,
    pub(crate) width: Width,
}

/// The number of elements that a part computes per row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Width {
    /// One.
    Row,
    /// One for each column.
    Domain,
    /// The results of a reduction of the whole domain, which has one row: this many.
    Total(usize),
}

/// Fuses the steps of a schedule. If the schedule uses the arena, only domains of more than [`BLOCK_ELEMENTS`] elements
/// are fused.
pub(super) fn fuse(schedule: &mut Schedule) {
    let steps = std::mem::take(&mut schedule.steps);
    let uses = count_uses(&steps, &schedule.outputs, schedule.values);
    let min_elements = if schedule.uses_arena { BLOCK_ELEMENTS } else { 1 };
    let program = &schedule.program;
    let fused = Vec::with_capacity(steps.len());
    let mut fuser = Fuser { program, uses, min_elements, fused, open: OpenNest::default() };
    steps.into_iter().for_each(|step| fuser.visit(step));
    fuser.close();
    schedule.steps = fuser.fused;
}

/// The open nest.
#[derive(Default)]
struct OpenNest {
    parts: Vec<NestPart>,
    /// The number of elements of the domain.
    elements: usize,
    /// Known from the first reduction on.
    domain: Option<Domain>,
    /// The widths of the values that the nest computes.
    widths: FxHashMap<ValueId, Width>,
    /// The number of steps that have moved before the nest.
    moved: usize,
}

struct Fuser<'a> {
    program: &'a Program,
    uses: Vec<u32>,
    min_elements: usize,
    fused: Vec<Step>,
    open: OpenNest,
}

impl<'a> Fuser<'a> {
    fn graph(&self) -> &'a Graph {
        self.program.graph()
    }

    fn visit(&mut self, step: Step) {
        let Err(step) = self.try_join(step) else { return };
        if let Some(results) = self.fusible_total_results(&step) {
            return self.fuse_total(step, results);
        }
        let reads = step.args.iter().any(|value| self.open.widths.contains_key(value));
        let begins = self.can_begin_nest(&step);
        let op = self.graph().op(step.id);
        let is_full = self.open.moved == MAX_MOVED;
        if reads || op.has_effects() || is_full || (begins && self.open.domain.is_none()) {
            self.close();
        }
        if !begins || !self.open.parts.is_empty() {
            self.open.moved += usize::from(!matches!(op, Op::Constant(_) | Op::Tensor(_)));
            return self.fused.push(step);
        }
        self.open.elements = self.elements(&step);
        if let Err(step) = self.try_join(step) {
            self.fused.push(step);
        }
    }

    /// Adds a step to the open nest, or returns the step if it may not join or if joining does not pay.
    fn try_join(&mut self, step: Step) -> Result<(), Step> {
        let Some((width, domain)) = self.join_width(&step) else { return Err(step) };
        if !self.is_profitable_join(&step, domain) {
            return Err(step);
        }
        self.open.domain = domain;
        self.open.widths.extend(step.results.iter().map(|&value| (value, width)));
        self.open.parts.push(NestPart { step, width });
        Ok(())
    }

    /// Returns true if a step may be the first of a nest.
    fn can_begin_nest(&self, step: &Step) -> bool {
        match &step.work {
            Work::Body(_) => self.elements(step) > self.min_elements,
            Work::Op => {
                let is_reduction = matches!(self.graph().op(step.id), Op::Reduce(..));
                is_reduction && (self.min_elements == 1 || self.elements(step) > self.min_elements)
            }
            Work::Nest(_) | Work::Loop(_) | Work::Regions(_) => false,
        }
    }

    /// The number of elements over which a step ranges.
    fn elements(&self, step: &Step) -> usize {
        match &step.work {
            Work::Body(code) => code.shape.size(),
            Work::Op | Work::Nest(_) | Work::Loop(_) | Work::Regions(_) => {
                self.graph().shape(self.graph().operands(step.id)[0]).size()
            }
        }
    }

    fn reduction(&self, step: &Step) -> Option<Reduction<'a>> {
        let graph = self.graph();
        let (Work::Op, Op::Reduce(op, attributes)) = (&step.work, graph.op(step.id)) else {
            return None;
        };
        let (x, ty) = (graph.tensor_type(graph.operands(step.id)[0]), graph.tensor_type(step.id));
        Some(Reduction { op: *op, attributes, x, ty })
    }

    /// The legality rule. A step may join the open nest if
    ///
    /// 1. it is element-wise code over the domain or over its rows, or a reduction of the columns of each row, and
    /// 2. it reads a value of the nest only where it computes: at the same element, or at the element of the same
    ///    row.
    ///
    /// Values from outside are complete before the nest begins, so a step may read them anywhere. It follows that a
    /// row needs no other row, and tiles of rows can run in any order. Returns the width of the results, and the
    /// domain if the step determines it.
    fn join_width(&self, step: &Step) -> Option<(Width, Option<Domain>)> {
        let OpenNest { elements, domain, widths, .. } = &self.open;
        if let Work::Body(code) = &step.work {
            let size = code.shape.size();
            let width = match *domain {
                _ if size == *elements => Width::Domain,
                Some(Domain { rows, .. }) if size == rows => Width::Row,
                _ => return None,
            };
            let is_local = |(value, access): (&ValueId, &Access)| {
                let Some(&read) = widths.get(value) else { return true };
                let Some(domain) = *domain else {
                    // All values of the nest range over the domain, as this step does.
                    return matches!(access, Access::Same);
                };
                match Broadcast::of(access, domain) {
                    Broadcast::None => read == width,
                    Broadcast::Scalar => read == Width::Row && domain.rows == 1,
                    Broadcast::PerRow => read == Width::Row && width == Width::Domain,
                    Broadcast::PerColumn | Broadcast::Strided => false,
                }
            };
            let accesses = code.inputs.iter().map(|input| &input.access);
            return step.args.iter().zip(accesses).all(is_local).then_some((width, *domain));
        }
        let reduction = self.reduction(step)?;
        let found = reduction.by_row()?;
        let size = reduction.x.shape.size();
        let is_same = domain.map_or(size == *elements, |domain| domain == found);
        let is_wide = widths.get(&step.args[0]).is_none_or(|&width| width == Width::Domain);
        (is_same && is_wide).then_some((Width::Row, Some(found)))
    }

    /// The cost rule. Joining a legal step pays if
    ///
    /// 1. the nest has few parts, so that their tiles fit into a second-level cache;
    /// 2. the rows that a reduction introduces are no longer than such a tile, and have several columns; and
    /// 3. all threads get rows, or one thread computes them as fast.
    fn is_profitable_join(&self, step: &Step, domain: Option<Domain>) -> bool {
        let fits = self.open.parts.len() < MAX_NODES;
        let (true, Some(Domain { rows, columns })) = (matches!(step.work, Work::Op), domain) else {
            return fits;
        };
        let has_rows = rows > 0 && columns > 1 && columns <= MAX_COLUMNS;
        fits && has_rows && (rows >= MANY_ROWS || rows * columns <= ONE_THREAD_ELEMENTS)
    }

    /// The number of results of a reduction of the whole domain, if it may join the body that comes
    /// before it, and joining pays: the body computes its operand, the elements are reduced in the
    /// order of memory, and a long body still runs on several threads.
    fn fusible_total_results(&self, step: &Step) -> Option<usize> {
        let reduction = self.reduction(step)?;
        let Work::Body(code) = &self.last_step()?.work else { return None };
        self.last_step()?.results.iter().find(|&&value| value == step.args[0])?;
        let results = reduction.total_results()?;
        let len = code.shape.size();
        let is_split = reduce::piece(len, results) < len || code.cost <= CHEAP_COST;
        (len >= BLOCK_ELEMENTS && is_split).then_some(results)
    }

    /// The last step so far, if a total can join it.
    fn last_step(&self) -> Option<&Step> {
        match self.open.parts.last() {
            Some(part) => self.open.domain.is_none().then_some(&part.step),
            None => self.fused.last(),
        }
    }

    /// Fuses a reduction of a whole domain with the body before it.
    fn fuse_total(&mut self, step: Step, results: usize) {
        let body = match self.open.parts.pop() {
            Some(part) => part.step,
            None => self.fused.pop().expect("a total has a body before it"),
        };
        self.close();
        let columns = self.elements(&body);
        let parts = vec![
            NestPart { step: body, width: Width::Domain },
            NestPart { step, width: Width::Total(results) },
        ];
        self.push_nest(parts, Domain { rows: 1, columns });
    }

    /// Closes the open nest.
    fn close(&mut self) {
        let OpenNest { parts, domain, .. } = std::mem::take(&mut self.open);
        match domain.filter(|_| parts.len() > 1) {
            Some(domain) => self.push_nest(parts, domain),
            None => self.fused.extend(parts.into_iter().map(|part| part.step)),
        }
    }

    fn push_nest(&mut self, parts: Vec<NestPart>, domain: Domain) {
        let (results, types) = self.results(&parts).into_iter().unzip();
        let args: SmallVec<[ValueId; 4]> = self.inputs(&parts);
        let id = parts.last().expect("a nest has parts").step.id;
        let work = Work::Nest(Box::new(Nest { domain, parts, types }));
        self.fused.push(Step { id, work, args, results });
    }

    /// The values of a nest that other steps read, in order, with their types.
    fn results(&self, parts: &[NestPart]) -> Vec<(ValueId, TensorType)> {
        let mut inside: FxHashMap<ValueId, u32> = FxHashMap::default();
        for &value in parts.iter().flat_map(|part| &part.step.args) {
            *inside.entry(value).or_default() += 1;
        }
        let mut results = Vec::new();
        for part in parts {
            let types = part.step.types(self.graph());
            for (&value, ty) in part.step.results.iter().zip(types) {
                if self.uses[value] > inside.get(&value).copied().unwrap_or(0) {
                    results.push((value, ty));
                }
            }
        }
        results
    }

    /// The distinct values that a nest reads, in order of their first use.
    fn inputs(&self, parts: &[NestPart]) -> SmallVec<[ValueId; 4]> {
        let mut inputs = SmallVec::new();
        let computed = |value: &ValueId| parts.iter().any(|part| part.step.results.contains(value));
        for value in parts.iter().flat_map(|part| &part.step.args) {
            if !computed(value) && !inputs.contains(value) {
                inputs.push(*value);
            }
        }
        inputs
    }
}
