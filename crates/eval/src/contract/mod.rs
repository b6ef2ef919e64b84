//! Contractions: dot products and convolutions, both brought to products of matrices.

mod conv;
mod matmul;
mod spread;

use nxla_expr::{Dot, Op};
use nxla_tensor::{Complex, DType, Element, HostTensor, Shape};

use crate::args::Args;
use crate::elementwise::{Compute, convert};
use crate::error::Fault;
use crate::layout::Strided;
use crate::value;
use matmul::matmul;
pub(crate) use matmul::{Factor, Sizes};

pub(crate) fn evaluate(
    op: &Op,
    ty: &nxla_expr::TensorType,
    args: &mut Args<'_>,
) -> Result<HostTensor, Fault> {
    // Narrow types are multiplied in wider ones, and the result is rounded (or wraps) once.
    let compute = Compute::of(ty.dtype).dtype();
    let promoted = |index: usize| {
        let operand = convert(args.get(index), ty.dtype)?;
        convert(&operand, compute)
    };
    let (left, right) = (promoted(0)?, promoted(1)?);
    let result = match op {
        Op::Dot(attributes) => dot(attributes, &left, &right, &ty.shape)?,
        Op::Conv(attributes) => conv::conv(attributes, &left, &right, &ty.shape)?,
        op @ nxla_expr::outside!(contract) => unreachable!("{} is of another family", op.name()),
    };
    convert(&result, ty.dtype)
}

/// Binds a type to the elements of a dtype in which contractions are computed.
macro_rules! match_number {
    ($dtype:expr, $t:ident => $body:expr) => {{
        macro_rules! with {
            ($found:ty) => {{
                type $t = $found;
                $body
            }};
        }
        match $dtype {
            DType::U8 => with!(u8),
            DType::U16 => with!(u16),
            DType::U32 => with!(u32),
            DType::U64 => with!(u64),
            DType::S8 => with!(i8),
            DType::S16 => with!(i16),
            DType::S32 => with!(i32),
            DType::S64 => with!(i64),
            DType::F32 => with!(f32),
            DType::F64 => with!(f64),
            DType::C64 => with!(Complex<f32>),
            DType::C128 => with!(Complex<f64>),
            dtype @ (DType::Pred
            | DType::U2
            | DType::U4
            | DType::S2
            | DType::S4
            | DType::F8E5M2
            | DType::F8E4M3FN
            | DType::BF16
            | DType::F16) => unreachable!("{dtype} is widened before it is multiplied"),
        }
    }};
}
use match_number;

/// The result has the batch axes, the free axes of `left`, then those of `right`.
fn dot(
    attributes: &Dot,
    left: &HostTensor,
    right: &HostTensor,
    shape: &Shape,
) -> Result<HostTensor, Fault> {
    let batch = attributes.left_batch.len();
    let left = Side::new(left, batch, &attributes.left_contract)?;
    let right = Side::new(right, batch, &attributes.right_contract)?;
    let batches = shape[..batch].iter().product();
    let sizes = Sizes { batches, rows: left.free, inner: left.contract, columns: right.free };
    match_number!(left.matrices.dtype(), T => {
        value::build(T::DTYPE, shape, |out: &mut [T]| {
            matmul(sizes, left.factor::<T>(), right.factor::<T>(), out);
        })
    })
}

/// An operand as a batch of matrices.
struct Side {
    matrices: HostTensor,
    free: usize,
    contract: usize,
    /// Whether the contracted axis comes first in memory.
    contract_first: bool,
}

impl Side {
    /// Copies the operand only if neither order of its axes is the one in memory.
    fn new(x: &HostTensor, batch: usize, contract: &[usize]) -> Result<Self, Fault> {
        let free: Vec<usize> = (batch..x.rank()).filter(|axis| !contract.contains(axis)).collect();
        let extent = |axes: &[usize]| axes.iter().map(|&axis| x.shape()[axis]).product();
        let (free_size, contract_size) = (extent(&free), extent(contract));
        let order = |first: &[usize], last: &[usize]| -> Vec<usize> {
            (0..batch).chain(first.iter().copied()).chain(last.iter().copied()).collect()
        };
        let in_memory =
            |order: &[usize]| order.iter().filter(|&&axis| x.shape()[axis] != 1).is_sorted();
        let free_first = order(&free, contract);
        let contract_first = !in_memory(&free_first) && in_memory(&order(contract, &free));
        let matrices = if contract_first || in_memory(&free_first) {
            x.clone()
        } else {
            let steps = Strided::row_major(x.shape());
            let axes = free_first.iter().map(|&axis| (x.shape()[axis], steps[axis]));
            let rule = Strided::new(0, axes);
            let shape = free_first.iter().map(|&axis| x.shape()[axis]).collect();
            value::build_bytes(x.dtype(), &shape, |out| {
                rule.read_all_bytes(x.dtype().size(), x.bytes(), out);
            })?
        };
        Ok(Self { matrices, free: free_size, contract: contract_size, contract_first })
    }

    fn factor<T: Element>(&self) -> Factor<'_, T> {
        Factor { elements: value::slice(&self.matrices), inner_first: self.contract_first }
    }
}
