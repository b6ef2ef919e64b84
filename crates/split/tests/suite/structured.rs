//! Cuts at nodes with several operands or results, with regions, and with effects.

use crate::common::{Test, at, check_equal, f32, program, s32, stage_lines};
use nxla_expr::{ExprId, Graph, Metadata, Program, Replay, Result};
use nxla_split::{Decision, ValueSource, split};
use nxla_tensor::Number;

const DECISIONS: [Decision; 4] =
    [Decision::None, Decision::Before, Decision::After, Decision::Both];

fn number(graph: &mut Graph, value: i64) -> Result<ExprId> {
    graph.number(Number::Int(value.into()))
}

/// Builds `while x < 10 { x + 1, y + 2 }` and returns both results.
fn count_up(graph: &mut Graph, x: ExprId, y: ExprId) -> Result<Vec<ExprId>> {
    graph.repeat_while(
        &[x, y],
        Replay::default(),
        |graph, state| {
            let ten = number(graph, 10)?;
            graph.less(state[0], ten)
        },
        |graph, state| {
            let (one, two) = (number(graph, 1)?, number(graph, 2)?);
            Ok(vec![graph.add(state[0], one)?, graph.add(state[1], two)?])
        },
    )
}

fn loop_program() -> Program {
    program(vec![s32([])], |graph, inputs| {
        let two = number(graph, 2)?;
        let y = graph.multiply(two, inputs[0])?;
        let results = count_up(graph, inputs[0], y)?;
        Ok(vec![graph.add(results[0], results[1])?])
    })
}

#[test]
fn loops_have_one_output_for_each_state() -> Test {
    let expected: [&[&str]; 4] = [
        &["in0 | constant, multiply, while, add | s32"],
        &["in0 | constant, multiply | s32", "in0, s0.0 | while, add | s32"],
        &["in0 | constant, multiply, while | s32, s32", "s0.0, s0.1 | add | s32"],
        &[
            "in0 | constant, multiply | s32",
            "in0, s0.0 | while | s32, s32",
            "s1.0, s1.1 | add | s32",
        ],
    ];
    for (decision, expected) in DECISIONS.into_iter().zip(expected) {
        let stages = split(&loop_program(), at("while", decision))?;
        assert_eq!(stage_lines(&stages), expected);
        check_equal(&loop_program(), &stages);
    }
    Ok(())
}

#[test]
fn loops_over_inputs_are_not_cut_before() -> Test {
    let program = program(vec![s32([]), s32([])], |graph, inputs| {
        let results = count_up(graph, inputs[0], inputs[1])?;
        Ok(vec![graph.add(results[0], results[1])?])
    });
    let counts = DECISIONS.map(|decision| {
        let stages = split(&program, at("while", decision)).expect("the program can be split");
        check_equal(&program, &stages);
        stages.stages().len()
    });
    assert_eq!(counts, [1, 1, 2, 2]);
    Ok(())
}

#[test]
fn loop_results_cross_separately() -> Test {
    // Both sides of the cut need only the second result.
    let program = program(vec![s32([]), s32([])], |graph, inputs| {
        let results = count_up(graph, inputs[0], inputs[1])?;
        let x = graph.negate(results[1])?;
        let x = graph.sin(x)?;
        Ok(vec![graph.add(x, results[1])?])
    });
    let stages = split(&program, at("sin", Decision::Before))?;
    let expected = ["in0, in1 | while, negate | s32, s32", "s0.0, s0.1 | sin, add | f32"];
    assert_eq!(stage_lines(&stages), expected);
    check_equal(&program, &stages);
    Ok(())
}

#[test]
fn loop_bodies_are_not_visited() -> Test {
    let mut names = Vec::new();
    split(&loop_program(), |node| {
        names.push(node.op.name());
        Decision::None
    })?;
    assert_eq!(names, ["constant", "multiply", "while", "add"]);
    Ok(())
}

fn conditional() -> Program {
    program(vec![s32([]), s32([])], |graph, inputs| {
        let a = graph.add(inputs[0], inputs[1])?;
        let mark = graph.mark();
        let five = number(graph, 5)?;
        let greater = graph.greater(a, five)?;
        let predicate = graph.traced(mark, vec![greater]);
        let up = graph.exp(a)?;
        let up = graph.traced(mark, vec![up]);
        let down = graph.sin(a)?;
        let down = graph.traced(mark, vec![down]);
        let result = graph.cond(mark, vec![(predicate, up)], down)?[0];
        let two = number(graph, 2)?;
        Ok(vec![graph.multiply(two, result)?])
    })
}

#[test]
fn conditionals_are_not_divided() -> Test {
    for decision in [Decision::Before, Decision::After, Decision::Both] {
        let stages = split(&conditional(), at("cond", decision))?;
        assert_eq!(
            stage_lines(&stages),
            ["in0, in1 | add, cond | f32", "s0.0 | constant, multiply | f32"]
        );
        check_equal(&conditional(), &stages);
    }
    let stages = split(&conditional(), at("add", Decision::After))?;
    assert_eq!(
        stage_lines(&stages),
        ["in0, in1 | add | s32", "s0.0 | constant, cond, multiply | f32"]
    );
    // Nodes that are computed only in a branch are part of the conditional.
    let stages = split(&conditional(), at("exp", Decision::After))?;
    assert_eq!(stages.stages().len(), 1);
    Ok(())
}

#[test]
fn listed_operands_cross_cuts() -> Test {
    let program = program(vec![f32([2])], |graph, inputs| {
        let sine = graph.sin(inputs[0])?;
        let cosine = graph.cos(inputs[0])?;
        let concatenated = graph.concatenate(&[sine, cosine], 0)?;
        Ok(vec![graph.sum(concatenated, None, false)?])
    });
    let stages = split(&program, at("concatenate", Decision::Both))?;
    let expected = [
        "in0 | sin, cos | f32[2], f32[2]",
        "s0.0, s0.1 | concatenate | f32[4]",
        "s1.0 | sum | f32",
    ];
    assert_eq!(stage_lines(&stages), expected);
    check_equal(&program, &stages);
    Ok(())
}

#[test]
fn annotated_tuples_cross_part_by_part() -> Test {
    let program = program(vec![s32([])], |graph, inputs| {
        let two = number(graph, 2)?;
        let pair = [graph.negate(inputs[0])?, graph.add(two, inputs[0])?];
        let annotated = graph.metadata(&pair, Metadata::default())?;
        let parts = graph.parts(annotated)?;
        Ok(vec![graph.add(parts[0], parts[1])?])
    });
    let before = split(&program, at("metadata", Decision::Before))?;
    let expected = ["in0 | negate, constant, add | s32, s32", "s0.0, s0.1 | metadata, add | s32"];
    assert_eq!(stage_lines(&before), expected);
    let both = split(&program, at("metadata", Decision::Both))?;
    let expected = [
        "in0 | negate, constant, add | s32, s32",
        "s0.0, s0.1 | metadata | s32, s32",
        "s1.0, s1.1 | add | s32",
    ];
    assert_eq!(stage_lines(&both), expected);
    check_equal(&program, &before);
    check_equal(&program, &both);
    Ok(())
}

#[test]
fn blocks_are_cut_as_single_nodes() -> Test {
    let program = program(vec![f32([2])], |graph, inputs| {
        let x = graph.sin(inputs[0])?;
        let results = graph.block("pair", Vec::new(), &[x], |graph, inner| {
            let mut results = vec![graph.exp(inner[0])?];
            results.push(graph.cos(inner[0])?);
            Ok::<_, nxla_expr::Error>(results)
        })?;
        Ok(vec![graph.subtract(results[0], results[1])?])
    });
    let stages = split(&program, at("block", Decision::Both))?;
    let expected =
        ["in0 | sin | f32[2]", "s0.0 | block | f32[2], f32[2]", "s1.0, s1.1 | subtract | f32[2]"];
    assert_eq!(stage_lines(&stages), expected);
    check_equal(&program, &stages);
    let inside = split(&program, at("exp", Decision::Both))?;
    assert_eq!(inside.stages().len(), 1);
    Ok(())
}

/// Builds three hooks: on `sin x`, on `y` with an unused result, and on the result.
fn program_with_hooks() -> Program {
    program(vec![f32([]), f32([])], |graph, inputs| {
        let x = graph.sin(inputs[0])?;
        let x = graph.hook(&[x], Some("first"), None)?[0];
        let y = graph.exp(inputs[1])?;
        graph.hook(&[y, inputs[1]], Some("second"), None)?;
        let z = graph.cos(x)?;
        Ok(vec![graph.hook(&[z], Some("third"), None)?[0]])
    })
}

#[test]
fn hooks_run_once_and_in_order() -> Test {
    for decision in DECISIONS {
        for name in ["io_call", "cos", "exp", "sin"] {
            let stages = split(&program_with_hooks(), at(name, decision))?;
            check_equal(&program_with_hooks(), &stages);
        }
        check_equal(&program_with_hooks(), &split(&program_with_hooks(), |_| decision)?);
    }
    Ok(())
}

#[test]
fn stages_with_a_hook_contain_earlier_hooks() -> Test {
    // The output needs only the third hook, but the second hook must run before it.
    let stages = split(&program_with_hooks(), |node| match node.op {
        nxla_expr::Op::Hook(hook) if hook.name.as_deref() == Some("third") => Decision::After,
        _ => Decision::None,
    })?;
    assert_eq!(stages.stages()[0].program.effects().len(), 3);
    assert_eq!(stages.stages()[1].arguments, [ValueSource::output(stages.stages()[0].id, 0)]);
    Ok(())
}

#[test]
fn stages_with_hooks_are_ordered() -> Test {
    let program = program(vec![f32([]), f32([])], |graph, inputs| {
        let x = graph.sin(inputs[0])?;
        let x = graph.hook(&[x], Some("left"), None)?[0];
        let y = graph.cos(inputs[1])?;
        let y = graph.hook(&[y], Some("right"), None)?[0];
        Ok(vec![graph.add(x, y)?])
    });
    let stages = split(&program, at("io_call", Decision::After))?;
    let [first, second, last] = stages.stages() else { panic!("two cuts make three stages") };
    assert_eq!(second.arguments, [ValueSource::input(1)], "no value comes from the first stage");
    assert_eq!(second.follows, Some(first.id));
    assert_eq!(last.follows, None, "the last stage has no hook");
    assert_eq!(stages.levels().len(), 3);
    check_equal(&program, &stages);
    Ok(())
}

#[test]
fn unused_hooks_still_run() -> Test {
    let program = program(vec![f32([])], |graph, inputs| {
        let y = graph.exp(inputs[0])?;
        graph.hook(&[y], Some("seen"), None)?;
        Ok(vec![graph.negate(inputs[0])?])
    });
    for decision in DECISIONS {
        check_equal(&program, &split(&program, at("io_call", decision))?);
        check_equal(&program, &split(&program, at("negate", decision))?);
    }
    Ok(())
}

#[test]
fn loops_with_hooks_are_ordered() -> Test {
    let program = program(vec![f32([]), f32([])], |graph, inputs| {
        let mut results = Vec::new();
        for (&input, name) in inputs.iter().zip(["left", "right"]) {
            let mark = graph.mark();
            let scope = graph.open_scope("while", &[f32([])]);
            let below = graph.less(scope.parameters[0], input)?;
            let condition = graph.traced(mark, vec![below]);
            let hooked = graph.hook(&[scope.parameters[0]], Some(name), None)?[0];
            let next = graph.exp(hooked)?;
            let body = graph.traced(mark, vec![next]);
            let initial = graph.sin(input)?;
            results.extend(graph.while_loop(mark, &scope, &[initial], condition, body)?);
        }
        Ok(vec![graph.add(results[0], results[1])?])
    });
    let stages = split(&program, at("while", Decision::After))?;
    let [first, second, _] = stages.stages() else { panic!("two cuts make three stages") };
    assert_eq!(second.arguments, [ValueSource::input(1)], "no value comes from the first stage");
    assert_eq!(second.follows, Some(first.id));
    check_equal(&program, &stages);
    Ok(())
}
