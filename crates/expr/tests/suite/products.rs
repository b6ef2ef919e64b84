//! Products that read the sources of transposed and broadcast operands.

use nxla_expr::verify::verify_program;
use nxla_expr::{ExprId, Graph, Op, Program, Result, TensorType, merge_transposes};
use nxla_tensor::{DType, Names};

fn ty(shape: &[usize]) -> TensorType {
    TensorType::new(DType::F32, shape.to_vec())
}

/// Returns the last line of the rewritten product of two inputs, or `None` if it is unchanged.
fn rewrite(
    types: [TensorType; 2],
    build: impl FnOnce(&mut Graph, ExprId, ExprId) -> Result<ExprId>,
) -> Option<(String, Program)> {
    let mut graph = Graph::new();
    let x = graph.parameter(0, types[0].clone());
    let y = graph.parameter(1, types[1].clone());
    let product = build(&mut graph, x, y).unwrap();
    let program = Program::new(&graph, types.to_vec(), &[product]).unwrap();
    let direct = merge_transposes(&program).unwrap()?;
    verify_program(&direct).unwrap();
    assert!(program.output_types().eq(direct.output_types()));
    assert!(merge_transposes(&direct).unwrap().is_none());
    let graph = direct.graph();
    let ops: Vec<&str> = graph
        .ids()
        .filter(|&id| !matches!(graph.op(id), Op::Parameter(_)))
        .map(|id| graph.op(id).name())
        .collect();
    Some((ops.join(" "), direct))
}

#[test]
fn transposes_are_folded_into_dot() {
    let (ops, program) = rewrite([ty(&[5, 3]), ty(&[5, 4])], |g, x, y| {
        let x = g.transpose(x, None)?;
        g.dot(x, y)
    })
    .unwrap();
    assert_eq!(ops, "dot");
    let Op::Dot(dot) = program.graph().op(program.outputs()[0]) else { panic!() };
    assert_eq!((&*dot.left_contract, &*dot.right_contract), (&[0][..], &[0][..]));
    // Another order of the free axes would change the result.
    let moved = rewrite([ty(&[3, 5, 2]), ty(&[5])], |g, x, y| {
        let x = g.transpose(x, Some(&[2, 0, 1]))?;
        g.dot(x, y)
    });
    assert!(moved.is_none());
    // A batch axis that does not lead would change the result too.
    let batch = rewrite([ty(&[4, 5]), ty(&[5, 4])], |g, x, y| {
        let x = g.transpose(x, None)?;
        g.dot_general(x, &[1], &[0], y, &[1], &[0])
    });
    assert!(batch.is_none());
}

#[test]
fn batch_broadcasts_are_folded_into_dot() {
    let repeated = |g: &mut Graph, x: ExprId| {
        let shape: Vec<usize> = [7].iter().chain(g.shape(x).iter()).copied().collect();
        g.broadcast(x, shape, None)
    };
    let right = rewrite([ty(&[7, 2, 3]), ty(&[3, 4])], |g, x, y| {
        let y = repeated(g, y)?;
        g.matmul(x, y)
    });
    assert_eq!(right.unwrap().0, "dot");
    let left = rewrite([ty(&[2, 3]), ty(&[7, 3, 4])], |g, x, y| {
        let x = repeated(g, x)?;
        g.matmul(x, y)
    });
    assert_eq!(left.unwrap().0, "dot transpose");
    let vectors = rewrite([ty(&[2, 3]), ty(&[7, 3])], |g, x, y| {
        let x = repeated(g, x)?;
        g.dot_general(x, &[2], &[0], y, &[1], &[0])
    });
    assert_eq!(vectors.unwrap().0, "dot");
    // A transposition after the broadcast.
    let both = rewrite([ty(&[7, 2, 3]), ty(&[4, 3])], |g, x, y| {
        let y = repeated(g, y)?;
        let y = g.transpose(y, Some(&[0, 2, 1]))?;
        g.matmul(x, y)
    });
    assert_eq!(both.unwrap().0, "dot");
    // An axis of size 1 that is broadcast in place exists in the source.
    let in_place = rewrite([ty(&[7, 2, 3]), ty(&[1, 3, 4])], |g, x, y| {
        let y = g.broadcast(y, [7, 3, 4], None)?;
        g.matmul(x, y)
    });
    assert!(in_place.is_none());
}

#[test]
fn axis_names_are_kept() {
    let names = |names: [&str; 2]| Names::new(names.map(|name| Some(name.into())));
    let (ops, _) = rewrite([ty(&[7, 2, 3]), ty(&[3, 4])], |g, x, y| {
        let names = Names::new([Some("each".into()), None, Some("out".into())]);
        let y = g.broadcast_and_name(y, [7, 3, 4], None, Some(names))?;
        g.matmul(x, y)
    })
    .unwrap();
    assert!(ops.starts_with("dot"), "{ops}");
    // Names that would conflict in the result.
    let named = TensorType { names: Some(names(["in", "row"])), ..ty(&[3, 4]) };
    let left = ty(&[7, 2, 3]);
    let conflict = rewrite([left, named], |g, x, y| {
        let y = g.broadcast(y, [7, 3, 4], None)?;
        g.matmul(x, y)
    });
    assert!(conflict.is_none());
}

/// Builds `depth` nested conditionals around a product; each one is in both branches of the next one.
fn nested_conditionals(graph: &mut Graph, x: ExprId, y: ExprId, depth: usize) -> Result<ExprId> {
    if depth == 0 {
        let transposed = graph.transpose(x, None)?;
        return graph.dot(transposed, y);
    }
    let mark = graph.mark();
    let predicate = graph.slice_along_axis(y, 0_i64, 1, 0, 1)?;
    let predicate = graph.squeeze(predicate, None)?;
    let predicate = graph.traced(mark, vec![predicate]);
    let inner = nested_conditionals(graph, x, y, depth - 1)?;
    let sine = graph.sin(inner)?;
    let on_true = graph.traced(mark, vec![sine]);
    let cosine = graph.cos(inner)?;
    let on_false = graph.traced(mark, vec![cosine]);
    Ok(graph.cond(mark, vec![(predicate, on_true)], on_false)?[0])
}

#[test]
fn shared_regions_are_visited_once() {
    // Without sharing, 2^40 regions would be visited.
    let (ops, program) =
        rewrite([ty(&[5, 5]), ty(&[5])], |g, x, y| nested_conditionals(g, x, y, 40)).unwrap();
    assert_eq!(ops, "cond");
    assert!(program.programs().count() <= 1 + 3 * 40);
    let products = program.programs().flat_map(|program| {
        let graph = program.graph();
        graph.ids().filter(|&id| matches!(graph.op(id), Op::Dot(_) | Op::Transpose(_)))
    });
    assert_eq!(products.count(), 2);
}
