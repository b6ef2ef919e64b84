//! Tiles of convolutions, whose sums stay in registers.
//!
//! A vector holds the sums of neighboring output channels for one position, and a tile has one or
//! two vectors for each of some positions. For each tap, the weights are read once, and each
//! element of the input is multiplied with all of them.

use std::ops::Range;

use bytemuck::cast_slice;

use super::conv::Geometry;
use super::direct::Task;
use super::padded::{PaddedLayout, SLACK};
use crate::kernels::reduce::hide_lanes;
use crate::kernels::vectors::{InVectors, SimdVectors, VectorWork};

/// The side of the blocks of weights that are transposed together.
const SIDE: usize = 8;

/// The most positions of a row of a tile.
const MOST_POSITIONS: usize = 16;
const _: () = assert!(MOST_POSITIONS <= SLACK);

/// Defines the rows and positions of tiles, and a function that computes a part of a [`TileWork`] with one of them. The
/// first tiles are for one vector of output channels. A tile of several rows has whole rows.
macro_rules! tiles {
    ($fill:ident: $(($rows:literal, $positions:literal))*; $(($narrow_rows:literal, $narrow_positions:literal))*) => {
        impl<T: InVectors> TileWork<'_, T> {
            #[inline(always)]
            fn $fill<V: SimdVectors<T>>(&mut self, vectors: V, part: Range<usize>) {
                let width = self.geometry.last().count;
                if self.has_one_vector::<V>() {
                    match smallest(width, &[$(($rows, $positions),)*]) {
                        $(($rows, $positions) => self.fill::<V, $rows, $positions, 1>(vectors, part),)*
                        _ => unreachable!("it is one of the tiles"),
                    }
                } else {
                    match smallest(width, &[$(($narrow_rows, $narrow_positions),)*]) {
                        $(($narrow_rows, $narrow_positions) => {
                            self.fill::<V, $narrow_rows, $narrow_positions, 2>(vectors, part);
                        })*
                        _ => unreachable!("it is one of the tiles"),
                    }
                }
            }
        }
    };
}
// The sums, the weights of a tap and one element of the input fit into 32 registers, or into 16.
tiles!(fill_wide: (1, 16) (1, 14) (2, 7) (3, 4) (4, 3) (14, 1); (1, 14) (1, 8) (2, 7) (3, 4) (4, 3) (14, 1));
tiles!(fill_narrow: (1, 12) (1, 8) (4, 3) (6, 1); (1, 6) (1, 4) (2, 3) (6, 1));
tiles!(fill_few: (1, 4); (1, 4));

/// The tile that computes the fewest positions for rows of a width.
fn smallest(width: usize, tiles: &[(usize, usize)]) -> (usize, usize) {
    let usable = tiles.iter().filter(|&&(rows, positions)| rows == 1 || width <= positions);
    let positions = |&&(_, positions): &&(usize, usize)| width.next_multiple_of(positions);
    *usable.min_by_key(positions).expect("a tile of one row is usable")
}

/// The computation of a task.
pub(super) struct TileWork<'a, T> {
    pub(super) geometry: &'a Geometry,
    pub(super) layout: &'a PaddedLayout,
    /// The copied planes of the input.
    pub(super) input: &'a [T],
    /// The weights as `[output][inner]`.
    pub(super) kernel: &'a [T],
    /// The memory for weights as `[inner][lane]`, or for a part of them.
    pub(super) weights: &'a mut [T],
    pub(super) task: Task<'a, T>,
}

impl<T: InVectors> VectorWork<T> for TileWork<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: SimdVectors<T>>(mut self, vectors: V) {
        let inner = self.geometry.inner();
        let lanes = if self.has_one_vector::<V>() { V::LANES } else { 2 * V::LANES };
        let steps = self.weights.len() / lanes;
        for first in (0..inner).step_by(steps) {
            let part = first..inner.min(first + steps);
            self.copy_weights(part.clone(), lanes);
            // The compiler drops the tiles of the other branches only for constant conditions.
            if const { V::REGISTERS >= 32 } {
                self.fill_wide(vectors, part);
            } else if const { V::REGISTERS >= 16 } {
                self.fill_narrow(vectors, part);
            } else {
                self.fill_few(vectors, part);
            }
        }
    }
}

impl<T: InVectors> TileWork<'_, T> {
    /// Returns true if the output channels are in one vector.
    #[inline(always)]
    fn has_one_vector<V: SimdVectors<T>>(&self) -> bool {
        self.task.outputs.len() <= V::LANES
    }

    /// Copies the weights of a part of each sum, and zeros for lanes without an output channel.
    #[inline(always)]
    fn copy_weights(&mut self, part: Range<usize>, lanes: usize) {
        let (inner, outputs) = (self.geometry.inner(), self.task.outputs.len());
        for first in (0..lanes).step_by(SIDE) {
            let is_whole = first + SIDE <= outputs;
            let in_blocks = if is_whole { part.len() - part.len() % SIDE } else { 0 };
            for step in (0..in_blocks).step_by(SIDE) {
                let mut block = [[T::default(); SIDE]; SIDE];
                for (lane, row) in block.iter_mut().enumerate() {
                    let weights = &self.kernel[(first + lane) * inner + part.start + step..];
                    *row = *weights.first_chunk().expect("a weight for each step");
                }
                for column in 0..SIDE {
                    let out = &mut self.weights[(step + column) * lanes + first..][..SIDE];
                    for (out, row) in out.iter_mut().zip(&block) {
                        *out = row[column];
                    }
                }
            }
            for step in in_blocks..part.len() {
                for lane in first..lanes.min(first + SIDE) {
                    let row = self.kernel.get(lane * inner..).filter(|_| lane < outputs);
                    let weight = row.map_or(T::default(), |row| row[part.start + step]);
                    self.weights[step * lanes + lane] = weight;
                }
            }
        }
    }

    /// Computes a part of each sum with tiles of `R` rows, `P` positions, and `N` vectors of output channels.
    #[inline(always)]
    fn fill<V: SimdVectors<T>, const R: usize, const P: usize, const N: usize>(
        &mut self,
        vectors: V,
        part: Range<usize>,
    ) {
        let (width, size) = (self.geometry.last().count, self.geometry.out_size);
        let height = size / width;
        let mut column = self.task.columns.start;
        while column < self.task.columns.end {
            let mut inputs: [&[T]; R] = [&[]; R];
            for (r, input) in inputs.iter_mut().enumerate() {
                // Rows after the last one are computed in vain.
                let row = (column / width + r).min(self.geometry.batch * height - 1);
                let plane = self.geometry.plane(row / height, self.task.group);
                let start = plane * self.layout.plane() + self.layout.rows[row % height];
                *input = &self.input[start + column % width..];
            }
            let sums = self.sums::<V, R, P, N>(vectors, part.clone(), &inputs);
            let sums: &[T] = cast_slice(sums.as_flattened().as_flattened());
            for sums in sums.chunks_exact(P * N * V::LANES) {
                let end = ((column / width + 1) * width).min(column + P);
                let columns = column..end.min(self.task.columns.end);
                if !columns.is_empty() {
                    column = columns.end;
                    self.task.store::<P>(sums, columns, size, part.start > 0);
                }
            }
        }
    }

    /// The sums of a tile over a part of the products, whose weights have been copied.
    #[inline(always)]
    fn sums<V: SimdVectors<T>, const R: usize, const P: usize, const N: usize>(
        &self,
        vectors: V,
        part: Range<usize>,
        inputs: &[&[T]; R],
    ) -> [[[V::Vector; N]; P]; R] {
        let lanes = N * V::LANES;
        let mut sums = [[[vectors.splat(T::default()); N]; P]; R];
        let mut weights = self.weights.chunks_exact(lanes);
        let (runs, mut first) = (&self.layout.runs, part.start);
        while first < part.end {
            let (channel, tap) = (first / runs.len(), first % runs.len());
            let runs = &runs[tap..runs.len().min(tap + part.end - first)];
            first += runs.len();
            let mut x = *inputs;
            for x in &mut x {
                *x = &x[channel * self.layout.plane()..];
            }
            for (&start, weights) in runs.iter().zip(weights.by_ref()) {
                let mut vector = [vectors.splat(T::default()); N];
                for n in 0..N {
                    vector[n] = vectors.load(&weights[n * V::LANES..]);
                }
                for r in 0..R {
                    let run: &[T; P] = x[r][start..].first_chunk().expect("slack follows runs");
                    for p in 0..P {
                        let x = vectors.splat(run[p]);
                        for n in 0..N {
                            sums[r][p][n] = vectors.multiply_add(x, vector[n], sums[r][p][n]);
                        }
                    }
                }
            }
        }
        hide_lanes(sums)
    }
}
