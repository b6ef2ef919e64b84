//! Blocks whose kind and operand types determine their body.

use std::collections::BTreeSet;
use std::sync::Arc;

use nxla_expr::verify::{verify, verify_program};
use nxla_expr::{Cumulative, ExprId, Graph, Line, Op, Program, Result, Source, TensorType};
use nxla_tensor::{DType, Shape};

type Builder = fn(&mut Graph, ExprId) -> Result<ExprId>;

/// Functions of a matrix whose results are, or contain, blocks.
const BUILDERS: [(&str, Builder); 7] = [
    ("cumulative_sum", |graph, x| graph.cumulative(Cumulative::Sum, x, 0, false)),
    ("determinant", |graph, x| graph.determinant(x)),
    ("log_gamma", |graph, x| graph.log_gamma(x)),
    ("log10", |graph, x| graph.log10(x)),
    ("phase", |graph, x| graph.phase(x)),
    ("solve", |graph, x| graph.solve(x, x)),
    ("top_k", |graph, x| Ok(graph.top_k(x, 2)?.0)),
];

/// The addresses of the bodies of all blocks of a graph, also of blocks in rules for derivatives.
fn bodies(graph: &Graph) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    for index in 0..graph.len() {
        match graph.op(ExprId::from_index(index)) {
            Op::Block(block) => _ = found.insert(Arc::as_ptr(&block.body) as usize),
            op => op.regions().iter().for_each(|region| found.extend(bodies(region.graph()))),
        }
    }
    found
}

fn matrices(graph: &mut Graph) -> [ExprId; 2] {
    let ty = TensorType::new(DType::F64, Shape::from([4, 4]));
    [0, 1].map(|index| graph.parameter(index, ty.clone()))
}

#[test]
fn blocks_of_one_line_share_their_body() -> Result<()> {
    for (name, build) in BUILDERS {
        let mut graph = Graph::new();
        let [x, y] = matrices(&mut graph);
        build(&mut graph, x)?;
        let first = (graph.len(), bodies(&graph));
        build(&mut graph, y)?;
        assert!(!first.1.is_empty(), "{name} has a block");
        assert_eq!(bodies(&graph), first.1, "{name}");
        assert!(graph.len() - first.0 < first.0, "{name} adds no nodes of bodies");
        verify(&graph).unwrap();
    }
    Ok(())
}

#[test]
fn blocks_of_different_lines_have_their_own_sources() -> Result<()> {
    for (name, build) in BUILDERS {
        let mut graph = Graph::new();
        let [x, y] = matrices(&mut graph);
        let mut count = 0;
        for (line, operand) in [(1, x), (2, y)] {
            let source = graph.add_source(Source::Line(Line { file: "model".into(), line }));
            graph.set_source(source);
            build(&mut graph, operand)?;
            assert!(bodies(&graph).len() > count, "{name}");
            count = bodies(&graph).len();
        }
    }
    Ok(())
}

#[test]
fn a_body_that_was_built_in_a_branch_is_valid_outside() -> Result<()> {
    for (name, build) in BUILDERS {
        let mut graph = Graph::new();
        let [x, y] = matrices(&mut graph);
        let mark = graph.mark();
        let inside = build(&mut graph, x)?;
        let taken = graph.traced(mark, vec![inside]);
        let predicate = graph.parameter(2, TensorType::scalar(DType::Pred));
        let predicate = graph.traced(graph.mark(), vec![predicate]);
        let start = graph.mark();
        let other = graph.zero_like(inside)?;
        let other = graph.traced(start, vec![other]);
        let chosen = graph.cond(mark, vec![(predicate, taken)], other)?[0];
        let outside = build(&mut graph, y)?;
        let types = [x, y].map(|id| graph.tensor_type(id).clone());
        let inputs = types.into_iter().chain([TensorType::scalar(DType::Pred)]).collect();
        let program = Program::new(&graph, inputs, &[chosen, outside])?;
        assert_eq!(verify_program(&program), Ok(()), "{name}");
    }
    Ok(())
}
