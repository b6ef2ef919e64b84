//! Peak rate of the processor: fused multiply-adds in registers, in GFLOP/s, on as many threads as the first argument
//! says, or on one.
//!
//! Each thread advances independent chains `x = x * a + b` with the widest vectors of the
//! processor. All threads start a round at the same time, and the best round counts.
#![forbid(unsafe_code)]

use std::error::Error;
use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use pulp::{Arch, Simd, WithSimd};

/// Chains of a thread. The product of latency and throughput is 8 on current processors; 12 chains and two factors fit
/// into the 16 registers of AVX2.
const CHAINS: usize = 12;
/// Links of each chain in a round of about 2 milliseconds. The scheduler interrupts longer rounds,
/// and the barrier takes a larger part of shorter rounds.
const LINKS: usize = 1_000_000;
const ROUNDS: usize = 200;

#[expect(clippy::print_stdout, reason = "printing the rates is what this program is for")]
fn main() -> Result<(), Box<dyn Error>> {
    let threads = std::env::args().nth(1).map_or(Ok(1), |count| count.parse())?;
    println!("f32 {:.1}", rate(threads, || Arch::new().dispatch(Singles)));
    println!("f64 {:.1}", rate(threads, || Arch::new().dispatch(Doubles)));
    Ok(())
}

/// Returns the GFLOP/s of the best round. `burst` returns the lanes of the vectors.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn rate(threads: usize, burst: impl Fn() -> usize + Sync) -> f64 {
    let barrier = Barrier::new(threads);
    let work = || {
        let mut least = f64::INFINITY;
        let mut lanes = 0;
        for _ in 0..ROUNDS {
            barrier.wait();
            let start = Instant::now();
            lanes = burst();
            barrier.wait();
            least = least.min(start.elapsed().as_secs_f64());
        }
        (2 * threads * CHAINS * LINKS * lanes) as f64 / least / 1e9
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work()
    })
}

macro_rules! chains {
    ($($(#[$doc:meta])* $name:ident: $splat:ident $mul_add:ident $lanes:ident;)*) => {
        $($(#[$doc])*
        struct $name;

        impl WithSimd for $name {
            type Output = usize;

            #[inline(always)]
            fn with_simd<S: Simd>(self, simd: S) -> usize {
                let (factor, term) = black_box((0.5, 1.0));
                let (factor, term) = (simd.$splat(factor), simd.$splat(term));
                advance(
                    term,
                    #[inline(always)]
                    |x| simd.$mul_add(x, factor, term),
                );
                S::$lanes
            }
        })*
    };
}
chains! {
    /// Chains of vectors of `f32`.
    Singles: splat_f32s mul_add_f32s F32_LANES;
    /// Chains of vectors of `f64`.
    Doubles: splat_f64s mul_add_f64s F64_LANES;
}

/// Applies `step` to each chain, link after link. The loop is compiled into the caller, for its vectors.
#[inline(always)]
fn advance<V: Copy>(start: V, step: impl Fn(V) -> V) {
    let mut chains = [start; CHAINS];
    for _ in 0..LINKS {
        for x in &mut chains {
            *x = step(*x);
        }
    }
    black_box(chains);
}
