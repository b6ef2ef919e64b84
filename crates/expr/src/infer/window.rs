//! Types of window reductions and window scatters.
//!
//! If a window is larger than its padded axis, the result has size 0 along this axis. Sums and
//! products keep the operand's dtype (unlike full reductions), and `pred` becomes `u8`.

use nxla_tensor::{DType, Shape, promote};

use super::check;
use super::check::{Inferred, operands, tensor};
use crate::graph::{ErrorKind, Op, TensorType, WindowAttributes, WindowOp, shape_text};

pub(crate) fn infer(op: &Op, types: &[&TensorType]) -> Inferred {
    match op {
        Op::Window(reduction, window) => {
            let [x] = operands(types)?;
            let dtype = window_dtype(*reduction, x.dtype)?;
            let shape = windows(x, window)?;
            tensor(TensorType { dtype, shape, names: x.names.clone() })
        }
        Op::WindowFun(attributes) => {
            let x = check::fold(&attributes.function, types)?;
            let shape = windows(x, &attributes.window)?;
            tensor(TensorType { dtype: x.dtype, shape, names: x.names.clone() })
        }
        Op::WindowScatter(_, window) => window_scatter(window, types),
        op @ crate::outside!(window) => unreachable!("{} is of another family", op.name()),
    }
}

fn window_dtype(reduction: WindowOp, dtype: DType) -> Result<DType, ErrorKind> {
    match reduction {
        WindowOp::Sum | WindowOp::Product => Ok(promote(dtype, dtype)),
        WindowOp::Max | WindowOp::Min => check::orderable("operand", dtype),
    }
}

/// The limit for the number of elements of a window; larger windows would run for hours.
const MOST_ELEMENTS: u64 = 1 << 32;

/// Returns the number of windows along each axis.
fn windows(x: &TensorType, window: &WindowAttributes) -> Result<Shape, ErrorKind> {
    let WindowAttributes { dimensions, strides, padding, dilations } = window;
    check::count("dimensions", dimensions.len(), x.rank(), x)?;
    check::count("strides", strides.len(), x.rank(), x)?;
    check::count("padding", padding.len(), x.rank(), x)?;
    check::count("dilations", dilations.len(), x.rank(), x)?;
    check::positive("dimensions", dimensions)?;
    let elements = dimensions.iter().try_fold(1_usize, |all, &size| all.checked_mul(size));
    if elements.is_none_or(|elements| elements as u64 > MOST_ELEMENTS) {
        let why = format!("must have at most 2^32 elements; got {dimensions:?}");
        return Err(ErrorKind::invalid("dimensions", why));
    }
    check::positive("strides", strides)?;
    check::positive("dilations", dilations)?;
    padding.iter().try_for_each(|&(low, high)| check::padding(low, high))?;
    let count = |axis: usize| -> Option<usize> {
        let (low, high) = padding[axis];
        let size = check::padded_size(x.shape[axis], low, high)?;
        let extent = check::dilated_size(dimensions[axis], dilations[axis])?;
        Some(check::window_count(size, extent, strides[axis]))
    };
    (0..x.rank())
        .map(|axis| {
            count(axis).ok_or_else(|| {
                let why = format!(
                    "must leave a valid size; got {:?} for axis {axis} of {x}",
                    padding[axis]
                );
                ErrorKind::invalid("padding", why)
            })
        })
        .collect()
}

fn window_scatter(window: &WindowAttributes, types: &[&TensorType]) -> Inferred {
    let [x, source, initial] = operands(types)?;
    check::orderable("operand", x.dtype)?;
    check::scalar("initial", initial)?;
    let expected = windows(x, window)?;
    if source.shape != expected {
        return Err(ErrorKind::Shape {
            argument: "source",
            found: shape_text(&source.shape),
            expected: format!("{}, one element for each window of {x}", shape_text(&expected)),
        });
    }
    let dtype = promote(source.dtype, initial.dtype);
    tensor(TensorType { dtype, shape: x.shape.clone(), names: x.names.clone() })
}
