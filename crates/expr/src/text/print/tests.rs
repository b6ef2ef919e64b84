//! These tests compare printed expressions with the output of Nx for the same functions. Where Nx
//! prints `u8` for booleans, the expected strings have `pred`.

use std::sync::Arc;

use nxla_tensor::{DType, HostTensor, Number, Scalar};

use super::{Blocks, ExprText, GraphPrintOptions, lines};
use crate::build::{ConvOptions, FftNorm, SliceStart, WindowOptions, WindowPadding};
use crate::graph::{
    ExprId, Graph, Metadata, Padding, Result, TensorType, Traced, Transform, TriangularSolve,
};

fn f32s(graph: &mut Graph, index: usize, shape: &[usize]) -> ExprId {
    graph.parameter(index, TensorType::new(DType::F32, shape))
}

fn int(graph: &mut Graph, value: i64) -> ExprId {
    graph.number(Number::Int(value.into())).unwrap()
}

fn float(graph: &mut Graph, value: f64) -> ExprId {
    graph.scalar_constant(Scalar::Float(value), DType::F32).unwrap()
}

/// Compares the text of an expression with `expected` without its common indentation.
fn check(graph: &Graph, root: ExprId, expected: &str) {
    let text = lines(graph, &[root], &GraphPrintOptions::default()).join("\n");
    let expected: Vec<&str> = expected.trim().lines().map(str::trim_start).collect();
    assert_eq!(text, expected.join("\n"));
}

/// Traces a branch of a `cond`.
fn branch(graph: &mut Graph, build: impl FnOnce(&mut Graph) -> Result<Vec<ExprId>>) -> Traced {
    let mark = graph.mark();
    let outputs = build(graph).unwrap();
    graph.traced(mark, outputs)
}

fn single(result: Result<ExprId>) -> Result<Vec<ExprId>> {
    result.map(|id| vec![id])
}

#[test]
fn blocks_have_headers() {
    let mut graph = Graph::new();
    let (x, w) = (f32s(&mut graph, 0, &[4]), f32s(&mut graph, 1, &[4]));
    let phase = graph.block("phase", vec![], &[x], |graph, x| single(graph.sign(x[0]))).unwrap()[0];
    let product = graph.multiply(phase, w).unwrap();
    let sum = graph.sum(product, None, false).unwrap();
    let expected = "#nxla.Expr<
  f32
  \n  parameter a:0                            f32[4]
  parameter c:1                            f32[4]
  b = block phase{}, a                     f32[4]
  d = multiply b, c                        f32[4]
  e = sum d, axes: nil, keep_axes: false   f32
>";
    assert_eq!(ExprText::new(&graph, sum).to_string(), expected);
}

#[test]
fn shown_metadata_reductions_and_numbers() {
    let mut graph = Graph::new();
    let x = f32s(&mut graph, 0, &[2, 3]);
    let max = graph.reduce_max(x, Some(&[0]), true).unwrap();
    let max = graph.stop_grad(max).unwrap();
    let infinite = graph.is_infinity(max).unwrap();
    let zero = float(&mut graph, 0.0);
    let max = graph.select(infinite, zero, max).unwrap();
    let difference = graph.subtract(x, max).unwrap();
    let exp = graph.exp(difference).unwrap();
    let sum = graph.sum(exp, Some(&[0]), false).unwrap();
    let log = graph.log(sum).unwrap();
    let max = graph.squeeze(max, Some(&[0])).unwrap();
    let sum = graph.add(log, max).unwrap();
    let two = int(&mut graph, 2);
    let square = graph.pow(sum, two).unwrap();
    let root = graph.sum(square, None, false).unwrap();
    check(
        &graph,
        root,
        "
        parameter a:0                                  f32[2][3]
        b = reduce_max a, axes: [0], keep_axes: true   f32[1][3]
        c = metadata b, :stop_grad                     f32[1][3]
        d = is_infinity c                              pred[1][3]
        e = select d, 0.0, c                           f32[1][3]
        f = subtract a, e                              f32[2][3]
        g = exp f                                      f32[2][3]
        h = sum g, axes: [0], keep_axes: false         f32[3]
        i = log h                                      f32[3]
        j = squeeze e, [0]                             f32[3]
        k = add i, j                                   f32[3]
        l = pow k, 2                                   f32[3]
        m = sum l, axes: nil, keep_axes: false         f32
        ",
    );
}

#[test]
fn literal_tensors_are_listed_with_the_inputs() {
    let mut graph = Graph::new();
    let x = f32s(&mut graph, 0, &[2, 3]);
    let exp = graph.exp(x).unwrap();
    let sum = graph.sum(exp, Some(&[1]), true).unwrap();
    let softmax = graph.divide(exp, sum).unwrap();
    let log = graph.log(softmax).unwrap();
    let target = HostTensor::from_slice(&[1_i32, 0, 0, 0, 0, 1], [2, 3]).unwrap();
    let target = graph.tensor(target).unwrap();
    let product = graph.multiply(log, target).unwrap();
    let root = graph.sum(product, None, false).unwrap();
    check(
        &graph,
        root,
        "
        parameter a:0                            f32[2][3]
        tensor f                                 s32[2][3]
        b = exp a                                f32[2][3]
        c = sum b, axes: [1], keep_axes: true    f32[2][1]
        d = divide b, c                          f32[2][3]
        e = log d                                f32[2][3]
        g = multiply e, f                        f32[2][3]
        h = sum g, axes: nil, keep_axes: false   f32
        ",
    );
}

/// Builds `if x > y, do: on_true, else: on_false`.
fn if_greater(
    graph: &mut Graph,
    x: ExprId,
    y: ExprId,
    on_true: impl FnOnce(&mut Graph) -> Result<Vec<ExprId>>,
    on_false: impl FnOnce(&mut Graph) -> Result<Vec<ExprId>>,
) -> Vec<ExprId> {
    let mark = graph.mark();
    let predicate = branch(graph, |graph| single(graph.greater(x, y)));
    let on_true = branch(graph, on_true);
    let on_false = branch(graph, on_false);
    graph.cond(mark, vec![(predicate, on_true)], on_false).unwrap()
}

#[test]
fn branches_are_shown_before_their_cond() {
    let mut graph = Graph::new();
    let (x, y) = (f32s(&mut graph, 0, &[]), f32s(&mut graph, 1, &[]));
    let (two, three) = (int(&mut graph, 2), int(&mut graph, 3));
    let twice = |graph: &mut Graph| single(graph.multiply(x, two));
    let root = if_greater(&mut graph, x, y, twice, |graph| single(graph.multiply(y, three)))[0];
    check(
        &graph,
        root,
        "
        parameter a:0                f32
        parameter b:1                f32
        c = greater a, b             pred
        d = multiply 2, a            f32
        e = multiply 3, b            f32
        f = cond c -> d, true -> e   f32
        ",
    );
}

#[test]
fn multiple_results_are_in_braces() {
    let mut graph = Graph::new();
    let (x, y) = (f32s(&mut graph, 0, &[]), f32s(&mut graph, 1, &[]));
    let two = float(&mut graph, 2.0);
    let (one, zero) = (float(&mut graph, 1.0), float(&mut graph, 0.0));
    let on_true = |graph: &mut Graph| Ok(vec![graph.exp(x)?, one]);
    let on_false = |graph: &mut Graph| Ok(vec![graph.multiply(x, two)?, zero]);
    let mark = graph.mark();
    let predicate = branch(&mut graph, |graph| Ok(vec![graph.not_equal(x, y)?]));
    let (on_true, on_false) = (branch(&mut graph, on_true), branch(&mut graph, on_false));
    let root = graph.cond(mark, vec![(predicate, on_true)], on_false).unwrap()[0];
    check(
        &graph,
        root,
        "
        parameter a:0                              f32
        parameter b:1                              f32
        c = not_equal a, b                         pred
        d = exp a                                  f32
        e = multiply 2.0, a                        f32
        f = cond c -> {d, 1.0}, true -> {e, 0.0}   tuple2
        g = elem f, 0                              f32
        ",
    );
}

#[test]
fn clauses_are_shown_in_order() {
    let mut graph = Graph::new();
    let x = f32s(&mut graph, 0, &[]);
    let numbers: Vec<ExprId> = [10, 5, 0, 2].map(|value| int(&mut graph, value)).into();
    let mark = graph.mark();
    let above = |graph: &mut Graph, index: usize| {
        branch(graph, |graph| single(graph.greater(x, numbers[index])))
    };
    let clauses = vec![
        (above(&mut graph, 0), branch(&mut graph, |graph| single(graph.subtract(x, numbers[0])))),
        (above(&mut graph, 1), branch(&mut graph, |graph| single(graph.multiply(x, numbers[3])))),
        (above(&mut graph, 2), branch(&mut graph, |graph| single(graph.pow(x, numbers[3])))),
    ];
    let otherwise = branch(&mut graph, |graph| single(graph.negate(x)));
    let root = graph.cond(mark, clauses, otherwise).unwrap()[0];
    check(
        &graph,
        root,
        "
        parameter a:0                                f32
        b = greater a, 10                            pred
        c = subtract a, 10                           f32
        d = greater a, 5                             pred
        e = multiply 2, a                            f32
        f = greater a, 0                             pred
        g = pow a, 2                                 f32
        h = negate a                                 f32
        i = cond b -> c, d -> e, f -> g, true -> h   f32
        ",
    );
}

#[test]
fn values_shared_by_branches_are_printed_once() {
    let mut graph = Graph::new();
    let (x, y) = (f32s(&mut graph, 0, &[]), f32s(&mut graph, 1, &[]));
    // `exp x` is in both branches and outside, and the inner `cond` is in both branches.
    let inner = |graph: &mut Graph| {
        let exp = graph.exp(x)?;
        Ok(if_greater(
            graph,
            exp,
            y,
            |graph| single(graph.sin(exp)),
            |graph| single(graph.cos(exp)),
        ))
    };
    let on_false = |graph: &mut Graph| {
        let inner = inner(graph)?[0];
        single(graph.negate(inner))
    };
    let choice = if_greater(&mut graph, x, y, inner, on_false)[0];
    let exp = graph.exp(x).unwrap();
    let root = graph.add(choice, exp).unwrap();
    check(
        &graph,
        root,
        "
        parameter a:0                f32
        parameter b:1                f32
        c = greater a, b             pred
        d = exp a                    f32
        e = greater d, b             pred
        f = sin d                    f32
        g = cos d                    f32
        h = cond e -> f, true -> g   f32
        i = negate h                 f32
        j = cond c -> h, true -> i   f32
        k = add j, d                 f32
        ",
    );
}

#[test]
fn equal_conditionals_in_branches_are_not_walked_twice() {
    let mut graph = Graph::new();
    let (x, y) = (f32s(&mut graph, 0, &[]), f32s(&mut graph, 1, &[]));
    // Each level contains the lower level in both branches; 60 levels without sharing would never
    // end.
    fn level(graph: &mut Graph, x: ExprId, y: ExprId, depth: usize) -> ExprId {
        let mark = graph.mark();
        let predicate = branch(graph, |graph| single(graph.greater(x, y)));
        let below = if depth == 0 { x } else { level(graph, x, y, depth - 1) };
        let sine = graph.sin(below).unwrap();
        let on_true = graph.traced(mark, vec![sine]);
        let cosine = graph.cos(below).unwrap();
        let on_false = graph.traced(mark, vec![cosine]);
        graph.cond(mark, vec![(predicate, on_true)], on_false).unwrap()[0]
    }
    let root = level(&mut graph, x, y, 60);
    let text = lines(&graph, &[root], &GraphPrintOptions::default());
    // Two inputs, one predicate, and three lines for each level.
    assert_eq!(text.len(), 2 + 1 + 61 * 3);
}

#[test]
fn hooks_in_branches_are_separate() {
    let mut graph = Graph::new();
    let (x, y) = (f32s(&mut graph, 0, &[]), f32s(&mut graph, 1, &[]));
    let hook = |graph: &mut Graph| graph.hook(&[x], Some("seen"), None);
    let unused = |graph: &mut Graph| {
        graph.hook(&[x], Some("seen"), None)?;
        Ok(vec![y])
    };
    let root = if_greater(&mut graph, x, y, hook, unused)[0];
    check(
        &graph,
        root,
        "
        parameter a:0                f32
        parameter b:1                f32
        c = greater a, b             pred
        d = io_call seen: a          f32
        e = io_call seen: a          f32
        f = cond c -> d, true -> b   f32
        ",
    );
}

#[test]
fn loops_show_their_initial_state() {
    let mut graph = Graph::new();
    let x = f32s(&mut graph, 0, &[3]);
    let (zero, float_zero) = (int(&mut graph, 0), float(&mut graph, 0.0));
    let initial = [zero, float_zero];
    let mark = graph.mark();
    let types: Vec<TensorType> = initial.map(|id| graph.tensor_type(id).clone()).into();
    let scope = graph.open_scope("while", &types);
    let [i, sum] = scope.parameters[..] else { unreachable!() };
    let three = int(&mut graph, 3);
    let condition = graph.less(i, three).unwrap();
    let condition = graph.traced(mark, vec![condition]);
    let one = int(&mut graph, 1);
    let next = graph.add(i, one).unwrap();
    let element = graph.slice(x, &[SliceStart::Dynamic(i)], &[1], None).unwrap();
    let element = graph.squeeze(element, None).unwrap();
    let total = graph.add(sum, element).unwrap();
    let body = graph.traced(mark, vec![next, total]);
    let results = graph.while_loop(mark, &scope, &initial, condition, body).unwrap();
    check(
        &graph,
        results[1],
        "
        a = while {0, 0.0}   tuple2
        b = elem a, 1        f32
        ",
    );
}

#[test]
fn hooks_folds_and_windows() {
    let mut graph = Graph::new();
    let (x, y) = (f32s(&mut graph, 0, &[4]), f32s(&mut graph, 1, &[4]));
    let function: Arc<dyn crate::HostFn> = Arc::new(|_: &[HostTensor]| Ok(()));
    let pair = graph.hook(&[x, y], None, Some(function)).unwrap();
    let seen = graph.hook(&[pair[1]], Some("a b"), None).unwrap()[0];
    let zero = float(&mut graph, 0.0);
    let add = |graph: &mut Graph, x, y| graph.add(x, y);
    let folded = graph.reduce_fun(seen, zero, None, false, add).unwrap();
    let options = WindowOptions {
        strides: Some(vec![2]),
        padding: WindowPadding::Explicit(vec![(1, 1)]),
        ..WindowOptions::default()
    };
    let windows = graph.window_reduce(x, zero, &[2], &options, add).unwrap();
    let root = graph.multiply(folded, windows).unwrap();
    check(
        &graph,
        root,
        "
        parameter a:0                                                                                   f32[4]
        parameter b:1                                                                                   f32[4]
        c = io_call {a, b}, &fun/1                                                                      tuple2
        d = elem c, 1                                                                                   f32[4]
        e = io_call \"a b\": d                                                                            f32[4]
        f = reduce e, 0.0, axes: nil, keep_axes: false, &fun/2                                          f32
        g = window_reduce a, 0.0, {2}, padding: [{1, 1}], strides: [2], window_dilations: [1], &fun/2   f32[3]
        h = multiply f, g                                                                               f32[3]
        ",
    );
}

/// Returns the last line of an expression over `a: f32[4]`, `b: f32[2][3]`, `c: s32` and `d:
/// s32[2][1]`, with three spaces before the type.
fn last_line(build: impl FnOnce(&mut Graph, [ExprId; 4]) -> Result<ExprId>) -> String {
    let mut graph = Graph::new();
    let vector = f32s(&mut graph, 0, &[4]);
    let matrix = f32s(&mut graph, 1, &[2, 3]);
    let index = graph.parameter(2, TensorType::scalar(DType::S32));
    let indices = graph.parameter(3, TensorType::new(DType::S32, [2, 1]));
    let inputs = [vector, matrix, index, indices];
    let root = build(&mut graph, inputs).unwrap();
    // The inputs are roots as well, so that they have the same variables in every line.
    let roots = [vector, matrix, index, indices, root];
    let line = lines(&graph, &roots, &GraphPrintOptions::default()).pop().unwrap();
    let (text, ty) = line.rsplit_once(' ').unwrap();
    format!("{}   {ty}", text.trim_end())
}

#[test]
fn movement_ops() {
    let check = |expected: &str, build: fn(&mut Graph, [ExprId; 4]) -> Result<ExprId>| {
        assert_eq!(last_line(build), expected);
    };
    check("e = reshape b   f32[6]", |g, [_, b, ..]| g.reshape(b, [6]));
    check("e = transpose b, [1, 0]   f32[3][2]", |g, [_, b, ..]| g.transpose(b, None));
    check("e = reverse b, [0, 1]   f32[2][3]", |g, [_, b, ..]| g.reverse(b, None));
    check("e = broadcast a, {2, 4}, [1]   f32[2][4]", |g, [a, ..]| g.broadcast(a, [2, 4], None));
    check("e = concatenate [b, b], 1   f32[2][6]", |g, [_, b, ..]| g.concatenate(&[b, b], 1));
    check("e = stack [a, a], 0   f32[2][4]", |g, [a, ..]| g.stack(&[a, a], 0, None));
    check("e = pad a, 0.5, [{-1, 2, 0}]   f32[5]", |g, [a, ..]| {
        let value = float(g, 0.5);
        g.pad(a, value, &[Padding { low: -1, high: 2, interior: 0 }])
    });
    check("e = as_type a   s32[4]", |g, [a, ..]| g.as_type(a, DType::S32));
    check("e = iota nil   s32[2][2]", |g, _| g.iota([2, 2], None, DType::S32));
    check("e = iota 1   s32[2][2]", |g, _| g.iota([2, 2], Some(1), DType::S32));
    check("e = eye   f32[2][2]", |g, _| g.eye([2, 2], DType::F32));
}

#[test]
fn ops_without_arguments_keep_the_separator() {
    let mut graph = Graph::new();
    let root = graph.eye([2, 2], DType::F32).unwrap();
    check(&graph, root, "a = eye    f32[2][2]");
}

#[test]
fn index_ops() {
    let check = |expected: &str, build: fn(&mut Graph, [ExprId; 4]) -> Result<ExprId>| {
        assert_eq!(last_line(build), expected);
    };
    check("e = slice b, [0, c], [2, 1], [1, 1]   f32[2][1]", |g, [_, b, c, _]| {
        g.slice(b, &[0.into(), SliceStart::Dynamic(c)], &[2, 1], None)
    });
    check("f = put_slice a, [c], e   f32[4]", |g, [a, _, c, _]| {
        let two = g.slice(a, &[1.into()], &[2], None)?;
        g.put_slice(a, &[SliceStart::Dynamic(c)], two)
    });
    check("e = gather a, d, axes: [0]   f32[2]", |g, [a, _, _, d]| g.gather(a, d, None));
    check("e = indexed_add a, d, 1.0, axes: [0]   f32[4]", |g, [a, _, _, d]| {
        let ty = TensorType::new(DType::F32, [2]);
        let ones = g.constant(Scalar::Float(1.0), ty)?;
        g.indexed_add(a, d, ones, None)
    });
    check("e = sort a, axis: 0, direction: :desc, stable: false   f32[4]", |g, [a, ..]| {
        g.sort(a, 0, true, false)
    });
    check("e = argsort b, axis: 1, direction: :asc, stable: true   s32[2][3]", |g, [_, b, ..]| {
        g.argsort(b, -1, false, true, DType::S32)
    });
    check("e = argmax b, tie_break: :high, axis: 1, keep_axis: false   s32[2]", |g, [_, b, ..]| {
        g.argmax(b, Some(1), false, true, DType::S32)
    });
}

#[test]
fn contractions_windows_and_linear_algebra() {
    let check = |expected: &str, build: fn(&mut Graph, [ExprId; 4]) -> Result<ExprId>| {
        assert_eq!(last_line(build), expected);
    };
    check("f = dot b, [1], [], e, [0], []   f32[2][2]", |g, [_, b, ..]| {
        let transposed = g.transpose(b, None)?;
        g.dot(b, transposed)
    });
    check(
        "h = conv e, g, strides: [1, 2], padding: [{0, 0}, {0, 0}], input_dilation: [1, 1], \
         kernel_dilation: [1, 1], feature_group_size: 1, batch_group_size: 1, \
         input_permutation: [0, 1, 2, 3], kernel_permutation: [0, 1, 2, 3], \
         output_permutation: [0, 1, 2, 3]   f32[1][1][1][2]",
        |g, [a, b, ..]| {
            let image = g.reshape(b, [1, 1, 2, 3])?;
            let kernel = g.reshape(a, [1, 1, 4, 1])?;
            let kernel = g.slice(kernel, &[0.into(); 4], &[1, 1, 2, 1], None)?;
            let options = ConvOptions { strides: Some(vec![1, 2]), ..ConvOptions::default() };
            g.conv(image, kernel, &options)
        },
    );
    check(
        "e = window_max a, {2}, padding: [{0, 0}], strides: [1], window_dilations: [1]   f32[3]",
        |g, [a, ..]| g.window_max(a, &[2], &WindowOptions::default()),
    );
    check(
        "f = window_scatter_min a, e, 0.0, {2}, padding: [{0, 0}], strides: [2]   f32[4]",
        |g, [a, ..]| {
            let source = g.slice(a, &[0.into()], &[2], None)?;
            let zero = float(g, 0.0);
            let strides = Some(vec![2]);
            g.window_scatter_min(
                a,
                source,
                zero,
                &[2],
                &WindowOptions { strides, ..Default::default() },
            )
        },
    );
    check("e = ifft a, length: 8, axis: 0   c64[8]", |g, [a, ..]| {
        g.ifft(a, Some(8), 0, FftNorm::Backward)
    });
    check(
        "f = triangular_solve e, b, transform_a: :none, left_side: true, lower: true   f32[2][3]",
        |g, [_, b, ..]| {
            let a = g.eye([2, 2], DType::F32)?;
            let options =
                TriangularSolve { lower: true, left_side: true, transform: Transform::None };
            g.triangular_solve(a, b, options)
        },
    );
    check("e = block top{k: 2, mode: :any}, a   f32[4]", |g, [a, ..]| {
        let attributes = vec![("k".into(), "2".into()), ("mode".into(), ":any".into())];
        Ok(g.block("top", attributes, &[a], |g, x| single(g.exp(x[0])))?[0])
    });
}

#[test]
fn scalar_constants() {
    let mut graph = Graph::new();
    let cases = [
        (Scalar::Float(0.0), DType::F32, "0.0"),
        (Scalar::Int(-2), DType::S32, "-2"),
        (Scalar::Float(1e-10), DType::F64, "1.0e-10"),
        (Scalar::Float(f64::NAN), DType::F32, "nan"),
        (Scalar::Float(f64::INFINITY), DType::F32, "infinity"),
        (Scalar::Float(f64::NEG_INFINITY), DType::F64, "neg_infinity"),
        (Scalar::Complex(1.0, -2.5), DType::C64, "1.0-2.5i"),
    ];
    for (value, dtype, expected) in cases {
        let root = graph.constant(value, TensorType::new(dtype, [2])).unwrap();
        check(&graph, root, expected);
    }
}

#[test]
fn hidden_metadata_has_the_name_of_its_operand() {
    let mut graph = Graph::new();
    let (x, y) = (f32s(&mut graph, 0, &[2]), f32s(&mut graph, 1, &[2]));
    let exp = graph.exp(x).unwrap();
    let hidden = graph.metadata(&[exp], Metadata::default()).unwrap();
    let pair = graph.metadata(&[hidden, y], Metadata::default()).unwrap();
    let parts = graph.parts(pair).unwrap();
    let root = graph.subtract(parts[1], parts[0]).unwrap();
    let text = lines(&graph, &[root, pair], &GraphPrintOptions::default());
    let expected = [
        "parameter a:1       f32[2]",
        "parameter b:0       f32[2]",
        "c = exp b           f32[2]",
        "d = subtract a, c   f32[2]",
        "{c, a}",
    ];
    assert_eq!(text, expected);
}

#[test]
fn variable_names_continue_after_z() {
    let mut graph = Graph::new();
    let mut x = f32s(&mut graph, 0, &[]);
    for _ in 0..26 * 26 {
        x = graph.sin(x).unwrap();
    }
    let text = lines(&graph, &[x], &GraphPrintOptions::default());
    let name = |line: usize| text[line].split(' ').next().unwrap();
    assert_eq!((name(1), name(25), name(26), name(51), name(52)), ("b", "z", "ba", "bz", "ca"));
    assert_eq!((name(675), name(676)), ("zz", "baa"));
}

#[test]
fn limit_keeps_lines_nearest_the_root() {
    let mut graph = Graph::new();
    let (x, y) = (f32s(&mut graph, 0, &[]), f32s(&mut graph, 1, &[]));
    let exp = graph.exp(x).unwrap();
    let sin = graph.sin(exp).unwrap();
    let sum = graph.add(sin, y).unwrap();
    let root = graph.add(sum, exp).unwrap();
    let text = |limit| {
        lines(
            &graph,
            &[root],
            &GraphPrintOptions { limit: Some(limit), ..GraphPrintOptions::default() },
        )
    };
    assert_eq!(text(3), ["...", "b = sin a      f32", "d = add b, c   f32", "e = add d, a   f32"]);
    assert_eq!(text(0), ["..."]);
    assert_eq!(text(6).len(), 6);
    assert_eq!(text(6), lines(&graph, &[root], &GraphPrintOptions::default()));
}

#[cfg_attr(miri, ignore = "it takes too long")]
#[test]
fn long_chains_are_printed() {
    let mut graph = Graph::new();
    let mut x = f32s(&mut graph, 0, &[]);
    for _ in 0..1_000_000 {
        x = graph.sin(x).unwrap();
    }
    let text =
        lines(&graph, &[x], &GraphPrintOptions { limit: Some(2), ..GraphPrintOptions::default() });
    assert_eq!(text, ["...", "b = sin a   f32", "c = sin b   f32"]);
    assert_eq!(lines(&graph, &[x], &GraphPrintOptions::default()).len(), 1_000_001);
}

#[test]
fn custom_derivatives_show_their_outputs() {
    let mut graph = Graph::new();
    let (x, y) = (f32s(&mut graph, 0, &[2]), f32s(&mut graph, 1, &[2]));
    let (sin, cos) = (graph.sin(x).unwrap(), graph.cos(x).unwrap());
    let rule = |graph: &mut Graph, cotangents: &[ExprId]| single(graph.multiply(cotangents[0], y));
    let outputs = graph.custom_grad(&[sin, cos], &[x], rule).unwrap();
    check(
        &graph,
        outputs[1],
        "
        parameter a:0                       f32[2]
        b = sin a                           f32[2]
        c = cos a                           f32[2]
        d = metadata {b, c}, :custom_grad   tuple2
        e = elem d, 1                       f32[2]
        ",
    );
}

/// Bodies are printed inline, and lines that they share with other nodes appear once.
#[test]
fn blocks_can_be_printed_as_bodies() {
    let mut graph = Graph::new();
    let x = f32s(&mut graph, 0, &[3]);
    let parts = |graph: &mut Graph, x: &[ExprId]| -> Result<Vec<ExprId>> {
        let inner = graph.block("inner", vec![], x, |graph, x| single(graph.exp(x[0])))?[0];
        Ok(vec![graph.negate(inner)?, graph.sin(inner)?])
    };
    let outer = graph.block("outer", vec![], &[x], parts).unwrap();
    let exp = graph.exp(x).unwrap();
    let sum = graph.add(outer[1], exp).unwrap();
    let product = graph.multiply(sum, outer[0]).unwrap();
    let options = GraphPrintOptions { blocks: Blocks::Body, ..GraphPrintOptions::default() };
    let expected = [
        "parameter a:0       f32[3]",
        "b = exp a           f32[3]",
        "c = sin b           f32[3]",
        "d = add c, b        f32[3]",
        "e = negate b        f32[3]",
        "f = multiply d, e   f32[3]",
    ];
    assert_eq!(lines(&graph, &[product], &options), expected);
    let limited = GraphPrintOptions { limit: Some(2), ..options };
    assert_eq!(lines(&graph, &[product], &limited).len(), 3);
    let named = lines(&graph, &[product], &GraphPrintOptions::default());
    assert!(named.iter().any(|line| line.starts_with("b = block outer{}, a ")), "{named:?}");
}

/// A block that is printed for its hooks has no needed result.
#[test]
fn blocks_with_hooks_can_be_printed_as_bodies() {
    let mut graph = Graph::new();
    let x = f32s(&mut graph, 0, &[3]);
    let body = |graph: &mut Graph, x: &[ExprId]| -> Result<Vec<ExprId>> {
        let sin = graph.sin(x[0])?;
        graph.hook(&[sin], Some("seen"), None)?;
        Ok(vec![graph.exp(x[0])?, graph.cos(x[0])?])
    };
    graph.block("shown", vec![], &[x], body).unwrap();
    let options = GraphPrintOptions { blocks: Blocks::Body, ..GraphPrintOptions::default() };
    let text = lines(&graph, graph.effects(), &options);
    let names: Vec<&str> =
        text.iter().filter_map(|line| line.split_once(" = ")?.1.split(' ').next()).collect();
    assert_eq!(names, ["exp", "cos", "sin", "io_call"]);
}

#[test]
fn long_lines_do_not_pad_other_lines() {
    let mut graph = Graph::new();
    let parts: Vec<ExprId> =
        (0..2000).map(|at| graph.parameter(at, TensorType::new(DType::F32, [3]))).collect();
    let whole = graph.concatenate(&parts, 0).unwrap();
    let text = ExprText::new(&graph, whole).to_string();
    assert!(text.len() < 400_000, "{}", text.len());
}
