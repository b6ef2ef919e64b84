//! Code for the vectors of the machine at hand.
//!
//! With the feature `simd` work is compiled for the baseline of the target and, through [`pulp`], for
//! AVX2 and AVX-512, of which the widest that the machine has is taken; without it for the baseline
//! alone. All give the same bits, since Rust never fuses or reorders floats on its own; where a product
//! and a sum are to be rounded once, the code says so, and a machine without such an instruction calls a
//! function for it.

/// Work that is compiled for several instruction sets.
#[cfg(feature = "simd")]
struct Vectorized<W>(W);

#[cfg(feature = "simd")]
impl<F: FnOnce(bool)> pulp::WithSimd for Vectorized<F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        // AVX2, AVX-512 and Neon have instructions for a product and a sum.
        let is_fused = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));
        (self.0)(is_fused && !S::IS_SCALAR);
    }
}

/// Runs `work` with the widest vectors of the machine. It has to be inlined for that to help.
#[inline(always)]
pub(crate) fn vectorize(work: impl FnOnce()) {
    vectorize_fused(
        #[inline(always)]
        |_| work(),
    );
}

/// The same for work that is told whether there is an instruction for a product and a sum. It may ask for
/// that where the bits are the same, as for products that need no rounding.
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
