//! Running a function of one element over a block of them.
//!
//! A [`Kernel`] is a plain function pointer, chosen once when a plan is made, so that running a
//! block costs one indirect call however many dtypes and ops there are. The loop inside has a
//! constant trip count of [`LANES`], which the compiler turns into straight vector code, and is
//! compiled for the baseline of the target and, with the feature `simd`, for wider vectors, see
//! [`vectorize()`]. The rest of a block uses loops of [`SHORT`] elements; the last loop computes
//! some elements in excess.

use bytemuck::Pod;

use super::vectorize;

/// Elements per inner loop. A repeated value is stored this many times.
pub(crate) const LANES: usize = 64;

/// Elements per inner loop at the end of a block.
pub(crate) const SHORT: usize = 16;

/// An operand of a kernel.
#[derive(Clone, Copy)]
pub(crate) struct Src<'a> {
    /// The elements as stored: a whole block, or one value repeated up to [`LANES`] times.
    pub(crate) bytes: &'a [u8],
    /// True if it is one value repeated.
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

/// Typed elements; each inner loop reads the next `step` elements.
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

    /// The operands of the short loop number `index` after `whole` long ones.
    #[inline(always)]
    fn short(self, whole: usize, index: usize) -> &'a [T; SHORT] {
        let rest = &self.data[whole * self.step + index * SHORT..];
        rest.first_chunk().expect("an operand is as long as the result")
    }

    /// The operands of the last loop, which computes `len` elements: these, and zeros.
    #[inline(always)]
    fn last(self, whole: usize, shorts: usize, len: usize) -> [T; SHORT] {
        let mut padded = [T::zeroed(); SHORT];
        padded[..len].copy_from_slice(&self.data[whole * self.step + shorts * SHORT..][..len]);
        padded
    }
}

// The loops are functions of their own because references that are arguments are known not to
// overlap, which spares a check per loop.

#[inline(always)]
fn chunk1<A: Pod, R, const N: usize>(out: &mut [R; N], a: &[A; N], f: &impl Fn(A) -> R) {
    for i in 0..N {
        out[i] = f(a[i]);
    }
}

#[inline(always)]
fn chunk2<A: Pod, B: Pod, R, const N: usize>(
    out: &mut [R; N],
    a: &[A; N],
    b: &[B; N],
    f: &impl Fn(A, B) -> R,
) {
    for i in 0..N {
        out[i] = f(a[i], b[i]);
    }
}

#[inline(always)]
fn over2<A: Pod, B: Pod, R: Pod, const N: usize>(
    out: &mut [R; N],
    a: &[A; N],
    b: &[B; N],
    f: &impl Fn(A, B, R) -> R,
) {
    for i in 0..N {
        out[i] = f(a[i], b[i], out[i]);
    }
}

#[inline(always)]
fn chunk3<A: Pod, B: Pod, C: Pod, R, const N: usize>(
    out: &mut [R; N],
    a: &[A; N],
    b: &[B; N],
    c: &[C; N],
    f: &impl Fn(A, B, C) -> R,
) {
    for i in 0..N {
        out[i] = f(a[i], b[i], c[i]);
    }
}

/// The elements of a result in chunks: long ones, short ones, and what is left.
#[inline(always)]
fn in_chunks<R: Pod>(out: &mut [u8]) -> (&mut [[R; LANES]], &mut [[R; SHORT]], &mut [R]) {
    let (long, rest) = bytemuck::cast_slice_mut::<u8, R>(out).as_chunks_mut();
    let (short, rest) = rest.as_chunks_mut();
    (long, short, rest)
}

/// Computes the bytes `$bytes` chunk by chunk: `$chunk` gets the elements of a result, and of the operands,
/// that belong to one inner loop. The last chunk has room for more elements than are wanted.
macro_rules! in_loops {
    ($bytes:expr, |$out:ident: $r:ty, $($x:ident),+| $chunk:expr) => {{
        let (long, short, rest) = in_chunks::<$r>($bytes);
        let (whole, shorts) = (long.len(), short.len());
        vectorize(
            #[inline(always)]
            || {
                for (index, $out) in long.iter_mut().enumerate() {
                    $(let $x = $x.chunk(index);)+
                    $chunk;
                }
                for (index, $out) in short.iter_mut().enumerate() {
                    $(let $x = $x.short(whole, index);)+
                    $chunk;
                }
                if !rest.is_empty() {
                    $(let $x = &$x.last(whole, shorts, rest.len());)+
                    let mut padded = [<$r>::zeroed(); SHORT];
                    padded[..rest.len()].copy_from_slice(rest);
                    let $out = &mut padded;
                    $chunk;
                    rest.copy_from_slice(&padded[..rest.len()]);
                }
            },
        );
    }};
}

/// `out[i] = f(a[i])`.
#[inline(always)]
pub(crate) fn map1<A: Pod, R: Pod>(srcs: [Src<'_>; 3], out: &mut [u8], f: impl Fn(A) -> R) {
    let a = srcs[0].lanes::<A>();
    in_loops!(out, |out: R, a| chunk1(out, a, &f));
}

/// `out[i] = any(a[i])`, by the equal function `fast` without branches if all elements of a
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
    in_loops!(out, |out: R, a| {
        if a.iter().fold(true, |all, &a| all & near(a)) {
            chunk1(out, a, &fast);
        } else {
            chunk1(out, a, &any);
        }
    });
}

/// `out[i] = f(a[i], b[i])`.
#[inline(always)]
pub(crate) fn map2<A: Pod, B: Pod, R: Pod>(
    srcs: [Src<'_>; 3],
    out: &mut [u8],
    f: impl Fn(A, B) -> R,
) {
    let (a, b) = (srcs[0].lanes::<A>(), srcs[1].lanes::<B>());
    in_loops!(out, |out: R, a, b| chunk2(out, a, b, &f));
}

/// `out[i] = f(a[i], b[i], out[i])`.
#[inline(always)]
pub(crate) fn map2_over<A: Pod, B: Pod, R: Pod>(
    srcs: [Src<'_>; 3],
    out: &mut [u8],
    f: impl Fn(A, B, R) -> R,
) {
    let (a, b) = (srcs[0].lanes::<A>(), srcs[1].lanes::<B>());
    in_loops!(out, |out: R, a, b| over2(out, a, b, &f));
}

/// `out[i] = any(a[i], b[i])`, by the equal and faster function `fast` if all elements of a loop
/// are `near`.
#[inline(always)]
pub(crate) fn map2_near<A: Pod, B: Pod, R: Pod>(
    srcs: [Src<'_>; 3],
    out: &mut [u8],
    near: impl Fn(A, B) -> bool,
    fast: impl Fn(A, B) -> R,
    any: impl Fn(A, B) -> R,
) {
    let (a, b) = (srcs[0].lanes::<A>(), srcs[1].lanes::<B>());
    in_loops!(out, |out: R, a, b| {
        if a.iter().zip(b).fold(true, |all, (&a, &b)| all & near(a, b)) {
            chunk2(out, a, b, &fast);
        } else {
            chunk2(out, a, b, &any);
        }
    });
}

/// `out[i] = f(a[i], b[i], c[i])`.
#[inline(always)]
pub(crate) fn map3<A: Pod, B: Pod, C: Pod, R: Pod>(
    srcs: [Src<'_>; 3],
    out: &mut [u8],
    f: impl Fn(A, B, C) -> R,
) {
    let (a, b, c) = (srcs[0].lanes::<A>(), srcs[1].lanes::<B>(), srcs[2].lanes::<C>());
    in_loops!(out, |out: R, a, b, c| chunk3(out, a, b, c, &f));
}

/// `out[i] = any(a[i], b[i], c[i])`, by the equal function `fast` without branches if all elements
/// `a` of a loop are `near`.
#[inline(always)]
pub(crate) fn map3_near<A: Pod, B: Pod, C: Pod, R: Pod>(
    srcs: [Src<'_>; 3],
    out: &mut [u8],
    near: impl Fn(A) -> bool,
    fast: impl Fn(A, B, C) -> R,
    any: impl Fn(A, B, C) -> R,
) {
    let (a, b, c) = (srcs[0].lanes::<A>(), srcs[1].lanes::<B>(), srcs[2].lanes::<C>());
    in_loops!(out, |out: R, a, b, c| {
        if a.iter().fold(true, |all, &a| all & near(a)) {
            chunk3(out, a, b, c, &fast);
        } else {
            chunk3(out, a, b, c, &any);
        }
    });
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
