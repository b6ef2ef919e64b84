//! Loops, conditionals and hooks.

use std::sync::Arc;

use crate::common::{assert_lines, body, lines, program, scalar, ty};
use nxla_expr::{ExprId, Graph, HookOp, HostFn, Program, Result};
use nxla_stablehlo::{LowerError, LowerOptions, LoweredModule, lower};
use nxla_tensor::{DType, HostTensor, Scalar};

/// Counts `x` down to zero, and adds `step` to `total` in each iteration; `body` may add hooks.
fn countdown(
    g: &mut Graph,
    x: ExprId,
    step: ExprId,
    condition: impl FnOnce(&mut Graph, ExprId) -> Result<ExprId>,
    body: impl FnOnce(&mut Graph, ExprId) -> Result<ExprId>,
) -> Result<Vec<ExprId>> {
    let mark = g.mark();
    let scope = g.open_scope("while", &[g.tensor_type(x).clone(), g.tensor_type(step).clone()]);
    let (count, total) = (scope.parameters[0], scope.parameters[1]);
    let condition = condition(g, count)?;
    let condition = g.traced(mark, vec![condition]);
    let one = g.scalar_constant(Scalar::Int(1), DType::S32)?;
    let next = g.subtract(count, one)?;
    let sum = g.add(total, step)?;
    let sum = body(g, sum)?;
    let body = g.traced(mark, vec![next, sum]);
    g.while_loop(mark, &scope, &[x, step], condition, body)
}

#[test]
fn loops_capture_values_and_copy_constants() {
    let text = body(&[scalar(DType::S32), ty(DType::F32, [2])], |g, p| {
        let one = g.scalar_constant(Scalar::Int(1), DType::S32)?;
        let x = g.add(p[0], one)?;
        countdown(g, x, p[1], |_, count| Ok(count), |_, sum| Ok(sum))
    });
    assert_lines(
        &text,
        r#"
        %2 = stablehlo.constant dense<1> : tensor<i32>
        %3 = stablehlo.add %2, %0 : tensor<i32>
        %4:2 = "stablehlo.while"(%3, %1) ({
        ^bb0(%5: tensor<i32>, %6: tensor<2xf32>):
        %7 = "stablehlo.convert"(%5) : (tensor<i32>) -> tensor<i1>
        stablehlo.return %7 : tensor<i1>
        }, {
        ^bb0(%8: tensor<i32>, %9: tensor<2xf32>):
        %10 = stablehlo.constant dense<1> : tensor<i32>
        %11 = stablehlo.subtract %8, %10 : tensor<i32>
        %12 = stablehlo.add %9, %1 : tensor<2xf32>
        stablehlo.return %11, %12 : tensor<i32>, tensor<2xf32>
        }) : (tensor<i32>, tensor<2xf32>) -> (tensor<i32>, tensor<2xf32>)
        "#,
    );
}

fn choice(g: &mut Graph, p: &[ExprId], clauses: i64) -> Result<Vec<ExprId>> {
    let mark = g.mark();
    let mut open = Vec::new();
    for number in 0..clauses {
        let number = g.scalar_constant(Scalar::Int(number), DType::S32)?;
        let matches = g.equal(p[0], number)?;
        let matches = g.traced(mark, vec![matches]);
        let product = g.multiply(p[1], number)?;
        open.push((matches, g.traced(mark, vec![product])));
    }
    let otherwise = g.traced(mark, vec![p[1]]);
    g.cond(mark, open, otherwise)
}

#[test]
fn clauses_are_nested() {
    let text = body(&[scalar(DType::S32), scalar(DType::F32)], |g, p| choice(g, p, 2));
    assert_lines(
        &text,
        r#"
        %2 = stablehlo.constant dense<0> : tensor<i32>
        %3 = "stablehlo.compare"(%0, %2) {comparison_direction = #stablehlo<comparison_direction EQ>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %4 = stablehlo.not %3 : tensor<i1>
        %5 = "stablehlo.if"(%4) ({
        %6 = stablehlo.constant dense<1> : tensor<i32>
        %7 = "stablehlo.compare"(%0, %6) {comparison_direction = #stablehlo<comparison_direction EQ>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %8 = "stablehlo.if"(%7) ({
        stablehlo.return %1 : tensor<f32>
        }, {
        stablehlo.return %1 : tensor<f32>
        }) : (tensor<i1>) -> tensor<f32>
        stablehlo.return %8 : tensor<f32>
        }, {
        %9 = stablehlo.constant dense<0.0> : tensor<f32>
        %10 = stablehlo.multiply %9, %1 : tensor<f32>
        stablehlo.return %10 : tensor<f32>
        }) : (tensor<i1>) -> tensor<f32>
        "#,
    );
}

#[test]
fn many_clauses_do_not_recurse() {
    let small = std::thread::Builder::new().stack_size(512 * 1024);
    let work = || body(&[scalar(DType::S32), scalar(DType::F32)], |g, p| choice(g, p, 2000));
    let text = small.spawn(work).unwrap().join().unwrap();
    assert_eq!(text.matches("stablehlo.if").count(), 2000);
}

#[test]
fn packed_elements_cross_no_region_boundary() {
    let text = body(&[scalar(DType::S32), scalar(DType::S4)], |g, p| {
        let mark = g.mark();
        let condition = g.traced(mark, vec![p[0]]);
        let negated = g.negate(p[1])?;
        let negated = g.traced(mark, vec![negated]);
        let otherwise = g.traced(mark, vec![p[1]]);
        g.cond(mark, vec![(condition, negated)], otherwise)
    });
    let returned: Vec<&str> =
        text.lines().filter(|line| line.trim_start().starts_with("stablehlo.return")).collect();
    assert_eq!(returned.len(), 2);
    assert!(returned.iter().all(|line| line.ends_with(": tensor<i8>")), "{text}");
}

// --- hooks ---

fn no_op_hook() -> Arc<dyn HostFn> {
    Arc::new(|_: &[HostTensor]| Ok(()))
}

fn with_hooks(program: &Program) -> LoweredModule {
    let options = LowerOptions { host_calls: true, ..LowerOptions::default() };
    lower(program, &options).unwrap()
}

#[test]
fn hooks_are_chained_in_order() {
    let program = program(&[scalar(DType::F32), scalar(DType::S4)], |g, p| {
        let x = g.hook(&[p[0]], Some("x"), Some(no_op_hook()))?;
        let y = g.exp(x[0])?;
        g.hook(&[y, p[1]], None, Some(no_op_hook()))?;
        Ok(vec![y])
    });
    let module = with_hooks(&program);
    assert!(module.text.contains("@main(%0: tensor<f32>, %1: tensor<i4>) ->"));
    assert_lines(
        &lines(&module.text),
        r#"
        %2 = stablehlo.constant dense<0> : tensor<ui32>
        %3 = "stablehlo.custom_call"(%2, %0) {call_target_name = "nxla_host_call", api_version = 4 : i32, has_side_effect = true, operand_layouts = [dense<[]> : tensor<0xindex>, dense<[]> : tensor<0xindex>], result_layouts = [dense<[]> : tensor<0xindex>], backend_config = {id = 0 : i64}} : (tensor<ui32>, tensor<f32>) -> tensor<ui32>
        %4 = stablehlo.exponential %0 : tensor<f32>
        %5 = "stablehlo.custom_call"(%3, %4, %1) {call_target_name = "nxla_host_call", api_version = 4 : i32, has_side_effect = true, operand_layouts = [dense<[]> : tensor<0xindex>, dense<[]> : tensor<0xindex>, dense<[]> : tensor<0xindex>], result_layouts = [dense<[]> : tensor<0xindex>], backend_config = {id = 1 : i64}} : (tensor<ui32>, tensor<f32>, tensor<i4>) -> tensor<ui32>
        "#,
    );
    assert_eq!(module.host_calls.len(), 2);
    assert_eq!(module.host_calls[0].hook.name.as_deref(), Some("x"));
    assert!(module.host_calls[0].hook.default.is_some());
    assert_eq!(module.host_calls[1].id, 1);
    assert_eq!(module.host_calls[1].arguments, [scalar(DType::F32), scalar(DType::S4)]);
}

#[test]
fn hooks_without_listeners_are_removed() {
    let inputs = [scalar(DType::F32), scalar(DType::F32)];
    let program = program(&inputs, |g, p| {
        let seen = g.sin(p[1])?;
        g.hook(&[seen], Some("seen"), None)?;
        let x = g.hook(&[p[0]], Some("x"), Some(no_op_hook()))?;
        Ok(vec![g.exp(x[0])?])
    });
    let no_listeners = LowerOptions { active_hooks: &|_| false, ..LowerOptions::default() };
    let module = lower(&program, &no_listeners).unwrap();
    assert_eq!(module.used_inputs, [0]);
    assert!(module.host_calls.is_empty());
    assert_lines(&lines(&module.text), "%1 = stablehlo.exponential %0 : tensor<f32>");

    // By default, hooks with their own function are active.
    let module = with_hooks(&program);
    assert_eq!(module.used_inputs, [0]);
    assert_eq!(module.host_calls.len(), 1);
    let listens = |hook: &HookOp| hook.name.as_deref() == Some("seen");
    let options =
        LowerOptions { active_hooks: &listens, host_calls: true, ..LowerOptions::default() };
    let module = lower(&program, &options).unwrap();
    assert_eq!(module.used_inputs, [0, 1]);
    assert_eq!(module.host_calls[0].hook.name.as_deref(), Some("seen"));
}

#[test]
fn missing_host_calls_are_an_error() {
    let mut graph = Graph::new();
    let x = graph.parameter(0, scalar(DType::F32));
    let line = nxla_expr::Line { file: "train.py".into(), line: 31 };
    let source = graph.add_source(nxla_expr::Source::Line(line));
    graph.set_source(source);
    let y = graph.hook(&[x], Some("loss"), Some(no_op_hook())).unwrap();
    let program = Program::new(&graph, vec![scalar(DType::F32)], &y).unwrap();
    let error = lower(&program, &LowerOptions::default()).unwrap_err();
    assert!(matches!(error, LowerError::HostCalls { .. }));
    assert_eq!(
        error.to_string(),
        "io_call: hook \"loss\" requires a plugin that supports host calls (train.py:31)"
    );
}

#[test]
fn hook_order_continues_through_loops() {
    let program = program(&[scalar(DType::S32), scalar(DType::F32)], |g, p| {
        let results = countdown(
            g,
            p[0],
            p[1],
            |_, count| Ok(count),
            |g, sum| Ok(g.hook(&[sum], Some("sum"), Some(no_op_hook()))?[0]),
        )?;
        g.hook(&results[1..], Some("after"), Some(no_op_hook()))?;
        Ok(results)
    });
    let text = with_hooks(&program).text;
    let after = text.lines().find(|line| line.contains("id = 1")).expect("the last hook");
    assert!(text.contains("%3:3 = \"stablehlo.while\"(%0, %1, %2)"), "{text}");
    assert!(after.contains("(%3#2, %3#1)"), "{text}");
}

#[test]
fn a_condition_with_hooks_is_evaluated_in_the_body() {
    let program = program(&[scalar(DType::S32), scalar(DType::F32)], |g, p| {
        countdown(
            g,
            p[0],
            p[1],
            |g, count| Ok(g.hook(&[count], Some("count"), Some(no_op_hook()))?[0]),
            |_, sum| Ok(sum),
        )
    });
    let module = with_hooks(&program);
    // One call before the loop and one in its body; the loop carries the count, the sum, the result
    // of the condition and the hook token.
    assert_eq!(module.host_calls.len(), 2);
    assert!(module.text.contains("%5:4 = \"stablehlo.while\""), "{}", module.text);
    assert!(module.text.contains("stablehlo.return %8 : tensor<i1>"), "{}", module.text);
}

#[test]
fn hook_order_continues_through_branches_and_blocks() {
    let program = program(&[scalar(DType::S32), scalar(DType::F32)], |g, p| {
        let mark = g.mark();
        let condition = g.traced(mark, vec![p[0]]);
        let hooked = g.hook(&[p[1]], Some("then"), Some(no_op_hook()))?;
        let hooked = g.traced(mark, hooked);
        let otherwise = g.traced(mark, vec![p[1]]);
        let x = g.cond(mark, vec![(condition, hooked)], otherwise)?;
        g.block("block", vec![], &x, |g, x| g.hook(x, Some("block"), Some(no_op_hook())))
    });
    let module = with_hooks(&program);
    let text = &module.text;
    assert!(!text.contains("func.func private"), "{text}");
    assert!(text.contains("(tensor<i1>) -> (tensor<f32>, tensor<ui32>)"), "{text}");
    let block = text.lines().find(|line| line.contains("id = 1")).expect("the hook of the block");
    assert!(block.contains("(%5#1, %5#0)"), "{text}");
}

#[test]
fn narrow_loop_counters_are_widened() {
    let text = body(&[scalar(DType::U8), ty(DType::U8, [2])], |g, p| {
        let mark = g.mark();
        let scope = g.open_scope("while", &[scalar(DType::U8), ty(DType::U8, [2])]);
        let number = g.scalar_constant(Scalar::Int(1), DType::U8)?;
        let condition = g.less(scope.parameters[0], number)?;
        let condition = g.traced(mark, vec![condition]);
        let next = g.add(scope.parameters[0], number)?;
        let body = g.traced(mark, vec![next, scope.parameters[1]]);
        g.while_loop(mark, &scope, p, condition, body)
    });
    assert!(
        text.contains("(tensor<i64>, tensor<2xui8>) -> (tensor<i64>, tensor<2xui8>)"),
        "{text}"
    );
    let converts = text.matches("(tensor<ui8>) -> tensor<i64>").count();
    let converts_back = text.matches("(tensor<i64>) -> tensor<ui8>").count();
    assert_eq!((converts, converts_back), (2, 3), "{text}");
}

#[test]
fn host_call_operands_are_row_major() {
    let program = program(&[ty(DType::F32, [2, 3])], |g, p| {
        let x = g.transpose(p[0], None)?;
        g.hook(&[x], Some("shown"), None)
    });
    let options =
        LowerOptions { host_calls: true, active_hooks: &|_| true, ..LowerOptions::default() };
    let text = lower(&program, &options).unwrap().text;
    let rows = "operand_layouts = [dense<[]> : tensor<0xindex>, dense<[1, 0]> : tensor<2xindex>]";
    assert!(text.contains(rows), "{text}");
}
