//! Lowering of loop nests: the memory of each value, and the kernels of the parts.
//!
//! A result of a nest is a tensor, which may take the memory of an input. Other values live in tiles, which
//! values share if their live ranges are disjoint.

use nxla_expr::{Graph, Op, ReduceOp};
use nxla_tensor::DType;
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

use super::limits::WIDE_ROW;
use crate::execute::nest::{
    FusedReduction, LoweredPart, LoweredWork, Output, TileOperand, TiledNest,
};
use crate::kernels::elementwise::{Access, BodyCode, Broadcast, Domain, PairFunction};
use crate::kernels::reduce;
use crate::schedule::{Nest, NestPart, Step, ValueId, Width, Work};

/// The cost of a reduction per element, in sixteenths of a nanosecond. Measured by the softmax cases of
/// `benches/python/kernels.py`.
const REDUCTION_COST: usize = 2;

/// Lowers the nest of a step.
pub(super) fn lower_nest(graph: &Graph, step: &Step, nest: &Nest) -> TiledNest {
    let mut last_read = FxHashMap::default();
    for (position, part) in nest.parts.iter().enumerate() {
        last_read.extend(part.step.args.iter().map(|&value| (value, position)));
    }
    let mut lowering = Lowering {
        graph,
        nest,
        inputs: &step.args,
        results: &step.results,
        last_read,
        tile_of: step.results.iter().copied().zip(0..).collect(),
        locals: Vec::new(),
        free: Vec::new(),
        reads: vec![None; step.args.len()],
        outputs: FxHashMap::default(),
        cost: 0,
    };
    let mut lowered = Vec::with_capacity(nest.parts.len());
    let mut parts = nest.parts.iter().enumerate().peekable();
    while let Some((at, part)) = parts.next() {
        let reduction = parts.next_if(|(_, next)| lowering.fuses(at, part, next));
        lowered.push(lowering.lower_part(at, part, reduction.map(|(_, reduction)| reduction)));
    }
    let outputs = step.results.iter().zip(&nest.types).map(|(value, ty)| {
        let (row, over) = lowering.outputs.remove(value).expect("a part computes each result");
        Output { dtype: ty.dtype, shape: ty.shape.clone(), row, over }
    });
    let outputs = outputs.collect();
    TiledNest {
        domain: nest.domain,
        cost: lowering.cost.max(1),
        parts: lowered.into(),
        locals: lowering.locals.into(),
        outputs,
    }
}

/// The cost of all elements of a nest, in sixteenths of a nanosecond.
pub(super) fn total_cost(nest: &TiledNest) -> usize {
    let Domain { rows, columns } = nest.domain;
    rows.saturating_mul(columns).saturating_mul(nest.cost)
}

struct Lowering<'a> {
    graph: &'a Graph,
    nest: &'a Nest,
    inputs: &'a [ValueId],
    results: &'a [ValueId],
    /// The last part that reads each value.
    last_read: FxHashMap<ValueId, usize>,
    tile_of: FxHashMap<ValueId, usize>,
    /// Bytes per row of each tile that is not a result, and the tiles that are free.
    locals: Vec<usize>,
    free: Vec<usize>,
    /// The reads of each input.
    reads: Vec<Option<InputReads>>,
    /// Bytes per row of each result, and the inputs whose memory it may take.
    outputs: FxHashMap<ValueId, (usize, SmallVec<[usize; 2]>)>,
    /// See [`TiledNest::cost`].
    cost: usize,
}

/// The reads of an input by all parts so far.
#[derive(Clone, Copy)]
struct InputReads {
    /// The layout of the input, if all parts read it element by element.
    by_element: Option<RowLayout>,
    /// The last part that reads the input.
    last: usize,
}

/// The elements of a row of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
struct RowLayout {
    dtype: DType,
    per_row: usize,
}

impl RowLayout {
    /// Bytes of a row.
    fn bytes(self) -> usize {
        self.dtype.size() * self.per_row
    }
}

/// The kind of a part that computes a result.
#[derive(Clone, Copy)]
enum Producer {
    /// A body reads the elements at an index before it writes its results at this index.
    Body,
    /// A reduction writes the result of a row before it reads the next row.
    Reduction,
}

/// A function of two inputs of a body, for which a reduction has a kernel.
type MapReduceKernel = (PairFunction, [usize; 2]);

impl Lowering<'_> {
    /// Returns true if the next part reduces a result of a body while the body computes it.
    fn fuses(&self, at: usize, part: &NestPart, next: &NestPart) -> bool {
        let Work::Body(code) = &part.step.work else { return false };
        if let Width::Total(_) = next.width {
            return true;
        }
        let [value] = *part.step.results else { return false };
        part.width == Width::Domain
            && matches!(self.graph.op(next.step.id), Op::Reduce(..))
            && next.step.args[0] == value
            && self.is_temporary(at + 1, value)
            && (self.nest.domain.columns >= 4 * WIDE_ROW
                || self.map_reduce_kernel(at, code, next).is_some())
    }

    /// Returns true if no part after this one and no other step reads a value.
    fn is_temporary(&self, last: usize, value: ValueId) -> bool {
        self.last_read[&value] == last && !self.results.contains(&value)
    }

    /// The function and the inputs of a body that its reduction computes without the body: the function has a kernel,
    /// the kernel can read the rows of both inputs, and no other part reads the values of the function.
    fn map_reduce_kernel(
        &self,
        at: usize,
        code: &BodyCode,
        reduction: &NestPart,
    ) -> Option<MapReduceKernel> {
        let (function, inputs) = code.pair_function?;
        let inputs = inputs.map(usize::from);
        let columns = self.nest.domain.columns;
        let accesses = inputs.map(|input| &code.inputs[input].access);
        let broadcast = |access: &Access| Broadcast::of(access, self.nest.domain);
        let is_readable = |access: &Access| match access {
            Access::Strided(rule) if broadcast(access) == Broadcast::Strided => {
                rule.has_rows(columns)
            }
            Access::Strided(_) | Access::Same | Access::Single => true,
        };
        let is_repeated =
            |access: &Access| matches!(broadcast(access), Broadcast::Scalar | Broadcast::PerRow);
        let fits = accesses.into_iter().all(is_readable) && !accesses.into_iter().all(is_repeated);
        let has_kernel =
            reduce::has_map_reduce_kernel(self.reduce_op(reduction), code.results[0], columns);
        let is_row = reduction.width == Width::Row;
        let is_temporary = self.is_temporary(at + 1, reduction.step.args[0]);
        (fits && has_kernel && is_row && is_temporary).then_some((function, inputs))
    }

    fn reduce_op(&self, part: &NestPart) -> ReduceOp {
        match self.graph.op(part.step.id) {
            Op::Reduce(op, _) => *op,
            op => unreachable!("{} is not a reduction", op.name()),
        }
    }

    /// Lowers a part, together with the reduction of its result if both are fused.
    fn lower_part(
        &mut self,
        at: usize,
        part: &NestPart,
        reduction: Option<&NestPart>,
    ) -> LoweredPart {
        let lowered = match (&part.step.work, reduction) {
            (Work::Body(code), None) => self.lower_body(at, part, code),
            (Work::Body(code), Some(reduction)) => {
                match self.map_reduce_kernel(at, code, reduction) {
                    Some(kernel) => self.lower_map_reduce(at, part, code, kernel, reduction),
                    None => self.lower_fused_reduction(at, part, code, reduction),
                }
            }
            (Work::Op, None) => self.lower_reduction(at, part),
            (Work::Op | Work::Nest(_) | Work::Loop(_) | Work::Regions(_), _) => {
                unreachable!("a part is a body or a reduction")
            }
        };
        self.free_dead(at, &part.step);
        if let Some(reduction) = reduction {
            self.free_dead(at + 1, &reduction.step);
        }
        lowered
    }

    fn lower_body(&mut self, at: usize, part: &NestPart, code: &BodyCode) -> LoweredPart {
        let (width, cost) = match part.width {
            Width::Row => (1, code.cost / self.nest.domain.columns),
            Width::Domain => (self.nest.domain.columns, code.cost),
            Width::Total(_) => unreachable!("a body does not compute a total"),
        };
        self.cost += cost;
        let operands = self.body_operands(at, part, code, width);
        let results = self.body_results(at, part, code, width, |_| true);
        let is_repeated = |&(_, broadcast): &(TileOperand, Broadcast)| {
            matches!(broadcast, Broadcast::PerRow | Broadcast::PerColumn)
        };
        // With a single row, these operands are a scalar and a vector, which are used without a copy.
        let by_row = width >= WIDE_ROW && operands.iter().any(is_repeated);
        let work = LoweredWork::Body(Box::new(code.clone()));
        LoweredPart { work, width, operands, results, by_row }
    }

    fn lower_reduction(&mut self, at: usize, part: &NestPart) -> LoweredPart {
        self.cost += REDUCTION_COST;
        let dtype = self.graph.dtype(part.step.id);
        let layout = RowLayout { dtype, per_row: self.nest.domain.columns };
        let operand = self.operand(at, part.step.args[0], Some(layout));
        let operands = smallvec![(operand, Broadcast::None)];
        let results = smallvec![Some(self.reduction_result(at, part))];
        let work = LoweredWork::Reduce(self.reduce_op(part), dtype);
        LoweredPart { work, width: 1, operands, results, by_row: false }
    }

    /// Lowers a reduction of a body whose values are not stored.
    fn lower_map_reduce(
        &mut self,
        at: usize,
        part: &NestPart,
        code: &BodyCode,
        (function, inputs): MapReduceKernel,
        reduction: &NestPart,
    ) -> LoweredPart {
        let width = self.nest.domain.columns;
        self.cost += code.cost + REDUCTION_COST;
        let operands = self.body_operands(at, part, code, width);
        let operands = inputs.map(|input| operands[input]).into_iter().collect();
        let results = smallvec![Some(self.reduction_result(at + 1, reduction))];
        let rules = inputs.map(|input| match &code.inputs[input].access {
            Access::Strided(rule) => Some(rule.clone()),
            Access::Same | Access::Single => None,
        });
        let work = LoweredWork::MapReduce { function, dtype: code.results[0], rules };
        LoweredPart { work, width, operands, results, by_row: false }
    }

    /// Lowers a body and the reduction of one of its results.
    fn lower_fused_reduction(
        &mut self,
        at: usize,
        part: &NestPart,
        code: &BodyCode,
        reduction: &NestPart,
    ) -> LoweredPart {
        let (width, value) = (self.nest.domain.columns, reduction.step.args[0]);
        let reduced = part.step.results.iter().position(|&result| result == value);
        let reduced = reduced.expect("the reduction reads a result of the body");
        let is_stored = !self.is_temporary(at + 1, value);
        self.cost += code.cost + REDUCTION_COST;
        let operands = self.body_operands(at, part, code, width);
        let is_tile = |result: usize| is_stored || result != reduced;
        let mut results = self.body_results(at, part, code, width, is_tile);
        results.push(Some(self.reduction_result(at + 1, reduction)));
        let op = self.reduce_op(reduction);
        let fused = FusedReduction { code: code.clone(), reduced, is_stored, op };
        let work = LoweredWork::FusedReduction(Box::new(fused));
        LoweredPart { work, width, operands, results, by_row: true }
    }

    /// The operands of a body that computes `width` elements per row.
    fn body_operands(
        &mut self,
        at: usize,
        part: &NestPart,
        code: &BodyCode,
        width: usize,
    ) -> SmallVec<[(TileOperand, Broadcast); 3]> {
        let inputs = part.step.args.iter().zip(&code.inputs);
        inputs
            .map(|(&value, input)| {
                let broadcast = Broadcast::of(&input.access, self.nest.domain);
                let layout = RowLayout { dtype: input.dtype, per_row: width };
                let by_element = (broadcast == Broadcast::None).then_some(layout);
                (self.operand(at, value, by_element), broadcast)
            })
            .collect()
    }

    /// The tiles of the results of a body; `None` for results that are not stored.
    fn body_results(
        &mut self,
        at: usize,
        part: &NestPart,
        code: &BodyCode,
        width: usize,
        is_tile: impl Fn(usize) -> bool,
    ) -> SmallVec<[Option<usize>; 2]> {
        let results = part.step.results.iter().zip(&code.results).enumerate();
        results
            .map(|(result, (&value, &dtype))| {
                let layout = RowLayout { dtype, per_row: width };
                is_tile(result).then(|| self.result(at, value, layout, Producer::Body))
            })
            .collect()
    }

    /// The tile of the result of a reduction.
    fn reduction_result(&mut self, at: usize, part: &NestPart) -> usize {
        let per_row = match part.width {
            Width::Total(count) => count,
            Width::Row | Width::Domain => 1,
        };
        let layout = RowLayout { dtype: self.graph.dtype(part.step.id), per_row };
        self.result(at, part.step.results[0], layout, Producer::Reduction)
    }

    /// The tile of a result.
    fn result(
        &mut self,
        at: usize,
        value: ValueId,
        layout: RowLayout,
        producer: Producer,
    ) -> usize {
        if self.results.contains(&value) {
            let over = self.dead_inputs(at, layout, producer);
            self.outputs.insert(value, (layout.bytes(), over));
        }
        self.tile(value, layout.bytes())
    }

    /// The tile or input of an operand. `read` is the layout of a read element by element.
    fn operand(&mut self, at: usize, value: ValueId, read: Option<RowLayout>) -> TileOperand {
        if let Some(&tile) = self.tile_of.get(&value) {
            return TileOperand::Tile(tile);
        }
        let input = self.inputs.iter().position(|&input| input == value);
        let input = input.expect("a value of a nest is an input or computed");
        let before = &mut self.reads[input];
        let by_element = match before {
            Some(before) => before.by_element.filter(|_| before.by_element == read),
            None => read,
        };
        *before = Some(InputReads { by_element, last: at });
        TileOperand::Input(input)
    }

    /// The tile of a value with this many bytes per row.
    fn tile(&mut self, value: ValueId, row: usize) -> usize {
        if let Some(&tile) = self.tile_of.get(&value) {
            return tile;
        }
        let fits = |&tile: &usize| self.locals[tile - self.results.len()] == row;
        let tile = match self.free.iter().position(fits) {
            Some(at) => self.free.swap_remove(at),
            None => {
                self.locals.push(row);
                self.results.len() + self.locals.len() - 1
            }
        };
        self.tile_of.insert(value, tile);
        tile
    }

    /// The inputs of a layout that no part reads after this part has written a result.
    fn dead_inputs(
        &self,
        at: usize,
        layout: RowLayout,
        producer: Producer,
    ) -> SmallVec<[usize; 2]> {
        let is_done = |read: &InputReads| match producer {
            Producer::Body => true,
            Producer::Reduction => read.last < at,
        };
        let fits = |read: &InputReads| read.by_element == Some(layout) && is_done(read);
        let inputs = self.reads.iter().zip(self.inputs).enumerate();
        let dead = inputs.filter(|(_, (read, value))| {
            read.as_ref().is_some_and(fits) && self.last_read[value] <= at
        });
        dead.map(|(input, _)| input).collect()
    }

    /// Frees the tiles of values that no later part reads.
    fn free_dead(&mut self, at: usize, step: &Step) {
        for value in step.args.iter().chain(&step.results) {
            let is_dead = self.last_read.get(value).is_none_or(|&last| last <= at);
            let tile = self.tile_of.get(value).copied();
            let local = tile.filter(|&tile| tile >= self.results.len());
            if let Some(tile) = local.filter(|tile| is_dead && !self.free.contains(tile)) {
                self.free.push(tile);
            }
        }
    }
}
