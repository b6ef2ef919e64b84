//! The treatment of subnormal numbers by the processor while host functions run.
//!
//! XLA's threads flush such numbers to zero, for speed. Code that was compiled for Rust or Python
//! does not expect that: some of it keeps integers in the bits of floats, which are such numbers.

/// Ordinary arithmetic until it is dropped, which restores the previous mode.
pub(crate) struct OrdinaryFloats {
    #[cfg(target_arch = "x86_64")]
    before: u32,
    #[cfg(target_arch = "aarch64")]
    before: u64,
}

/// Flush results to zero, and take operands for zero.
#[cfg(target_arch = "x86_64")]
const FLUSHES: u32 = 1 << 15 | 1 << 6;

#[cfg(target_arch = "aarch64")]
const FLUSHES: u64 = 1 << 24;

impl OrdinaryFloats {
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn enter() -> Self {
        let before = control();
        set_control(before & !FLUSHES);
        Self { before }
    }

    #[cfg(target_arch = "aarch64")]
    pub(crate) fn enter() -> Self {
        let before: u64;
        // SAFETY: reads a register that every processor of this kind has.
        unsafe { std::arch::asm!("mrs {}, fpcr", out(reg) before, options(nomem, nostack)) };
        set_control(before & !FLUSHES);
        Self { before }
    }

    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    pub(crate) fn enter() -> Self {
        Self {}
    }
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
impl Drop for OrdinaryFloats {
    fn drop(&mut self) {
        set_control(self.before);
    }
}

#[cfg(target_arch = "x86_64")]
fn control() -> u32 {
    let mut control = 0u32;
    // SAFETY: writes the register, which every processor of this kind has, to a local variable.
    unsafe {
        std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut control, options(nostack, preserves_flags));
    }
    control
}

#[cfg(target_arch = "x86_64")]
fn set_control(control: u32) {
    // SAFETY: the value comes from the register, except for the flush-to-zero bits, which only
    // affect results of arithmetic on subnormal numbers.
    unsafe {
        std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const control, options(nostack, preserves_flags));
    }
}

#[cfg(target_arch = "aarch64")]
fn set_control(control: u64) {
    // SAFETY: the value comes from the register, except for the flush-to-zero bits, which only
    // affect results of arithmetic on subnormal numbers.
    unsafe { std::arch::asm!("msr fpcr, {}", in(reg) control, options(nomem, nostack)) };
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use std::hint::black_box;

    use super::*;

    #[test]
    fn subnormals_are_kept_only_inside_the_scope() {
        let before = control();
        set_control(before | FLUSHES);
        let half = || black_box(f64::MIN_POSITIVE) * black_box(0.5);
        let flushed = half();
        let kept = {
            let _ordinary = OrdinaryFloats::enter();
            half()
        };
        let flushed_again = half();
        set_control(before);
        assert_eq!((flushed, flushed_again), (0.0, 0.0));
        assert_ne!(kept, 0.0);
    }
}
