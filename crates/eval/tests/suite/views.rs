//! Operations that move elements: index maps, alone and as operands of element-wise ops, and writes
//! through them.

use std::slice::from_ref;

use nxla_expr::build::SliceStart;
use nxla_expr::{ExprId, Graph, Padding, Result, TensorType};
use nxla_tensor::{DType, HostTensor, Scalar};

use super::common::evaluate_op;

/// A view of a tensor: each index of the view, and the position of its element.
type View = (fn(&mut Graph, ExprId) -> Result<ExprId>, Vec<usize>);

fn iota(shape: &[usize]) -> HostTensor {
    let numbers: Vec<u32> = (0..shape.iter().product::<usize>() as u32).collect();
    HostTensor::from_vec(numbers, shape).unwrap()
}

/// The offsets of a view of these sizes and strides, from `first` on.
fn offsets(first: isize, axes: &[(usize, isize)]) -> Vec<usize> {
    let mut found = vec![first];
    for &(count, step) in axes {
        let next = |&at: &isize| (0..count as isize).map(move |index| at + index * step);
        found = found.iter().flat_map(next).collect();
    }
    found.into_iter().map(|at| usize::try_from(at).unwrap()).collect()
}

/// A view has the same elements when it is copied and when it is an operand of an element-wise op,
/// which may read it in blocks.
fn check(shape: &[usize], (view, expected): View) {
    let x = iota(shape);
    let alone = evaluate_op(from_ref(&x), |g, x| view(g, x[0]));
    let added = evaluate_op(&[x], |g, x| {
        let viewed = view(g, x[0])?;
        let one = g.scalar_constant(Scalar::UInt(1), DType::U32)?;
        g.add(viewed, one)
    });
    let expected: Vec<u32> = expected.into_iter().map(|at| at as u32).collect();
    assert!(alone.as_slice::<u32>().unwrap() == expected, "{shape:?}");
    let expected: Vec<u32> = expected.into_iter().map(|x| x + 1).collect();
    assert!(added.as_slice::<u32>().unwrap() == expected, "{shape:?}");
}

#[test]
fn transposes() {
    check(&[40, 50], (|g, x| g.transpose(x, None), offsets(0, &[(50, 1), (40, 50)])));
    check(&[400, 500], (|g, x| g.transpose(x, None), offsets(0, &[(500, 1), (400, 500)])));
    let permuted = offsets(0, &[(7, 1), (5, 28), (3, 140), (4, 7)]);
    check(&[3, 5, 4, 7], (|g, x| g.transpose(x, Some(&[3, 1, 0, 2])), permuted));
}

#[test]
fn reverses_and_slices() {
    check(&[2, 3], (|g, x| g.reverse(x, None), offsets(5, &[(2, -3), (3, -1)])));
    check(&[2, 3], (|g, x| g.reverse(x, Some(&[1])), offsets(2, &[(2, 3), (3, -1)])));
    check(&[60, 70], (|g, x| g.reverse(x, Some(&[0])), offsets(59 * 70, &[(60, -70), (70, 1)])));
    let slice = |g: &mut Graph, x| {
        let starts = [SliceStart::Static(2), SliceStart::Static(3)];
        g.slice(x, &starts, &[20, 9], Some(&[2, 5]))
    };
    check(&[50, 60], (slice, offsets(123, &[(10, 120), (2, 5)])));
    let reversed = |g: &mut Graph, x| {
        let starts = [SliceStart::Static(0), SliceStart::Static(6)];
        let part = g.slice(x, &starts, &[6, 4], None)?;
        let part = g.transpose(part, None)?;
        g.reverse(part, None)
    };
    check(&[6, 10], (reversed, offsets(59, &[(4, -1), (6, -10)])));
}

#[test]
fn broadcasts() {
    check(&[60], (|g, x| g.broadcast(x, [60, 3], Some(&[0])), offsets(0, &[(60, 1), (3, 0)])));
    check(&[3], (|g, x| g.broadcast(x, [60, 3], Some(&[1])), offsets(0, &[(60, 0), (3, 1)])));
    let repeated = offsets(0, &[(20, 3), (5, 0), (3, 1)]);
    check(&[20, 3], (|g, x| g.broadcast(x, [20, 5, 3], Some(&[0, 2])), repeated));
    for count in [2, 3, 4, 5, 70] {
        let x = iota(&[5000]);
        let found = evaluate_op(&[x], |g, x| g.broadcast(x[0], [5000, count], Some(&[0])));
        let expected: Vec<u32> = (0..5000).flat_map(|x| vec![x; count]).collect();
        assert!(found.as_slice::<u32>().unwrap() == expected, "{count}");
    }
}

#[test]
fn empty_views_and_scalars() {
    check(&[3, 0], (|g, x| g.transpose(x, None), Vec::new()));
    check(&[], (|g, x| g.broadcast(x, [1, 1], None), vec![0]));
}

/// Rows of a wide tensor are read in parts by several threads.
#[test]
fn large_views_are_read_in_parts() {
    let (rows, columns) = (300, 1001);
    let broadcast = |g: &mut Graph, x| g.broadcast(x, [300, 1001], Some(&[1]));
    check(&[columns], (broadcast, offsets(0, &[(rows, 0), (columns, 1)])));
    let reversed = offsets(1000, &[(rows, 1001), (columns, -1)]);
    check(&[rows, columns], (|g, x| g.reverse(x, Some(&[1])), reversed));
}

#[test]
fn padding_writes_elements_and_fill() {
    let x = iota(&[2, 2]);
    for (interior, expected) in [
        (0, vec![9, 9, 9, 9, 0, 1, 9, 2, 3]),
        (1, vec![9, 9, 9, 9, 9, 0, 9, 1, 9, 9, 9, 9, 9, 2, 9, 3]),
    ] {
        let padding = [Padding { low: 1, high: 0, interior }; 2];
        let found = evaluate_op(from_ref(&x), |g, x| {
            let nine = g.scalar_constant(Scalar::UInt(9), DType::U32)?;
            g.pad(x[0], nine, &padding)
        });
        assert_eq!(found.as_slice::<u32>().unwrap(), expected);
    }
}

/// In a loop, a reshaped value shares the memory of its operand. An op that reads both receives both shapes.
#[test]
fn loop_ops_read_a_value_and_its_reshape() {
    let x = HostTensor::from_slice(&[1_i32, 2, 3, 4], [4]).unwrap();
    let indices = HostTensor::from_slice(&[3_i32, 2, 1, 0], [2, 2, 1]).unwrap();
    let reversed = evaluate_op(&[x], |g, x| {
        let types = [TensorType::scalar(DType::S32), TensorType::new(DType::S32, [4])];
        let zero = g.scalar_constant(Scalar::Int(0), DType::S32)?;
        let mark = g.mark();
        let scope = g.open_scope("while", &types);
        let [count, state] = scope.parameters[..] else { unreachable!("the loop has two states") };
        let one = g.scalar_constant(Scalar::Int(1), DType::S32)?;
        let continues = g.less(count, one)?;
        let condition = g.traced(mark, vec![continues]);
        let next = g.add(count, one)?;
        let doubled = g.add(state, state)?;
        let updates = g.reshape(doubled, [2, 2])?;
        let indices = g.tensor(indices.clone())?;
        let reversed = g.indexed_put(doubled, indices, updates, None)?;
        let body = g.traced(mark, vec![next, reversed]);
        Ok(g.while_loop(mark, &scope, &[zero, x[0]], condition, body)?[1])
    });
    assert_eq!(reversed.as_slice::<i32>().unwrap(), [8, 6, 4, 2]);
}
