//! Slices, gathers, scatters and sorts, with indices inside and outside of the axes.

use nxla::graph::build::SliceStart;
use nxla::graph::{ExprId, Op, SortAttributes};
use nxla::{DType, HostTensor, Scalar};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, subsequence};

use crate::case::Case;
use crate::tolerance;
use crate::values::{Numbers, RANKS, dtype_among, full_shape, host, shape, tensor};

pub(crate) fn strategy(op: &Op, dtype: DType) -> BoxedStrategy<Case> {
    match op {
        Op::Slice(_) => slice(dtype),
        Op::PutSlice(_) => put_slice(dtype),
        Op::Gather(_) => gather(dtype),
        Op::IndexedAdd(_) => indexed_add(op, dtype),
        Op::IndexedPut(_) => indexed_put(dtype),
        Op::Sort(_) => sort(dtype),
        Op::Argsort(..) => argsort(dtype),
        op @ nxla::graph::outside!(index) => unreachable!("{} is of another family", op.name()),
    }
}

/// Dtypes that indices come in.
fn integers() -> BoxedStrategy<DType> {
    dtype_among(DType::ALL.into_iter().filter(|dtype| dtype.is_integer()).collect())
}

/// The start of a slice along one axis: static, or a scalar operand of some dtype.
#[derive(Clone, Debug)]
struct Begin {
    at: i64,
    dynamic: Option<DType>,
}

fn begins(rank: usize) -> BoxedStrategy<Vec<Begin>> {
    let begin = (-2..=9_i64, prop::option::of(integers()));
    vec(begin.prop_map(|(at, dynamic)| Begin { at, dynamic }), rank).boxed()
}

/// The scalars of dynamic starts.
fn scalars(begins: &[Begin]) -> Vec<HostTensor> {
    let scalar = |begin: &Begin| Some(host(begin.dynamic?, [], &[Scalar::Int(begin.at)]));
    begins.iter().filter_map(scalar).collect()
}

fn starts(begins: &[Begin], scalars: &[ExprId]) -> Vec<SliceStart> {
    let mut scalars = scalars.iter();
    let start = |begin: &Begin| match begin.dynamic {
        Some(_) => SliceStart::Dynamic(*scalars.next().unwrap()),
        None => SliceStart::Static(begin.at),
    };
    begins.iter().map(start).collect()
}

/// Lengths no larger than the axes.
fn lengths(sizes: &[usize]) -> BoxedStrategy<Vec<usize>> {
    sizes.iter().map(|&size| 0..=size).collect::<Vec<_>>().boxed()
}

fn slice(dtype: DType) -> BoxedStrategy<Case> {
    shape(RANKS)
        .prop_flat_map(move |sizes| {
            let rank = sizes.len();
            let x = tensor(dtype, &sizes, Numbers::Any);
            (x, begins(rank), lengths(&sizes), vec(1..=3_usize, rank))
        })
        .prop_map(|(x, begins, lengths, strides)| {
            let inputs = std::iter::once(x).chain(scalars(&begins)).collect();
            let attributes = (begins.clone(), lengths.clone(), strides.clone());
            Case::new(inputs, attributes, move |graph, x| {
                graph.slice(x[0], &starts(&begins, &x[1..]), &lengths, Some(&strides))
            })
        })
        .boxed()
}

fn put_slice(dtype: DType) -> BoxedStrategy<Case> {
    shape(RANKS)
        .prop_flat_map(|sizes| (Just(sizes.clone()), lengths(&sizes), begins(sizes.len())))
        .prop_flat_map(move |(sizes, lengths, begins)| {
            let operands = [sizes, lengths].map(|sizes| tensor(dtype, &sizes, Numbers::Any));
            (operands, Just(begins))
        })
        .prop_map(|(operands, begins)| {
            let inputs = operands.into_iter().chain(scalars(&begins)).collect();
            Case::new(inputs, begins.clone(), move |graph, x| {
                graph.put_slice(x[0], &starts(&begins, &x[2..]), x[1])
            })
        })
        .boxed()
}

/// A shape, some of its axes, and the shape of coordinates into them.
fn indexed_shapes() -> BoxedStrategy<(Vec<usize>, Vec<usize>, Vec<usize>)> {
    let leading = || vec(prop_oneof![1 => Just(0_usize), 9 => 1..=3_usize], 0..=2);
    (full_shape(1..=*RANKS.end()), leading())
        .prop_flat_map(|(sizes, leading)| {
            let axes = subsequence((0..sizes.len()).collect::<Vec<_>>(), 1..=sizes.len().min(3));
            (Just(sizes), axes, Just(leading))
        })
        .boxed()
}

/// Coordinates, a few of them outside.
fn coordinates(
    sizes: &[usize],
    axes: &[usize],
    leading: &[usize],
    dtype: DType,
) -> BoxedStrategy<HostTensor> {
    let count: usize = leading.iter().product();
    let one = axes.iter().map(|&axis| -1..=i64::try_from(sizes[axis]).unwrap());
    let shape: Vec<usize> = leading.iter().copied().chain([axes.len()]).collect();
    vec(one.collect::<Vec<_>>(), count)
        .prop_map(move |rows| {
            let numbers: Vec<Scalar> = rows.concat().into_iter().map(Scalar::Int).collect();
            host(dtype, &shape[..], &numbers)
        })
        .boxed()
}

fn signed_axes(axes: &[usize]) -> Vec<i64> {
    axes.iter().map(|&axis| i64::try_from(axis).unwrap()).collect()
}

fn gather(dtype: DType) -> BoxedStrategy<Case> {
    (indexed_shapes(), integers())
        .prop_flat_map(move |((sizes, axes, leading), index)| {
            let indices = coordinates(&sizes, &axes, &leading, index);
            (tensor(dtype, &sizes, Numbers::Any), indices, Just(signed_axes(&axes)))
        })
        .prop_map(|(x, indices, axes)| {
            Case::new(vec![x, indices], axes.clone(), move |graph, x| {
                graph.gather(x[0], x[1], Some(&axes))
            })
        })
        .boxed()
}

/// The shape of updates: one window for each row of coordinates.
fn updates(sizes: &[usize], axes: &[usize], leading: &[usize]) -> Vec<usize> {
    let window = (0..sizes.len()).filter(|axis| !axes.contains(axis)).map(|axis| sizes[axis]);
    leading.iter().copied().chain(window).collect()
}

fn indexed_add(op: &Op, dtype: DType) -> BoxedStrategy<Case> {
    let numbers = tolerance::of(op, dtype).numbers;
    (indexed_shapes(), integers())
        .prop_flat_map(move |((sizes, axes, leading), index)| {
            let indices = coordinates(&sizes, &axes, &leading, index);
            let updates = tensor(dtype, &updates(&sizes, &axes, &leading), numbers);
            (tensor(dtype, &sizes, numbers), indices, updates, Just(signed_axes(&axes)))
        })
        .prop_map(|(x, indices, updates, axes)| {
            Case::new(vec![x, indices, updates], axes.clone(), move |graph, x| {
                graph.indexed_add(x[0], x[1], x[2], Some(&axes))
            })
        })
        .boxed()
}

/// Every index is written once, since the order of updates to one index is undefined.
fn indexed_put(dtype: DType) -> BoxedStrategy<Case> {
    indexed_shapes()
        .prop_flat_map(|(sizes, axes, _)| {
            let places: usize = axes.iter().map(|&axis| sizes[axis]).product();
            let rows = subsequence((0..places).collect::<Vec<_>>(), 0..=places.min(5));
            (Just(sizes), Just(axes), rows.prop_shuffle())
        })
        .prop_flat_map(move |(sizes, axes, rows)| {
            let coordinate = |place: usize, position: usize| {
                let inner: usize = axes[position + 1..].iter().map(|&axis| sizes[axis]).product();
                let at = place / inner % sizes[axes[position]];
                Scalar::Int(i64::try_from(at).unwrap())
            };
            let numbers: Vec<Scalar> = rows
                .iter()
                .flat_map(|&place| (0..axes.len()).map(move |position| (place, position)))
                .map(|(place, position)| coordinate(place, position))
                .collect();
            let indices = host(DType::S64, [rows.len(), axes.len()], &numbers);
            let updates = tensor(dtype, &updates(&sizes, &axes, &[rows.len()]), Numbers::Any);
            let x = tensor(dtype, &sizes, Numbers::Any);
            (x, Just(indices), updates, Just(signed_axes(&axes)))
        })
        .prop_map(|(x, indices, updates, axes)| {
            Case::new(vec![x, indices, updates], axes.clone(), move |graph, x| {
                graph.indexed_put(x[0], x[1], x[2], Some(&axes))
            })
        })
        .boxed()
}

/// A tensor, and how one of its axes is sorted.
fn tensor_and_sort(dtype: DType) -> BoxedStrategy<(HostTensor, SortAttributes)> {
    (shape(1..=*RANKS.end()), any::<Index>(), any::<(bool, bool)>())
        .prop_flat_map(move |(sizes, axis, (descending, stable))| {
            let axis = axis.index(sizes.len());
            let sort = SortAttributes { axis, descending, stable };
            (tensor(dtype, &sizes, Numbers::Any), Just(sort))
        })
        .boxed()
}

fn sort(dtype: DType) -> BoxedStrategy<Case> {
    tensor_and_sort(dtype)
        .prop_map(|(x, sort)| {
            Case::new(vec![x], sort, move |graph, x| graph.make(Op::Sort(sort), x))
        })
        .boxed()
}

fn argsort(dtype: DType) -> BoxedStrategy<Case> {
    (tensor_and_sort(dtype), integers())
        .prop_map(|((x, sort), dtype)| {
            Case::new(vec![x], (sort, dtype), move |graph, x| {
                graph.make(Op::Argsort(sort, dtype), x)
            })
        })
        .boxed()
}
