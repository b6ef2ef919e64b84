//! Batching rules of slices, gathers and scatters: a start that differs between entries becomes an
//! index, with the entry number as a coordinate for each batch axis.

use nxla_tensor::{DType, Scalar, Shape, to_i64};

use super::batcher::{Batched, Batcher, ids};
use crate::graph::{
    Axes, Combine, ExprId, Graph, Op, Operands, Result, SliceAttributes, SortAttributes, Stack,
    Start,
};

pub(super) fn batch(batcher: &mut Batcher<'_>, op: &Op, operands: &[Batched]) -> Result<ExprId> {
    match op {
        Op::Slice(attributes) => slice(batcher, attributes, operands),
        Op::PutSlice(starts) => put_slice(batcher, starts, operands),
        Op::Gather(axes) => gather(batcher, axes, operands),
        Op::IndexedAdd(axes) => batch_scatter(batcher, axes, operands, Op::IndexedAdd),
        Op::IndexedPut(axes) => batch_scatter(batcher, axes, operands, Op::IndexedPut),
        Op::Sort(sort) => {
            let axis = batcher.shift(sort.axis);
            batcher.make(Op::Sort(SortAttributes { axis, ..*sort }), &[operands[0].id])
        }
        Op::Argsort(sort, dtype) => {
            let axis = batcher.shift(sort.axis);
            batcher.make(Op::Argsort(SortAttributes { axis, ..*sort }, *dtype), &[operands[0].id])
        }
        op @ crate::outside!(index) => unreachable!("{} is of another family", op.name()),
    }
}

/// The start of a range along one axis of an entry.
#[derive(Clone, Copy)]
enum RangeStart {
    Static(i64),
    Dynamic(Batched),
}

impl RangeStart {
    /// Returns the starts of an op with the operands of the dynamic starts.
    fn all(starts: &[Start], operands: &[Batched]) -> Vec<RangeStart> {
        let mut operands = operands.iter();
        let begin = |start: &Start| match start {
            Start::Static(start) => RangeStart::Static(*start),
            Start::Dynamic => RangeStart::Dynamic(*operands.next().expect("one for each start")),
        };
        starts.iter().map(begin).collect()
    }

    fn differs(self) -> bool {
        matches!(self, RangeStart::Dynamic(start) if start.batched)
    }
}

/// Slices the axes whose start is the same for all entries, and gathers the other axes.
fn slice(b: &mut Batcher<'_>, slice: &SliceAttributes, operands: &[Batched]) -> Result<ExprId> {
    let (&x, dynamic) = operands.split_first().expect("a slice has an operand");
    let begins = RangeStart::all(&slice.starts, dynamic);
    let sizes = b.entry_shape(x);
    let (mut shared, mut ids) = (slice.clone(), Operands::from_slice(&[x.id]));
    for (axis, &begin) in begins.iter().enumerate() {
        match begin {
            RangeStart::Static(_) => {}
            RangeStart::Dynamic(start) if !start.batched => ids.push(start.id),
            RangeStart::Dynamic(_) => {
                shared.starts[axis] = Start::Static(0);
                (shared.lengths[axis], shared.strides[axis]) = (sizes[axis], 1);
            }
        }
    }
    if x.batched {
        shared.starts = b.prepend_batch(Start::Static(0), &shared.starts);
        shared.lengths = b.sizes.iter().chain(&shared.lengths).copied().collect();
        shared.strides = b.prepend_batch(1, &shared.strides);
    }
    let x = Batched { id: b.make(Op::Slice(Box::new(shared)), &ids)?, ..x };
    let axes: Vec<usize> = (0..begins.len()).filter(|&axis| begins[axis].differs()).collect();
    if axes.is_empty() {
        return Ok(x.id);
    }

    let taken = |&axis: &usize| slice.lengths[axis].div_ceil(slice.strides[axis]);
    let grid: Vec<usize> = axes.iter().map(taken).collect();
    let mut columns = Operands::new();
    for (position, &axis) in axes.iter().enumerate() {
        let start = b.clamp_start(begins[axis], sizes[axis] - slice.lengths[axis], grid.len())?;
        columns.push(b.range(start, &grid, position, slice.strides[axis])?);
    }
    let indices = b.coordinates(columns, &grid, x.batched)?;
    let indexed = if x.batched { b.with_batch_axes(&axes) } else { axes.clone().into() };
    let gathered = b.make(Op::Gather(indexed), &[x.id, indices])?;
    // A gather moves the gathered axes to the front; the result restores their positions.
    let mut rest = axes.len()..;
    let mut order = Vec::with_capacity(sizes.rank());
    for axis in 0..sizes.rank() {
        let at = axes.iter().position(|&gathered| gathered == axis);
        order.push(at.unwrap_or_else(|| rest.next().expect("there is no end")));
    }
    b.permute_entry(gathered, &order)
}

/// If starts differ between entries, each entry scatters its update.
fn put_slice(b: &mut Batcher<'_>, starts: &[Start], operands: &[Batched]) -> Result<ExprId> {
    let [x, update, dynamic @ ..] = operands else { unreachable!("there is an update") };
    let begins = RangeStart::all(starts, dynamic);
    let (sizes, taken) = (b.entry_shape(*x), b.entry_shape(*update));
    let (x, update) = (b.lift(*x)?, b.lift(*update)?);
    if !dynamic.iter().any(|start| start.batched) {
        let starts = b.prepend_batch(Start::Static(0), starts);
        let operands: Operands = [x, update].into_iter().chain(ids(dynamic)).collect();
        return b.make(Op::PutSlice(starts), &operands);
    }
    // An update that is shorter than an axis fills a prefix, so the axis needs no index.
    let (axes, rest): (Vec<usize>, Vec<usize>) =
        (0..begins.len()).partition(|&axis| !matches!(begins[axis], RangeStart::Static(..=0)));
    let grid: Vec<usize> = axes.iter().map(|&axis| taken[axis]).collect();
    let mut columns = Operands::new();
    for (position, &axis) in axes.iter().enumerate() {
        let start = b.clamp_start(begins[axis], sizes[axis] - taken[axis], grid.len())?;
        columns.push(b.range(start, &grid, position, 1)?);
    }
    let indices = b.coordinates(columns, &grid, true)?;
    let order: Vec<usize> = axes.iter().chain(&rest).copied().collect();
    let update = b.strip_names(update)?;
    let update = b.permute_entry(update, &order)?;
    let axes = b.with_batch_axes(&axes);
    b.make(Op::IndexedPut(axes), &[x, indices, update])
}

fn gather(b: &mut Batcher<'_>, axes: &Axes, operands: &[Batched]) -> Result<ExprId> {
    let [x, indices] = *operands else { unreachable!("a gather has two operands") };
    match (x.batched, indices.batched) {
        (_, false) => {
            // The batch axes are among the axes that are not indexed, at the front of the window.
            let position = b.graph.shape(indices.id).rank() - 1;
            let axes = b.shift_all(axes);
            let gathered = b.make(Op::Gather(axes), &[x.id, indices.id])?;
            b.bring_forward(gathered, position)
        }
        (false, true) => b.make(Op::Gather(axes.clone()), &[x.id, indices.id]),
        (true, true) => {
            let axes = b.with_batch_axes(axes);
            let indices = b.with_entry_numbers(indices.id)?;
            b.make(Op::Gather(axes), &[x.id, indices])
        }
    }
}

/// Batches a scatter: shared indices apply to whole batches, other indices need their entry number.
fn batch_scatter(
    b: &mut Batcher<'_>,
    axes: &Axes,
    operands: &[Batched],
    op: impl Fn(Axes) -> Op,
) -> Result<ExprId> {
    let [x, indices, updates] = *operands else { unreachable!("a scatter has three operands") };
    let (x, updates) = (b.lift(x)?, b.lift(updates)?);
    if indices.batched {
        let axes = b.with_batch_axes(axes);
        let indices = b.with_entry_numbers(indices.id)?;
        return b.make(op(axes), &[x, indices, updates]);
    }
    // The updates have the leading axes of the indices, then the window with the batch axes.
    let leading = b.graph.shape(indices.id).rank() - 1;
    let updates = b.strip_names(updates)?;
    let updates = b.move_batch_behind(updates, leading)?;
    let axes = b.shift_all(axes);
    b.make(op(axes), &[x, indices.id, updates])
}

/// Combines vectors with updates: the vectors of all entries are concatenated, with a range per
/// entry.
pub(super) fn scatter(b: &mut Batcher<'_>, op: Combine, operands: &[Batched]) -> Result<ExprId> {
    let [x, indices, updates] = *operands else { unreachable!("a scatter has three operands") };
    let size = b.entry_shape(x)[0];
    let shape = b.batch_shape(&[size]);
    let (x, indices, updates) = (b.lift(x)?, b.lift(indices)?, b.lift(updates)?);
    let entries: usize = b.sizes.iter().product();
    let count = b.graph.shape(updates)[b.depth()];
    let graph = &mut *b.graph;
    let [size, all] = [size, entries * size].map(to_i64);
    let indices = graph.as_type(indices, DType::S64)?;
    let indices = graph.reshape(indices, [entries, count])?;
    let numbers =
        |graph: &mut Graph, number| graph.scalar_constant(Scalar::Int(number), DType::S64);
    let (zero, size, nowhere) = (numbers(graph, 0)?, numbers(graph, size)?, numbers(graph, all)?);
    let entry = graph.iota([entries, count], Some(0), DType::S64)?;
    let first = graph.multiply(entry, size)?;
    let place = graph.add(first, indices)?;
    // An index out of range for its entry must not update another entry.
    let (low, high) = (graph.greater_equal(indices, zero)?, graph.less(indices, size)?);
    let is_inside = graph.logical_and(low, high)?;
    let place = graph.select(is_inside, place, nowhere)?;
    let place = graph.reshape(place, [entries * count, 1])?;
    let (x, updates) = (graph.flatten(x, None)?, graph.flatten(updates, None)?);
    let result = graph.scatter(x, place, updates, op)?;
    graph.reshape(result, shape)
}

impl Batcher<'_> {
    /// Returns a start clamped to `[0, limit]` that broadcasts with a grid of rank `rank`.
    fn clamp_start(&mut self, begin: RangeStart, limit: usize, rank: usize) -> Result<ExprId> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let start = match begin {
            RangeStart::Static(start) => {
                let start = start.clamp(0, limit);
                return self.graph.scalar_constant(Scalar::Int(start), DType::S64);
            }
            RangeStart::Dynamic(start) => start,
        };
        let wide = self.graph.signed_indices(start.id)?;
        let zero = self.graph.scalar_constant(Scalar::Int(0), DType::S64)?;
        let limit = self.graph.scalar_constant(Scalar::Int(limit), DType::S64)?;
        let id = self.graph.clip(wide, zero, limit)?;
        self.widen(Batched { id, ..start }, rank)
    }

    /// Returns `start + stride * i` along one axis of a grid.
    fn range(
        &mut self,
        start: ExprId,
        grid: &[usize],
        axis: usize,
        stride: usize,
    ) -> Result<ExprId> {
        let axis = to_i64(axis);
        let count = self.graph.iota(grid, Some(axis), DType::S64)?;
        let stride = Scalar::Int(i64::try_from(stride).unwrap_or(i64::MAX));
        let stride = self.graph.scalar_constant(stride, DType::S64)?;
        let steps = self.graph.multiply(count, stride)?;
        self.graph.add(start, steps)
    }

    /// Returns the entry number along each batch axis, over the batch and further axes.
    fn entry_numbers(&mut self, entry: &[usize]) -> Result<Operands> {
        let shape = self.batch_shape(entry);
        let axes = (0..).take(self.depth());
        axes.map(|axis| self.graph.iota(shape.clone(), Some(axis), DType::S64)).collect()
    }

    /// Stacks coordinate columns over a grid as the last axis of indices, after the entry numbers.
    fn coordinates(&mut self, columns: Operands, grid: &[usize], numbered: bool) -> Result<ExprId> {
        let mut all = if numbered { self.entry_numbers(grid)? } else { Operands::new() };
        let shape = self.batch_shape(grid);
        for column in columns {
            all.push(self.graph.broadcast(column, shape.clone(), None)?);
        }
        self.make(Op::Stack(Box::new(Stack { axis: shape.rank(), name: None })), &all)
    }

    /// Prepends a coordinate for each batch axis to indices.
    fn with_entry_numbers(&mut self, indices: ExprId) -> Result<ExprId> {
        let indices = self.strip_names(indices)?;
        let indices = self.graph.signed_indices(indices)?;
        let entry: Shape = self.graph.shape(indices)[self.depth()..].into();
        let (_, leading) = entry.split_last().expect("indices have a last axis");
        let mut parts = Operands::new();
        for number in self.entry_numbers(leading)? {
            parts.push(self.graph.new_axis(number, -1, None)?);
        }
        parts.push(indices);
        self.graph.concatenate(&parts, -1)
    }
}
