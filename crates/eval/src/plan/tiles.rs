//! Where the tensors of steps that run together are: in memory of their own, or in tiles.

use nxla_expr::{Graph, Op};
use nxla_tensor::DType;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::Action;
use super::build::ValueId;
use super::rows::Width;
use super::whole::Whole;
use crate::elementwise::Access;
use crate::reduce::{self, Zipped};
use crate::rows::{Lies, Outcome, Part, Place, Rows, Work, pays_by_row};

/// What a reduction takes for each element, see [`Code::cost`](crate::elementwise::Code).
const REDUCTION: usize = 2;

/// Elements of a row from which on it pays to reduce it block by block: of shorter ones a tile is in the
/// first-level cache anyway.
const FOLDED: usize = 2048;

/// Writes the steps of a set, of which other steps see these results, in order. Gives what it reads
/// besides.
pub(super) fn write(
    graph: &Graph,
    parts: Vec<(Whole, Width)>,
    (rows, columns): (usize, usize),
    results: &[ValueId],
) -> (Rows, Vec<ValueId>) {
    let tile_of = results.iter().zip(0..).map(|(&value, tile)| (value, tile)).collect();
    let mut last_read = FxHashMap::default();
    for (position, (whole, _)) in parts.iter().enumerate() {
        last_read.extend(whole.args.iter().map(|&value| (value, position)));
    }
    let mut writer = Writer {
        graph,
        rows,
        columns,
        results,
        last_read,
        tile_of,
        locals: Vec::new(),
        free: Vec::new(),
        inputs: Vec::new(),
        reads: Vec::new(),
        outcomes: FxHashMap::default(),
        cost: 0,
    };
    let mut written = Vec::with_capacity(parts.len());
    let mut parts = parts.into_iter().enumerate().peekable();
    while let Some((at, (whole, width))) = parts.next() {
        let folded = parts.next_if(|(_, (next, _))| writer.folds(at, &whole, width, next));
        written.push(match folded {
            Some((_, (next, _))) => writer.fold(at, &whole, &next),
            None => writer.part(at, &whole, width),
        });
    }
    let parts = written.into();
    let outcome = |value: &ValueId| writer.outcomes.remove(value).expect("a part makes it");
    let results = results.iter().map(outcome).collect();
    let (cost, locals) = (writer.cost.max(1), writer.locals.into());
    (Rows { rows, columns, cost, parts, locals, results }, writer.inputs)
}

struct Writer<'a> {
    graph: &'a Graph,
    rows: usize,
    columns: usize,
    results: &'a [ValueId],
    /// The part that reads a value last.
    last_read: FxHashMap<ValueId, usize>,
    tile_of: FxHashMap<ValueId, u16>,
    /// Bytes of a row of each tile that is no result, and those that nobody needs any more.
    locals: Vec<usize>,
    free: Vec<u16>,
    inputs: Vec<ValueId>,
    /// How each input is read.
    reads: Vec<Read>,
    outcomes: FxHashMap<ValueId, Outcome>,
    cost: usize,
}

/// How an input is read by all who do.
#[derive(Clone, Copy)]
struct Read {
    /// Its dtype and elements of a row, where it is read element by element, and in no other way.
    by_element: Option<(DType, usize)>,
    /// The last part that does.
    last: usize,
}

impl Writer<'_> {
    /// Whether the next part reduces what code computes of a row, and nobody else reads that.
    fn folds(&self, at: usize, whole: &Whole, width: Width, next: &Whole) -> bool {
        let is_code = matches!(whole.step.action, Action::Code(_));
        let [value] = *whole.results else { return false };
        let is_reduced = matches!(self.graph.op(next.step.id), Op::Reduce(..));
        is_code
            && width == Width::Wide
            && (self.columns >= FOLDED || self.zipped(whole, next).is_some())
            && is_reduced
            && next.args[0] == value
            && self.last_read[&value] == at + 1
            && !self.results.contains(&value)
    }

    /// A reduction of what code computes of two operands, if it can do that on its way.
    fn zipped(&self, whole: &Whole, next: &Whole) -> Option<Zipped> {
        let (Action::Code(code), Op::Reduce(op, _)) =
            (&whole.step.action, self.graph.op(next.step.id))
        else {
            return None;
        };
        let (zip, inputs) = code.zip?;
        let zipped = Zipped { zip, op: *op, dtype: code.results[0] };
        let lies = |&input: &u16| {
            let access = &code.inputs[usize::from(input)].access;
            (Lies::of(access, (self.rows, self.columns)), access)
        };
        // At least one is of rows.
        let is_single = |input| matches!(lies(input).0, Lies::Single | Lies::ByRow);
        let has_rows = |input| match lies(input) {
            (Lies::Strided, Access::Strided(rule)) => rule.has_rows(self.columns),
            _ => true,
        };
        let fits = inputs.iter().all(has_rows) && !inputs.iter().all(is_single);
        (fits && zipped.is_known() && self.columns >= reduce::FEW_LANES).then_some(zipped)
    }

    /// Code and the reduction of what it computes as one part.
    fn fold(&mut self, at: usize, whole: &Whole, next: &Whole) -> Part {
        let zipped = self.zipped(whole, next);
        let (code, dtypes) = self.work(whole, Width::Wide);
        let operands = self.operands(at, whole, &code, self.columns);
        // A block of what the code computes goes through its tile, if it is written at all.
        let block = zipped.is_none().then(|| self.made(at, whole, &code, &dtypes, self.columns)[0]);
        let (reduction, dtypes) = self.work(next, Width::Narrow);
        let mut results = self.made(at + 1, next, &reduction, &dtypes, 1);
        results.extend(block);
        self.free_dead(at, whole);
        self.free_dead(at + 1, next);
        let (Work::Code(code), Work::Reduce(op, _)) = (code, reduction) else {
            unreachable!("code is reduced");
        };
        let (work, operands, by_row) = match zipped.zip(code.zip) {
            Some((zipped, (_, inputs))) => {
                let inputs = inputs.map(usize::from);
                let rules = inputs.map(|input| match &code.inputs[input].access {
                    Access::Strided(rule) => Some(rule.clone()),
                    Access::Same | Access::Single => None,
                });
                let operands = inputs.map(|input| operands[input]).into_iter().collect();
                (Work::Zip(zipped, rules), operands, false)
            }
            None => (Work::Fold(code, op), operands, true),
        };
        Part { work, width: self.columns, operands, results, by_row }
    }

    fn part(&mut self, at: usize, whole: &Whole, width: Width) -> Part {
        let row = match width {
            Width::Narrow => 1,
            Width::Wide => self.columns,
        };
        let (work, dtypes) = self.work(whole, width);
        let operands = self.operands(at, whole, &work, row);
        let results = self.made(at, whole, &work, &dtypes, row);
        self.free_dead(at, whole);
        let by_row = pays_by_row(row, &operands);
        Part { work, width: row, operands, results, by_row }
    }

    /// Where a part that computes rows of so many elements finds what it reads.
    fn operands(
        &mut self,
        at: usize,
        whole: &Whole,
        work: &Work,
        row: usize,
    ) -> SmallVec<[(Place, Lies); 3]> {
        let reads: SmallVec<[(DType, usize, Lies); 4]> = match work {
            Work::Code(code) => {
                let lies = |access: &Access| Lies::of(access, (self.rows, self.columns));
                code.inputs.iter().map(|input| (input.dtype, row, lies(&input.access))).collect()
            }
            Work::Reduce(_, dtype) => SmallVec::from_slice(&[(*dtype, self.columns, Lies::Same)]),
            Work::Fold(..) | Work::Zip(..) => unreachable!("two parts become one afterwards"),
        };
        let mut operands = SmallVec::new();
        for (&value, (dtype, row, lies)) in whole.args.iter().zip(reads) {
            let by_element = (lies == Lies::Same).then_some((dtype, row));
            operands.push((self.place(at, value, by_element), lies));
        }
        operands
    }

    /// The tiles of what a part computes, of these dtypes and so many elements in a row.
    fn made(
        &mut self,
        at: usize,
        whole: &Whole,
        work: &Work,
        dtypes: &[DType],
        row: usize,
    ) -> SmallVec<[u16; 2]> {
        let shape = self.graph.shape(whole.step.id);
        let mut results = SmallVec::new();
        for (&value, &dtype) in whole.results.iter().zip(dtypes) {
            results.push(self.tile(value, row * dtype.size()));
            if self.results.contains(&value) {
                let over = self.over(at, (dtype, row), work);
                let outcome =
                    Outcome { dtype, shape: shape.clone(), row: row * dtype.size(), over };
                self.outcomes.insert(value, outcome);
            }
        }
        results
    }

    /// What a step does, and the dtypes of its results.
    fn work(&mut self, whole: &Whole, width: Width) -> (Work, SmallVec<[DType; 2]>) {
        match (&whole.step.action, self.graph.op(whole.step.id)) {
            (Action::Code(code), _) => {
                self.cost += match width {
                    Width::Narrow => code.cost / self.columns,
                    Width::Wide => code.cost,
                };
                (Work::Code(code.clone()), code.results.clone())
            }
            (_, Op::Reduce(op, _)) => {
                self.cost += REDUCTION;
                let dtype = self.graph.dtype(whole.step.id);
                (Work::Reduce(*op, dtype), SmallVec::from_slice(&[dtype]))
            }
            (_, op) => unreachable!("{} joins no set", op.name()),
        }
    }

    /// Where a part finds an operand, which it reads element by element, if this says how.
    fn place(&mut self, at: usize, value: ValueId, read: Option<(DType, usize)>) -> Place {
        if let Some(&tile) = self.tile_of.get(&value) {
            return Place::Tile(tile);
        }
        let known = self.inputs.iter().position(|&input| input == value);
        let input = known.unwrap_or_else(|| {
            self.inputs.push(value);
            self.reads.push(Read { by_element: read, last: at });
            self.inputs.len() - 1
        });
        let before = &mut self.reads[input];
        before.by_element = before.by_element.filter(|_| before.by_element == read);
        before.last = at;
        Place::Input(number(input))
    }

    /// The tile of a value that is made.
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

    /// Inputs that nobody reads any more once this part has written a result of this kind.
    fn over(&self, at: usize, kind: (DType, usize), work: &Work) -> SmallVec<[u16; 2]> {
        // A reduction writes a row's result before it has read the next row.
        let is_done = |read: &Read| read.last < at || matches!(work, Work::Code(_));
        let fits = |read: &Read| read.by_element == Some(kind) && is_done(read);
        let all = self.reads.iter().zip(&self.inputs).enumerate();
        let done = all.filter(|(_, (read, value))| fits(read) && self.last_read[value] <= at);
        done.map(|(input, _)| number(input)).collect()
    }

    /// Tiles that nobody reads any more can be used for others.
    fn free_dead(&mut self, at: usize, whole: &Whole) {
        for value in whole.args.iter().chain(&whole.results) {
            let is_dead = self.last_read.get(value).is_none_or(|&last| last <= at);
            let tile = self.tile_of.get(value).copied();
            let own = tile.filter(|&tile| usize::from(tile) >= self.results.len());
            if let Some(tile) = own.filter(|tile| is_dead && !self.free.contains(tile)) {
                self.free.push(tile);
            }
        }
    }
}

fn number(index: usize) -> u16 {
    u16::try_from(index).expect("a set has few steps")
}
