//! Functions that move, reduce, window and index, eager and traced.

use crate::common::{agree, compilers, numbers};
use nxla::{
    Arg, Axis, DType, Expr, Leftover, OuterPadding, Over, Slice, Sort, Tensor, Window, jit,
};

fn matrix() -> Tensor {
    Tensor::new(vec![1, 2, 3, 4, 5, 6], [2, 3]).unwrap()
}

#[test]
fn names_select_axes() {
    let x =
        Tensor::from([[1.0f32, 2.0, 3.0], [3.0, 4.0, 5.0]]).with_names(["row", "column"]).unwrap();
    agree!((x) => x.vecdot(x, "column"), [2], [14, 50]);
    agree!((x) => x.cross(x, "column"), [2, 3], [0, 0, 0, 0, 0, 0]);
    agree!((x) => x.cosine_similarity(x, "row", 0.0), [3], [1, 1, 1]);
    let error = x.vecdot(&x, "depth").unwrap_err().to_string();
    assert!(
        error.starts_with("vecdot: axis: must be an axis of f32[row: 2][column: 3]"),
        "{error}"
    );
}

#[test]
fn names_select_axes_of_operands_of_different_ranks() {
    let x = Tensor::from([1.0f32, 0.0, 0.0]).with_names(["column"]).unwrap();
    let y =
        Tensor::from([[0.5f32, 1.0, 0.0], [0.5, 0.0, 2.0]]).with_names(["row", "column"]).unwrap();
    agree!((x, y) => x.vecdot(y, "column"), [2], [0.5, 0.5]);
    agree!((x, y) => y.vecdot(x, "column"), [2], [0.5, 0.5]);
    agree!((x, y) => x.cross(y, "column"), [2, 3], [0, 0, 1, 0, -2, 0]);
    let unnamed = x.clone().with_names(()).unwrap();
    for x in [x, unnamed] {
        let last = x.cosine_similarity(&y, -1, 0.0).unwrap();
        assert_eq!(numbers(&x.cosine_similarity(&y, "column", 0.0).unwrap()), numbers(&last));
        let last = x.kl_divergence(&y, -1).unwrap();
        assert_eq!(numbers(&x.kl_divergence(&y, "column").unwrap()), numbers(&last));
        let last = x.softmax_cross_entropy(&y, -1).unwrap();
        assert_eq!(numbers(&x.softmax_cross_entropy(&y, "column").unwrap()), numbers(&last));
        assert!(x.cosine_similarity(&y, "row", 0.0).is_err());
        assert!(y.cosine_similarity(&x, "row", 0.0).is_err());
    }
}

#[test]
fn movement() {
    let x = matrix();
    agree!((x) => x.reshape([3, 2]), [3, 2], [1, 2, 3, 4, 5, 6]);
    agree!((x) => x.reshape_auto(&[None, Some(1)]), [6, 1], [1, 2, 3, 4, 5, 6]);
    agree!((x) => x.flatten(()), [6], [1, 2, 3, 4, 5, 6]);
    agree!((x) => x.transpose(()), [3, 2], [1, 4, 2, 5, 3, 6]);
    agree!((x) => x.move_axes(&[-1], &[0]), [3, 2], [1, 4, 2, 5, 3, 6]);
    agree!((x) => x.reverse(0), [2, 3], [4, 5, 6, 1, 2, 3]);
    agree!((x) => x.new_axis(-1), [2, 3, 1], [1, 2, 3, 4, 5, 6]);
    agree!((x) => x.broadcast_to([2, 2, 3]), [2, 2, 3], [1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6]);
    agree!((x) => x.pad(0, [(1, 0), (0, -1)]), [3, 2], [0, 0, 1, 2, 4, 5]);
    agree!((x) => x.tile(&[1, 2]), [2, 6], [1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6]);
    agree!((x) => x.repeat(&[2], 0), [4, 3], [1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6]);
    agree!((x) => x.repeat(&[0, 2, 1], 1), [2, 3], [2, 2, 3, 5, 5, 6]);
    agree!((x) => x.roll(1, 1), [2, 3], [3, 1, 2, 6, 4, 5]);
    agree!((x) => x.roll(-7, 1), [2, 3], [2, 3, 1, 5, 6, 4]);
    let row = Tensor::new(vec![1, 2], [1, 2]).unwrap();
    agree!((row) => row.squeeze(()), [2], [1, 2]);
    agree!((row) => row.broadcast_along([2, 1, 2], &[1, 2]), [2, 1, 2], [1, 2, 1, 2]);
    agree!((row) => row.pad_outer(OuterPadding::Cyclic, &[(0, 0), (1, 1)]), [1, 4], [2, 1, 2, 1]);
}

#[test]
fn split_stack_and_concatenate() {
    let x = matrix();
    for compiler in compilers() {
        let (left, right) = jit(|x: Expr| x.split(-1, 1)).compiler(compiler).call(&x).unwrap();
        assert_eq!((numbers(&left), numbers(&right)), (vec![1., 2., 4., 5.], vec![3., 6.]));
        let rows = jit(|x: Expr| x.unstack(0)).compiler(compiler).call(&x).unwrap();
        assert_eq!((rows.len(), numbers(&rows[1])), (2, vec![4.0, 5.0, 6.0]));
        let stacked = jit(|rows: Vec<Expr>| Expr::stack(&rows, 1)).compiler(compiler);
        assert_eq!(numbers(&stacked.call(&rows).unwrap()), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    }
    assert_eq!(numbers(&Tensor::concatenate(&x.unstack(1).unwrap(), 0).unwrap())[..2], [1.0, 4.0]);
    let together = Tensor::broadcast_together(&[x.clone(), Tensor::from(0)]).unwrap();
    assert_eq!(together[1].shape()[..], [2, 3]);
    let error = Tensor::broadcast_together(&[x, Tensor::from(vec![1, 2])]).unwrap_err();
    assert!(error.to_string().starts_with("broadcast_together"), "{error}");
}

#[test]
fn axes_have_names() {
    let names = ["rows", "columns"];
    let x = matrix().rename(names).unwrap();
    agree!((x) => x.sum_over("columns"), [2], [6, 15]);
    agree!((x) => x.sort(Sort::axis("rows").descending()), [2, 3], [4, 5, 6, 1, 2, 3]);
    agree!((x) => x.reduce_max_over([Axis::from("rows"), Axis::from(1)]), [], [6]);
    let error = x.mean_over("depth").unwrap_err().to_string();
    assert!(error.contains("got \"depth\""), "{error}");
}

#[test]
fn reductions() {
    let x = matrix();
    agree!((x) => x.sum(), [], [21]);
    agree!((x) => x.product_over(0), [3], [4, 10, 18]);
    agree!((x) => x.mean_over(Over::axis(1).keep()), [2, 1], [2, 5]);
    agree!((x) => x.reduce_min_over([-1]), [2], [1, 4]);
    agree!((x) => x.count_nonzero(1), [2], [3, 3]);
    agree!((x) => x.variance(0, 0), [3], [2.25, 2.25, 2.25]);
    agree!((x) => x.standard_deviation((), 1), [], [1.870_828_7]);
    agree!((x) => x.median(1), [2], [2, 5]);
    agree!((x) => x.median(()), [], [3.5]);
    agree!((x) => x.mode(Arg::axis(0).keep()), [1, 3], [1, 2, 3]);
    agree!((x) => x.argmin(Arg::axis(-1).keep().dtype(DType::U8)), [2, 1], [0, 0]);
    agree!((x) => x.logsumexp(1), [2], [3.407_606, 6.407_606]);
    agree!((x) => x.covariance(1), [3, 3], [4.5; 9]);
    agree!((x) => x.reduce(0, 1, |x, most| x.max(most)), [2], [3, 6]);
    let weights = Tensor::from(vec![1.0f32, 0.0, 1.0]);
    agree!((x, weights) => x.weighted_mean(weights, 1), [2], [2, 5]);
    agree!((x, weights) => x.scaled_logsumexp(weights, 1), [2], [3.126_928, 6.126_928]);
    let none = Tensor::zeros([0, 2], DType::F32).unwrap();
    agree!((none) => none.sum_over(0), [2], [0, 0]);
    agree!((none) => none.all(), [], [1]);
    agree!((none) => none.any(), [], [0]);
}

#[test]
fn windows() {
    let x = Tensor::from(vec![1, 2, 3, 4]);
    let (two, dilated) = (&Window::new([2]), &Window::new([2]).dilations([2]));
    agree!((x) => x.window_product(two), [3], [2, 6, 12]);
    agree!((x) => x.window_max(&Window::new([3]).same()), [4], [2, 3, 4, 4]);
    agree!((x) => x.window_min(dilated), [2], [1, 2]);
    agree!((x) => x.window_mean(&Window::new([2]).strides([2])), [2], [1.5, 3.5]);
    agree!((x) => x.window_reduce(1, two, |x, acc| x * acc), [3], [2, 6, 12]);
    agree!((x) => x.cumulative_sum(0), [4], [1, 3, 6, 10]);
    agree!((x) => x.cumulative_product_reverse(0), [4], [24, 24, 12, 4]);
    agree!((x) => x.cumulative_max_reverse(-1), [4], [4, 4, 4, 4]);
    let row = Tensor::from([2.0f32, f32::NAN, 3.0]);
    agree!((row) => row.nan_cumulative_sum(0), [3], [2, 2, 5]);
    agree!((row) => row.nan_cumulative_product(0), [3], [2, 2, 6]);
    agree!((row) => row.nan_standard_deviation((), 0.0), [], [0.5]);
    agree!((row) => row.is_close(row, 0.0, 0.0, false), [3], [1, 0, 1]);
    let square = Tensor::from([[1, 2], [3, 4]]);
    agree!((square) => square.matrix_transpose(), [2, 2], [1, 3, 2, 4]);
    let narrow = Tensor::from([200u8, 100]);
    agree!((narrow) => narrow.nan_cumulative_sum(0), [2], [200, 300]);
    agree!((narrow) => narrow.cumulative_sum(0), [2], [200, 300]);
    agree!((narrow) => narrow.cumulative_sum_reverse(0), [2], [300, 100]);
    agree!((narrow) => narrow.cumulative_product(0), [2], [200, 20_000]);
    assert_eq!(narrow.cumulative_sum(0).unwrap().dtype(), narrow.sum().unwrap().dtype());
    assert_eq!(narrow.cumulative_max(0).unwrap().dtype(), DType::U8);
    let wide = Tensor::from([u64::MAX - 1, 1]).cumulative_sum(0).unwrap();
    assert_eq!(wide.to_vec::<u64>().unwrap(), [u64::MAX - 1, u64::MAX]);
    let source = Tensor::from(vec![10, 20]);
    let strided = &Window::new([2]).strides([2]);
    agree!((x, source) => x.window_scatter_max(source, 0, strided), [4], [0, 10, 0, 20]);
    agree!((x, source) => x.window_scatter_min(source, 0, strided), [4], [10, 0, 20, 0]);
}

#[test]
fn indexing() {
    let x = matrix();
    let at = Tensor::from(1);
    agree!((x) => x.slice(&Slice::new([0, 1], [2, 2])), [2, 2], [2, 3, 5, 6]);
    agree!((x) => x.slice(&Slice::new([0, 0], [2, 3]).strides([1, 2])), [2, 2], [1, 3, 4, 6]);
    agree!((x, at) => x.slice_along_axis(at, 2, 1), [2, 2], [2, 3, 5, 6]);
    // An out-of-range start is clamped if it is computed, and an error if it is a constant.
    let far = Tensor::from(9);
    agree!((x, far) => x.slice_along_axis(far, 2, 1), [2, 2], [2, 3, 5, 6]);
    agree!((x) => x.slice_along_axis(-2, 2, 1), [2, 2], [2, 3, 5, 6]);
    agree!((x, at) => x.at_axis(at, 0), [3], [4, 5, 6]);
    let row = Tensor::new(vec![7, 8, 9], [1, 3]).unwrap();
    agree!((x, row) => x.put_slice(row, &[1, 0]), [2, 3], [1, 2, 3, 7, 8, 9]);
    agree!((x, at, row) => x.put_slice_along_axis(at, row, 0), [2, 3], [1, 2, 3, 7, 8, 9]);
    assert!(x.put_slice_along_axis(0, &row, 2).is_err());
    agree!((x, at) => x.slice(&Slice::new([at, at], [1, 2])), [1, 2], [5, 6]);
    agree!((x, row, at) => x.put_slice(row, &[at, at]), [2, 3], [1, 2, 3, 7, 8, 9]);
    assert!(x.slice(&Slice::new([0.5, 0.0], [1, 1])).is_err());
    let indices = Tensor::from(vec![2, 0]);
    agree!((x, indices) => x.take(indices, 1), [2, 2], [3, 1, 6, 4]);
    let each = Tensor::new(vec![2, 0], [2, 1]).unwrap();
    agree!((x, each) => x.take_along_axis(each, 1), [2, 1], [3, 4]);
    let indices = Tensor::new(vec![0, 2, 1, 0], [2, 2]).unwrap();
    agree!((x, indices) => x.gather(indices, ()), [2], [3, 4]);
    agree!((x, each) => x.gather(each, 1), [2, 2], [3, 6, 1, 4]);
    let updates = Tensor::from(vec![10, 20]);
    agree!((x, indices, updates) => x.indexed_add(indices, updates, ()), [2, 3],
        [1, 2, 13, 24, 5, 6]);
    agree!((x, indices, updates) => x.indexed_put(indices, updates, ()), [2, 3],
        [1, 2, 10, 20, 5, 6]);
    agree!((x) => x.diff(1, 1), [2, 2], [1, 1, 1, 1]);
    agree!((x) => x.diff(1, 0), [1, 3], [3, 3, 3]);
}

#[test]
fn indices_are_integers_for_all_element_dtypes() {
    let x = Tensor::from(vec![1.5f32, 2.5, 3.5]);
    agree!((x) => x.at_axis(1, 0), [], [2.5]);
    agree!((x) => x.slice_along_axis(1, 2, 0), [2], [2.5, 3.5]);
    agree!((x) => x.slice(&Slice::new([1], [2])), [2], [2.5, 3.5]);
    let end = Tensor::from(vec![9.0f32]);
    agree!((x, end) => x.put_slice_along_axis(2, end, 0), [3], [1.5, 2.5, 9.0]);
    agree!((x) => x.take(2, 0), [], [3.5]);
    assert!(x.at_axis(1.0, 0).is_err());
}

#[test]
fn axes_are_selected_by_position_or_name() {
    let x = matrix().rename([Some("rows"), None]).unwrap();
    assert_eq!((x.axis_size("rows").unwrap(), x.axis_size(-1).unwrap()), (2, 3));
    assert_eq!((x.axis_index("rows").unwrap(), x.axis_index(-1).unwrap()), (0, 1));
    let error = x.axis_size("columns").unwrap_err().to_string();
    assert!(error.contains("must be an axis of s32[rows: 2][3]; got \"columns\""), "{error}");
    assert!(x.axis_index(2).is_err());
}

#[test]
fn last_batches_are_repeated_or_discarded() {
    let x = Tensor::from(vec![1.5f32, 2.5, 3.5]);
    let batches = |leftover| -> Vec<Vec<f64>> {
        x.to_batched(2, leftover).unwrap().map(|batch| numbers(&batch.unwrap())).collect()
    };
    assert_eq!(batches(Leftover::Repeat), [[1.5, 2.5], [3.5, 1.5]]);
    assert_eq!(batches(Leftover::Discard), [[1.5, 2.5]]);
    assert!(x.to_batched(0, Leftover::Repeat).is_err());
    assert!(x.to_batched(4, Leftover::Repeat).is_err());
    assert!(Tensor::from(1).to_batched(1, Leftover::Repeat).is_err());
}

#[test]
fn sorting() {
    let x = Tensor::from(vec![2.0f32, f32::NAN, -1.0, 2.0]);
    agree!((x) => x.sort(0), [4], [-1.0, 2.0, 2.0, f32::NAN]);
    agree!((x) => x.argsort(Sort::axis(0).dtype(DType::S64)), [4], [2, 0, 3, 1]);
    agree!((x) => x.argsort(Sort::axis(0).descending()), [4], [1, 0, 3, 2]);
    let (values, indices) = matrix().top_k(2).unwrap();
    assert_eq!((numbers(&values), numbers(&indices)), (vec![3., 2., 6., 5.], vec![2., 1., 2., 1.]));
}
