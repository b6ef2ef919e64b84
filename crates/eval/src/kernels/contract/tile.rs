//! Tiles of convolutions, whose sums stay in registers.
//!
//! A vector holds the sums of neighboring output channels for one position, and a tile has one or
//! two vectors for each of some positions. For each tap, the weights are read once, and each
//! element of the input is multiplied with all of them.

use std::ops::Range;

use bytemuck::cast_slice;

use super::direct::{Direct, Task};
use super::padded::SLACK;
use crate::kernels::reduce::hide_lanes;
use crate::kernels::vectors::{InVectors, SimdVectors, VectorWork};

/// The side of the blocks of weights that are transposed together.
const SIDE: usize = 8;

/// The most positions of a row of a tile.
const MOST_POSITIONS: usize = 16;
const _: () = assert!(MOST_POSITIONS <= SLACK);

/// Defines the rows and positions of tiles for each number of vectors of output channels, and a function that computes
/// a part of a [`TileWork`] with one of them. A tile of several rows has whole rows.
macro_rules! tiles {
    ($fill:ident: $($vectors:literal: $(($rows:literal, $positions:literal))*);*) => {
        impl<T: InVectors> TileWork<'_, T> {
            #[inline(always)]
            fn $fill<V: SimdVectors<T>>(&mut self, vectors: V, part: Range<usize>) {
                let (width, count) = (self.conv.geometry.last().count, self.vectors::<V>());
                $(if count == $vectors {
                    return match smallest(width, &[$(($rows, $positions),)*]) {
                        $(($rows, $positions) => {
                            self.fill::<V, $rows, $positions, $vectors>(vectors, part);
                        })*
                        _ => unreachable!("it is one of the tiles"),
                    };
                })*
            }
        }
    };
}
// The sums, the weights of a tap and one element of the input fit into 32 registers, or into 16.
tiles!(fill_wide: 1: (1, 16) (1, 14) (2, 7) (3, 4) (4, 3) (14, 1); 2: (1, 14) (1, 8) (2, 7) (3, 4) (4, 3) (14, 1));
tiles!(fill_narrow: 1: (1, 12) (1, 8) (4, 3) (6, 1); 2: (1, 6) (1, 4) (2, 3) (6, 1));
tiles!(fill_few: 1: (1, 4); 2: (1, 4));

/// The tile that computes the fewest positions for rows of a width.
fn smallest(width: usize, tiles: &[(usize, usize)]) -> (usize, usize) {
    let usable = tiles.iter().filter(|&&(rows, positions)| rows == 1 || width <= positions);
    let positions = |&&(_, positions): &&(usize, usize)| width.next_multiple_of(positions);
    *usable.min_by_key(positions).expect("a tile of one row is usable")
}

/// The computation of a task.
pub(super) struct TileWork<'a, T> {
    pub(super) conv: &'a Direct<'a, T>,
    pub(super) task: Task<'a, T>,
    /// The memory for weights as `[inner][lane]`, or for a part of them.
    pub(super) weights: &'a mut [T],
}

impl<T: InVectors> VectorWork<T> for TileWork<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: SimdVectors<T>>(mut self, vectors: V) {
        let inner = self.conv.geometry.inner();
        let lanes = self.vectors::<V>() * V::LANES;
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
    /// The vectors that hold the output channels: one or two.
    #[inline(always)]
    fn vectors<V: SimdVectors<T>>(&self) -> usize {
        self.task.outputs.len().div_ceil(V::LANES)
    }

    /// Copies the weights of a part of each sum, and zeros for lanes without an output channel.
    #[inline(always)]
    fn copy_weights(&mut self, part: Range<usize>, lanes: usize) {
        let Direct { geometry, kernel, .. } = *self.conv;
        let outputs = self.task.outputs.len();
        let first_output = self.task.group * geometry.group_outputs + self.task.outputs.start;
        let mut step = part.start;
        while step < part.end {
            let run = geometry.weight_run(step);
            let count = run.count.min(part.end - step);
            let to = &mut self.weights[(step - part.start) * lanes..][..count * lanes];
            step += count;
            if outputs < lanes {
                to.fill(T::default());
            }
            let row = |lane: usize| {
                let start = run.start + (first_output + lane) * run.output_stride;
                &kernel[start..][..count]
            };
            for first in (0..outputs).step_by(SIDE) {
                let is_whole = first + SIDE <= outputs;
                let in_blocks = if is_whole { count - count % SIDE } else { 0 };
                for step in (0..in_blocks).step_by(SIDE) {
                    let mut block = [[T::default(); SIDE]; SIDE];
                    for (lane, weights) in block.iter_mut().enumerate() {
                        let row = &row(first + lane)[step..];
                        *weights = *row.first_chunk().expect("a weight for each step");
                    }
                    for column in 0..SIDE {
                        let to = &mut to[(step + column) * lanes + first..][..SIDE];
                        for (to, weights) in to.iter_mut().zip(&block) {
                            *to = weights[column];
                        }
                    }
                }
                for lane in first..outputs.min(first + SIDE) {
                    let rest = to.chunks_exact_mut(lanes).zip(row(lane)).skip(in_blocks);
                    rest.for_each(|(to, &weight)| to[lane] = weight);
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
        let Direct { geometry, layout, input: planes, .. } = *self.conv;
        let width = geometry.last().count;
        let height = geometry.out_size / width;
        let mut column = self.task.columns.start;
        while column < self.task.columns.end {
            let mut inputs: [&[T]; R] = [&[]; R];
            for (r, input) in inputs.iter_mut().enumerate() {
                // Rows after the last one are computed in vain.
                let row = (column / width + r).min(geometry.batch * height - 1);
                let plane = geometry.plane(row / height, self.task.group);
                let start = plane * layout.plane() + layout.rows[row % height];
                *input = &planes[start + column % width..];
            }
            let sums = self.sums::<V, R, P, N>(vectors, part.clone(), &inputs);
            let sums: &[T] = cast_slice(sums.as_flattened().as_flattened());
            let lanes = N * V::LANES;
            column = self.task.store(geometry, column, P, lanes, sums, part.start > 0);
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
        let (layout, mut first) = (self.conv.layout, part.start);
        let runs = &layout.runs;
        while first < part.end {
            let (channel, tap) = (first / runs.len(), first % runs.len());
            let runs = &runs[tap..runs.len().min(tap + part.end - first)];
            first += runs.len();
            let mut x = *inputs;
            for x in &mut x {
                *x = &x[channel * layout.plane()..];
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
