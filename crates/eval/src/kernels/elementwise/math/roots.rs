//! Cube roots, without branches and tables.

/// The cube root to 23 bits, for a normal positive `x` and `1 / x`: a third of the exponent, and a polynomial in `t^3 / x`
/// for what is missing (`s_cbrt.c` in FreeBSD's library, by B. D. Evans).
#[inline(always)]
fn rough(x: f64, inverse: f64) -> f64 {
    /// `(1023 - 1023/3 - 0.03306235651) 2^20`.
    const BIAS: u64 = 715_094_163;
    let third = ((x.to_bits() >> 32) * 0xaaaa_aaab) >> 33;
    let t = f64::from_bits((third + BIAS) << 32);
    let r = (t * t) * (t * inverse);
    let first = r.mul_add(
        r.mul_add(1.621_429_720_105_354_5, -1.884_979_795_433_771_7),
        1.875_951_824_271_77,
    );
    let last = r.mul_add(0.145_996_192_886_612_45, -0.758_397_934_778_766);
    t * (r * r * r).mul_add(last, first)
}

/// One step of Halley's method, in which `t^3` is the sum of two numbers.
#[inline(always)]
fn refined(t: f64, x: f64) -> f64 {
    let square = t * t;
    let square_low = t.mul_add(t, -square);
    let cube = square * t;
    let cube_low = square.mul_add(t, -cube) + square_low * t;
    let lacks = (x - cube) - cube_low;
    t + t * (lacks / (2.0 * cube + x))
}

#[inline(always)]
pub(super) fn cbrt_single(x: f32) -> f32 {
    let magnitude = f64::from(x).abs();
    let inverse = 1.0 / magnitude;
    let t = rough(magnitude, inverse);
    // The beginning of the series for what is missing does with the same quotient.
    let above = t.mul_add(t * (t * inverse), -1.0);
    let root = t - t * above * (2.0_f64 / 9.0).mul_add(-above, 1.0 / 3.0);
    let root = root.copysign(f64::from(x)) as f32;
    let is_plain = (magnitude > 0.0) & (magnitude < f64::INFINITY);
    if is_plain { root } else { x }
}

/// Off by less than one unit in the last place.
#[inline(always)]
pub(super) fn cbrt_double(x: f64) -> f64 {
    /// A power of eight, by which small numbers, whose rounding errors are subnormal, become larger, and large
    /// ones, whose cubes of rounded roots may be infinite, smaller; and the cube root of it.
    const FACTOR: f64 = 5.846_006_549_323_612e48;
    const ROOT: f64 = 1.801_439_850_948_198_4e16;
    let magnitude = x.abs();
    let (factor, root_of_factor) =
        if magnitude < 1e-280 { (FACTOR, 1.0 / ROOT) } else { (1.0, 1.0) };
    let (factor, root_of_factor) =
        if magnitude > 1e280 { (1.0 / FACTOR, ROOT) } else { (factor, root_of_factor) };
    let scaled = magnitude * factor;
    let root = (refined(rough(scaled, 1.0 / scaled), scaled) * root_of_factor).copysign(x);
    let is_plain = (magnitude > 0.0) & (magnitude < f64::INFINITY);
    if is_plain { root } else { x }
}
