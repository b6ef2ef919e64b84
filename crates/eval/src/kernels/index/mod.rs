//! Slices, gathers, scatters, sorts and searches.

mod gather;
mod largest;
mod radix;
mod scatter;
mod search;
mod slice;
mod sort;

pub(crate) use largest::{pays as top_k_pays, top_k};
use nxla_expr::{Op, TensorType};
use nxla_tensor::HostTensor;
pub(crate) use scatter::scatter_to_vector;
pub(crate) use search::search;
pub(crate) use slice::known_slice;

use crate::context::{Args, Cx, Fault};

pub(crate) fn evaluate(
    cx: Cx<'_>,
    op: &Op,
    ty: &TensorType,
    args: &mut Args<'_>,
) -> Result<HostTensor, Fault> {
    match op {
        Op::Slice(attributes) => slice::slice(cx, attributes, args, ty),
        Op::PutSlice(starts) => slice::put_slice(cx, starts, args, ty),
        Op::Gather(axes) => gather::gather(cx, axes, args.get(0), args.get(1), ty),
        Op::IndexedAdd(axes) => scatter::indexed_add(cx, axes, args, ty),
        Op::IndexedPut(axes) => scatter::indexed_put(cx, axes, args, ty),
        Op::Sort(attributes) => sort::sort(cx, *attributes, args.get(0)),
        Op::Argsort(attributes, dtype) => sort::argsort(cx, *attributes, args.get(0), *dtype),
        op @ nxla_expr::outside!(index) => unreachable!("{} is of another family", op.name()),
    }
}
