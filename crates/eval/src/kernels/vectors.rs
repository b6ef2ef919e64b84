//! Vectors of numbers, for loops whose sums stay in registers.
//!
//! The optimizer keeps no large array of sums in registers, so that floats are computed with the types of [`pulp`].
//! Integers, and floats without the feature `simd`, are computed in arrays.

use bytemuck::Pod;
use nxla_tensor::Complex;

use super::number::Number;

/// Operations on vectors with the instructions of a processor.
pub(crate) trait SimdVectors<T>: Copy {
    type Vector: Pod;
    /// Elements of a vector.
    const LANES: usize;
    /// Vectors that fit into registers, or 0 if loops need not be compiled for as many.
    const REGISTERS: usize;
    fn splat(self, x: T) -> Self::Vector;
    /// Reads the first elements of a slice, which has enough.
    fn load(self, from: &[T]) -> Self::Vector;
    /// Reads the first elements of a slice. If there are too few, the others are zero.
    fn load_some(self, from: &[T]) -> Self::Vector;
    /// The first `count` elements of a vector, and zeros.
    fn first(self, vector: Self::Vector, count: usize) -> Self::Vector;
    /// Writes the first elements of a vector, as many as fit.
    fn store(self, vector: Self::Vector, to: &mut [T]);
    fn multiply_add(self, x: Self::Vector, y: Self::Vector, sum: Self::Vector) -> Self::Vector;
    /// The sum of the elements.
    fn sum(self, vector: Self::Vector) -> T;
}

/// Work that is compiled for each instruction set. It must be inlined to be compiled with its vectors.
pub(crate) trait VectorWork<T> {
    type Output;
    fn run<V: SimdVectors<T>>(self, vectors: V) -> Self::Output;
}

/// Numbers that are computed in vectors.
pub(crate) trait InVectors: Number {
    /// Runs work with the widest vectors of the processor.
    fn with_vectors<W: VectorWork<Self>>(work: W) -> W::Output;
}

/// Vectors that are arrays.
#[derive(Clone, Copy)]
struct Arrays;

macro_rules! arrays {
    ($($t:ty: $lanes:literal;)*) => {
        $(impl SimdVectors<$t> for Arrays {
            type Vector = [$t; $lanes];
            const LANES: usize = $lanes;
            const REGISTERS: usize = 0;

            #[inline(always)]
            fn splat(self, x: $t) -> [$t; $lanes] {
                [x; $lanes]
            }

            #[inline(always)]
            fn load(self, from: &[$t]) -> [$t; $lanes] {
                *from.first_chunk().expect("there are enough elements")
            }

            #[inline(always)]
            fn first(self, mut vector: [$t; $lanes], count: usize) -> [$t; $lanes] {
                vector[count..].fill(<$t>::default());
                vector
            }

            #[inline(always)]
            fn load_some(self, from: &[$t]) -> [$t; $lanes] {
                let mut vector = [<$t>::default(); $lanes];
                vector.iter_mut().zip(from).for_each(|(lane, &x)| *lane = x);
                vector
            }

            #[inline(always)]
            fn store(self, vector: [$t; $lanes], to: &mut [$t]) {
                to.iter_mut().zip(vector).for_each(|(x, lane)| *x = lane);
            }

            #[inline(always)]
            fn multiply_add(
                self,
                x: [$t; $lanes],
                y: [$t; $lanes],
                mut sum: [$t; $lanes],
            ) -> [$t; $lanes] {
                for lane in 0..$lanes {
                    sum[lane] = sum[lane].plus(x[lane].times(y[lane]));
                }
                sum
            }

            #[inline(always)]
            fn sum(self, vector: [$t; $lanes]) -> $t {
                vector.into_iter().fold(<$t>::default(), Number::plus)
            }
        })*
    };
}
arrays! {
    u32: 4;
    u64: 2;
    f32: 4;
    f64: 2;
    Complex<f32>: 2;
    Complex<f64>: 1;
}

macro_rules! in_arrays {
    ($($t:ty)*) => {
        $(impl InVectors for $t {
            fn with_vectors<W: VectorWork<Self>>(work: W) -> W::Output {
                work.run(Arrays)
            }
        })*
    };
}
in_arrays!(u32 u64);
#[cfg(not(feature = "simd"))]
in_arrays!(f32 f64 Complex<f32> Complex<f64>);

#[cfg(feature = "simd")]
mod floats {
    use std::marker::PhantomData;

    use bytemuck::{bytes_of, cast, cast_slice, cast_slice_mut, pod_read_unaligned};
    use nxla_tensor::Complex;
    use pulp::{Arch, Simd, WithSimd};

    use super::{Arrays, InVectors, SimdVectors, VectorWork};

    #[derive(Clone, Copy)]
    struct Floats<S>(S);

    struct FloatWork<W, T>(W, PhantomData<T>);

    macro_rules! floats {
        ($(
            $t:ty: $vector:ident, $registers:expr, $splat:ident, $load:ident, $store:ident,
                $multiply_add:ident, $sum:ident, $part:ty, $mask:ident, $select:ident, $splat_part:ident;
        )*) => {
            $(
                impl<S: Simd> SimdVectors<$t> for Floats<S> {
                    type Vector = S::$vector;
                    const LANES: usize = size_of::<S::$vector>() / size_of::<$t>();
                    const REGISTERS: usize = $registers;

                    #[inline(always)]
                    fn splat(self, x: $t) -> S::$vector {
                        self.0.$splat(x)
                    }

                    #[inline(always)]
                    fn load(self, from: &[$t]) -> S::$vector {
                        pod_read_unaligned(&cast_slice::<$t, u8>(from)[..size_of::<S::$vector>()])
                    }

                    #[inline(always)]
                    fn load_some(self, from: &[$t]) -> S::$vector {
                        match from.get(..<Self as SimdVectors<$t>>::LANES) {
                            Some(all) => SimdVectors::<$t>::load(self, all),
                            None => self.0.$load(from),
                        }
                    }

                    #[inline(always)]
                    fn first(self, vector: S::$vector, count: usize) -> S::$vector {
                        let count = count * (size_of::<$t>() / size_of::<$part>());
                        let mask = self.0.$mask(0, count as _).mask();
                        let zeros = self.0.$splat_part(<$part>::default());
                        cast(self.0.$select(mask, cast(vector), zeros))
                    }

                    #[inline(always)]
                    fn store(self, vector: S::$vector, to: &mut [$t]) {
                        match to.get_mut(..<Self as SimdVectors<$t>>::LANES) {
                            Some(all) => cast_slice_mut::<$t, u8>(all).copy_from_slice(bytes_of(&vector)),
                            None => self.0.$store(to, vector),
                        }
                    }

                    #[inline(always)]
                    fn multiply_add(self, x: S::$vector, y: S::$vector, sum: S::$vector) -> S::$vector {
                        self.0.$multiply_add(x, y, sum)
                    }

                    #[inline(always)]
                    fn sum(self, vector: S::$vector) -> $t {
                        self.0.$sum(vector)
                    }
                }

                impl<W: VectorWork<$t>> WithSimd for FloatWork<W, $t> {
                    type Output = W::Output;

                    #[inline(always)]
                    fn with_simd<S: Simd>(self, simd: S) -> W::Output {
                        if S::IS_SCALAR { self.0.run(Arrays) } else { self.0.run(Floats(simd)) }
                    }
                }

                impl InVectors for $t {
                    fn with_vectors<W: VectorWork<Self>>(work: W) -> W::Output {
                        Arch::new().dispatch(FloatWork(work, PhantomData))
                    }
                }
            )*
        };
    }
    floats! {
        f32: f32s, S::REGISTER_COUNT, splat_f32s, partial_load_f32s, partial_store_f32s,
            mul_add_e_f32s, reduce_sum_f32s, f32, mask_between_m32s, select_f32s, splat_f32s;
        f64: f64s, S::REGISTER_COUNT, splat_f64s, partial_load_f64s, partial_store_f64s,
            mul_add_e_f64s, reduce_sum_f64s, f64, mask_between_m64s, select_f64s, splat_f64s;
        Complex<f32>: c32s, 0, splat_c32s, partial_load_c32s, partial_store_c32s,
            mul_add_e_c32s, reduce_sum_c32s, f32, mask_between_m32s, select_f32s, splat_f32s;
        Complex<f64>: c64s, 0, splat_c64s, partial_load_c64s, partial_store_c64s,
            mul_add_e_c64s, reduce_sum_c64s, f64, mask_between_m64s, select_f64s, splat_f64s;
    }
}
