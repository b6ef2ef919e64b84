//! Contractions: dot products and convolutions, both computed as products of matrices.

mod conv;
mod depthwise;
mod direct;
mod matmul;
mod padded;
mod phases;
mod small;
mod tile;

use nxla_expr::{Dot, Op, TensorType};
use nxla_tensor::{DType, Element, HostTensor, Shape};

use crate::context::{self, Args, Cx, Fault};
use crate::kernels::elementwise::convert;
use crate::kernels::number::{compute_dtype, match_number};
use crate::kernels::strided::Strided;
use matmul::matmul;
pub(crate) use matmul::{Factor, Factors, Sizes};

pub(crate) fn evaluate(
    cx: Cx<'_>,
    op: &Op,
    ty: &TensorType,
    args: &Args<'_>,
) -> Result<HostTensor, Fault> {
    // Narrow types are multiplied in wider ones, and the result is rounded (or wraps) once.
    let compute = compute_dtype(ty.dtype);
    let promoted = |index: usize| {
        let operand = convert(cx, args.get(index), ty.dtype)?;
        convert(cx, &operand, compute)
    };
    let (left, right) = (promoted(0)?, promoted(1)?);
    let result = match op {
        Op::Dot(attributes) => dot(cx, attributes, &left, &right, &ty.shape)?,
        Op::Conv(attributes) => conv::conv(cx, attributes, &left, &right, &ty.shape)?,
        op @ nxla_expr::outside!(contract) => unreachable!("{} is of another family", op.name()),
    };
    convert(cx, &result, ty.dtype)
}

/// The result has the batch axes, the free axes of `left`, then the free axes of `right`.
fn dot(
    cx: Cx<'_>,
    attributes: &Dot,
    left: &HostTensor,
    right: &HostTensor,
    shape: &Shape,
) -> Result<HostTensor, Fault> {
    let product = Product::new(attributes, left.dtype(), left.shape(), right.shape());
    let [left, right] =
        [(left, &product.left), (right, &product.right)].map(|(x, side)| match &side.order {
            None => Ok(x.clone()),
            Some(rule) => context::build_bytes(x.dtype(), x.shape(), |out| {
                rule.read_all_bytes(cx, x.dtype().size(), x.bytes(), out);
            }),
        });
    let (left, right) = (left?, right?);
    context::build_bytes(product.dtype, shape, |out| {
        product.fill(cx, left.bytes(), right.bytes(), out)
    })
}

/// A product of batches of matrices.
pub(crate) struct Product {
    dtype: DType,
    batches: usize,
    pub(crate) left: MatrixOperand,
    pub(crate) right: MatrixOperand,
}

/// An operand as a batch of matrices.
pub(crate) struct MatrixOperand {
    free: usize,
    contract: usize,
    /// True if the contracted axis comes first in memory.
    contract_first: bool,
    /// The order in which elements are copied, if neither order of the axes is the order in memory.
    pub(crate) order: Option<Strided>,
}

impl Product {
    /// The product of operands of a dtype in which contractions are computed.
    fn new(attributes: &Dot, dtype: DType, left: &Shape, right: &Shape) -> Self {
        let batch = attributes.left_batch.len();
        let batches = left[..batch].iter().product();
        let left = MatrixOperand::new(left, batch, &attributes.left_contract);
        let right = MatrixOperand::new(right, batch, &attributes.right_contract);
        Self { dtype, batches, left, right }
    }

    /// The product of operands that are multiplied without conversion.
    pub(crate) fn in_dtype(
        attributes: &Dot,
        left: &TensorType,
        right: &TensorType,
        dtype: DType,
    ) -> Option<Self> {
        let is_own = [left.dtype, right.dtype, compute_dtype(dtype)] == [dtype; 3];
        is_own.then(|| Self::new(attributes, dtype, &left.shape, &right.shape))
    }

    /// Multiplies operands whose elements are in the order of [`MatrixOperand::order`].
    pub(crate) fn fill(&self, cx: Cx<'_>, left: &[u8], right: &[u8], out: &mut [u8]) {
        let (rows, columns) = (self.left.free, self.right.free);
        let sizes = Sizes { batches: self.batches, rows, inner: self.left.contract, columns };
        match_number!(self.dtype, T => {
            let (left, right) = (self.left.factor::<T>(left), self.right.factor::<T>(right));
            matmul(cx, Factors { sizes, left, right }, bytemuck::cast_slice_mut(out));
        });
    }
}

impl MatrixOperand {
    fn new(shape: &Shape, batch: usize, contract: &[usize]) -> Self {
        let free: Vec<usize> =
            (batch..shape.rank()).filter(|axis| !contract.contains(axis)).collect();
        let order = |first: &[usize], last: &[usize]| -> Vec<usize> {
            (0..batch).chain(first.iter().copied()).chain(last.iter().copied()).collect()
        };
        let in_memory =
            |order: &[usize]| order.iter().filter(|&&axis| shape[axis] != 1).is_sorted();
        let free_first = order(&free, contract);
        let is_free_first = in_memory(&free_first);
        let contract_first = !is_free_first && in_memory(&order(contract, &free));
        let steps = Strided::row_major(shape);
        let axes = free_first.iter().map(|&axis| (shape[axis], steps[axis]));
        let order = (!is_free_first && !contract_first).then(|| Strided::new(0, axes));
        let size = |axes: &[usize]| shape.size_along(axes.iter().copied());
        Self { free: size(&free), contract: size(contract), contract_first, order }
    }

    fn factor<'a, T: Element>(&self, bytes: &'a [u8]) -> Factor<'a, T> {
        Factor { elements: bytemuck::cast_slice(bytes), inner_first: self.contract_first }
    }
}
