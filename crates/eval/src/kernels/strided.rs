//! Moving elements between row-major order and any other strided order.
//!
//! Transposing, reversing, broadcasting, slicing, padding and concatenating map each position of
//! the result to a position of the source that is linear in the index of each axis. [`Strided`]
//! holds such a rule after merging adjacent axes where possible, so that the loops run over few
//! long runs. The code depends only on the size of an element, not on its dtype.

use bytemuck::Pod;
use smallvec::SmallVec;

use crate::context::Cx;
use crate::kernels::limits::TASK_ELEMENTS;

/// One loop of a rule: its trip count, and its step in the strided buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct LoopAxis {
    count: usize,
    step: isize,
}

/// The positions of the elements of a row-major order in another buffer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Strided {
    offset: usize,
    /// Outermost first; never empty.
    loops: SmallVec<[LoopAxis; 6]>,
}

// The constants are measured by the family `movement` of `benches/python/kernels.py`.

/// The side of the squares in which two axes are exchanged, so that both sides stay in the cache.
const SQUARE_SIDE: usize = 16;

/// Elements up to which starting a run takes longer than reading it.
const SHORT_LOOP: usize = 64;

/// Elements up to which calling a copy function takes longer than a loop.
const TINY_LOOP: usize = 8;

impl Strided {
    /// The rule that starts at `offset` and moves by `steps` along axes of these sizes.
    pub(crate) fn new(offset: usize, axes: impl IntoIterator<Item = (usize, isize)>) -> Self {
        let mut loops: SmallVec<[LoopAxis; 6]> = SmallVec::new();
        for (count, step) in axes {
            if count == 1 {
                continue;
            }
            match loops.last_mut() {
                // One step of the outer loop equals the whole distance of the inner loop, so both
                // are one loop. The count cannot overflow, because no memory holds such a tensor.
                Some(outer) if Some(outer.step) == step.checked_mul(count as isize) => {
                    *outer = LoopAxis { count: outer.count.saturating_mul(count), step };
                }
                _ => loops.push(LoopAxis { count, step }),
            }
        }
        if loops.is_empty() {
            loops.push(LoopAxis { count: 1, step: 1 });
        }
        Self { offset, loops }
    }

    /// Row-major steps of a shape.
    pub(crate) fn row_major(shape: &[usize]) -> SmallVec<[isize; 6]> {
        let mut steps: SmallVec<[isize; 6]> = SmallVec::from_elem(1, shape.len());
        for axis in (1..shape.len()).rev() {
            // An empty tensor has no elements to step over, however large the other axes are.
            steps[axis - 1] = steps[axis].wrapping_mul(shape[axis] as isize);
        }
        steps
    }

    /// The number of elements of the rule.
    pub(crate) fn len(&self) -> usize {
        self.loops.iter().fold(1, |len, a| len.saturating_mul(a.count))
    }

    /// Returns true if the rule is a plain copy of contiguous elements.
    pub(crate) fn is_contiguous(&self) -> bool {
        matches!(self.loops[..], [LoopAxis { step: 1, .. }])
    }

    /// The offset of `len` elements from `start` on of the row-major order, if they are contiguous.
    pub(crate) fn neighbors(&self, start: usize, len: usize) -> Option<usize> {
        let inner = self.inner();
        let skip = start % inner.count.max(1);
        if inner.step != 1 || skip + len > inner.count {
            return None;
        }
        let mut rest = start / inner.count.max(1);
        let mut at = self.offset as isize + skip as isize;
        for a in self.loops[..self.loops.len() - 1].iter().rev() {
            at += (rest % a.count) as isize * a.step;
            rest /= a.count;
        }
        Some(at as usize)
    }

    /// Returns true if the elements of each row of `columns` elements are contiguous.
    pub(crate) fn has_rows(&self, columns: usize) -> bool {
        let inner = self.inner();
        inner.step == 1 && inner.count.is_multiple_of(columns)
    }

    /// The offsets of rows, from the element `start` of the row-major order on.
    pub(crate) fn row_starts(&self, start: usize, rows: usize, columns: usize) -> Vec<usize> {
        debug_assert!(self.has_rows(columns) && start.is_multiple_of(columns));
        // The access rule of the first element of each row.
        let mut firsts = self.clone();
        let inner = firsts.loops.pop().expect("there is at least one loop");
        if inner.count > columns || firsts.loops.is_empty() {
            firsts.loops.push(LoopAxis { count: inner.count / columns, step: columns as isize });
        }
        let step = firsts.inner().step;
        let mut starts = Vec::with_capacity(rows);
        firsts.for_each_run(start / columns, rows, |at, range| {
            starts.extend((0..range.len() as isize).map(|row| (at as isize + row * step) as usize));
        });
        starts
    }

    /// The number of elements after which the same elements repeat, if the rule is periodic.
    pub(crate) fn period(&self) -> Option<usize> {
        let (outer, rest) = self.loops.split_first().expect("there is at least one loop");
        let count = rest.iter().fold(1, |count: usize, a| count.saturating_mul(a.count));
        (outer.step == 0 && count > 0).then_some(count)
    }

    /// Calls `run` with the start of each innermost run and its range within `start..start + len`
    /// of the row-major order.
    #[inline(always)]
    fn for_each_run(
        &self,
        start: usize,
        len: usize,
        mut run: impl FnMut(usize, std::ops::Range<usize>),
    ) {
        if len == 0 {
            return;
        }
        let (inner, outer) = self.loops.split_last().expect("there is at least one loop");
        let mut index: SmallVec<[usize; 6]> = SmallVec::from_elem(0, outer.len());
        let mut rest = start / inner.count;
        let mut at = self.offset as isize;
        for (axis, a) in outer.iter().enumerate().rev() {
            index[axis] = rest % a.count;
            rest /= a.count;
            at += index[axis] as isize * a.step;
        }
        let mut skip = start % inner.count;
        let mut done = 0;
        while done < len {
            let count = (inner.count - skip).min(len - done);
            run((at + skip as isize * inner.step) as usize, done..done + count);
            skip = 0;
            done += count;
            for (axis, a) in outer.iter().enumerate().rev() {
                index[axis] += 1;
                at += a.step;
                if index[axis] < a.count {
                    break;
                }
                at -= a.count as isize * a.step;
                index[axis] = 0;
            }
        }
    }

    /// Reads the elements `start..` of the row-major order until `out` is full.
    pub(crate) fn read<T: Pod>(&self, source: &[T], start: usize, out: &mut [T]) {
        let inner = self.inner();
        let len = out.len();
        if let [around @ .., outer, inner] = &self.loops[..]
            && inner.count <= SHORT_LOOP
            && len > 0
        {
            // Short runs have a separate loop, because starting a run takes longer than reading it.
            let mut rows = Self { offset: self.offset, loops: around.into() };
            rows.loops.push(LoopAxis { count: outer.count * inner.count, step: 0 });
            let mut skip = start % rows.inner().count;
            rows.for_each_run(start, len, |at, range| {
                read_short_runs(source, at, *outer, *inner, skip, &mut out[range]);
                skip = 0;
            });
            return;
        }
        let step = inner.step;
        self.for_each_run(start, len, |at, range| read_run(source, at, step, &mut out[range]));
    }

    /// Writes `elements`, in row-major order, to their positions.
    pub(crate) fn write<T: Pod>(&self, elements: &[T], target: &mut [T]) {
        let step = self.inner().step;
        self.for_each_run(0, elements.len(), |at, range| {
            write_run(&elements[range], target, at, step);
        });
    }

    /// Calls `put` with each of `elements`, in row-major order, and its target. The rule must not have negative steps.
    #[inline(always)]
    pub(crate) fn for_each_target<T: Pod>(
        &self,
        elements: &[T],
        target: &mut [T],
        put: impl Fn(&mut T, T),
    ) {
        let step = self.inner().step.unsigned_abs().max(1);
        self.for_each_run(0, elements.len(), |first, range| {
            let targets = target.iter_mut().skip(first).step_by(step);
            targets.zip(&elements[range]).for_each(|(out, &x)| put(out, x));
        });
    }

    fn inner(&self) -> LoopAxis {
        *self.loops.last().expect("there is at least one loop")
    }

    /// Reads every element, in parallel if there are many.
    pub(crate) fn read_all<T: Pod + Send + Sync>(&self, cx: Cx<'_>, source: &[T], out: &mut [T]) {
        match self.swapped_axes() {
            Some((unit, steps)) => {
                // Threads divide the outermost loop, whose iterations are contiguous in the result.
                let (row, first) = (steps[0] as usize, self.loops[0].step);
                // Parts of equal length, so that no thread waits for the last part of another one.
                let fair = self.loops[0].count.div_ceil(2 * cx.threads());
                let rows =
                    (TASK_ELEMENTS / row.max(1)).min(fair).max(1).next_multiple_of(SQUARE_SIDE);
                cx.pieces(out, rows * row, 4, |start, out| {
                    let mut part = self.clone();
                    part.offset = (part.offset as isize + (start / row) as isize * first) as usize;
                    part.loops[0].count = out.len() / row;
                    part.read_tiled(source, out, unit, &steps);
                });
            }
            None => cx.rows(out, 1, 2, |start, out| self.read(source, start, out)),
        }
    }

    /// The loop with step 1, if it is not the innermost loop and exchanging both loops pays; and
    /// the row-major steps of all loops.
    fn swapped_axes(&self) -> Option<(usize, SmallVec<[isize; 6]>)> {
        let inner = self.inner();
        let unit = self.loops.iter().position(|a| a.step == 1)?;
        let pays = inner.count >= 4 && self.loops[unit].count >= 4 && inner.step.abs() > 1;
        let counts: SmallVec<[usize; 6]> = self.loops.iter().map(|a| a.count).collect();
        pays.then(|| (unit, Self::row_major(&counts)))
    }

    /// Reads every element in squares of two loops: one with step 1 in the source, and one with
    /// step 1 in the result.
    fn read_tiled<T: Pod>(&self, source: &[T], out: &mut [T], unit: usize, steps: &[isize]) {
        let inner = self.inner();
        let rows = self.loops[unit].count;
        let row_step = steps[unit] as usize;
        let last = self.loops.len() - 1;
        let mut others = self.clone();
        let mut targets = Self { offset: 0, loops: SmallVec::new() };
        // The remaining loops enclose the loops over the two exchanged axes.
        others.loops.remove(last);
        others.loops.remove(unit);
        for (axis, a) in self.loops.iter().enumerate() {
            if axis != unit && axis != last {
                targets.loops.push(LoopAxis { count: a.count, step: steps[axis] });
            }
        }
        for outer in [&mut others, &mut targets] {
            outer.loops.push(LoopAxis { count: 1, step: 1 });
        }
        let mut froms: Vec<usize> = Vec::new();
        let count = others.len();
        others.for_each_run(0, count, |at, _| froms.push(at));
        let mut index = 0;
        targets.for_each_run(0, count, |to, _| {
            let from = froms[index];
            index += 1;
            for column in (0..inner.count).step_by(SQUARE_SIDE) {
                let columns = SQUARE_SIDE.min(inner.count - column);
                for row in (0..rows).step_by(SQUARE_SIDE) {
                    let first = from as isize + row as isize + column as isize * inner.step;
                    let out = &mut out[to + row * row_step + column..];
                    if columns == SQUARE_SIDE && row + SQUARE_SIDE <= rows {
                        exchange(source, first, inner.step, out, row_step);
                        continue;
                    }
                    for row in 0..SQUARE_SIDE.min(rows - row) {
                        let out = &mut out[row * row_step..][..columns];
                        read_run(source, (first + row as isize) as usize, inner.step, out);
                    }
                }
            }
        });
    }
}

/// Exchanges the axes of a square. Rows `step` apart in the source become columns of the result. The source is read by
/// rows, because the cache holds few rows that are a power of two apart.
fn exchange<T: Pod>(source: &[T], first: isize, step: isize, out: &mut [T], row_step: usize) {
    let mut square = [[T::zeroed(); SQUARE_SIDE]; SQUARE_SIDE];
    for (index, row) in square.iter_mut().enumerate() {
        let first = (first + index as isize * step) as usize;
        row.copy_from_slice(&source[first..first + SQUARE_SIDE]);
    }
    for (index, out) in out.chunks_mut(row_step).take(SQUARE_SIDE).enumerate() {
        for column in 0..SQUARE_SIDE {
            out[column] = square[column][index];
        }
    }
}

#[inline(always)]
fn read_run<T: Pod>(source: &[T], at: usize, step: isize, out: &mut [T]) {
    match step {
        1 => out.copy_from_slice(&source[at..at + out.len()]),
        0 => out.fill(source[at]),
        step if step > 0 => {
            let from = source[at..].iter().step_by(step as usize);
            out.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
        }
        -1 => {
            let from = source[at + 1 - out.len()..=at].iter().rev();
            out.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
        }
        step => {
            let from = source[..=at].iter().rev().step_by(step.unsigned_abs());
            out.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
        }
    }
}

/// Reads runs one after the other, without the first `skip` elements.
fn read_short_runs<T: Pod>(
    source: &[T],
    at: usize,
    outer: LoopAxis,
    inner: LoopAxis,
    skip: usize,
    out: &mut [T],
) {
    let offset = |run: usize| at as isize + run as isize * outer.step;
    let (first, skip) = (skip / inner.count, skip % inner.count);
    let mut begin = first;
    let mut out = out;
    if skip > 0 {
        let (head, rest) = out.split_at_mut((inner.count - skip).min(out.len()));
        let from = offset(first) + skip as isize * inner.step;
        read_run(source, from as usize, inner.step, head);
        (begin, out) = (first + 1, rest);
    }
    if out.is_empty() {
        return;
    }
    match (outer.step, inner.step, inner.count) {
        // Each element is repeated `count` times.
        (1, 0, 2) => repeat_each::<T, 2>(&source[offset(begin) as usize..], out),
        (1, 0, 3) => repeat_each::<T, 3>(&source[offset(begin) as usize..], out),
        (1, 0, 4) => repeat_each::<T, 4>(&source[offset(begin) as usize..], out),
        // The same run is repeated: copy the written elements again.
        (0, _, count) => {
            let done = count.min(out.len());
            read_run(source, at, inner.step, &mut out[..done]);
            repeat_first(out, done);
        }
        (_, 0, count) if count > TINY_LOOP => {
            for (run, out) in out.chunks_mut(count).enumerate() {
                out.fill(source[offset(begin + run) as usize]);
            }
        }
        (_, 1, count) if count > TINY_LOOP => {
            for (run, out) in out.chunks_mut(count).enumerate() {
                out.copy_from_slice(&source[offset(begin + run) as usize..][..out.len()]);
            }
        }
        (_, step, count) => {
            for (run, out) in out.chunks_mut(count).enumerate() {
                let mut from = offset(begin + run);
                for out in out {
                    *out = source[from as usize];
                    from += step;
                }
            }
        }
    }
}

/// Fills `out` with copies of its first `done` elements. Each step doubles the number of copied
/// elements.
pub(crate) fn repeat_first<T: Copy>(out: &mut [T], mut done: usize) {
    while done < out.len() {
        let more = done.min(out.len() - done);
        out.copy_within(..more, done);
        done += more;
    }
}

/// Writes each element `N` times.
fn repeat_each<T: Pod, const N: usize>(source: &[T], out: &mut [T]) {
    let (runs, rest) = out.as_chunks_mut::<N>();
    for (run, &x) in runs.iter_mut().zip(source) {
        *run = [x; N];
    }
    if let [_, ..] = rest {
        rest.fill(source[runs.len()]);
    }
}

#[inline(always)]
fn write_run<T: Pod>(elements: &[T], target: &mut [T], at: usize, step: isize) {
    match step {
        1 => target[at..at + elements.len()].copy_from_slice(elements),
        step if step > 0 => {
            let to = target[at..].iter_mut().step_by(step as usize);
            to.zip(elements).for_each(|(to, from)| *to = *from);
        }
        step => {
            let to = target[..=at].iter_mut().rev().step_by(step.unsigned_abs().max(1));
            to.zip(elements).for_each(|(to, from)| *to = *from);
        }
    }
}

/// Binds a type to an unsigned integer type of `$size` bytes, to move elements of any dtype.
macro_rules! match_size {
    ($size:expr, $t:ident => $body:expr) => {
        match $size {
            1 => $crate::kernels::with_type!($t = u8 => $body),
            2 => $crate::kernels::with_type!($t = u16 => $body),
            4 => $crate::kernels::with_type!($t = u32 => $body),
            8 => $crate::kernels::with_type!($t = u64 => $body),
            16 => $crate::kernels::with_type!($t = [u64; 2] => $body),
            size => unreachable!("no element has {size} bytes"),
        }
    };
}
pub(crate) use match_size;

impl Strided {
    /// [`Strided::read`] on bytes of elements of `size` bytes.
    pub(crate) fn read_bytes(&self, size: usize, source: &[u8], start: usize, out: &mut [u8]) {
        match_size!(size, T => self.read::<T>(
            bytemuck::cast_slice(source), start, bytemuck::cast_slice_mut(out)));
    }

    /// [`Strided::read_all`] on bytes of elements of `size` bytes.
    pub(crate) fn read_all_bytes(&self, cx: Cx<'_>, size: usize, source: &[u8], out: &mut [u8]) {
        match_size!(size, T => self.read_all::<T>(
            cx, bytemuck::cast_slice(source), bytemuck::cast_slice_mut(out)));
    }

    /// [`Strided::write`] on bytes of elements of `size` bytes.
    pub(crate) fn write_bytes(&self, size: usize, elements: &[u8], target: &mut [u8]) {
        match_size!(size, T => self.write::<T>(
            bytemuck::cast_slice(elements), bytemuck::cast_slice_mut(target)));
    }
}
