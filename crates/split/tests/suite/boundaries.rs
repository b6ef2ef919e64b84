//! Positions of cuts, values that cross them, and the numbers and wiring of stages.

use crate::common::{Test, at, check_equal, f32, program, s32, stage_lines};
use nxla_expr::{ExprId, Graph, Metadata, Program, Result};
use nxla_split::{Decision, SplitError, split, split_with, try_split, try_split_with};
use nxla_tensor::Number;

fn two(graph: &mut Graph, value: i64) -> Result<ExprId> {
    graph.number(Number::Int(value.into()))
}

/// Builds `cos(sin(-x)) + y`.
fn chain() -> Program {
    program(vec![s32([]), s32([])], |graph, inputs| {
        let x = graph.negate(inputs[0])?;
        let x = graph.sin(x)?;
        let x = graph.cos(x)?;
        Ok(vec![graph.add(x, inputs[1])?])
    })
}

/// Builds `dot(x + y, x - y) * 2 / 4`.
fn dot_of_sum_and_difference() -> Program {
    program(vec![s32([2]), s32([2])], |graph, inputs| {
        let sum = graph.add(inputs[0], inputs[1])?;
        let difference = graph.subtract(inputs[0], inputs[1])?;
        let dot = graph.dot(sum, difference)?;
        let constant = two(graph, 2)?;
        let double = graph.multiply(constant, dot)?;
        let four = two(graph, 4)?;
        Ok(vec![graph.divide(double, four)?])
    })
}

#[test]
fn no_cut_returns_one_stage() -> Test {
    let stages = split(&chain(), |_| Decision::None)?;
    assert_eq!(stage_lines(&stages), ["in0, in1 | negate, sin, cos, add | f32"]);
    check_equal(&chain(), &stages);
    Ok(())
}

#[test]
fn before_cuts_after_the_operands() -> Test {
    let stages = split(&chain(), at("cos", Decision::Before))?;
    assert_eq!(stage_lines(&stages), ["in0 | negate, sin | f32", "in1, s0.0 | cos, add | f32"]);
    let stages = split(&dot_of_sum_and_difference(), at("dot", Decision::Before))?;
    let expected = [
        "in0, in1 | add, subtract | s32[2], s32[2]",
        "s0.0, s0.1 | dot, constant, multiply, constant, divide | f32",
    ];
    assert_eq!(sort_ops(&stage_lines(&stages)), sort_ops(&expected.map(String::from)));
    Ok(())
}

/// Returns the same lines with the operations of each in alphabetical order.
fn sort_ops(lines: &[String]) -> Vec<String> {
    let sorted = |line: &String| {
        let parts: Vec<&str> = line.split(" | ").collect();
        let mut ops: Vec<&str> = parts[1].split(", ").collect();
        ops.sort_unstable();
        format!("{} | {} | {}", parts[0], ops.join(", "), parts[2])
    };
    lines.iter().map(sorted).collect()
}

#[test]
fn after_cuts_after_the_node() -> Test {
    let stages = split(&chain(), at("cos", Decision::After))?;
    assert_eq!(stage_lines(&stages), ["in0 | negate, sin, cos | f32", "in1, s0.0 | add | f32"]);
    Ok(())
}

#[test]
fn both_isolates_the_node() -> Test {
    let stages = split(&chain(), at("cos", Decision::Both))?;
    let expected = ["in0 | negate, sin | f32", "s0.0 | cos | f32", "in1, s1.0 | add | f32"];
    assert_eq!(stage_lines(&stages), expected);
    let stages = split(&dot_of_sum_and_difference(), at("dot", Decision::Both))?;
    assert_eq!(stages.stages().len(), 3);
    assert_eq!(stage_lines(&stages)[1], "s0.0, s0.1 | dot | s32");
    Ok(())
}

#[test]
fn nodes_without_hoistable_operands_are_cut_after() -> Test {
    for decision in [Decision::Before, Decision::After, Decision::Both] {
        let stages = split(&chain(), at("negate", decision))?;
        assert_eq!(stage_lines(&stages), ["in0 | negate | s32", "in1, s0.0 | sin, cos, add | f32"]);
    }
    Ok(())
}

#[test]
fn last_stage_may_forward_a_result() -> Test {
    let stages = split(&chain(), at("add", Decision::After))?;
    let expected = ["in0, in1 | negate, sin, cos, add | f32", "s0.0 |  | f32"];
    assert_eq!(stage_lines(&stages), expected);
    check_equal(&chain(), &stages);
    Ok(())
}

#[test]
fn inputs_precede_values_of_stages() -> Test {
    // sum(dot(a + b, a - b) * 2) + .. - c
    let program = program(vec![s32([2]), s32([2]), s32([])], |graph, inputs| {
        let x = graph.add(inputs[0], inputs[1])?;
        let y = graph.subtract(inputs[0], inputs[1])?;
        let z = graph.dot(x, y)?;
        let constant = two(graph, 2)?;
        let w = graph.multiply(constant, z)?;
        let s = graph.sum(w, None, false)?;
        let t = graph.add(s, w)?;
        Ok(vec![graph.subtract(t, inputs[2])?])
    });
    let mut dot = at("dot", Decision::Before);
    let mut sum = at("sum", Decision::Before);
    let stages = split(&program, |node| match dot(node) {
        Decision::None => sum(node),
        decision => decision,
    })?;
    let lines = stage_lines(&stages);
    assert_eq!(lines[0], "in0, in1 | add, subtract | s32[2], s32[2]");
    assert!(lines[1].starts_with("s0.0, s0.1 | ") && lines[1].ends_with(" | s32"), "{lines:?}");
    assert_eq!(lines[2], "in2, s1.0 | sum, add, subtract | s32");
    check_equal(&program, &stages);
    Ok(())
}

#[test]
fn constants_cross_only_as_boundary_operands() -> Test {
    let program = dot_of_sum_and_difference();
    let stages = split(&program, at("multiply", Decision::Before))?;
    let lines = sort_ops(&stage_lines(&stages));
    assert_eq!(lines[0], "in0, in1 | add, constant, dot, subtract | s32, s32");
    assert_eq!(lines[1], "s0.1 | constant, constant, divide, multiply | f32");
    // The constant 2 on both sides of another cut is copied instead of being passed.
    let twice = crate::common::program(vec![s32([3])], |graph, inputs| {
        let constant = two(graph, 2)?;
        let x = graph.multiply(constant, inputs[0])?;
        let x = graph.sin(x)?;
        let x = graph.cos(x)?;
        Ok(vec![graph.pow(x, constant)?])
    });
    let stages = split(&twice, at("sin", Decision::After))?;
    let lines = sort_ops(&stage_lines(&stages));
    assert_eq!(lines[0], "in0 | constant, multiply, sin | f32[3]");
    assert!(lines[1].starts_with("s0.0 | "), "{lines:?}");
    assert!(lines[1].contains("constant"), "{lines:?}");
    check_equal(&twice, &stages);
    Ok(())
}

#[test]
fn constants_with_nested_annotations_are_copied() -> Test {
    let program = crate::common::program(vec![f32([3])], |graph, inputs| {
        let mut exponent = two(graph, 2)?;
        for _ in 0..3 {
            exponent = graph.metadata(&[exponent], Metadata::default())?;
        }
        let x = graph.sin(inputs[0])?;
        Ok(vec![graph.pow(x, exponent)?])
    });
    let stages = split(&program, at("pow", Decision::Both))?;
    let lines = stage_lines(&stages);
    assert_eq!(lines.len(), 3);
    for line in lines {
        let arguments = line.split(" | ").next().unwrap_or_default();
        assert!(!arguments.contains(','), "the exponent is an argument: {line}");
    }
    check_equal(&program, &stages);
    Ok(())
}

#[test]
fn constant_stages_have_no_arguments() -> Test {
    let program = program(vec![s32([])], |graph, inputs| {
        let constant = two(graph, 2)?;
        Ok(vec![graph.multiply(constant, inputs[0])?])
    });
    let stages = split(&program, at("multiply", Decision::Before))?;
    assert_eq!(stage_lines(&stages), [" | constant | s32", "in0 | constant, multiply | s32"]);
    check_equal(&program, &stages);
    Ok(())
}

#[test]
fn values_cross_a_cut_once() -> Test {
    let program = program(vec![f32([2])], |graph, inputs| {
        let x = graph.sin(inputs[0])?;
        Ok(vec![graph.multiply(x, x)?])
    });
    let stages = split(&program, at("multiply", Decision::Before))?;
    assert_eq!(stage_lines(&stages), ["in0 | sin | f32[2]", "s0.0 | multiply | f32[2]"]);
    Ok(())
}

#[test]
fn values_needed_later_become_extra_outputs() -> Test {
    // The stage of `exp` and the last stage need `sin(x)`.
    let program = program(vec![f32([2])], |graph, inputs| {
        let shared = graph.sin(inputs[0])?;
        let x = graph.exp(shared)?;
        let x = graph.cos(x)?;
        Ok(vec![graph.add(x, shared)?])
    });
    let stages = split(&program, at("cos", Decision::Before))?;
    let expected = ["in0 | sin, exp | f32[2], f32[2]", "s0.0, s0.1 | cos, add | f32[2]"];
    assert_eq!(stage_lines(&stages), expected);
    check_equal(&program, &stages);
    Ok(())
}

#[test]
fn shared_chains_are_split_in_linear_time() -> Test {
    let program = program(vec![s32([])], |graph, inputs| {
        let mut x = graph.negate(inputs[0])?;
        for _ in 0..45 {
            x = graph.add(x, x)?;
        }
        Ok(vec![x])
    });
    let stages = split(&program, at("add", Decision::After))?;
    assert_eq!(stages.stages().len(), 46);
    check_equal(&program, &stages);
    Ok(())
}

/// Builds three sums over five inputs. Each sum after the first uses the previous sum.
fn three_sums() -> Program {
    program(vec![s32([]); 5], |graph, inputs| {
        let x = graph.add(inputs[1], inputs[2])?;
        let first = graph.add(inputs[0], x)?;
        let x = graph.add(first, inputs[3])?;
        let second = graph.add(first, x)?;
        let x = graph.add(second, inputs[4])?;
        Ok(vec![first, second, graph.add(second, x)?])
    })
}

#[test]
fn accumulator_follows_the_visits() -> Test {
    let (stages, visits) = split_with(&three_sums(), 0, |_, count| {
        let cut = count > 0 && count % 2 == 0;
        (if cut { Decision::Before } else { Decision::None }, count + 1)
    })?;
    assert_eq!(visits, 6);
    let expected = [
        "in0, in1, in2 | add, add | s32",
        "in3, s0.0 | add, add | s32",
        "in4, s0.0, s1.0 | add, add | s32, s32, s32",
    ];
    assert_eq!(stage_lines(&stages), expected);
    check_equal(&three_sums(), &stages);
    Ok(())
}

#[test]
fn callback_errors_are_returned() {
    #[derive(Debug, PartialEq)]
    struct Refused(usize);
    impl From<SplitError> for Refused {
        fn from(error: SplitError) -> Self {
            panic!("{error}")
        }
    }
    let mut calls = 0;
    let result = try_split(&chain(), |_| {
        calls += 1;
        if calls == 2 { Err(Refused(calls)) } else { Ok(Decision::None) }
    });
    assert_eq!(result.err(), Some(Refused(2)));
    assert_eq!(calls, 2);
    let result = try_split_with(&chain(), 5, |_, left| {
        if left == 3 { Err(Refused(left)) } else { Ok((Decision::None, left - 1)) }
    });
    assert_eq!(result.err(), Some(Refused(3)));
}

#[test]
fn visits_are_depth_first_and_skip_parameters() -> Test {
    let mut names = Vec::new();
    split(&dot_of_sum_and_difference(), |node| {
        names.push(node.op.name());
        Decision::None
    })?;
    assert_eq!(names, ["constant", "add", "subtract", "dot", "multiply", "constant", "divide"]);
    Ok(())
}

#[test]
fn forking_and_joining_values() -> Test {
    // `a = x * y; a / y + a * y`, with an annotation of each product and quotient.
    let program = program(vec![s32([2]), s32([2])], |graph, inputs| {
        let mark = |graph: &mut Graph, x| graph.metadata(&[x], Metadata::default());
        let a = graph.multiply(inputs[0], inputs[1])?;
        let a = mark(graph, a)?;
        let left = graph.multiply(a, inputs[1])?;
        let left = mark(graph, left)?;
        let right = graph.divide(a, inputs[1])?;
        let right = mark(graph, right)?;
        Ok(vec![graph.add(right, left)?])
    });
    let stages = split(&program, at("metadata", Decision::Before))?;
    let expected = [
        "in0, in1 | multiply | s32[2]",
        "in1, s0.0 | metadata, divide | f32[2]",
        "in1, s0.0 | metadata, multiply | s32[2]",
        "s1.0, s2.0 | metadata, metadata, add | f32[2]",
    ];
    assert_eq!(stage_lines(&stages), expected);
    check_equal(&program, &stages);
    let stages = split(&program, at("metadata", Decision::After))?;
    let expected = [
        "in0, in1 | multiply, metadata | s32[2]",
        "in1, s0.0 | divide, metadata | f32[2]",
        "in1, s0.0 | multiply, metadata | s32[2]",
        "s1.0, s2.0 | add | f32[2]",
    ];
    assert_eq!(stage_lines(&stages), expected);
    check_equal(&program, &stages);
    let levels = stages.levels();
    assert_eq!(levels.iter().map(Vec::len).collect::<Vec<_>>(), [1, 2, 1]);
    check_equal(&program, &stages);
    Ok(())
}
