//! Stages as data: strings, tables, drawings, edges, bytes, checks, and size.

use crate::common::{Test, at, f32, program, run_in_order, s32};
use nxla_expr::{Program, print};
use nxla_split::{
    Decision, Edge, SplitError, Stage, StageGraph, StageId, ValueSource, split, split_with,
};

/// Splits `cos(sin(-x)) + y` before the cosine.
fn example() -> StageGraph {
    let program = program(vec![s32([]), s32([])], |graph, inputs| {
        let x = graph.negate(inputs[0])?;
        let x = graph.sin(x)?;
        let x = graph.cos(x)?;
        Ok(vec![graph.add(x, inputs[1])?])
    });
    split(&program, at("cos", Decision::Before)).expect("the program can be split")
}

fn lines(program: &Program) -> Vec<String> {
    print::lines(program.graph(), program.outputs(), &print::GraphPrintOptions::default())
}

#[test]
fn stages_print_as_programs() {
    let graph = example();
    assert_eq!(
        lines(&graph.stages()[0].program),
        ["parameter a:0   s32", "b = negate a    s32", "c = sin b       f32"]
    );
    assert_eq!(
        lines(&graph.stages()[1].program),
        [
            "parameter a:1   f32",
            "parameter c:0   s32",
            "b = cos a       f32",
            "d = add b, c    f32",
        ]
    );
}

#[test]
fn nodes_keep_their_source_lines_and_marks() -> Test {
    let line = |line| nxla_expr::Line { file: "train.py".into(), line };
    let program = program(vec![f32([])], |graph, inputs| {
        let mut x = inputs[0];
        for number in [3, 4, 4, 5] {
            let source = graph.add_source(nxla_expr::Source::Line(line(number)));
            graph.set_source(if number == 5 { source.mark_derived() } else { source });
            x = if number == 4 { graph.sin(x)? } else { graph.cos(x)? };
        }
        Ok(vec![x])
    });
    let stages = split(&program, at("sin", Decision::After))?;
    let found = stages.stages()[..3].iter().map(|stage| {
        let program = &stage.program;
        program.graph().line(program.outputs()[0])
    });
    assert_eq!(found.collect::<Vec<_>>(), [Some(line(4)), Some(line(4)), Some(line(5))]);
    let is_derived = stages.stages()[..3].iter().map(|stage| {
        let program = &stage.program;
        program.graph().is_derived(program.outputs()[0])
    });
    assert_eq!(is_derived.collect::<Vec<_>>(), [false, false, true]);
    Ok(())
}

#[test]
fn explain_lists_values_between_stages() {
    let expected = "\
stage  ops  flops  inputs     bytes  outputs  bytes  peak  same  after
    0    2     11  in0          4 B  f32        4 B  12 B
    1    2     11  in1, s0.0    8 B  f32        4 B  16 B
2 stages on 2 levels, 4 operations, 4 B between stages
about 10.0 µs; on 2 workers 1.0 times as fast, on 4 workers 1.0
";
    assert_eq!(example().explain(), expected);
}

#[test]
fn explain_truncates_long_lists() -> Test {
    let program =
        program(vec![f32([1 << 20]); 9], |graph, inputs| Ok(vec![graph.concatenate(inputs, 0)?]));
    let table = split(&program, |_| Decision::None)?.explain();
    assert!(table.contains("in0, in1, in2, in3, in4, in5, … 3 more"), "{table}");
    assert!(table.contains("36.0 MiB"), "{table}");
    Ok(())
}

#[test]
fn svg_has_a_box_for_each_stage() {
    let picture = example().to_svg();
    assert!(picture.starts_with("<svg"), "{picture}");
    for text in ["inputs", "stage 0", "stage 1", "negate, sin", "4 B"] {
        assert!(picture.contains(text), "{text} in {picture}");
    }
}

#[test]
fn edges_and_dependencies() {
    let graph = example();
    let [first, second] = [0, 1].map(StageId::from_index);
    let edge = |source, stage, argument| Edge { source, stage, argument, bytes: 4 };
    let expected = [
        edge(ValueSource::input(0), first, 0),
        edge(ValueSource::input(1), second, 0),
        edge(ValueSource::output(first, 0), second, 1),
    ];
    assert_eq!(graph.edges().collect::<Vec<_>>(), expected);
    assert_eq!(graph.dependencies(first), []);
    assert_eq!(graph.dependencies(second), [first]);
    assert_eq!(graph.levels(), [vec![first], vec![second]]);
    assert_eq!(graph.outputs(), [ValueSource::output(second, 0)]);
    assert_eq!(graph.type_of(ValueSource::output(first, 0)), &f32([]));
}

#[test]
fn equal_stages_have_equal_digests() -> Test {
    // `sin(exp(x))` and `sin(exp(y))`, each split in two.
    let program = program(vec![f32([]), f32([])], |graph, inputs| {
        let mut results = Vec::new();
        for &input in inputs {
            let x = graph.exp(input)?;
            results.push(graph.sin(x)?);
        }
        Ok(results)
    });
    let graph = split(&program, |node| match node.op.name() {
        "exp" | "sin" => Decision::After,
        _ => Decision::None,
    })?;
    let digests: Vec<_> = graph.stages().iter().map(Stage::digest).collect();
    assert_eq!(digests[0], digests[2]);
    assert_eq!(digests[1], digests[3]);
    assert_ne!(digests[0], digests[1]);
    Ok(())
}

#[test]
fn corrupt_bytes_are_rejected() {
    let stage = example().stages()[1].clone();
    let bytes = stage.to_bytes();
    assert_eq!(Stage::from_bytes(&bytes).expect("the bytes are complete"), stage);
    for length in 0..bytes.len() {
        assert!(Stage::from_bytes(&bytes[..length]).is_err(), "{length} bytes");
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert!(Stage::from_bytes(&longer).is_err());
    // The digest precedes the length of the program.
    let program = nxla_expr::serialize::to_bytes(&stage.program).len();
    let mut other = bytes.clone();
    other[bytes.len() - program - 9] ^= 1;
    let error = Stage::from_bytes(&other).expect_err("the digest differs");
    assert!(error.to_string().contains("digest"), "{error}");
    let mut version = bytes.clone();
    version[4] += 1;
    let error = Stage::from_bytes(&version).expect_err("the version differs");
    assert!(error.to_string().contains("version"), "{error}");
    let error = StageGraph::from_bytes(&bytes).expect_err("a stage is not a graph of stages");
    assert_eq!(
        error.to_string(),
        "bytes: expected a graph of stages; at byte 4, the magic bytes are missing"
    );
}

#[test]
fn inconsistent_stages_are_rejected() {
    let graph = example();
    let assert_rejected = |change: &dyn Fn(&mut Vec<Stage>), expected: &str| {
        let mut stages = graph.stages().to_vec();
        change(&mut stages);
        let result = StageGraph::new(graph.inputs().to_vec(), stages, graph.outputs().to_vec());
        let error = result.expect_err("the stages do not fit").to_string();
        assert!(error.contains(expected), "{error}");
    };
    assert_rejected(&|stages| stages.swap(0, 1), "stage 1: is at position 0");
    assert_rejected(
        &|stages| stages[1].arguments[1] = ValueSource::input(1),
        "takes the same value twice",
    );
    assert_rejected(&|stages| stages[1].arguments.truncate(1), "1 arguments for 2 inputs");
    assert_rejected(
        &|stages| stages[1].arguments[1].index = 1,
        "takes s0.1, which no earlier stage returns",
    );
    assert_rejected(
        &|stages| stages[1].arguments[1].stage = Some(StageId::from_index(1)),
        "takes s1.0",
    );
    assert_rejected(
        &|stages| stages[0].follows = Some(StageId::from_index(1)),
        "which is not before it",
    );
    let inputs = vec![ValueSource::input(0), ValueSource::input(1)];
    assert_rejected(
        &|stages| stages[1].arguments = inputs.clone(),
        "input in1: expected f32; got s32",
    );
    let output = StageGraph::new(
        graph.inputs().to_vec(),
        graph.stages().to_vec(),
        vec![ValueSource::input(2)],
    );
    let error = output.expect_err("there is no third input");
    assert!(matches!(error, SplitError::Output { output: 0, .. }), "{error}");
}

#[test]
fn long_chains_are_split_in_linear_time() -> Test {
    const NODES: usize = 200_000;
    let program = program(vec![f32([])], |graph, inputs| {
        let mut x = inputs[0];
        for _ in 0..NODES / 2 {
            x = graph.sin(x)?;
            x = graph.cos(x)?;
        }
        Ok(vec![x])
    });
    for every in [1, 1000] {
        let (graph, visits) = split_with(&program, 0, |_, count| {
            (if count % every == 0 { Decision::After } else { Decision::None }, count + 1)
        })?;
        assert_eq!(visits, NODES);
        assert_eq!(graph.stages().len(), NODES / every + 1);
        assert_eq!(graph.levels().len(), NODES / every + 1);
        let run =
            |_: &Stage, values: Vec<u32>| Ok::<_, std::convert::Infallible>(vec![values[0] + 1]);
        let hops = run_in_order(&graph, vec![0], run)?;
        assert_eq!(hops, [u32::try_from(NODES / every + 1)?]);
    }
    Ok(())
}
