//! Running a function of one element over a block of them.
//!
//! A [`Kernel`] is a plain function pointer, chosen once when a plan is made, so that running a
//! block costs one indirect call however many dtypes and ops there are. Its loops compute a constant
//! number of elements at a time, which the compiler turns into straight vector code: [`WIDE_LANES`] with
//! the [widest vectors](try_vectorize_wide), then [`NARROW_LANES`] with the [usual ones](try_vectorize). The last
//! iteration computes some elements in excess. A processor without either computes one element at a time, so that the
//! loops for it are small.

use std::hint::black_box;

use bytemuck::Pod;

use super::{try_vectorize, try_vectorize_wide};

/// Elements per iteration with the widest vectors. Measured by the family `element-wise` of
/// `benches/python/kernels.py`. A repeated value is stored this many times.
pub(crate) const WIDE_LANES: usize = 64;

/// Elements per iteration at the end of a block, and on processors without the widest vectors.
pub(crate) const NARROW_LANES: usize = 16;

/// An operand of a kernel.
#[derive(Clone, Copy)]
pub(crate) struct Src<'a> {
    /// The elements as stored: a whole block, or one value repeated up to [`WIDE_LANES`] times.
    pub(crate) bytes: &'a [u8],
    /// True if it is one value repeated.
    pub(crate) splat: bool,
}

impl<'a> Src<'a> {
    /// The placeholder for operands that a kernel does not have.
    pub(crate) const NONE: Src<'static> = Src { bytes: &[], splat: true };

    #[inline(always)]
    fn lanes<T: Pod>(self) -> Lanes<'a, T> {
        Lanes { data: bytemuck::cast_slice(self.bytes), step: usize::from(!self.splat) }
    }
}

/// Computes a block of `out.len()` bytes from up to three operands.
pub(crate) type Kernel = fn([Src<'_>; 3], &mut [u8]);

/// Typed elements. `step` is the distance of the operands of two elements: 1, or 0 for a repeated value.
#[derive(Clone, Copy)]
struct Lanes<'a, T> {
    data: &'a [T],
    step: usize,
}

impl<'a, T: Pod> Lanes<'a, T> {
    /// The operands of the next `N` elements after `done`.
    #[inline(always)]
    fn chunk<const N: usize>(self, done: usize) -> &'a [T; N] {
        let rest = &self.data[done * self.step..];
        rest.first_chunk().expect("an operand is as long as the result or repeats")
    }

    /// The operand at a position, which is unknown to the optimizer, so that it compiles code for one element.
    #[inline(always)]
    fn element(self, position: usize) -> T {
        self.data[black_box(position * self.step)]
    }

    /// The operands of the last iteration, which computes `len` elements after `done`: these elements, then zeros.
    #[inline(always)]
    fn last(self, done: usize, len: usize) -> [T; NARROW_LANES] {
        let mut padded = [T::zeroed(); NARROW_LANES];
        padded[..len].copy_from_slice(&self.data[done * self.step..][..len]);
        padded
    }
}

/// Computes the bytes `$bytes` chunk by chunk. `$chunk` receives the elements of the result and of
/// the operands of one iteration. The last iteration may have more elements than the block. `$f` is the function of one
/// element.
macro_rules! in_loops {
    ($bytes:expr, $f:ident, |$out:ident: $r:ty, $($x:ident),+| $chunk:expr) => {{
        let all = bytemuck::cast_slice_mut::<u8, $r>($bytes);
        let (long, _) = all.as_chunks_mut::<WIDE_LANES>();
        let is_wide = !long.is_empty()
            && try_vectorize_wide(
                #[inline(always)]
                || {
                    for (index, $out) in long.iter_mut().enumerate() {
                        $(let $x = $x.chunk::<WIDE_LANES>(index * WIDE_LANES);)+
                        $chunk;
                    }
                },
            );
        let done = if is_wide { all.len() / WIDE_LANES * WIDE_LANES } else { 0 };
        if done == all.len() {
            return;
        }
        let (short, rest) = all[done..].as_chunks_mut::<NARROW_LANES>();
        let has_vectors = try_vectorize(
            #[inline(always)]
            || {
                let shorts = short.len();
                let mut padded = [<$r>::zeroed(); NARROW_LANES];
                for index in 0..shorts + usize::from(!rest.is_empty()) {
                    let (is_last, done) = (index == shorts, done + index * NARROW_LANES);
                    $(
                        let last;
                        let $x = if is_last {
                            last = $x.last(done, rest.len());
                            &last
                        } else {
                            $x.chunk::<NARROW_LANES>(done)
                        };
                    )+
                    let $out = if is_last { &mut padded } else { &mut short[index] };
                    $chunk;
                }
                rest.copy_from_slice(&padded[..rest.len()]);
            },
        );
        if !has_vectors {
            for (position, out) in all.iter_mut().enumerate() {
                *out = $f($($x.element(position)),+);
            }
        }
    }};
}

/// Defines three functions for a number of operands: a loop, which is a separate function because
/// reference arguments are known not to overlap; a function that computes a block; and a function
/// that uses the equal but faster function `fast` for inner loops whose elements are all `near`.
macro_rules! maps {
    ($($chunk:ident $map:ident $map_near:ident ($($x:ident: $t:ident = $at:literal),+);)*) => {$(
        #[inline(always)]
        fn $chunk<$($t: Pod,)+ R, const N: usize>(
            out: &mut [R; N],
            $($x: &[$t; N],)+
            f: &impl Fn($($t),+) -> R,
        ) {
            for i in 0..N {
                out[i] = f($($x[i]),+);
            }
        }

        #[inline(always)]
        pub(crate) fn $map<$($t: Pod,)+ R: Pod>(
            srcs: [Src<'_>; 3],
            out: &mut [u8],
            f: impl Fn($($t),+) -> R,
        ) {
            $(let $x = srcs[$at].lanes::<$t>();)+
            in_loops!(out, f, |out: R, $($x),+| $chunk(out, $($x,)+ &f));
        }

        #[inline(always)]
        pub(crate) fn $map_near<$($t: Pod,)+ R: Pod>(
            srcs: [Src<'_>; 3],
            out: &mut [u8],
            near: impl Fn($($t),+) -> bool,
            fast: impl Fn($($t),+) -> R,
            any: impl Fn($($t),+) -> R,
        ) {
            $(let $x = srcs[$at].lanes::<$t>();)+
            in_loops!(out, any, |out: R, $($x),+| {
                let mut all = true;
                for i in 0..out.len() {
                    all &= near($($x[i]),+);
                }
                if all {
                    $chunk(out, $($x,)+ &fast);
                } else {
                    $chunk(out, $($x,)+ &any);
                }
            });
        }
    )*};
}
maps! {
    chunk1 map1 map1_near (a: A = 0);
    chunk2 map2 map2_near (a: A = 0, b: B = 1);
    chunk3 map3 map3_near (a: A = 0, b: B = 1, c: C = 2);
}

/// A [`Kernel`] from a function of elements: `kernel!(|x: f32| -> f32 { x.sqrt() })`.
macro_rules! kernel {
    (|$a:ident: $ta:ty| -> $tr:ty $body:block) => {
        |srcs, out| {
            $crate::kernels::elementwise::lanes::map1(
                srcs,
                out,
                #[inline(always)]
                |$a: $ta| -> $tr { $body },
            )
        }
    };
    (|$a:ident: $ta:ty, $b:ident: $tb:ty| -> $tr:ty $body:block) => {
        |srcs, out| {
            $crate::kernels::elementwise::lanes::map2(
                srcs,
                out,
                #[inline(always)]
                |$a: $ta, $b: $tb| -> $tr { $body },
            )
        }
    };
    (|$a:ident: $ta:ty, $b:ident: $tb:ty, $c:ident: $tc:ty| -> $tr:ty $body:block) => {
        |srcs, out| {
            $crate::kernels::elementwise::lanes::map3(
                srcs,
                out,
                #[inline(always)]
                |$a: $ta, $b: $tb, $c: $tc| -> $tr { $body },
            )
        }
    };
}
pub(crate) use kernel;
