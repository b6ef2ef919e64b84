//! Lowering of loop nests: the memory of each value, and the kernels of the parts.
//!
//! A result of a nest is a tensor, which may take the memory of an input. Other values live in tiles, which
//! values share if their live ranges are disjoint.

use nxla_expr::{Graph, Op};
use nxla_tensor::DType;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::limits::WIDE_ROW;
use crate::execute::nest::{
    FusedReduction, NO_TILE, Output, Stage, StageWork, TileOperand, TiledNest,
};
use crate::kernels::elementwise::{Access, Broadcast, Code, Zip};
use crate::kernels::reduce;
use crate::schedule::{Nest, Part, Step, ValueId, Width, Work};

/// The cost of a reduction per element, in sixteenths of a nanosecond.
const REDUCTION_COST: usize = 2;

/// Lowers the nest of a step.
pub(super) fn lower_nest(graph: &Graph, step: &Step, nest: &Nest) -> TiledNest {
    let results = step.results.iter().zip(0..).map(|(&value, tile)| (value, tile));
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
        tile_of: results.collect(),
        locals: Vec::new(),
        free: Vec::new(),
        reads: vec![None; step.args.len()],
        outputs: FxHashMap::default(),
        cost: 0,
    };
    let mut stages = Vec::with_capacity(nest.parts.len());
    let mut parts = nest.parts.iter().enumerate().peekable();
    while let Some((at, part)) = parts.next() {
        let folded = parts.next_if(|(_, next)| lowering.folds(at, part, next));
        stages.push(match folded {
            Some((_, next)) => lowering.fold(at, part, next),
            None => lowering.stage(at, part),
        });
    }
    let outputs = step.results.iter().zip(&nest.types).map(|(value, ty)| {
        let (row, over) = lowering.outputs.remove(value).expect("a part computes each result");
        Output { dtype: ty.dtype, shape: ty.shape.clone(), row, over }
    });
    let outputs = outputs.collect();
    TiledNest {
        rows: nest.rows,
        columns: nest.columns,
        cost: lowering.cost.max(1),
        stages: stages.into(),
        locals: lowering.locals.into(),
        outputs,
    }
}

/// The cost of all elements of a nest, in sixteenths of a nanosecond.
pub(super) fn total_cost(nest: &TiledNest) -> usize {
    nest.rows.saturating_mul(nest.columns).saturating_mul(nest.cost)
}

struct Lowering<'a> {
    graph: &'a Graph,
    nest: &'a Nest,
    inputs: &'a [ValueId],
    results: &'a [ValueId],
    /// The last part that reads each value.
    last_read: FxHashMap<ValueId, usize>,
    tile_of: FxHashMap<ValueId, u16>,
    /// Bytes per row of each tile that is not a result, and the tiles that are free.
    locals: Vec<usize>,
    free: Vec<u16>,
    /// The reads of each input.
    reads: Vec<Option<InputReads>>,
    /// Bytes per row of each result, and the inputs whose memory it may take.
    outputs: FxHashMap<ValueId, (usize, SmallVec<[u16; 2]>)>,
    cost: usize,
}

/// The reads of an input by all parts so far.
#[derive(Clone, Copy)]
struct InputReads {
    /// The dtype and elements per row, if all parts read the input element by element.
    by_element: Option<(DType, usize)>,
    /// The last part that reads the input.
    last: usize,
}

impl Lowering<'_> {
    /// Returns true if the next part reduces a result of a body while the body computes it.
    fn folds(&self, at: usize, part: &Part, next: &Part) -> bool {
        let Work::Body(_) = &part.step.work else { return false };
        if let Width::Total(_) = next.width {
            return true;
        }
        let [value] = *part.step.results else { return false };
        part.width == Width::Domain
            && matches!(self.graph.op(next.step.id), Op::Reduce(..))
            && next.step.args[0] == value
            && (self.nest.columns >= 4 * WIDE_ROW || self.zipped(part, next).is_some())
            && self.is_temporary(at + 1, value)
    }

    /// Returns true if no part after this one and no other step reads a value.
    fn is_temporary(&self, last: usize, value: ValueId) -> bool {
        self.last_read[&value] == last && !self.results.contains(&value)
    }

    /// The function and the operands of a reduction of a body of two operands, if it has a kernel and both operands have
    /// rows that the kernel can read.
    fn zipped(&self, part: &Part, next: &Part) -> Option<(Zip, [usize; 2])> {
        let (Work::Body(code), Op::Reduce(op, _)) = (&part.step.work, self.graph.op(next.step.id))
        else {
            return None;
        };
        let (zip, inputs) = code.zip?;
        let inputs = inputs.map(usize::from);
        let columns = self.nest.columns;
        let broadcasts = inputs.map(|input| {
            let access = &code.inputs[input].access;
            let is_readable = !matches!(access, Access::Strided(rule) if !rule.has_rows(columns));
            (Broadcast::of(access, (self.nest.rows, columns)), is_readable)
        });
        let is_repeated = |broadcast| matches!(broadcast, Broadcast::Scalar | Broadcast::PerRow);
        let is_readable = |(broadcast, is_readable)| is_readable || broadcast != Broadcast::Strided;
        let fits = broadcasts.into_iter().all(is_readable)
            && !broadcasts.iter().all(|&(broadcast, _)| is_repeated(broadcast));
        let has_kernel = reduce::has_zip_kernel(*op, code.results[0], columns);
        (fits && has_kernel && next.width == Width::Row).then_some((zip, inputs))
    }

    /// Lowers a body and the reduction of one of its results to one stage.
    fn fold(&mut self, at: usize, part: &Part, next: &Part) -> Stage {
        let Work::Body(code) = &part.step.work else { unreachable!("a body is folded") };
        let Op::Reduce(op, _) = self.graph.op(next.step.id) else {
            unreachable!("a body is folded by a reduction")
        };
        let value = next.step.args[0];
        let reduced = part.step.results.iter().position(|&result| result == value);
        let reduced = reduced.expect("the reduction reads a result of the body");
        let count = match next.width {
            Width::Total(count) => count,
            Width::Row | Width::Domain => 1,
        };
        let is_stored = !self.is_temporary(at + 1, value);
        let zipped = self.zipped(part, next).filter(|_| !is_stored);
        self.cost += code.cost + REDUCTION_COST;
        let operands = self.body_operands(at, part, code, self.nest.columns);
        if let Some((zip, inputs)) = zipped {
            let results = SmallVec::from_elem(self.tile_of_reduction(at + 1, next, 1), 1);
            let rules = inputs.map(|input| match &code.inputs[input].access {
                Access::Strided(rule) => Some(rule.clone()),
                Access::Same | Access::Single => None,
            });
            let operands = inputs.map(|input| operands[input]).into_iter().collect();
            let work = StageWork::Zip { zip, dtype: code.results[0], rules };
            self.free_dead(at, &part.step);
            self.free_dead(at + 1, &next.step);
            return Stage { work, width: self.nest.columns, operands, results, by_row: false };
        }
        let is_tile = |result: usize| is_stored || result != reduced;
        let mut results = self.body_results(at, part, code, self.nest.columns, is_tile);
        results.push(self.tile_of_reduction(at + 1, next, count));
        let fold = FusedReduction { code: (**code).clone(), reduced, is_stored, op: *op };
        self.free_dead(at, &part.step);
        self.free_dead(at + 1, &next.step);
        let (work, width) = (StageWork::FusedReduction(Box::new(fold)), self.nest.columns);
        Stage { work, width, operands, results, by_row: true }
    }

    fn stage(&mut self, at: usize, part: &Part) -> Stage {
        let width = match part.width {
            Width::Row => 1,
            Width::Domain => self.nest.columns,
            Width::Total(_) => unreachable!("a total is folded with the body before it"),
        };
        if let Work::Body(code) = &part.step.work {
            self.cost +=
                if part.width == Width::Row { code.cost / self.nest.columns } else { code.cost };
            let operands = self.body_operands(at, part, code, width);
            let results = self.body_results(at, part, code, width, |_| true);
            self.free_dead(at, &part.step);
            let is_repeated = |&(_, broadcast): &(TileOperand, Broadcast)| {
                matches!(broadcast, Broadcast::PerRow | Broadcast::PerColumn)
            };
            // With a single row, these operands are a scalar and a vector, which are used without a
            // copy.
            let by_row = width >= WIDE_ROW && operands.iter().any(is_repeated);
            return Stage { work: StageWork::Body(code.clone()), width, operands, results, by_row };
        }
        let Op::Reduce(op, _) = self.graph.op(part.step.id) else {
            unreachable!("a part is a body or a reduction")
        };
        self.cost += REDUCTION_COST;
        let dtype = self.graph.dtype(part.step.id);
        let read = Some((dtype, self.nest.columns));
        let operand = self.operand(at, part.step.args[0], read);
        let operands = SmallVec::from_elem((operand, Broadcast::None), 1);
        let results = SmallVec::from_elem(self.tile_of_reduction(at, part, 1), 1);
        self.free_dead(at, &part.step);
        Stage { work: StageWork::Reduce(*op, dtype), width, operands, results, by_row: false }
    }

    /// The operands of a body that computes `width` elements per row.
    fn body_operands(
        &mut self,
        at: usize,
        part: &Part,
        code: &Code,
        width: usize,
    ) -> SmallVec<[(TileOperand, Broadcast); 3]> {
        let domain = (self.nest.rows, self.nest.columns);
        let inputs = part.step.args.iter().zip(&code.inputs);
        inputs
            .map(|(&value, input)| {
                let broadcast = Broadcast::of(&input.access, domain);
                let by_element = (broadcast == Broadcast::None).then_some((input.dtype, width));
                (self.operand(at, value, by_element), broadcast)
            })
            .collect()
    }

    /// The tiles of the results of a body, or [`NO_TILE`] for results that are not stored.
    fn body_results(
        &mut self,
        at: usize,
        part: &Part,
        code: &Code,
        width: usize,
        is_tile: impl Fn(usize) -> bool,
    ) -> SmallVec<[u16; 2]> {
        let results = part.step.results.iter().zip(&code.results).enumerate();
        results
            .map(|(result, (&value, &dtype))| match is_tile(result) {
                true => self.result(at, value, (dtype, width), true),
                false => NO_TILE,
            })
            .collect()
    }

    fn tile_of_reduction(&mut self, at: usize, part: &Part, count: usize) -> u16 {
        let kind = (self.graph.dtype(part.step.id), count);
        self.result(at, part.step.results[0], kind, false)
    }

    /// The tile of a result of this dtype and number of elements per row.
    fn result(&mut self, at: usize, value: ValueId, kind: (DType, usize), is_body: bool) -> u16 {
        let row = kind.0.size() * kind.1;
        if self.results.contains(&value) {
            let over = self.dead_inputs(at, kind, is_body);
            self.outputs.insert(value, (row, over));
        }
        self.tile(value, row)
    }

    /// The tile or input of an operand. `read` is the dtype and elements per row of a read element by element.
    fn operand(&mut self, at: usize, value: ValueId, read: Option<(DType, usize)>) -> TileOperand {
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
        TileOperand::Input(number(input))
    }

    /// The tile of a value with this many bytes per row.
    fn tile(&mut self, value: ValueId, row: usize) -> u16 {
        if let Some(&tile) = self.tile_of.get(&value) {
            return tile;
        }
        let fits = |&tile: &u16| self.locals[usize::from(tile) - self.results.len()] == row;
        let tile = match self.free.iter().position(fits) {
            Some(at) => self.free.swap_remove(at),
            None => {
                self.locals.push(row);
                number(self.results.len() + self.locals.len() - 1)
            }
        };
        self.tile_of.insert(value, tile);
        tile
    }

    /// The inputs that no part reads after this part has written a result of this kind.
    fn dead_inputs(&self, at: usize, kind: (DType, usize), is_body: bool) -> SmallVec<[u16; 2]> {
        // A reduction writes the result of a row before it reads the next row.
        let is_done = |read: &InputReads| read.last < at || is_body;
        let fits = |read: &InputReads| read.by_element == Some(kind) && is_done(read);
        let inputs = self.reads.iter().zip(self.inputs).enumerate();
        let dead = inputs.filter(|(_, (read, value))| {
            read.as_ref().is_some_and(fits) && self.last_read[value] <= at
        });
        dead.map(|(input, _)| number(input)).collect()
    }

    /// Frees the tiles of values that no later part reads.
    fn free_dead(&mut self, at: usize, step: &Step) {
        for value in step.args.iter().chain(&step.results) {
            let is_dead = self.last_read.get(value).is_none_or(|&last| last <= at);
            let tile = self.tile_of.get(value).copied();
            let local = tile.filter(|&tile| usize::from(tile) >= self.results.len());
            if let Some(tile) = local.filter(|tile| is_dead && !self.free.contains(tile)) {
                self.free.push(tile);
            }
        }
    }
}

fn number(index: usize) -> u16 {
    u16::try_from(index).expect("a nest has few parts")
}
