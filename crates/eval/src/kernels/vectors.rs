//! Vectors of numbers, for loops whose sums stay in registers.
//!
//! The optimizer keeps no large array of sums in registers, so that floats are computed with the types of [`pulp`].
//! Integers, and floats without the feature `simd`, are computed in arrays.

use bytemuck::Pod;
use nxla_tensor::Complex;

use super::number::Number;

/// Operations on vectors with the instructions of a processor.
pub(crate) trait Vectors<T>: Copy {
    type Vector: Pod;
    /// Elements of a vector.
    const LANES: usize;
    /// Vectors that fit into registers, or 0 if loops need not be compiled for as many.
    const REGISTERS: usize;
    fn splat(self, x: T) -> Self::Vector;
    fn multiply_add(self, x: Self::Vector, y: Self::Vector, sum: Self::Vector) -> Self::Vector;
}

/// Work that is compiled for each instruction set. It must be inlined to be compiled with its vectors.
pub(crate) trait VectorWork<T> {
    type Output;
    fn run<V: Vectors<T>>(self, vectors: V) -> Self::Output;
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
        $(impl Vectors<$t> for Arrays {
            type Vector = [$t; $lanes];
            const LANES: usize = $lanes;
            const REGISTERS: usize = 0;

            #[inline(always)]
            fn splat(self, x: $t) -> [$t; $lanes] {
                [x; $lanes]
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

    use nxla_tensor::Complex;
    use pulp::{Arch, Simd, WithSimd};

    use super::{Arrays, InVectors, VectorWork, Vectors};

    #[derive(Clone, Copy)]
    struct Floats<S>(S);

    struct FloatWork<W, T>(W, PhantomData<T>);

    macro_rules! floats {
        ($($t:ty: $vector:ident, $registers:expr, $splat:ident, $multiply_add:ident;)*) => {
            $(
                impl<S: Simd> Vectors<$t> for Floats<S> {
                    type Vector = S::$vector;
                    const LANES: usize = size_of::<S::$vector>() / size_of::<$t>();
                    const REGISTERS: usize = $registers;

                    #[inline(always)]
                    fn splat(self, x: $t) -> S::$vector {
                        self.0.$splat(x)
                    }

                    #[inline(always)]
                    fn multiply_add(self, x: S::$vector, y: S::$vector, sum: S::$vector) -> S::$vector {
                        self.0.$multiply_add(x, y, sum)
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
        f32: f32s, S::REGISTER_COUNT, splat_f32s, mul_add_e_f32s;
        f64: f64s, S::REGISTER_COUNT, splat_f64s, mul_add_e_f64s;
        Complex<f32>: c32s, 0, splat_c32s, mul_add_e_c32s;
        Complex<f64>: c64s, 0, splat_c64s, mul_add_e_c64s;
    }
}
