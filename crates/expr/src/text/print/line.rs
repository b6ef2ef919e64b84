//! The right-hand side of a line: the printed operands of an op and its attributes.

use nxla_tensor::Scalar;

use crate::family_ops;
use crate::graph::{
    ArgReduce, Block, Conv, Dot, ExprId, Factorization, Op, Operands, Reduce, SliceAttributes,
    SortAttributes, Start, Transform, Type, WindowAttributes,
};

/// Returns the printed operands of an op in order of appearance, in which the walk visits them.
pub(super) fn printed_operands(op: &Op, operands: &[ExprId]) -> Operands {
    let first = |count: usize| Operands::from_slice(&operands[..count.min(operands.len())]);
    match op {
        Op::While(op) => first(op.state),
        Op::ReduceFun(_) | Op::WindowFun(_) => first(2),
        Op::Metadata(op) => Operands::from_slice(op.values_of(operands)),
        Op::PutSlice(_) => {
            // The starts are printed between the tensor and the update.
            let mut shown = Operands::from_slice(operands);
            if shown.len() > 2 {
                shown[1..].rotate_left(1);
            }
            shown
        }
        family_ops!(@ create elementwise movement contract linalg)
        | Op::Reduce(..)
        | Op::ArgReduce(..)
        | Op::Window(..)
        | Op::WindowScatter(..)
        | Op::Slice(_)
        | Op::Gather(_)
        | Op::IndexedAdd(_)
        | Op::IndexedPut(_)
        | Op::Sort(_)
        | Op::Argsort(..)
        | Op::Parameter(_)
        | Op::Constant(_)
        | Op::Tensor(_)
        | Op::Elem(_)
        | Op::Cond(_)
        | Op::Hook(_)
        | Op::Block(_) => Operands::from_slice(operands),
    }
}

/// Returns the arguments of an op for its printed operands. The walk writes `cond`, inputs and
/// literals.
pub(super) fn arguments(op: &Op, operands: &[String]) -> String {
    let mut args = Args::default();
    match op {
        Op::Iota(iota) => args.push(optional(iota.axis)),
        Op::Squeeze(axes) | Op::Transpose(axes) | Op::Reverse(axes) => {
            args.all(operands).push(list(axes))
        }
        Op::Broadcast(op) => {
            args.all(operands).push(braces(op.shape.as_slice())).push(list(&op.axes))
        }
        Op::Pad(config) => {
            let one =
                |p: &crate::graph::Padding| format!("{{{}, {}, {}}}", p.low, p.high, p.interior);
            args.all(operands).push(list(config.iter().map(one)))
        }
        Op::Concatenate(axis) => args.push(list(operands)).push(axis),
        Op::Stack(op) => args.push(list(operands)).push(op.axis),
        Op::Reduce(_, op) => args.all(operands).reduce(op),
        Op::ReduceFun(op) => args.all(operands).reduce(&op.reduce).push("&fun/2"),
        Op::ArgReduce(_, op) => args.all(operands).arg_reduce(op),
        Op::Window(_, window) => args.all(operands).window(window).dilations(window),
        Op::WindowFun(op) => {
            args.all(operands).window(&op.window).dilations(&op.window).push("&fun/2")
        }
        Op::WindowScatter(_, window) => args.all(operands).window(window),
        Op::Dot(op) => args.dot(op, operands),
        Op::Conv(op) => args.all(operands).conv(op),
        Op::Slice(op) => args.slice(op, operands),
        Op::PutSlice(starts) => {
            let (update, rest) = operands.split_last().expect("put_slice has an update");
            args.push(&rest[0]).push(list(starts_text(starts, &rest[1..]))).push(update)
        }
        Op::Gather(axes) | Op::IndexedAdd(axes) | Op::IndexedPut(axes) => {
            args.all(operands).option("axes", list(axes))
        }
        Op::Sort(op) | Op::Argsort(op, _) => args.all(operands).sort(op),
        Op::Fft(op) => args.all(operands).option("length", op.length).option("axis", op.axis),
        Op::TriangularSolve(op) => {
            let transform = match op.transform {
                Transform::None => ":none",
                Transform::Transpose => ":transpose",
                Transform::Conjugate => ":conjugate",
            };
            args.all(operands)
                .option("transform_a", transform)
                .option("left_side", op.left_side)
                .option("lower", op.lower)
        }
        Op::Factorize(Factorization::Qr { complete }) => {
            let mode = if *complete { ":complete" } else { ":reduced" };
            args.all(operands).option("mode", mode)
        }
        Op::Factorize(Factorization::Svd { full }) => {
            args.all(operands).option("full_matrices?", full)
        }
        Op::Metadata(op) => {
            let inspect = op.inspect.as_deref().unwrap_or_default();
            args.push(single_or_braces(operands)).push(format!(":{inspect}"))
        }
        Op::Elem(index) => args.all(operands).push(index),
        Op::While(_) => args.push(single_or_braces(operands)),
        Op::Hook(hook) if hook.results.is_some() => {
            args.push(single_or_braces(operands)).push("&fun/1")
        }
        Op::Hook(hook) => {
            let values = single_or_braces(operands);
            match &hook.name {
                Some(name) => args.push(format!("{}: {values}", key(name))),
                None => args.push(values).push("&fun/1"),
            }
        }
        Op::Block(block) => args.push(block_text(block)).all(operands),
        Op::Constant(constant) => args.push(number(constant.literal())),
        Op::Eye(_)
        | Op::Unary(_)
        | Op::Binary(_)
        | Op::Select
        | Op::Clip
        | Op::AsType(_)
        | Op::Bitcast(_)
        | Op::Reshape(_)
        | Op::Cholesky
        | Op::Factorize(Factorization::Lu | Factorization::Eigh)
        | Op::Parameter(_)
        | Op::Tensor(_)
        | Op::Cond(_) => args.all(operands),
    };
    args.text
}

/// Returns the type column: without axis names, and only the number of elements of a tuple.
pub(super) fn type_text(ty: &Type) -> String {
    match ty {
        Type::Tensor(ty) => format!("{}{}", ty.dtype, ty.shape),
        Type::Tuple(parts) => format!("tuple{}", parts.len()),
    }
}

/// Formats a scalar constant. Infinities and NaN are written as `:infinity`, `:neg_infinity` and
/// `:nan`, unlike the elements of a printed tensor.
pub(super) fn number(value: Scalar) -> String {
    match value {
        Scalar::Float(value) if value.is_nan() => "nan".into(),
        Scalar::Float(f64::INFINITY) => "infinity".into(),
        Scalar::Float(f64::NEG_INFINITY) => "neg_infinity".into(),
        Scalar::Int(_) | Scalar::UInt(_) | Scalar::Float(_) | Scalar::Complex(..) => {
            value.to_string()
        }
    }
}

/// Returns a single value, or several values in braces.
pub(super) fn single_or_braces(values: &[String]) -> String {
    match values {
        [value] => value.clone(),
        values => braces(values),
    }
}

/// Returns the `index`-th variable: `a` to `z`, then `ba`, `bb` and so on.
pub(super) fn letters(mut index: u32) -> String {
    let mut reversed = Vec::new();
    loop {
        let digit = u8::try_from(index % 26).expect("a remainder by 26 is small");
        reversed.push(char::from(b'a' + digit));
        index /= 26;
        if index == 0 {
            return reversed.into_iter().rev().collect();
        }
    }
}

/// Arguments separated by commas.
#[derive(Default)]
struct Args {
    text: String,
}

impl Args {
    fn push(&mut self, arg: impl ToString) -> &mut Self {
        if !self.text.is_empty() {
            self.text.push_str(", ");
        }
        self.text.push_str(&arg.to_string());
        self
    }

    fn all(&mut self, args: &[String]) -> &mut Self {
        for arg in args {
            self.push(arg);
        }
        self
    }

    fn option(&mut self, name: &str, value: impl ToString) -> &mut Self {
        self.push(format!("{name}: {}", value.to_string()))
    }

    fn reduce(&mut self, op: &Reduce) -> &mut Self {
        let axes = op.axes.as_ref().map(list);
        self.option("axes", optional(axes)).option("keep_axes", op.keep_axes)
    }

    fn arg_reduce(&mut self, op: &ArgReduce) -> &mut Self {
        self.option("tie_break", if op.tie_high { ":high" } else { ":low" })
            .option("axis", optional(op.axis))
            .option("keep_axis", op.keep_axis)
    }

    fn window(&mut self, op: &WindowAttributes) -> &mut Self {
        self.push(braces(&op.dimensions))
            .option("padding", pairs(&op.padding))
            .option("strides", list(&op.strides))
    }

    fn dilations(&mut self, op: &WindowAttributes) -> &mut Self {
        self.option("window_dilations", list(&op.dilations))
    }

    fn dot(&mut self, op: &Dot, operands: &[String]) -> &mut Self {
        self.all(&operands[..1])
            .push(list(&op.left_contract))
            .push(list(&op.left_batch))
            .all(&operands[1..])
            .push(list(&op.right_contract))
            .push(list(&op.right_batch))
    }

    fn conv(&mut self, op: &Conv) -> &mut Self {
        self.option("strides", list(&op.strides))
            .option("padding", pairs(&op.padding))
            .option("input_dilation", list(&op.input_dilation))
            .option("kernel_dilation", list(&op.kernel_dilation))
            .option("feature_group_size", op.feature_groups)
            .option("batch_group_size", op.batch_groups)
            .option("input_permutation", list(&op.input_permutation))
            .option("kernel_permutation", list(&op.kernel_permutation))
            .option("output_permutation", list(&op.output_permutation))
    }

    fn slice(&mut self, op: &SliceAttributes, operands: &[String]) -> &mut Self {
        self.all(&operands[..1])
            .push(list(starts_text(&op.starts, &operands[1..])))
            .push(list(&op.lengths))
            .push(list(&op.strides))
    }

    fn sort(&mut self, op: &SortAttributes) -> &mut Self {
        self.option("axis", op.axis)
            .option("direction", if op.descending { ":desc" } else { ":asc" })
            .option("stable", op.stable)
    }
}

/// Returns the starts: static indices, and the operands of dynamic starts.
fn starts_text(starts: &[Start], operands: &[String]) -> Vec<String> {
    let mut operands = operands.iter();
    let text = |start: &Start| match start {
        Start::Static(index) => index.to_string(),
        Start::Dynamic => operands.next().cloned().unwrap_or_default(),
    };
    starts.iter().map(text).collect()
}

/// Returns the name of a block and its attributes.
fn block_text(block: &Block) -> String {
    let attributes: Vec<String> =
        block.attributes().iter().map(|(name, value)| format!("{name}: {value}")).collect();
    format!("{}{{{}}}", block.name(), attributes.join(", "))
}

/// Returns a key, quoted if it is not a single word.
fn key(name: &str) -> String {
    let letter = |c: char| c.is_alphabetic() || c == '_';
    let plain = name.starts_with(letter) && name.chars().all(|c| letter(c) || c.is_numeric());
    if plain { name.to_owned() } else { format!("{name:?}") }
}

fn optional(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "nil".into(), |value| value.to_string())
}

fn join<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    items.join(", ")
}

fn list<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
    format!("[{}]", join(items))
}

fn braces<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
    format!("{{{}}}", join(items))
}

fn pairs(items: &[(i64, i64)]) -> String {
    list(items.iter().map(|(low, high)| format!("{{{low}, {high}}}")))
}
