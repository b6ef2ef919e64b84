//! Types of control ops: parameters, literals, tuples and regions.

use nxla_tensor::DType;

use super::check::{Inferred, describe, given_type, tensor, tensors};
use crate::graph::{
    Block, BlockKind, Combine, Cond, Cumulative, ErrorKind, Factorization, MAX_NOTE_DEPTH,
    Metadata, Op, Program, TensorType, Type, While,
};

pub(super) fn infer(op: &Op, operands: &[&Type]) -> Inferred {
    match op {
        Op::Parameter(parameter) => tensor(parameter.ty.clone()),
        Op::Constant(constant) => given_type(&constant.ty),
        Op::Tensor(literal) => tensor(TensorType {
            dtype: literal.0.dtype(),
            shape: literal.0.shape().clone(),
            names: literal.0.names().cloned(),
        }),
        Op::Elem(index) => elem(*index, operands),
        Op::Metadata(metadata) => metadata_type(metadata, &tensors(operands)?),
        Op::Hook(hook) => match &hook.results {
            Some(types) => Ok(Type::of_results(types.to_vec())),
            None => Ok(results(&tensors(operands)?)),
        },
        Op::Cond(cond) => cond_type(cond, &tensors(operands)?),
        Op::While(op) => while_type(op, &tensors(operands)?),
        Op::Block(block) => block_type(block, &tensors(operands)?),
        op @ crate::outside!(control) => unreachable!("{} is of another family", op.name()),
    }
}

fn results(types: &[&TensorType]) -> Type {
    Type::of_results(types.iter().map(|&ty| ty.clone()).collect())
}

fn elem(index: usize, operands: &[&Type]) -> Inferred {
    let [ty] = operands else {
        return Err(ErrorKind::Arity { expected: "1".into(), found: operands.len() });
    };
    match ty {
        Type::Tuple(parts) if index < parts.len() => tensor(parts[index].clone()),
        ty => Err(ErrorKind::invalid("index", format!("must be a part of {ty}; got {index}"))),
    }
}

fn metadata_type(metadata: &Metadata, operands: &[&TensorType]) -> Inferred {
    let depth = metadata.notes.depth();
    if depth > MAX_NOTE_DEPTH {
        let why = format!("must be nested at most {MAX_NOTE_DEPTH} deep; got {depth}");
        return Err(ErrorKind::invalid("notes", why));
    }
    let least = metadata.custom_grad.as_ref().map_or(0, |custom| custom.outputs + custom.inputs);
    if operands.len() < least {
        let expected = format!("at least {least}");
        return Err(ErrorKind::Arity { expected, found: operands.len() });
    }
    Ok(results(metadata.values_of(operands)))
}

/// Checks that a region takes the operands of the node.
fn check_inputs(
    argument: &'static str,
    program: &Program,
    operands: &[&TensorType],
) -> Result<(), ErrorKind> {
    if program.inputs().iter().eq(operands.iter().copied()) {
        return Ok(());
    }
    let found = describe(operands.iter().copied());
    Err(ErrorKind::Shape { argument, found, expected: describe(program.inputs()) })
}

fn check_predicate(argument: &'static str, program: &Program) -> Result<(), ErrorKind> {
    let types: Vec<&TensorType> = program.output_types().collect();
    match types[..] {
        [ty] if ty.rank() == 0 => Ok(()),
        _ => Err(ErrorKind::Shape {
            argument,
            found: describe(types),
            expected: "one scalar (reduce it with all or any)".into(),
        }),
    }
}

fn cond_type(cond: &Cond, operands: &[&TensorType]) -> Inferred {
    check_inputs("otherwise", &cond.otherwise, operands)?;
    let expected: Vec<TensorType> = cond.otherwise.output_types().cloned().collect();
    for (predicate, body) in &cond.clauses {
        check_inputs("predicate", predicate, operands)?;
        check_predicate("predicate", predicate)?;
        check_inputs("branch", body, operands)?;
        if !body.output_types().eq(&expected) {
            let found = describe(body.output_types());
            let expected = describe(&expected);
            return Err(ErrorKind::Shape { argument: "branch", found, expected });
        }
    }
    Ok(Type::of_results(expected))
}

fn while_type(op: &While, operands: &[&TensorType]) -> Inferred {
    check_inputs("condition", &op.condition, operands)?;
    check_predicate("condition", &op.condition)?;
    check_inputs("body", &op.body, operands)?;
    let state = operands.get(..op.state).ok_or_else(|| ErrorKind::Arity {
        expected: format!("at least {}", op.state),
        found: operands.len(),
    })?;
    if !op.body.output_types().eq(state.iter().copied()) {
        return Err(ErrorKind::Shape {
            argument: "body",
            found: describe(op.body.output_types()),
            expected: format!("{} like the initial state", describe(state.iter().copied())),
        });
    }
    Ok(results(state))
}

/// Returns whether the body has the operand and result types of the block's kind, on which backends
/// rely.
fn fits_kind(block: &Block, operands: &[&TensorType]) -> bool {
    let results: Vec<&TensorType> = block.body.output_types().collect();
    let ([x, ..], kind) = (operands, &block.kind) else {
        return matches!(block.kind, BlockKind::Named { .. } | BlockKind::Checkpoint { .. });
    };
    match (kind, &results[..]) {
        (BlockKind::Cumulative { op, axis, .. }, [result]) => {
            let is_ordered = matches!(op, Cumulative::Max | Cumulative::Min);
            let axis = axis.checked_add(block.batch_axes);
            operands.len() == 1
                && (result.dtype, &result.shape) == (x.dtype, &x.shape)
                && axis.is_some_and(|axis| axis < x.rank())
                && !x.dtype.is_pred()
                && !(is_ordered && x.dtype.is_complex())
        }
        (BlockKind::TopK { k }, [values, indices]) => {
            let Some((last, others)) = x.shape.split_last() else { return false };
            operands.len() == 1
                && k <= last
                && values.shape == indices.shape
                && values.shape.split_last() == Some((k, others))
                && (values.dtype, indices.dtype) == (x.dtype, DType::S32)
                && !x.dtype.is_complex()
        }
        (BlockKind::Threefry { count, wide }, [words]) => {
            let Some((last, others)) = x.shape.split_last() else { return false };
            // The body may capture counters, whose types are determined by the attributes.
            (*last, x.dtype) == (2, DType::U32)
                && words.shape.split_last() == Some((count, others))
                && words.dtype == if *wide { DType::U64 } else { DType::U32 }
        }
        (BlockKind::Search(_), [result]) => {
            let [sorted, x] = operands else { return false };
            let is_vector = block.batch_axes > 0
                || (sorted.rank() == 1 && (&result.shape, x.dtype) == (&x.shape, sorted.dtype));
            is_vector && matches!(result.dtype, DType::S32 | DType::S64) && !x.dtype.is_complex()
        }
        (BlockKind::Scatter { op }, [result]) => {
            let [x, indices, updates] = operands else { return false };
            // The kind does not support batch axes: `vmap` merges a batch into one vector.
            block.batch_axes == 0
                && x.rank() == 1
                && updates.rank() == 1
                && indices.shape[..] == [updates.shape[0], 1]
                && matches!(indices.dtype, DType::S32 | DType::S64)
                && updates.dtype == x.dtype
                && (result.dtype, &result.shape) == (x.dtype, &x.shape)
                && !x.dtype.is_pred()
                && (*op == Combine::Multiply || !x.dtype.is_complex())
        }
        (BlockKind::Factorize(factorization), results) => are_parts(*factorization, x, results),
        (BlockKind::Solve { .. }, [solutions]) => are_solutions(block, operands, solutions),
        (
            BlockKind::Cumulative { .. }
            | BlockKind::TopK { .. }
            | BlockKind::Threefry { .. }
            | BlockKind::Search(_)
            | BlockKind::Scatter { .. }
            | BlockKind::Solve { .. },
            _,
        ) => false,
        (BlockKind::Named { .. } | BlockKind::Checkpoint { .. }, _) => true,
    }
}

/// Returns whether the types of factors, row order, right-hand side and solutions fit. Further
/// operands are captures of the body.
fn are_solutions(block: &Block, operands: &[&TensorType], solutions: &TensorType) -> bool {
    let [_, order, b, ..] = operands else { return false };
    // All entries of a batch may share one right-hand side.
    order.dtype == DType::S32
        && solutions.dtype == b.dtype
        && (block.batch_axes > 0 || solutions.shape == b.shape)
}

/// Returns whether `found` are the types of the factors of `a`, ignoring axis names.
fn are_parts(factorization: Factorization, a: &TensorType, found: &[&TensorType]) -> bool {
    let plain = |ty: &TensorType| (ty.dtype, ty.shape.clone());
    let expected = factorization.parts(a);
    expected.is_ok_and(|parts| parts.iter().map(plain).eq(found.iter().map(|ty| plain(ty))))
}

fn block_type(block: &Block, operands: &[&TensorType]) -> Inferred {
    check_inputs("body", &block.body, operands)?;
    if !fits_kind(block, operands) {
        let why = format!("must be a program of {} with this configuration", block.name());
        return Err(ErrorKind::invalid("body", why));
    }
    Ok(Type::of_results(block.body.output_types().cloned().collect()))
}
