//! Blocks that the evaluator computes by code of its own; of all others it runs the bodies.

use nxla_expr::{Block, BlockKind, Cumulative};
use nxla_tensor::{Complex, DType, Element, HostTensor};

use crate::args::Args;
use crate::create::{random_wide_words, random_words};
use crate::elementwise::convert;
use crate::error::Fault;
use crate::index::{scatter, search, top_k, top_k_pays};
use crate::reduce::{larger, match_ordered, narrow, smaller, wide};
use crate::run::{Results, one};
use crate::{memory, parallel, value};

/// Whether [`evaluate`] computes a block.
pub(crate) fn is_native(block: &Block) -> bool {
    let is_narrow_float = || {
        let dtype = block.body.inputs()[0].dtype;
        dtype.is_float() && dtype.bits() < 32
    };
    match block.kind {
        // The body of a scan rounds to a narrow float after each of its steps.
        BlockKind::Cumulative { .. } => !is_narrow_float(),
        // The body sorts, which is as native as can be where many are wanted.
        BlockKind::TopK { k } => {
            let shape = &block.body.inputs()[0].shape;
            shape.last().is_some_and(|&size| top_k_pays(k, size))
        }
        // Each entry of a batch may have a vector of its own.
        BlockKind::Search(_) => {
            let counts = block.body.output_types().all(|ty| ty.dtype == DType::S32);
            block.batch_axes == 0 && counts && !is_narrow_float()
        }
        BlockKind::Threefry { .. } | BlockKind::Scatter { .. } => true,
        BlockKind::Checkpoint { .. } | BlockKind::Named { .. } => false,
    }
}

/// Computes a block that [`is_native`].
pub(crate) fn evaluate(block: &Block, args: &mut Args<'_>) -> Result<Results, Fault> {
    let x = args.get(0);
    match block.kind {
        BlockKind::Cumulative { op, axis, reverse } => {
            let run = Run { x, axis: axis + block.batch_axes, reverse };
            cumulative(op, run).map(one)
        }
        BlockKind::TopK { k } => Ok(top_k(x, k)?.into_iter().collect()),
        BlockKind::Threefry { count, wide: false } => random_words(x, count).map(one),
        BlockKind::Threefry { count, wide: true } => random_wide_words(x, count).map(one),
        BlockKind::Search(order) => search(x, args.get(1), order).map(one),
        BlockKind::Scatter { op } => scatter(op, args, &block.body.inputs()[0]).map(one),
        BlockKind::Checkpoint { .. } | BlockKind::Named { .. } => {
            unreachable!("the plan has the body of {}", block.name())
        }
    }
}

fn cumulative(op: Cumulative, run: Run<'_>) -> Result<HostTensor, Fault> {
    let dtype = run.x.dtype();
    match op {
        Cumulative::Sum => sums(run),
        Cumulative::Product => products(run),
        Cumulative::Max => match_ordered!(dtype, T => {
            run.fold::<T, T>(T::from_scalar(dtype.min_value()), larger, |a| a)
        }),
        Cumulative::Min => match_ordered!(dtype, T => {
            run.fold::<T, T>(T::from_scalar(dtype.max_value()), smaller, |a| a)
        }),
    }
}

/// A pass along an axis.
#[derive(Clone, Copy)]
struct Run<'a> {
    x: &'a HostTensor,
    axis: usize,
    reverse: bool,
}

impl Run<'_> {
    /// The fold of all elements so far, at each place. Like that of whole sums, it has room for more
    /// digits than an element.
    fn fold<T: Element, A: Copy + Send + Sync>(
        self,
        start: A,
        step: fn(A, T) -> A,
        finish: fn(A) -> T,
    ) -> Result<HostTensor, Fault> {
        let shape = self.x.shape();
        let (size, inner) = (shape[self.axis], shape[self.axis + 1..].iter().product::<usize>());
        let (source, block) = (value::slice::<T>(self.x), size * inner);
        value::build(self.x.dtype(), shape, |out: &mut [T]| {
            // Each element waits for the one before it.
            parallel::rows(out, block, 4 * block, |first, out| {
                for (index, out) in out.chunks_exact_mut(block).enumerate() {
                    let x = &source[(first + index) * block..][..block];
                    let mut totals = memory::filled(start, inner);
                    for at in 0..size {
                        let row = inner * if self.reverse { size - 1 - at } else { at };
                        let (x, out) = (&x[row..row + inner], &mut out[row..row + inner]);
                        for ((total, &x), out) in totals.iter_mut().zip(x).zip(out) {
                            *total = step(*total, x);
                            *out = finish(*total);
                        }
                    }
                }
            });
        })
    }

    /// The same for integers, which wrap in the widest one and then in their own.
    fn integers(self, start: i64, step: fn(i64, i64) -> i64) -> Result<HostTensor, Fault> {
        let wide = convert(self.x, DType::S64)?;
        let result = Run { x: &wide, ..self }.fold::<i64, i64>(start, step, |a| a)?;
        convert(&result, self.x.dtype())
    }
}

fn sums(run: Run<'_>) -> Result<HostTensor, Fault> {
    match run.x.dtype() {
        DType::F32 => run.fold::<f32, f64>(0.0, |a, x| a + f64::from(x), |a| a as f32),
        DType::F64 => run.fold::<f64, f64>(0.0, |a, x| a + x, |a| a),
        DType::C64 => {
            let zero = Complex::new(0.0, 0.0);
            run.fold::<Complex<f32>, Complex<f64>>(zero, |a, x| a + wide(x), narrow)
        }
        DType::C128 => {
            let zero = Complex::new(0.0, 0.0);
            run.fold::<Complex<f64>, Complex<f64>>(zero, |a, x| a + x, |a| a)
        }
        dtype => {
            assert!(dtype.is_integer(), "{dtype} is not added up here");
            run.integers(0, i64::wrapping_add)
        }
    }
}

fn products(run: Run<'_>) -> Result<HostTensor, Fault> {
    match run.x.dtype() {
        DType::F32 => run.fold::<f32, f64>(1.0, |a, x| a * f64::from(x), |a| a as f32),
        DType::F64 => run.fold::<f64, f64>(1.0, |a, x| a * x, |a| a),
        DType::C64 => {
            let one = Complex::new(1.0, 0.0);
            run.fold::<Complex<f32>, Complex<f64>>(one, |a, x| a * wide(x), narrow)
        }
        DType::C128 => {
            let one = Complex::new(1.0, 0.0);
            run.fold::<Complex<f64>, Complex<f64>>(one, |a, x| a * x, |a| a)
        }
        dtype => {
            assert!(dtype.is_integer(), "{dtype} is not multiplied here");
            run.integers(1, i64::wrapping_mul)
        }
    }
}
