//! Vector code for the instruction set of the processor.
//!
//! With the feature `simd`, code is compiled for the baseline of the target and, through [`pulp`], for AVX2 and
//! AVX-512; the widest set of the processor is selected at run time. All sets return the same bits, because Rust never
//! fuses or reorders operations on floats. Code that needs a fused product and sum requests it explicitly, and a
//! processor without the instruction calls a function.

/// Work that is compiled for several instruction sets.
#[cfg(feature = "simd")]
struct Vectorized<W>(W);

#[cfg(feature = "simd")]
impl<F: FnOnce(bool)> pulp::WithSimd for Vectorized<F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        // AVX2, AVX-512 and Neon have instructions for a fused multiply-add.
        let is_fused = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));
        (self.0)(is_fused && !S::IS_SCALAR);
    }
}

/// Runs `work` with the widest vectors of the processor. `work` must be inlined to be compiled with
/// them.
#[inline(always)]
pub(crate) fn vectorize(work: impl FnOnce()) {
    vectorize_fused(
        #[inline(always)]
        |_| work(),
    );
}

/// Runs `work` with the widest vectors, and passes it whether the processor has a fused product and sum. The work may
/// use the instruction if the bits are the same, as for exact products.
#[cfg(feature = "simd")]
#[inline(always)]
pub(crate) fn vectorize_fused(work: impl FnOnce(bool)) {
    pulp::Arch::new().dispatch(Vectorized(work));
}

/// Runs `work`.
#[cfg(not(feature = "simd"))]
#[inline(always)]
pub(crate) fn vectorize_fused(work: impl FnOnce(bool)) {
    work(false);
}
