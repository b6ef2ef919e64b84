//! A batched program returns the same results as separate runs for each entry: for every op, and
//! for every choice of inputs that differ between entries.

use std::collections::BTreeSet;
use std::sync::Arc;

use nxla_eval::evaluate;
use nxla_expr::build::{
    ConvOptions, Cumulative, FftNorm, SliceStart, WindowOptions, WindowPadding,
};
use nxla_expr::verify::verify;
use nxla_expr::{
    BinaryOp, ExprId, Graph, HostFn, Metadata, Op, Padding, Program, ReduceOp, Result, TensorType,
    Transform, TriangularSolve, UnaryOp, WindowOp,
};
use nxla_tensor::{DType, HostTensor, Number, Scalar};

/// A function of one entry.
struct Case {
    name: String,
    types: Vec<TensorType>,
    build: Box<dyn Fn(&mut Graph, &[ExprId]) -> Result<Vec<ExprId>>>,
}

impl Case {
    fn program(&self) -> Program {
        let mut graph = Graph::new();
        let inputs: Vec<ExprId> = (self.types.iter().enumerate())
            .map(|(index, ty)| graph.parameter(index, ty.clone()))
            .collect();
        let outputs = (self.build)(&mut graph, &inputs);
        let outputs = outputs.unwrap_or_else(|error| panic!("{}: {error}", self.name));
        Program::new(&graph, self.types.clone(), &outputs).unwrap()
    }
}

fn case(
    name: impl Into<String>,
    types: &[TensorType],
    build: impl Fn(&mut Graph, &[ExprId]) -> Result<Vec<ExprId>> + 'static,
) -> Case {
    Case { name: name.into(), types: types.to_vec(), build: Box::new(build) }
}

fn f32s<const N: usize>(shape: [usize; N]) -> TensorType {
    TensorType::new(DType::F32, shape)
}

fn s32s<const N: usize>(shape: [usize; N]) -> TensorType {
    TensorType::new(DType::S32, shape)
}

/// Small positive and negative numbers that repeat with a long period.
fn numbers(ty: &TensorType, seed: &mut u32) -> HostTensor {
    let mut tensor = HostTensor::zeros(ty.dtype, ty.shape.clone()).unwrap();
    nxla_tensor::match_dtype!(ty.dtype, T => {
        for element in tensor.make_mut::<T>().unwrap() {
            *seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let number = f64::from((*seed >> 24) % 9) - 3.0;
            let number = if ty.dtype.is_float() { number / 2.0 + 0.25 } else { number };
            *element = <T as nxla_tensor::Element>::from_scalar(Scalar::Float(number).cast(ty.dtype));
        }
    });
    tensor.with_names(ty.names.clone()).unwrap()
}

/// The entry of a batch at a row-major position.
fn entry(batch: &HostTensor, ty: &TensorType, index: usize) -> HostTensor {
    let size = ty.shape.size();
    let mut tensor = HostTensor::zeros(ty.dtype, ty.shape.clone()).unwrap();
    nxla_tensor::match_dtype!(ty.dtype, T => {
        let from = batch.as_slice::<T>().unwrap();
        tensor.make_mut::<T>().unwrap().copy_from_slice(&from[index * size..(index + 1) * size]);
    });
    tensor.with_names(ty.names.clone()).unwrap()
}

fn is_close(left: Scalar, right: Scalar) -> bool {
    let ((a, b), (c, d)) = (left.parts(), right.parts());
    let is_close = |a: f64, c: f64| {
        a == c || (a.is_nan() && c.is_nan()) || (a - c).abs() <= 2e-5 * c.abs().max(1.0)
    };
    left == right || (is_close(a, c) && is_close(b, d))
}

/// Compares a batch of entries with the entries for one choice of batched inputs.
fn compare(case: &Case, program: &Program, marks: &[bool], sizes: &[usize]) {
    let what = || format!("{} with {marks:?} of {sizes:?}", case.name);
    let (batched, outputs) = program.add_batch_axes(marks, sizes).unwrap();
    verify(batched.graph()).unwrap_or_else(|found| panic!("{}: {found:?}", what()));
    let mut seed = 7;
    let inputs: Vec<HostTensor> =
        batched.inputs().iter().map(|ty| numbers(ty, &mut seed)).collect();
    let results = evaluate(&batched, inputs.clone()).unwrap();
    for index in 0..sizes.iter().product() {
        let own =
            inputs.iter().zip(marks).zip(&case.types).map(|((input, &mark), ty)| {
                if mark { entry(input, ty, index) } else { input.clone() }
            });
        let expected = evaluate(program, own.collect()).unwrap();
        for (position, expected) in expected.iter().enumerate() {
            let found = if outputs[position] {
                let ty = TensorType {
                    dtype: expected.dtype(),
                    shape: expected.shape().clone(),
                    names: expected.names().cloned(),
                };
                let full = nxla_expr::batch::batched_type(&ty, sizes);
                assert_eq!(results[position].shape(), &full.shape, "{}", what());
                assert_eq!(results[position].names(), full.names.as_ref(), "{}", what());
                entry(&results[position], &ty, index)
            } else {
                results[position].clone()
            };
            for at in 0..expected.size() {
                let (found, expected) = (found.get(at), expected.get(at));
                assert!(
                    is_close(found, expected),
                    "{}: result {position} of entry {index}, element {at} is {found}, expected \
                     {expected}",
                    what()
                );
            }
        }
    }
}

/// Compares for every choice of batched inputs, for one batch axis and for two.
fn check(case: &Case) {
    let program = case.program();
    let count = case.types.len();
    for choice in 1..1_usize << count {
        let marks: Vec<bool> = (0..count).map(|input| choice >> input & 1 == 1).collect();
        compare(case, &program, &marks, &[3]);
        if choice + 1 == 1 << count || choice.is_power_of_two() {
            compare(case, &program, &marks, &[2, 2]);
            compare(case, &program, &marks, &[0]);
        }
    }
}

fn check_all(cases: &[Case]) {
    cases.iter().for_each(check);
}

// --- the cases, by family ---

fn elementwise() -> Vec<Case> {
    let unary = UnaryOp::ALL.iter().map(|&op| {
        let takes_floats = takes(DType::F32, |graph, x| graph.unary(op, x));
        let dtype = if takes_floats { DType::F32 } else { DType::S32 };
        let ty = TensorType::new(dtype, [2]);
        case(op.name(), &[ty], move |graph, ids| Ok(vec![graph.unary(op, ids[0])?]))
    });
    let binary = BinaryOp::ALL.iter().map(|&op| {
        let takes_floats = takes(DType::F32, |graph, x| graph.binary(op, x, x));
        let dtype = if takes_floats { DType::F32 } else { DType::U8 };
        let types = [TensorType::new(dtype, [2, 3]), TensorType::new(dtype, [3])];
        case(op.name(), &types, move |graph, ids| {
            Ok(vec![graph.binary(op, ids[0], ids[1])?, graph.binary(op, ids[1], ids[0])?])
        })
    });
    let others = [
        case("select", &[s32s([2]), f32s([3, 2]), f32s([])], |graph, ids| {
            Ok(vec![graph.select(ids[0], ids[1], ids[2])?])
        }),
        case("clip", &[s32s([4]), s32s([]), f32s([])], |graph, ids| {
            Ok(vec![graph.clip(ids[0], ids[1], ids[2])?])
        }),
        case("casts", &[f32s([2])], |graph, ids| {
            Ok(vec![graph.as_type(ids[0], DType::S16)?, graph.bitcast(ids[0], DType::U32)?])
        }),
        case("names", &[name_axes(["a", "b"], [2, 3]), f32s([3])], |graph, ids| {
            Ok(vec![graph.add(ids[0], ids[1])?, graph.subtract(ids[1], ids[0])?])
        }),
    ];
    unary.chain(binary).chain(others).collect()
}

fn name_axes(names: [&str; 2], shape: [usize; 2]) -> TensorType {
    let names = names.map(Some);
    TensorType { names: Some(names.into()), ..f32s(shape) }
}

/// Returns true if an op accepts operands of a dtype.
fn takes(dtype: DType, apply: impl Fn(&mut Graph, ExprId) -> Result<ExprId>) -> bool {
    let mut graph = Graph::new();
    let x = graph.parameter(0, TensorType::scalar(dtype));
    apply(&mut graph, x).is_ok()
}

fn movement() -> Vec<Case> {
    let padding =
        [Padding { low: 1, high: -1, interior: 1 }, Padding { low: -1, high: 2, interior: 0 }];
    vec![
        case("shapes", &[f32s([2, 1, 3])], |graph, ids| {
            Ok(vec![
                graph.reshape(ids[0], [3, 2])?,
                graph.squeeze(ids[0], None)?,
                graph.transpose(ids[0], Some(&[2, 0, 1]))?,
                graph.reverse(ids[0], Some(&[0, 2]))?,
                graph.reverse(ids[0], None)?,
                graph.broadcast(ids[0], [4, 2, 2, 3], None)?,
                graph.broadcast(ids[0], [2, 1, 4, 3], Some(&[0, 1, 3]))?,
                graph.tile(ids[0], &[2, 1, 1, 2])?,
                graph.flatten(ids[0], Some(&[0, 1]))?,
            ])
        }),
        case("pad", &[s32s([2, 2]), s32s([])], move |graph, ids| {
            Ok(vec![graph.pad(ids[0], ids[1], &padding)?])
        }),
        case("join", &[f32s([2, 2]), f32s([2, 2]), s32s([2, 2])], |graph, ids| {
            Ok(vec![graph.concatenate(ids, 1)?, graph.stack(ids, -1, None)?])
        }),
        case("named", &[name_axes(["a", "b"], [2, 3])], |graph, ids| {
            Ok(vec![
                graph.transpose(ids[0], None)?,
                graph.stack(&[ids[0], ids[0]], 1, Some("c".into()))?,
                graph.rename(ids[0], None)?,
                graph.sum(ids[0], Some(&[0]), false)?,
                graph
                    .dot_general(ids[0], &[0], &[], ids[0], &[0], &[])
                    .or_else(|_| graph.outer(ids[0], ids[0]))?,
            ])
        }),
        case("formulas", &[f32s([3, 3])], |graph, ids| {
            let sum = graph.iota([3, 3], Some(1), DType::F32)?;
            let sum = graph.add(sum, ids[0])?;
            let eye = graph.eye([3, 3], DType::F32)?;
            let literal = graph.tensor(HostTensor::from_slice(&[1_f32, 2.0, 4.0], [3]).unwrap())?;
            let scaled = graph.multiply(eye, ids[0])?;
            Ok(vec![sum, eye, graph.add(scaled, literal)?, graph.tril(ids[0], 0)?])
        }),
    ]
}

fn reduce() -> Vec<Case> {
    let mut cases = vec![
        case("arg", &[f32s([2, 3])], |graph, ids| {
            Ok(vec![
                graph.argmax(ids[0], None, true, false, DType::S32)?,
                graph.argmin(ids[0], Some(1), true, true, DType::S64)?,
                graph.argmax(ids[0], Some(0), false, true, DType::U8)?,
            ])
        }),
        case("reduce", &[f32s([2, 3]), f32s([]), f32s([])], |graph, ids| {
            let all = graph.reduce_fun(ids[0], ids[1], None, false, |graph, x, sum| {
                let scaled = graph.multiply(x, ids[2])?;
                graph.add(scaled, sum)
            })?;
            let some = graph.reduce_fun(ids[0], ids[1], Some(&[1]), true, |graph, x, most| {
                graph.max(x, most)
            })?;
            Ok(vec![all, some])
        }),
        case("statistics", &[f32s([4, 3])], |graph, ids| {
            Ok(vec![
                graph.logsumexp(ids[0], None, true, None)?,
                graph.variance(ids[0], Some(&[0]), false, 1.0)?,
                graph.median(ids[0], Some(&[1]), false)?,
                graph.median(ids[0], None, false)?,
                graph.mode(ids[0], Some(0), true)?,
                graph.covariance(ids[0], None, 0)?,
            ])
        }),
    ];
    for &op in ReduceOp::ALL {
        cases.push(case(op.name(), &[s32s([2, 3, 2])], move |graph, ids| {
            Ok(vec![
                graph.reduction(op, ids[0], None, false)?,
                graph.reduction(op, ids[0], None, true)?,
                graph.reduction(op, ids[0], Some(&[0, -1]), false)?,
                graph.reduction(op, ids[0], Some(&[1]), true)?,
            ])
        }));
    }
    cases
}

fn window_options() -> WindowOptions {
    WindowOptions {
        strides: Some(vec![1, 2]),
        padding: WindowPadding::Same,
        dilations: Some(vec![2, 1]),
    }
}

fn window() -> Vec<Case> {
    let mut cases = vec![
        case("window_reduce", &[f32s([3, 4]), f32s([]), f32s([])], |graph, ids| {
            let folded = graph.window_reduce(
                ids[0],
                ids[1],
                &[2, 2],
                &window_options(),
                |graph, x, sum| {
                    let scaled = graph.multiply(x, ids[2])?;
                    graph.add(scaled, sum)
                },
            )?;
            Ok(vec![folded])
        }),
        case("window_scatter", &[f32s([4, 4]), f32s([2, 2]), f32s([])], |graph, ids| {
            let options = WindowOptions { strides: Some(vec![2, 2]), ..WindowOptions::default() };
            Ok(vec![
                graph.window_scatter_max(ids[0], ids[1], ids[2], &[2, 2], &options)?,
                graph.window_scatter_min(ids[0], ids[1], ids[2], &[2, 2], &options)?,
            ])
        }),
        case("cumulative", &[s32s([3, 4])], |graph, ids| {
            Ok(vec![
                graph.cumulative(Cumulative::Sum, ids[0], 1, false)?,
                graph.cumulative(Cumulative::Max, ids[0], 0, true)?,
            ])
        }),
    ];
    for &op in WindowOp::ALL {
        cases.push(case(op.name(), &[f32s([3, 4])], move |graph, ids| {
            Ok(vec![graph.window_reduction(op, ids[0], &[2, 2], &window_options())?])
        }));
    }
    cases
}

fn conv(
    name: &'static str,
    input: [usize; 4],
    kernel: [usize; 4],
    change: impl Fn(&mut ConvOptions) + 'static,
) -> Case {
    case(name, &[f32s(input), f32s(kernel)], move |graph, ids| {
        let mut options = ConvOptions::default();
        change(&mut options);
        Ok(vec![graph.conv(ids[0], ids[1], &options)?])
    })
}

fn contract() -> Vec<Case> {
    vec![
        case("dot", &[f32s([2, 3]), f32s([3, 4])], |graph, ids| {
            Ok(vec![graph.dot(ids[0], ids[1])?, graph.outer(ids[0], ids[1])?])
        }),
        case("vectors", &[s32s([3]), f32s([3])], |graph, ids| Ok(vec![graph.dot(ids[0], ids[1])?])),
        case("batched dot", &[f32s([2, 2, 3, 4]), f32s([2, 2, 4, 3, 5])], |graph, ids| {
            let one = graph.dot_general(ids[0], &[3], &[0], ids[1], &[2], &[0])?;
            let two = graph.dot_general(ids[0], &[3, 2], &[0, 1], ids[1], &[2, 3], &[0, 1])?;
            Ok(vec![one, two])
        }),
        conv("conv", [2, 3, 5, 4], [4, 3, 2, 3], |options| {
            options.strides = Some(vec![2, 1]);
            options.padding = WindowPadding::Same;
            options.kernel_dilation = Some(vec![1, 2]);
        }),
        conv("feature groups", [2, 4, 3, 3], [6, 2, 2, 2], |options| options.feature_groups = 2),
        conv("batch groups", [4, 3, 3, 3], [6, 3, 2, 2], |options| options.batch_groups = 2),
        conv("channels last", [2, 4, 5, 3], [2, 3, 3, 4], |options| {
            options.input_permutation = Some(vec![0, 3, 1, 2]);
            options.kernel_permutation = Some(vec![3, 2, 0, 1]);
            options.output_permutation = Some(vec![0, 3, 1, 2]);
            options.input_dilation = Some(vec![2, 1]);
        }),
    ]
}

fn index() -> Vec<Case> {
    vec![
        case(
            "slice",
            &[f32s([4, 5, 3]), s32s([]), TensorType::scalar(DType::U64)],
            |graph, ids| {
                let starts = [ids[1].into(), SliceStart::from(1), ids[2].into()];
                let fixed = [SliceStart::from(1), 2.into(), 0.into()];
                Ok(vec![
                    graph.slice(ids[0], &starts, &[2, 4, 3], Some(&[1, 2, 1]))?,
                    graph.slice(ids[0], &starts, &[3, 1, 2], None)?,
                    graph.slice(ids[0], &fixed, &[3, 2, 3], Some(&[2, 1, 1]))?,
                ])
            },
        ),
        case(
            "put_slice",
            &[f32s([4, 5]), f32s([2, 3]), s32s([]), TensorType::scalar(DType::U8)],
            |graph, ids| {
                let [x, update] = [ids[0], ids[1]];
                let zero = SliceStart::from(0);
                Ok(vec![
                    graph.put_slice(x, &[ids[2].into(), ids[3].into()], update)?,
                    graph.put_slice(x, &[zero, ids[2].into()], update)?,
                    graph.put_slice(x, &[ids[3].into(), SliceStart::from(9)], update)?,
                    graph.put_slice(x, &[SliceStart::from(1), zero], update)?,
                ])
            },
        ),
        case("gather", &[f32s([3, 4, 2]), s32s([2, 2])], |graph, ids| {
            Ok(vec![
                graph.gather(ids[0], ids[1], None)?,
                graph.gather(ids[0], ids[1], Some(&[0, 2]))?,
                graph.take(ids[0], ids[1], 1)?,
            ])
        }),
        case("take_along_axis", &[f32s([3, 2]), s32s([5, 2])], |graph, ids| {
            Ok(vec![graph.take_along_axis(ids[0], ids[1], 0)?])
        }),
        case("scatter", &[f32s([3, 4]), s32s([2, 1]), f32s([2, 4])], |graph, ids| {
            let shorter = graph.slice_along_axis(ids[2], 0, 3, 1, 1)?;
            Ok(vec![
                graph.indexed_add(ids[0], ids[1], ids[2], None)?,
                graph.indexed_add(ids[0], ids[1], shorter, Some(&[0]))?,
                graph.indexed_put(ids[0], ids[1], ids[2], None)?,
            ])
        }),
        case("scatter of columns", &[f32s([3, 4]), s32s([2, 1]), f32s([2, 3])], |graph, ids| {
            Ok(vec![
                graph.indexed_add(ids[0], ids[1], ids[2], Some(&[1]))?,
                graph.indexed_put(ids[0], ids[1], ids[2], Some(&[1]))?,
            ])
        }),
        case("sort", &[f32s([3, 4])], |graph, ids| {
            let (values, indices) = graph.top_k(ids[0], 2)?;
            Ok(vec![
                graph.sort(ids[0], 1, true, true)?,
                graph.argsort(ids[0], 0, false, true, DType::S32)?,
                values,
                indices,
                graph.diff(ids[0], 1, 0)?,
            ])
        }),
    ]
}

/// A positive definite matrix.
fn positive_definite(graph: &mut Graph, x: ExprId) -> Result<ExprId> {
    let square = graph.dot_general(x, &[1], &[], x, &[1], &[])?;
    let eye = graph.eye([3, 3], DType::F32)?;
    graph.add(square, eye)
}

fn linalg() -> Vec<Case> {
    vec![
        case("factors", &[f32s([3, 3]), f32s([3, 2]), f32s([3])], |graph, ids| {
            let positive_definite = positive_definite(graph, ids[0])?;
            let lower = graph.cholesky(positive_definite)?;
            let left = TriangularSolve { lower: true, left_side: true, transform: Transform::None };
            Ok(vec![
                lower,
                graph.triangular_solve(lower, ids[1], left)?,
                graph.triangular_solve(lower, ids[2], left)?,
            ])
        }),
        case("factorizations", &[f32s([3, 3])], |graph, ids| {
            let positive_definite = positive_definite(graph, ids[0])?;
            let (p, l, u) = graph.lu(ids[0])?;
            let (q, r) = graph.qr(ids[0], false)?;
            let (w, _) = graph.eigh(positive_definite)?;
            let (_, s, _) = graph.svd(ids[0], true)?;
            Ok(vec![p, l, u, q, r, w, s])
        }),
        case("fourier", &[f32s([3, 4])], |graph, ids| {
            Ok(vec![
                graph.fft(ids[0], Some(5), 0, FftNorm::Backward)?,
                graph.ifft(ids[0], None, -1, FftNorm::Backward)?,
                graph.rfft(ids[0], None, 1, FftNorm::Backward)?,
            ])
        }),
    ]
}

/// Doubles or halves `x` by a conditional on the predicate.
fn double_or_halve(graph: &mut Graph, predicate: ExprId, x: ExprId) -> Result<Vec<ExprId>> {
    let (mark, two) = (graph.mark(), graph.number(Number::Float(2.0))?);
    let more = graph.multiply(x, two)?;
    let more = graph.traced(mark, vec![more, two]);
    let start = graph.mark();
    let less = graph.divide(x, two)?;
    let less = graph.traced(start, vec![less, predicate]);
    let predicate = graph.traced(graph.mark(), vec![predicate]);
    graph.cond(mark, vec![(predicate, more)], less)
}

/// Counts from `start` to `end`, and adds `step` to `x` in each iteration.
fn count_loop(
    graph: &mut Graph,
    (start, end): (ExprId, ExprId),
    x: ExprId,
    step: ExprId,
) -> Result<Vec<ExprId>> {
    let types: Vec<TensorType> =
        [start, x].iter().map(|&id| graph.tensor_type(id).clone()).collect();
    let mark = graph.mark();
    let scope = graph.open_scope("while", &types);
    let [count, sum] = scope.parameters[..] else { unreachable!() };
    let at = graph.mark();
    let less = graph.less(count, end)?;
    let condition = graph.traced(at, vec![less]);
    let at = graph.mark();
    let one = graph.weak_number(Number::Int(1), count)?;
    let next = vec![graph.add(count, one)?, graph.add(sum, step)?];
    let body = graph.traced(at, next);
    graph.while_loop(mark, &scope, &[start, x], condition, body)
}

fn control() -> Vec<Case> {
    let seen: Arc<dyn HostFn> = Arc::new(|_: &[HostTensor]| Ok(()));
    vec![
        case("cond", &[s32s([]), f32s([2])], |graph, ids| {
            let predicate = greater_than_zero(graph, ids[0])?;
            double_or_halve(graph, predicate, ids[1])
        }),
        case("cond of several", &[s32s([]), f32s([2, 2]), s32s([])], |graph, ids| {
            let (mark, mut clauses) = (graph.mark(), Vec::new());
            for (predicate, axis) in [(ids[0], 0), (ids[2], 1)] {
                let predicate = greater_than_zero(graph, predicate)?;
                let start = graph.mark();
                let sum = graph.sum(ids[1], Some(&[axis]), false)?;
                let body = graph.traced(start, vec![sum]);
                clauses.push((graph.traced(graph.mark(), vec![predicate]), body));
            }
            let start = graph.mark();
            let zeros = graph.constant(Scalar::Float(0.0), f32s([2]))?;
            let otherwise = graph.traced(start, vec![zeros]);
            graph.cond(mark, clauses, otherwise)
        }),
        case("while", &[s32s([]), s32s([]), f32s([2]), f32s([])], |graph, ids| {
            count_loop(graph, (ids[0], ids[1]), ids[2], ids[3])
        }),
        case("loop of loops", &[s32s([]), f32s([]), f32s([])], |graph, ids| {
            let zero = graph.number(Number::Int(0))?;
            let three = graph.number(Number::Int(3))?;
            let types = [s32s([]), f32s([])];
            let mark = graph.mark();
            let scope = graph.open_scope("while", &types);
            let at = graph.mark();
            let less = graph.less(scope.parameters[0], three)?;
            let condition = graph.traced(at, vec![less]);
            let at = graph.mark();
            let inner =
                count_loop(graph, (scope.parameters[0], ids[0]), scope.parameters[1], ids[2])?;
            let one = graph.number(Number::Int(1))?;
            let body = vec![graph.add(scope.parameters[0], one)?, inner[1]];
            let body = graph.traced(at, body);
            graph.while_loop(mark, &scope, &[zero, ids[1]], condition, body)
        }),
        case("annotations", &[f32s([2]), f32s([2])], move |graph, ids| {
            let shown = graph.hook(&[ids[0], ids[1]], Some("shown"), Some(seen.clone()))?;
            let product = graph.multiply(shown[0], shown[1])?;
            let node = graph
                .metadata(&[product, ids[1]], Metadata { inspect: None, ..Metadata::default() })?;
            let parts = graph.parts(node)?;
            let own = graph.custom_grad(&parts, &[ids[0]], |graph, cotangents| {
                Result::Ok(vec![graph.multiply(cotangents[0], ids[1])?])
            })?;
            Ok(own)
        }),
    ]
}

fn greater_than_zero(graph: &mut Graph, x: ExprId) -> Result<ExprId> {
    let zero = graph.weak_number(Number::Int(0), x)?;
    graph.greater(x, zero)
}

/// The name of an op with operands; the rows of the table count as one op.
fn kind(op: &Op) -> Option<&'static str> {
    Some(match op {
        Op::Iota(_) | Op::Eye(_) | Op::Parameter(_) | Op::Constant(_) | Op::Tensor(_) => {
            return None;
        }
        Op::Unary(_) => "unary",
        Op::Binary(_) => "binary",
        op => op.name(),
    })
}

/// The number of names that [`kind`] returns; some ops have several.
const KINDS: usize = 53;

#[test]
fn cases_cover_every_op() {
    let families =
        [elementwise(), movement(), reduce(), window(), contract(), index(), linalg(), control()];
    let mut seen = BTreeSet::new();
    for case in families.iter().flatten() {
        let program = case.program();
        let graph = program.graph();
        seen.extend(graph.ids().filter_map(|id| kind(graph.op(id))));
    }
    assert_eq!(seen.len(), KINDS, "{seen:?}");
}

#[test]
fn batched_elementwise_ops() {
    check_all(&elementwise());
}

#[test]
fn batched_movement_ops() {
    check_all(&movement());
}

#[test]
fn batched_reductions() {
    check_all(&reduce());
}

#[test]
fn batched_windows() {
    check_all(&window());
}

#[test]
fn batched_contractions() {
    check_all(&contract());
}

#[test]
fn batched_index_ops() {
    check_all(&index());
}

#[test]
fn batched_factorizations() {
    check_all(&linalg());
}

#[test]
fn batched_control_flow() {
    check_all(&control());
}
