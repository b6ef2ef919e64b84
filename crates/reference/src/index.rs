//! Slices, gathers, scatters and sorts.

use std::cmp::Ordering;

use nxla_expr::{Op, SliceAttributes, SortAttributes, Start, TensorType};

use crate::array::{Array, indices, position};
use crate::number::Number;

pub(crate) fn evaluate(op: &Op, ty: &TensorType, x: &[&Array]) -> Array {
    match op {
        Op::Slice(attributes) => slice(attributes, x[0], &x[1..], ty),
        Op::PutSlice(starts) => put_slice(starts, x[0], x[1], &x[2..], ty),
        Op::Gather(axes) => gather(axes, x[0], x[1], ty),
        Op::IndexedAdd(axes) => indexed(axes, x, ty, Number::add),
        Op::IndexedPut(axes) => indexed(axes, x, ty, |_, update| update),
        Op::Sort(attributes) => sorted(*attributes, x[0], ty, |x, _| x),
        Op::Argsort(attributes, _) => sorted(*attributes, x[0], ty, |_, at| Number::count(at)),
        op @ nxla_expr::outside!(index) => unreachable!("{} is of another family", op.name()),
    }
}

/// Returns the start of a range along each axis, clamped so that the range fits. Dynamic starts are
/// operands.
fn starts(starts: &[Start], dynamic: &[&Array], sizes: &[usize], lengths: &[usize]) -> Vec<usize> {
    let mut dynamic = dynamic.iter();
    let start = |axis: usize| {
        let start = match starts[axis] {
            Start::Static(start) => i128::from(start),
            Start::Dynamic => dynamic.next().expect("each dynamic start is given").item().int(),
        };
        start.clamp(0, (sizes[axis] - lengths[axis]) as i128) as usize
    };
    (0..sizes.len()).map(start).collect()
}

/// `y[i] = x[start + i stride]`.
fn slice(attributes: &SliceAttributes, x: &Array, dynamic: &[&Array], ty: &TensorType) -> Array {
    let starts = starts(&attributes.starts, dynamic, &x.shape, &attributes.lengths);
    Array::from_fn(ty, |index| {
        let place = |axis: usize| starts[axis] + index[axis] * attributes.strides[axis];
        x.at(&(0..x.rank()).map(place).collect::<Vec<_>>())
    })
}

/// `y[start + i] = update[i]`, and `x` elsewhere.
fn put_slice(
    from: &[Start],
    x: &Array,
    update: &Array,
    dynamic: &[&Array],
    ty: &TensorType,
) -> Array {
    let starts = starts(from, dynamic, &x.shape, &update.shape);
    Array::from_fn(ty, |index| {
        let place = |axis: usize| {
            let at = index[axis].checked_sub(starts[axis])?;
            (at < update.shape[axis]).then_some(at)
        };
        match (0..x.rank()).map(place).collect::<Option<Vec<usize>>>() {
            Some(place) => update.at(&place),
            None => x.at(index),
        }
    })
}

/// Returns the coordinates in the last axis of `indices` at `leading`, one for each indexed axis.
fn coordinates(indices: &Array, leading: &[usize], count: usize) -> Vec<i128> {
    let at = |number| indices.at(&[leading, &[number]].concat()).int();
    (0..count).map(at).collect()
}

/// Returns the index into `x` with `coordinates` along the indexed axes and `window` along the
/// others.
fn place(axes: &[usize], rank: usize, coordinates: &[usize], window: &[usize]) -> Vec<usize> {
    let mut window = window.iter();
    let at = |axis| match axes.iter().position(|&indexed| indexed == axis) {
        Some(position) => coordinates[position],
        None => *window.next().expect("the other axes belong to the window"),
    };
    (0..rank).map(at).collect()
}

/// `y[l…, w…] = x[indices[l…]… and w…]`: the coordinates are the indices along the indexed axes,
/// and the other axes are read completely. Out-of-range coordinates are clamped.
fn gather(axes: &[usize], x: &Array, indices: &Array, ty: &TensorType) -> Array {
    let leading = indices.rank() - 1;
    Array::from_fn(ty, |index| {
        let (leading, window) = index.split_at(leading);
        let found = coordinates(indices, leading, axes.len());
        let inside = found.iter().zip(axes).map(|(at, &axis)| {
            let last = x.shape[axis] as i128 - 1;
            at.clamp(&0, &last.max(0)).unsigned_abs() as usize
        });
        x.at(&place(axes, x.rank(), &inside.collect::<Vec<_>>(), window))
    })
}

/// Combines one update after the other with the element of `x` at its coordinates, with the layout
/// of `gather`. Out-of-range updates are ignored.
fn indexed(
    axes: &[usize],
    x: &[&Array],
    ty: &TensorType,
    combine: impl Fn(Number, Number) -> Number,
) -> Array {
    let (mut result, at, updates) = (x[0].cast(ty.dtype), x[1], x[2].cast(ty.dtype));
    for index in indices(&updates.shape) {
        let (leading, window) = index.split_at(at.rank() - 1);
        let found = coordinates(at, leading, axes.len());
        let inside = found
            .iter()
            .zip(axes)
            .map(|(&at, &axis)| usize::try_from(at).ok().filter(|&at| at < result.shape[axis]));
        if let Some(inside) = inside.collect::<Option<Vec<usize>>>() {
            let place = position(&place(axes, result.rank(), &inside, window), &result.shape);
            let element = &mut result.elements[place];
            *element = combine(*element, updates.at(&index));
        }
    }
    Array::new(ty.dtype, &ty.shape, result.elements)
}

/// Sorts each line along the axis, where `key(element, position)` returns the sort key. Equal
/// elements keep their order, also in descending sorts.
fn sorted(
    attributes: SortAttributes,
    x: &Array,
    ty: &TensorType,
    key: impl Fn(Number, usize) -> Number,
) -> Array {
    Array::from_fn(ty, |index| {
        let mut place = index.to_vec();
        let mut line: Vec<(Number, usize)> = (0..x.shape[attributes.axis])
            .map(|at| {
                place[attributes.axis] = at;
                (x.at(&place), at)
            })
            .collect();
        line.sort_by(
            |(x, _), (y, _)| {
                if attributes.descending { order(*y, *x) } else { order(*x, *y) }
            },
        );
        let (element, at) = line[index[attributes.axis]];
        key(element, at)
    })
}

/// NaN is the largest value, and all NaN are equal.
fn order(x: Number, y: Number) -> Ordering {
    x.compare(y).unwrap_or_else(|| x.is_nan().cmp(&y.is_nan()))
}
