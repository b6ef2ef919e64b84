//! Gathers along one merged axis.

use nxla_expr::verify::verify_program;
use nxla_expr::{ExprId, Graph, Op, Program, Result, TensorType, merge_gathers};
use nxla_tensor::DType;

/// Returns the operand shapes of the gathers of the rewritten program, or `None` if it is unchanged.
fn rewrite(
    shapes: [&[usize]; 2],
    build: impl FnOnce(&mut Graph, ExprId, ExprId) -> Result<ExprId>,
) -> Option<Vec<String>> {
    let types = [DType::F32, DType::S32].into_iter().zip(shapes);
    let types: Vec<TensorType> =
        types.map(|(dtype, shape)| TensorType::new(dtype, shape.to_vec())).collect();
    let mut graph = Graph::new();
    let x = graph.parameter(0, types[0].clone());
    let y = graph.parameter(1, types[1].clone());
    let result = build(&mut graph, x, y).unwrap();
    let program = Program::new(&graph, types, &[result]).unwrap();
    let merged = merge_gathers(&program).unwrap()?;
    verify_program(&merged).unwrap();
    assert!(program.output_types().eq(merged.output_types()));
    assert!(merge_gathers(&merged).unwrap().is_none());
    let graph = merged.graph();
    assert!(graph.ids().all(|id| !matches!(graph.op(id), Op::Stack(_))));
    let gathers = graph.ids().filter(|&id| matches!(graph.op(id), Op::Gather(_)));
    let shapes = gathers.map(|id| graph.operands(id).iter().map(|&x| graph.shape(x)));
    Some(shapes.map(|shapes| shapes.map(ToString::to_string).collect()).collect())
}

#[test]
fn gathers_of_several_axes_are_merged() {
    let elements = rewrite([&[4, 5], &[7]], |g, x, i| {
        let i = g.stack(&[i, i], -1, None)?;
        g.gather(x, i, None)
    });
    assert_eq!(elements.unwrap(), ["[20][7][1]"]);
    let rows = rewrite([&[4, 5, 6], &[7, 1]], |g, x, i| {
        let i = g.concatenate(&[i, i], -1)?;
        g.gather(x, i, None)
    });
    assert_eq!(rows.unwrap(), ["[20][6][7][1]"]);
    let nothing = rewrite([&[4, 5, 0], &[0, 1]], |g, x, i| {
        let i = g.concatenate(&[i, i], -1)?;
        g.gather(x, i, None)
    });
    assert_eq!(nothing.unwrap(), ["[20][0][0][1]"]);
}

#[test]
fn other_gathers_are_unchanged() {
    let rows = |g: &mut Graph, x, i| g.gather(x, i, None);
    assert!(rewrite([&[4, 5], &[7, 1]], rows).is_none());
    // The coordinates are in one tensor.
    assert!(rewrite([&[4, 5], &[7, 2]], rows).is_none());
    let first = |g: &mut Graph, x, i| g.gather(x, i, Some(&[1]));
    assert!(rewrite([&[4, 5], &[7, 1]], first).is_none());
    let separate = rewrite([&[4, 5, 6], &[7]], |g, x, i| {
        let i = g.stack(&[i, i], -1, None)?;
        g.gather(x, i, Some(&[0, 2]))
    });
    assert!(separate.is_none());
}
