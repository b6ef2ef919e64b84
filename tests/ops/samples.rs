//! One small use of every op, for any dtype.

use std::sync::Arc;

use nxla::graph::build::{ConvOptions, FftNorm, SliceStart, WindowOptions};
use nxla::graph::{
    BinaryOp, Compute, ExprId, Graph, HostFn, Op, Padding, ReduceOp, Result, Transform,
    TriangularSolve, UnaryOp, WindowOp,
};
use nxla::{DType, HostTensor, Scalar, Shape, TensorType};

/// A graph under construction, with inputs of one dtype.
pub(crate) struct Draft {
    pub(crate) graph: Graph,
    pub(crate) dtype: DType,
    pub(crate) types: Vec<TensorType>,
    pub(crate) inputs: Vec<ExprId>,
}

impl Draft {
    pub(crate) fn new(dtype: DType) -> Self {
        Self { graph: Graph::default(), dtype, types: Vec::new(), inputs: Vec::new() }
    }

    /// An input of the dtype.
    fn input(&mut self, shape: &[usize]) -> ExprId {
        self.input_of(self.dtype, shape)
    }

    fn input_of(&mut self, dtype: DType, shape: &[usize]) -> ExprId {
        let ty = TensorType::new(dtype, shape);
        let id = self.graph.parameter(self.types.len(), ty.clone());
        self.types.push(ty);
        self.inputs.push(id);
        id
    }
}

type Build = Box<dyn Fn(&mut Draft) -> Result<ExprId>>;

/// A sample of an op: its name, and the function that builds it.
pub(crate) struct Sample {
    pub(crate) op: &'static str,
    pub(crate) build: Build,
}

fn sample(op: &'static str, build: impl Fn(&mut Draft) -> Result<ExprId> + 'static) -> Sample {
    Sample { op, build: Box::new(build) }
}

/// A sample of every op, family by family.
pub(crate) fn all() -> Vec<Sample> {
    let mut samples = create();
    samples.extend(elementwise());
    samples.extend(movement());
    samples.extend(reduce());
    samples.extend(window());
    samples.extend(contract());
    samples.extend(index());
    samples.extend(linalg());
    samples.extend(control());
    samples
}

fn create() -> Vec<Sample> {
    vec![
        sample("iota", |d| d.graph.iota([2, 3], Some(1), d.dtype)),
        sample("eye", |d| d.graph.eye([2, 3], d.dtype)),
    ]
}

fn elementwise() -> Vec<Sample> {
    let unary = UnaryOp::ALL.iter().map(|&op| {
        sample(op.name(), move |d| {
            let x = d.input(&[2]);
            d.graph.make(Op::Unary(op), &[x])
        })
    });
    let binary = BinaryOp::ALL.iter().map(|&op| {
        sample(op.name(), move |d| {
            let (x, y) = (d.input(&[2]), d.input(&[2]));
            d.graph.make(Op::Binary(op), &[x, y])
        })
    });
    let others = [
        sample("select", |d| {
            let predicate = d.input_of(DType::Pred, &[2]);
            let (x, y) = (d.input(&[2]), d.input(&[2]));
            d.graph.select(predicate, x, y)
        }),
        sample("clip", |d| {
            let (x, low, high) = (d.input(&[2]), d.input(&[]), d.input(&[]));
            d.graph.clip(x, low, high)
        }),
        sample("as_type", |d| {
            let x = d.input(&[2]);
            let other = if d.dtype == DType::F64 { DType::F32 } else { DType::F64 };
            d.graph.as_type(x, other)
        }),
        sample("bitcast", |d| {
            let x = d.input(&[2]);
            let same_width = |dtype: &&DType| {
                dtype.bits() == d.dtype.bits() && **dtype != d.dtype && dtype.is_integer()
            };
            let other = DType::ALL.iter().find(same_width).copied();
            d.graph.bitcast(x, other.unwrap_or(DType::U8))
        }),
    ];
    unary.chain(binary).chain(others).collect()
}

fn movement() -> Vec<Sample> {
    vec![
        sample("reshape", |d| {
            let x = d.input(&[2, 3]);
            d.graph.reshape(x, [6])
        }),
        sample("squeeze", |d| {
            let x = d.input(&[2, 1]);
            d.graph.squeeze(x, None)
        }),
        sample("transpose", |d| {
            let x = d.input(&[2, 3]);
            d.graph.transpose(x, None)
        }),
        sample("reverse", |d| {
            let x = d.input(&[2, 3]);
            d.graph.reverse(x, None)
        }),
        sample("broadcast", |d| {
            let x = d.input(&[3]);
            d.graph.broadcast(x, [2, 3], None)
        }),
        sample("pad", |d| {
            let (x, value) = (d.input(&[3]), d.input(&[]));
            d.graph.pad(x, value, &[Padding { low: 1, high: 0, interior: 1 }])
        }),
        sample("concatenate", |d| {
            let (x, y) = (d.input(&[3]), d.input(&[2]));
            d.graph.concatenate(&[x, y], 0)
        }),
        sample("stack", |d| {
            let (x, y) = (d.input(&[3]), d.input(&[3]));
            d.graph.stack(&[x, y], 0, None)
        }),
    ]
}

fn reduce() -> Vec<Sample> {
    let uniform = ReduceOp::ALL.iter().map(|&op| {
        sample(op.name(), move |d| {
            let x = d.input(&[2, 3]);
            d.graph.reduction(op, x, Some(&[0]), false)
        })
    });
    let others = [
        sample("argmax", |d| {
            let x = d.input(&[2, 3]);
            d.graph.argmax(x, Some(1), false, false, DType::S32)
        }),
        sample("argmin", |d| {
            let x = d.input(&[2, 3]);
            d.graph.argmin(x, Some(1), false, false, DType::S32)
        }),
        sample("reduce", |d| {
            let (x, initial) = (d.input(&[2, 3]), d.input(&[]));
            d.graph.reduce_fun(x, initial, Some(&[1]), false, |graph, x, y| {
                graph.binary(BinaryOp::Multiply, x, y)
            })
        }),
    ];
    uniform.chain(others).collect()
}

fn window() -> Vec<Sample> {
    let uniform = WindowOp::ALL.iter().map(|&op| {
        sample(op.name(), move |d| {
            let x = d.input(&[2, 3]);
            d.graph.window_reduction(op, x, &[1, 2], &WindowOptions::default())
        })
    });
    let others = [
        sample("window_reduce", |d| {
            let (x, initial) = (d.input(&[2, 3]), d.input(&[]));
            let options = WindowOptions::default();
            d.graph.window_reduce(x, initial, &[1, 2], &options, |graph, x, y| {
                graph.binary(BinaryOp::Multiply, x, y)
            })
        }),
        sample("window_scatter_max", |d| {
            let (x, source, initial) = (d.input(&[2, 3]), d.input(&[2, 2]), d.input(&[]));
            let options = WindowOptions::default();
            d.graph.window_scatter_max(x, source, initial, &[1, 2], &options)
        }),
        sample("window_scatter_min", |d| {
            let (x, source, initial) = (d.input(&[2, 3]), d.input(&[2, 2]), d.input(&[]));
            let options = WindowOptions::default();
            d.graph.window_scatter_min(x, source, initial, &[1, 2], &options)
        }),
    ];
    uniform.chain(others).collect()
}

fn contract() -> Vec<Sample> {
    vec![
        sample("dot", |d| {
            let (x, y) = (d.input(&[2, 3]), d.input(&[3, 4]));
            d.graph.dot(x, y)
        }),
        sample("conv", |d| {
            let (x, kernel) = (d.input(&[1, 2, 4]), d.input(&[3, 2, 2]));
            d.graph.conv(x, kernel, &ConvOptions::default())
        }),
    ]
}

fn index() -> Vec<Sample> {
    vec![
        sample("slice", |d| {
            let (x, start) = (d.input(&[4]), d.input_of(DType::S32, &[]));
            d.graph.slice(x, &[SliceStart::from(start)], &[2], None)
        }),
        sample("put_slice", |d| {
            let (x, update) = (d.input(&[4]), d.input(&[2]));
            d.graph.put_slice(x, &[SliceStart::from(1)], update)
        }),
        sample("gather", |d| {
            let (x, indices) = (d.input(&[4]), d.input_of(DType::S32, &[2, 1]));
            d.graph.gather(x, indices, None)
        }),
        sample("indexed_add", |d| {
            let (x, indices) = (d.input(&[4]), d.input_of(DType::S32, &[2, 1]));
            let updates = d.input(&[2]);
            d.graph.indexed_add(x, indices, updates, None)
        }),
        sample("indexed_put", |d| {
            let (x, indices) = (d.input(&[4]), d.input_of(DType::S32, &[2, 1]));
            let updates = d.input(&[2]);
            d.graph.indexed_put(x, indices, updates, None)
        }),
        sample("sort", |d| {
            let x = d.input(&[4]);
            d.graph.sort(x, 0, false, true)
        }),
        sample("argsort", |d| {
            let x = d.input(&[4]);
            d.graph.argsort(x, 0, false, true, DType::S32)
        }),
    ]
}

fn linalg() -> Vec<Sample> {
    vec![
        sample("fft", |d| {
            let x = d.input(&[4]);
            d.graph.fft(x, None, 0, FftNorm::Backward)
        }),
        sample("ifft", |d| {
            let x = d.input(&[4]);
            d.graph.ifft(x, None, 0, FftNorm::Backward)
        }),
        sample("triangular_solve", |d| {
            let (a, b) = (d.input(&[2, 2]), d.input(&[2, 1]));
            let transform = Transform::None;
            d.graph.triangular_solve(
                a,
                b,
                TriangularSolve { lower: true, left_side: true, transform },
            )
        }),
        sample("cholesky", |d| {
            let a = d.input(&[2, 2]);
            d.graph.cholesky(a)
        }),
        sample("lu", |d| {
            let a = d.input(&[2, 2]);
            Ok(d.graph.lu(a)?.1)
        }),
        sample("qr", |d| {
            let a = d.input(&[2, 2]);
            Ok(d.graph.qr(a, false)?.0)
        }),
        sample("eigh", |d| {
            let a = d.input(&[2, 2]);
            Ok(d.graph.eigh(a)?.0)
        }),
        sample("svd", |d| {
            let a = d.input(&[2, 2]);
            Ok(d.graph.svd(a, false)?.1)
        }),
    ]
}

fn control() -> Vec<Sample> {
    vec![
        sample("parameter", |d| Ok(d.input(&[2]))),
        sample("constant", |d| d.graph.scalar_constant(Scalar::Int(1).cast(d.dtype), d.dtype)),
        sample("tensor", |d| {
            let zeros = HostTensor::zeros(d.dtype, Shape::from([2])).expect("two elements");
            d.graph.tensor(zeros)
        }),
        sample("metadata", |d| {
            let x = d.input(&[2]);
            d.graph.metadata(&[x], Default::default())
        }),
        sample("elem", |d| {
            let (x, y) = (d.input(&[2]), d.input(&[3]));
            let tuple = d.graph.metadata(&[x, y], Default::default())?;
            d.graph.elem(tuple, 1)
        }),
        sample("cond", conditional_sample),
        sample("while", loop_sample),
        sample("io_call", |d| {
            let x = d.input(&[2]);
            let ignore: Arc<dyn HostFn> = Arc::new(|_: &[HostTensor]| Ok(()));
            d.graph.hook(&[x], Some("seen"), Some(ignore)).map(|values| values[0])
        }),
        sample("runtime_call", |d| {
            let x = d.input(&[2]);
            let identity: Arc<dyn HostFn> =
                Arc::new(Compute(|values: &[HostTensor]| Ok(values.into())));
            let result = d.graph.tensor_type(x).clone();
            d.graph.runtime_call(&[x], vec![result], identity).map(|values| values[0])
        }),
        sample("block", |d| {
            let x = d.input(&[2]);
            let values = d.graph.block("twice", Vec::new(), &[x], |graph, x| {
                Ok::<_, nxla::graph::Error>(vec![graph.binary(BinaryOp::Multiply, x[0], x[0])?])
            })?;
            Ok(values[0])
        }),
    ]
}

fn conditional_sample(d: &mut Draft) -> Result<ExprId> {
    let (predicate, x) = (d.input_of(DType::Pred, &[]), d.input(&[2]));
    let mark = d.graph.mark();
    let holds = d.graph.traced(mark, vec![predicate]);
    let start = d.graph.mark();
    let product = d.graph.binary(BinaryOp::Multiply, x, x)?;
    let then = d.graph.traced(start, vec![product]);
    let otherwise = d.graph.traced(d.graph.mark(), vec![x]);
    d.graph.cond(mark, vec![(holds, then)], otherwise).map(|values| values[0])
}

/// Multiplies three times; the result does not contain the counter.
fn loop_sample(d: &mut Draft) -> Result<ExprId> {
    let (x, count) = (d.input(&[]), d.input_of(DType::S32, &[]));
    // Arithmetic on booleans returns integers, so the loop state has an integer dtype.
    let x = if d.dtype == DType::Pred { d.graph.as_type(x, DType::U8)? } else { x };
    let types: Vec<TensorType> =
        [x, count].iter().map(|&id| d.graph.tensor_type(id).clone()).collect();
    let mark = d.graph.mark();
    let scope = d.graph.open_scope("while", &types);
    let (value, left) = (scope.parameters[0], scope.parameters[1]);
    let start = d.graph.mark();
    let zero = d.graph.scalar_constant(Scalar::Int(0), DType::S32)?;
    let is_positive = d.graph.binary(BinaryOp::Greater, left, zero)?;
    let condition = d.graph.traced(start, vec![is_positive]);
    let start = d.graph.mark();
    let one = d.graph.scalar_constant(Scalar::Int(1), DType::S32)?;
    let next = d.graph.binary(BinaryOp::Multiply, value, value)?;
    let left = d.graph.binary(BinaryOp::Subtract, left, one)?;
    let body = d.graph.traced(start, vec![next, left]);
    d.graph.while_loop(mark, &scope, &[x, count], condition, body).map(|values| values[0])
}
