//! Whole modules: signatures, donation, locations, blocks, size.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::{module, program, scalar, ty};
use nxla_expr::{Graph, Line, Program, Source};
use nxla_stablehlo::{DonatedInput, LowerError, LowerOptions, lower};
use nxla_tensor::{DType, HostTensor, Scalar};

#[test]
fn unused_inputs_are_not_parameters() {
    let inputs = [scalar(DType::F32), ty(DType::S8, [2]), scalar(DType::F64)];
    let module = module(&inputs, |g, p| Ok(vec![p[2], g.negate(p[0])?]));
    assert_eq!(module.used_inputs, [0, 2]);
    assert_eq!(
        module.text,
        "\
module @nxla {
  func.func public @main(%0: tensor<f32>, %1: tensor<f64>) -> (tensor<f64>, tensor<f32>) {
    %2 = stablehlo.negate %0 : tensor<f32>
    return %1, %2 : tensor<f64>, tensor<f32>
  }
}
"
    );
}

#[test]
fn a_program_without_inputs_or_results() {
    let constant = module(&[], |g, _| Ok(vec![g.scalar_constant(Scalar::Int(3), DType::S4)?]));
    assert!(constant.text.contains("@main() -> tensor<i4> {"), "{}", constant.text);
    let empty = module(&[], |_, _| Ok(vec![]));
    assert!(empty.text.contains("@main() {\n    return\n"), "{}", empty.text);
}

#[test]
fn inputs_of_derivative_rules_are_unused() {
    let inputs = [scalar(DType::F32), scalar(DType::F32)];
    let module = module(&inputs, |g, p| {
        let y = g.exp(p[0])?;
        g.custom_grad(&[y], &[p[0]], |g, cotangents| Ok(vec![g.multiply(cotangents[0], p[1])?]))
    });
    assert_eq!(module.used_inputs, [0]);
}

#[test]
fn lowering_is_deterministic() {
    let build = || {
        module(&[ty(DType::S32, [2]), ty(DType::F32, [2])], |g, p| {
            let sum = g.add(p[0], p[1])?;
            let (values, positions) = g.top_k(sum, 1)?;
            Ok(vec![values, positions])
        })
    };
    assert_eq!(build().text, build().text);
}

#[test]
fn donated_inputs_take_the_first_free_output_of_their_type() {
    let (f, s) = (scalar(DType::F32), scalar(DType::S32));
    let program = program(&[f.clone(), f.clone(), s, f], |g, p| {
        let sum = g.add(p[0], p[1])?;
        let sum = g.add(sum, p[2])?;
        Ok(vec![sum, g.negate(p[0])?])
    });
    let donated = [true; 4];
    let options = LowerOptions { donated: &donated, ..LowerOptions::default() };
    let module = lower(&program, &options).unwrap();
    // The last input is not used, and there is no output for the integer.
    assert_eq!(
        module.donations,
        [
            DonatedInput { input: 0, output: Some(0) },
            DonatedInput { input: 1, output: Some(1) },
            DonatedInput { input: 2, output: None },
        ]
    );
    let head = "@main(%0: tensor<f32> {tf.aliasing_output = 0 : i32}, \
                %1: tensor<f32> {tf.aliasing_output = 1 : i32}, \
                %2: tensor<i32> {jax.buffer_donor = true}) ->";
    assert!(module.text.contains(head), "{}", module.text);

    let options = LowerOptions { donated: &[false; 2], ..LowerOptions::default() };
    let error = lower(&program, &options).unwrap_err();
    assert_eq!(error, LowerError::Donated { expected: 4, found: 2 });
    assert_eq!(error.to_string(), "donated: must have one entry for each of 4 inputs; got 2");
}

#[test]
fn operations_carry_the_line_of_their_node() {
    let mut graph = Graph::new();
    let x = graph.parameter(0, scalar(DType::F32));
    let line = Line { file: r#"dir\a "b".py"#.into(), line: 7 };
    let source = graph.add_source(Source::Line(line));
    graph.set_source(source);
    let one = graph.scalar_constant(Scalar::Float(1.0), DType::F32).unwrap();
    let sum = graph.sum(x, None, false).unwrap();
    let y = graph.add(sum, one).unwrap();
    let program = Program::new(&graph, vec![scalar(DType::F32)], &[y]).unwrap();

    let options = LowerOptions { locations: true, ..LowerOptions::default() };
    let text = lower(&program, &options).unwrap().text;
    let location = r#" loc("dir\\a \"b\".py":7:1)"#;
    for line in text.lines().filter(|line| line.contains("stablehlo.")) {
        let opens = line.contains("stablehlo.reduce\"");
        assert_eq!(line.ends_with(location), !opens, "{line}");
    }
    assert!(text.contains("    return %"), "{text}");
    let plain = lower(&program, &LowerOptions::default()).unwrap().text;
    assert_eq!(text.replace(location, ""), plain);
}

#[test]
fn locations_contain_scope_names() {
    let mut graph = Graph::new();
    let x = graph.parameter(0, scalar(DType::F32));
    let line = Source::Line(Line { file: "net.py".into(), line: 7 });
    for scope in ["encoder/layer_0", "encoder/layer_1"] {
        let source = graph.add_source(line.clone().in_scope(scope.into()));
        graph.set_source(source);
        let y = if scope.ends_with('0') { graph.exp(x) } else { graph.cos(x) };
        assert_eq!(graph.source(y.unwrap()).scope().as_deref(), Some(scope));
    }
    let outputs = [graph.exp(x).unwrap(), graph.cos(x).unwrap()];
    let program = Program::new(&graph, vec![scalar(DType::F32)], &outputs).unwrap();
    let options = LowerOptions { locations: true, ..LowerOptions::default() };
    let text = lower(&program, &options).unwrap().text;
    for (operation, scope) in [("exponential", "encoder/layer_0"), ("cosine", "encoder/layer_1")] {
        let line = text.lines().find(|line| line.contains(operation)).unwrap();
        assert!(line.ends_with(&format!(r#" loc("{scope}"("net.py":7:1))"#)), "{line}");
    }
}

#[test]
fn equal_blocks_share_a_function() {
    let inputs = [ty(DType::F32, [4]), ty(DType::F32, [4])];
    let module = module(&inputs, |g, p| {
        let block = |g: &mut Graph, name: &str, x| {
            g.block(name, vec![], &[x], |g, x| {
                let inner = g.block("inner", vec![], x, |g, x| {
                    Ok::<_, nxla_expr::Error>(vec![g.exp(x[0])?])
                })?;
                Ok::<_, nxla_expr::Error>(vec![g.negate(inner[0])?])
            })
        };
        let a = block(g, "sum of squares", p[0])?;
        let b = block(g, "sum of squares", p[1])?;
        Ok(vec![a[0], b[0]])
    });
    let text = &module.text;
    assert_eq!(text.matches("func.func private").count(), 2, "{text}");
    assert_eq!(text.matches("call @block_0_sum_of_squares(").count(), 2, "{text}");
    assert_eq!(text.matches("call @block_1_inner(").count(), 1, "{text}");
    assert_eq!(text.matches("stablehlo.exponential").count(), 1, "{text}");
}

#[test]
fn literals() {
    let module = module(&[], |g, _| {
        let floats = g.tensor(HostTensor::from_slice(&[1.0_f32, 2.0], [2]).unwrap())?;
        let truths = g.tensor(HostTensor::from_slice(&[true, false], [2]).unwrap())?;
        let zeros = g.tensor(HostTensor::zeros(DType::F64, [3, 3]).unwrap())?;
        let empty = g.tensor(HostTensor::zeros(DType::C64, [0]).unwrap())?;
        Ok(vec![floats, truths, zeros, empty])
    });
    let expected = r#"
    %0 = stablehlo.constant dense<"0x0000803F00000040"> : tensor<2xf32>
    %1 = stablehlo.constant dense<"0x0100"> : tensor<2xui8>
    %2 = "stablehlo.convert"(%1) : (tensor<2xui8>) -> tensor<2xi1>
    %3 = stablehlo.constant dense<0.0> : tensor<3x3xf64>
    %4 = stablehlo.constant dense<> : tensor<0xcomplex<f32>>
    "#;
    crate::common::assert_lines(&crate::common::lines(&module.text), expected);
}

#[test]
fn long_chains_take_linear_time_and_no_stack() {
    let program = |length: usize| {
        program(&[ty(DType::F32, [8])], |g, p| {
            let mut x = p[0];
            for _ in 0..length {
                let y = g.tanh(x)?;
                x = g.add(x, y)?;
            }
            Ok(vec![x])
        })
    };
    // With a small stack, recursion overflows without a very long chain.
    let small = std::thread::Builder::new().stack_size(256 * 1024);
    let work = move || {
        let program = program(50_000);
        let started = Instant::now();
        let module = lower(&program, &LowerOptions::default()).unwrap();
        (module.text.lines().count(), started.elapsed())
    };
    let (lines, elapsed) = small.spawn(work).unwrap().join().unwrap();
    assert_eq!(lines, 100_000 + 5);
    assert!(elapsed < Duration::from_secs(10), "{elapsed:?}");
}

#[test]
fn shared_functions_are_written_once() {
    let program = program(&[scalar(DType::F32)], |g, p| {
        let mut x = p[0];
        for _ in 0..100 {
            let results = g.block("step", vec![], &[x], |g, x| {
                Ok::<_, nxla_expr::Error>(vec![g.sin(x[0])?])
            })?;
            x = results[0];
        }
        Ok(vec![x])
    });
    let program = Arc::new(program);
    let text = lower(&program, &LowerOptions::default()).unwrap().text;
    assert_eq!(text.matches("call @block_0_step").count(), 100);
    assert_eq!(text.matches("stablehlo.sine").count(), 1);
}
