//! Vector code for the instruction set of the processor.
//!
//! With the feature `simd`, code is compiled for the baseline of the target and, through [`pulp`], for AVX2; the set is
//! selected at run time. Functions of elements and random bits, which compute more than they move,
//! are also compiled for AVX-512, with which they take half of the time for large tensors. All sets
//! return the same bits, because Rust never fuses or reorders operations on floats.
//!
//! Only inlined code is compiled for the instruction set. Such code has loops over indices instead of functions of
//! `core` that call closures, such as [`std::array::from_fn`] and the `map` of arrays: these are separate functions
//! unless the optimizer processes the whole crate at once.

/// Work that is compiled for several instruction sets.
#[cfg(feature = "simd")]
struct Vectorized<W>(W);

#[cfg(feature = "simd")]
impl<F: FnOnce(bool)> pulp::WithSimd for Vectorized<F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        (self.0)(!S::IS_SCALAR);
    }
}

/// The instructions of AVX2, if the processor has them. The test is compiled once, not in each kernel.
#[cfg(all(feature = "simd", target_arch = "x86_64"))]
fn avx2() -> Option<pulp::x86::V3> {
    pulp::x86::V3::try_new()
}

/// Runs `work` with the vectors of the processor. `work` must be inlined to be compiled with them.
#[inline(always)]
pub(crate) fn vectorize(work: impl FnOnce()) {
    #[cfg(all(feature = "simd", target_arch = "x86_64"))]
    match avx2() {
        Some(simd) => simd.vectorize(work),
        None => work(),
    }
    #[cfg(not(all(feature = "simd", target_arch = "x86_64")))]
    vectorize_wide(
        #[inline(always)]
        |_| work(),
    );
}

/// Runs `work` with the widest vectors of the processor, and passes it whether there are any. It is
/// for work that computes much with each element: each instruction set adds to the size of the program.
#[inline(always)]
pub(crate) fn vectorize_wide(work: impl FnOnce(bool)) {
    #[cfg(feature = "simd")]
    pulp::Arch::new().dispatch(Vectorized(work));
    #[cfg(not(feature = "simd"))]
    work(false);
}

/// Runs `work` with vectors, or returns false if the code for a processor without AVX2 would be a smaller loop of the
/// caller.
#[inline(always)]
pub(crate) fn try_vectorize(work: impl FnOnce()) -> bool {
    #[cfg(all(feature = "simd", target_arch = "x86_64"))]
    {
        let simd = avx2();
        if let Some(simd) = simd {
            simd.vectorize(work);
        }
        simd.is_some()
    }
    #[cfg(not(all(feature = "simd", target_arch = "x86_64")))]
    {
        vectorize(work);
        true
    }
}

/// Runs `work` with the widest vectors of the processor, or returns false if the processor has none.
#[inline(always)]
pub(crate) fn try_vectorize_wide(work: impl FnOnce()) -> bool {
    let mut is_wide = false;
    vectorize_wide(
        #[inline(always)]
        |has_vectors| {
            if has_vectors {
                work();
            }
            is_wide = has_vectors;
        },
    );
    is_wide
}
