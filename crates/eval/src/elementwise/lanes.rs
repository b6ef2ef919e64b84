//! Running a function of one element over a block of them.
//!
//! A [`Kernel`] is a plain function pointer, chosen once when a plan is made, so that running a
//! block costs one indirect call however many dtypes and ops there are. The loop inside has a
//! constant trip count of [`LANES`], which the compiler turns into straight vector code, and is
//! compiled for the baseline of the target and, with the feature `simd`, for wider vectors, see
//! [`vectorize()`].

use bytemuck::Pod;

use super::vectorize;

/// Elements per inner loop. A repeated value is stored this many times.
pub(crate) const LANES: usize = 64;

/// An operand of a kernel.
#[derive(Clone, Copy)]
pub(crate) struct Src<'a> {
    /// The elements as stored: a whole block, or one value repeated up to [`LANES`] times.
    pub(crate) bytes: &'a [u8],
    /// Whether it is one value repeated.
    pub(crate) splat: bool,
}

impl<'a> Src<'a> {
    /// Stands for the operands that a kernel does not have.
    pub(crate) const NONE: Src<'static> = Src { bytes: &[], splat: true };

    #[inline(always)]
    fn lanes<T: Pod>(self) -> Lanes<'a, T> {
        Lanes { data: bytemuck::cast_slice(self.bytes), step: if self.splat { 0 } else { LANES } }
    }
}

/// Computes a block of `out.len()` bytes from up to three operands.
pub(crate) type Kernel = fn([Src<'_>; 3], &mut [u8]);

/// Typed elements of which each inner loop reads the next `step`.
#[derive(Clone, Copy)]
struct Lanes<'a, T> {
    data: &'a [T],
    step: usize,
}

impl<'a, T: Pod> Lanes<'a, T> {
    /// The operands of the inner loop number `index`.
    #[inline(always)]
    fn chunk(self, index: usize) -> &'a [T; LANES] {
        let rest = &self.data[index * self.step..];
        rest.first_chunk().expect("an operand is as long as the result or repeats")
    }

    /// The operands of the last, shorter loop.
    #[inline(always)]
    fn tail(self, index: usize, len: usize) -> &'a [T] {
        &self.data[index * self.step..][..len]
    }
}

// The loops are functions of their own because references that are arguments are known not to
// overlap, which spares a check per loop.

#[inline(always)]
fn chunk1<A: Pod, R>(out: &mut [R; LANES], a: &[A; LANES], f: &impl Fn(A) -> R) {
    for i in 0..LANES {
        out[i] = f(a[i]);
    }
}

#[inline(always)]
fn chunk2<A: Pod, B: Pod, R>(
    out: &mut [R; LANES],
    a: &[A; LANES],
    b: &[B; LANES],
    f: &impl Fn(A, B) -> R,
) {
    for i in 0..LANES {
        out[i] = f(a[i], b[i]);
    }
}

#[inline(always)]
fn chunk3<A: Pod, B: Pod, C: Pod, R>(
    out: &mut [R; LANES],
    a: &[A; LANES],
    b: &[B; LANES],
    c: &[C; LANES],
    f: &impl Fn(A, B, C) -> R,
) {
    for i in 0..LANES {
        out[i] = f(a[i], b[i], c[i]);
    }
}

/// `out[i] = f(a[i])`.
#[inline(always)]
pub(crate) fn map1<A: Pod, R: Pod>(srcs: [Src<'_>; 3], out: &mut [u8], f: impl Fn(A) -> R) {
    let a = srcs[0].lanes::<A>();
    let (chunks, tail) = bytemuck::cast_slice_mut::<u8, R>(out).as_chunks_mut();
    let whole = chunks.len();
    if whole > 0 {
        vectorize(
            #[inline(always)]
            || {
                for (index, out) in chunks.iter_mut().enumerate() {
                    chunk1(out, a.chunk(index), &f);
                }
            },
        );
    }
    let a = a.tail(whole, tail.len());
    for (out, &a) in tail.iter_mut().zip(a) {
        *out = f(a);
    }
}

/// `out[i] = any(a[i])`, by `fast`, which gives the same and has no branches, where all elements of a
/// loop are `near`.
#[inline(always)]
pub(crate) fn map1_near<A: Pod, R: Pod>(
    srcs: [Src<'_>; 3],
    out: &mut [u8],
    near: impl Fn(A) -> bool,
    fast: impl Fn(A) -> R,
    any: impl Fn(A) -> R,
) {
    let a = srcs[0].lanes::<A>();
    let (chunks, tail) = bytemuck::cast_slice_mut::<u8, R>(out).as_chunks_mut();
    let whole = chunks.len();
    vectorize(
        #[inline(always)]
        || {
            for (index, out) in chunks.iter_mut().enumerate() {
                let a = a.chunk(index);
                if a.iter().fold(true, |all, &a| all & near(a)) {
                    chunk1(out, a, &fast);
                } else {
                    chunk1(out, a, &any);
                }
            }
        },
    );
    let a = a.tail(whole, tail.len());
    for (out, &a) in tail.iter_mut().zip(a) {
        *out = any(a);
    }
}

/// `out[i] = f(a[i], b[i])`.
#[inline(always)]
pub(crate) fn map2<A: Pod, B: Pod, R: Pod>(
    srcs: [Src<'_>; 3],
    out: &mut [u8],
    f: impl Fn(A, B) -> R,
) {
    let (a, b) = (srcs[0].lanes::<A>(), srcs[1].lanes::<B>());
    let (chunks, tail) = bytemuck::cast_slice_mut::<u8, R>(out).as_chunks_mut();
    let whole = chunks.len();
    if whole > 0 {
        vectorize(
            #[inline(always)]
            || {
                for (index, out) in chunks.iter_mut().enumerate() {
                    chunk2(out, a.chunk(index), b.chunk(index), &f);
                }
            },
        );
    }
    let (a, b) = (a.tail(whole, tail.len()), b.tail(whole, tail.len()));
    for ((out, &a), &b) in tail.iter_mut().zip(a).zip(b) {
        *out = f(a, b);
    }
}

/// `out[i] = f(a[i], b[i], c[i])`.
#[inline(always)]
pub(crate) fn map3<A: Pod, B: Pod, C: Pod, R: Pod>(
    srcs: [Src<'_>; 3],
    out: &mut [u8],
    f: impl Fn(A, B, C) -> R,
) {
    let (a, b, c) = (srcs[0].lanes::<A>(), srcs[1].lanes::<B>(), srcs[2].lanes::<C>());
    let (chunks, tail) = bytemuck::cast_slice_mut::<u8, R>(out).as_chunks_mut();
    let whole = chunks.len();
    if whole > 0 {
        vectorize(
            #[inline(always)]
            || {
                for (index, out) in chunks.iter_mut().enumerate() {
                    chunk3(out, a.chunk(index), b.chunk(index), c.chunk(index), &f);
                }
            },
        );
    }
    let len = tail.len();
    let (a, b, c) = (a.tail(whole, len), b.tail(whole, len), c.tail(whole, len));
    for (((out, &a), &b), &c) in tail.iter_mut().zip(a).zip(b).zip(c) {
        *out = f(a, b, c);
    }
}

/// A [`Kernel`] from a function of elements: `kernel!(|x: f32| -> f32 { x.sqrt() })`.
macro_rules! kernel {
    (|$a:ident: $ta:ty| -> $tr:ty $body:block) => {
        |srcs, out| {
            $crate::elementwise::lanes::map1(
                srcs,
                out,
                #[inline(always)]
                |$a: $ta| -> $tr { $body },
            )
        }
    };
    (|$a:ident: $ta:ty, $b:ident: $tb:ty| -> $tr:ty $body:block) => {
        |srcs, out| {
            $crate::elementwise::lanes::map2(
                srcs,
                out,
                #[inline(always)]
                |$a: $ta, $b: $tb| -> $tr { $body },
            )
        }
    };
    (|$a:ident: $ta:ty, $b:ident: $tb:ty, $c:ident: $tc:ty| -> $tr:ty $body:block) => {
        |srcs, out| {
            $crate::elementwise::lanes::map3(
                srcs,
                out,
                #[inline(always)]
                |$a: $ta, $b: $tb, $c: $tc| -> $tr { $body },
            )
        }
    };
}
pub(crate) use kernel;
