//! Products of tensors and convolutions. Operands are converted to the dtype of the result, and
//! each sum is rounded once.

use nxla_expr::{Conv, Dot, Op, TensorType};

use crate::array::{Array, indices};
use crate::number::Number;

pub(crate) fn evaluate(op: &Op, ty: &TensorType, x: &[&Array]) -> Array {
    let (left, right) = (x[0].cast(ty.dtype), x[1].cast(ty.dtype));
    match op {
        Op::Dot(attributes) => dot(attributes, &left, &right, ty),
        Op::Conv(attributes) => conv(attributes, &left, &right, ty),
        op @ nxla_expr::outside!(contract) => unreachable!("{} is of another family", op.name()),
    }
}

/// `z[b…, i…, j…] = Σ over k… of x[b…, i… and k…] y[b…, j… and k…]`: the batch axes come first,
/// then the free axes of each operand in their order.
fn dot(attributes: &Dot, left: &Array, right: &Array, ty: &TensorType) -> Array {
    let Dot { left_contract, left_batch, right_contract, right_batch } = attributes;
    let counts: Vec<usize> = left_contract.iter().map(|&axis| left.shape[axis]).collect();
    let batches = left_batch.len();
    let left_free = left.rank() - batches - counts.len();
    Array::from_fn(ty, |index| {
        let (batch, free) = index.split_at(batches);
        let (of_left, of_right) = free.split_at(left_free);
        let products = indices(&counts).map(|sum| {
            let x =
                left.at(&placed(left.rank(), (left_batch, batch), (left_contract, &sum), of_left));
            let sides = ((&**right_batch, batch), (&**right_contract, &*sum));
            let y = right.at(&placed(right.rank(), sides.0, sides.1, of_right));
            x.multiply(y)
        });
        products.fold(Number::ZERO.cast(ty.dtype), Number::add)
    })
}

/// Returns the index into an operand with `batch` and `sum` along the corresponding axes, and
/// `free` along the others.
fn placed(
    rank: usize,
    (batch_axes, batch): (&[usize], &[usize]),
    (sum_axes, sum): (&[usize], &[usize]),
    free: &[usize],
) -> Vec<usize> {
    let mut free = free.iter();
    let find = |axes: &[usize], axis| axes.iter().position(|&found| found == axis);
    let at = |axis: usize| match (find(batch_axes, axis), find(sum_axes, axis)) {
        (Some(at), _) => batch[at],
        (None, Some(at)) => sum[at],
        (None, None) => *free.next().expect("the other axes are free"),
    };
    (0..rank).map(at).collect()
}

/// Convolution. With canonical layouts, `z[n, o, p…] = Σ over c and k… of x[n, c, q…] w[o, c, k…]`,
/// where `q input_dilation = p stride + k kernel_dilation - low` along each spatial axis. If this
/// has no solution, `q` is between elements or in the padding, and the product is 0.
///
/// With feature groups, each group of output channels reads its own group of input channels; with
/// batch groups, its own group of the batch.
fn conv(attributes: &Conv, input: &Array, kernel: &Array, ty: &TensorType) -> Array {
    let size = |x: &Array, permutation: &[usize], axis: usize| x.shape[permutation[axis]];
    let (of_input, of_kernel) = (&attributes.input_permutation, &attributes.kernel_permutation);
    // The indices of a sum: the input channels of a group, and the positions of the kernel.
    let counts: Vec<usize> = (1..kernel.rank()).map(|axis| size(kernel, of_kernel, axis)).collect();
    let outputs = size(kernel, of_kernel, 0);
    Array::from_fn(ty, |index| {
        let result: Vec<usize> =
            attributes.output_permutation.iter().map(|&axis| index[axis]).collect();
        let [image, output, ref place @ ..] = result[..] else {
            unreachable!("a convolution has batch, channels and spatial axes")
        };
        let feature_group = output / (outputs / attributes.feature_groups);
        let batch_group = output / (outputs / attributes.batch_groups);
        let images = size(input, of_input, 0) / attributes.batch_groups;
        let products = indices(&counts).filter_map(|sum| {
            let spatial = (0..place.len()).map(|axis| {
                let (low, _) = attributes.padding[axis];
                let step = place[axis] * attributes.strides[axis]
                    + sum[axis + 1] * attributes.kernel_dilation[axis];
                let at = usize::try_from(step as i64 - low).ok()?;
                let (at, between) =
                    (at / attributes.input_dilation[axis], at % attributes.input_dilation[axis]);
                (between == 0 && at < size(input, of_input, axis + 2)).then_some(at)
            });
            let mut of_x = vec![batch_group * images + image, feature_group * counts[0] + sum[0]];
            of_x.extend(spatial.collect::<Option<Vec<usize>>>()?);
            let of_w: Vec<usize> = [output].into_iter().chain(sum).collect();
            let x = input.at(&permuted(&of_x, of_input));
            Some(x.multiply(kernel.at(&permuted(&of_w, of_kernel))))
        });
        products.fold(Number::ZERO.cast(ty.dtype), Number::add)
    })
}

/// Permutes a canonical index: entry `i` belongs to the axis `permutation[i]`.
fn permuted(canonical: &[usize], permutation: &[usize]) -> Vec<usize> {
    let mut index = vec![0; canonical.len()];
    for (&at, &axis) in canonical.iter().zip(permutation) {
        index[axis] = at;
    }
    index
}
