//! Lowering of ops that move, reduce or multiply small tensors, and of literals.

use nxla_expr::{Op, Start as Begin};
use nxla_tensor::{HostTensor, Shape};

use super::build::{BytecodeBuilder, Location, Value};
use super::region::StepContext;
use crate::context::{ExecContext, Hooks};
use crate::execute::code::{Elements, Handle, Inst, Slice, SliceUpdate, Span, Start, Starts};
use crate::kernels::contract::Product;
use crate::kernels::create;
use crate::kernels::movement::padding;
use crate::kernels::reduce::Reduction;
use crate::kernels::strided::Strided;
use crate::schedule::{has_instructions, index_map};

impl BytecodeBuilder {
    /// The results of an op, if the op has instructions for its operands.
    pub(super) fn op(&mut self, op: &Op, site: &StepContext<'_>) -> Option<Vec<Value>> {
        let is_small = site.types.iter().all(|ty| self.is_small(ty));
        if !is_small {
            return self.large_op(op, site).map(|result| vec![result]);
        }
        let result = match op {
            Op::PutSlice(starts) => self.put(starts, site),
            Op::Constant(constant) => {
                let ty = &constant.ty;
                let tensor = HostTensor::full(constant.value, ty.dtype, ty.shape.clone());
                Some(self.literal(tensor.ok()?, site))
            }
            Op::Tensor(literal) => Some(self.literal(HostTensor::clone(&literal.0), site)),
            Op::Iota(_) | Op::Eye(_) => {
                let hooks = Hooks::new();
                let cx = ExecContext::new(&hooks, None);
                Some(self.literal(create::evaluate(&cx, op, &site.types[0]).ok()?, site))
            }
            Op::Reshape(_) | Op::Squeeze(_) => self.reshape(site),
            Op::Transpose(_) | Op::Reverse(_) | Op::Broadcast(_) => {
                let graph = site.schedule.program.graph();
                let rule = index_map(graph, site.step.id).rule(&site.types[0].shape);
                Some(self.rearrange(&rule, site))
            }
            Op::Concatenate(axis) => self.concatenate(*axis, true, site),
            Op::Stack(stack) => self.concatenate(stack.axis, false, site),
            Op::Pad(config) => self.pad_edges(config, site),
            Op::Slice(slice) => self.slice(slice, site),
            Op::Reduce(op, attributes) => {
                let x = self.small(&site.operands[0])?;
                let (value, ty) = (&site.operands[0], &site.types[0]);
                let reduction = Reduction { op: *op, attributes, x: &value.ty, ty };
                let reduction = Box::new(reduction.in_memory()?);
                let (result, to) = self.result(ty.clone(), value.level);
                self.push_at(value.level, Elements::Reduce { reduction, from: x, to });
                self.pad(to, ty.dtype.size(), value.level);
                Some(result)
            }
            Op::Dot(dot) => self.product(dot, site),
            nxla_expr::family_ops!(@ elementwise window linalg) => None,
            Op::ArgReduce(..) | Op::ReduceFun(_) | Op::Conv(_) => None,
            Op::Gather(_) | Op::IndexedAdd(_) | Op::IndexedPut(_) => None,
            Op::Sort(_) | Op::Argsort(..) => None,
            Op::Parameter(_) | Op::Metadata(_) | Op::Elem(_) | Op::Cond(_) => None,
            Op::While(_) | Op::Hook(_) | Op::Block(_) => None,
        };
        debug_assert!(result.is_none() || has_instructions(op), "{} has instructions", op.name());
        result.map(|value| vec![value])
    }

    /// The result of an op on large tensors, if the op has instructions for them.
    fn large_op(&mut self, op: &Op, site: &StepContext<'_>) -> Option<Value> {
        match op {
            Op::PutSlice(starts) => self.put(starts, site),
            // In a branch, the constant may not be needed; outside of loops, a call creates it when it is needed.
            Op::Constant(constant) if self.branches == 0 && self.in_loop() => {
                let origin = self.origin(site.schedule, site.step);
                Some(self.hoist_constant(constant.value, &site.types[0], origin))
            }
            _ => None,
        }
    }

    /// A literal, which the prologue copies to the arena.
    fn literal(&mut self, from: HostTensor, site: &StepContext<'_>) -> Value {
        let (value, to) = self.result(site.types[0].clone(), 0);
        self.push_at(0, Elements::Literal { from, to });
        self.pad(to, value.ty.dtype.size(), 0);
        value
    }

    /// The same elements under another shape, in the same span.
    fn reshape(&mut self, site: &StepContext<'_>) -> Option<Value> {
        let (value, ty) = (&site.operands[0], &site.types[0]);
        let Location::Arena(span) = value.location else { return None };
        self.arena.retain(span.at);
        Some(Value { ty: ty.clone(), ..value.clone() })
    }

    /// Elements in the order of an access rule.
    fn rearrange(&mut self, rule: &Strided, site: &StepContext<'_>) -> Value {
        let level = site.operands[0].level;
        let (value, to) = self.result(site.types[0].clone(), level);
        self.read(rule, &site.operands[0], to, level);
        self.pad(to, value.ty.dtype.size(), level);
        value
    }

    /// A concatenation or stack.
    fn concatenate(
        &mut self,
        axis: usize,
        has_axis: bool,
        site: &StepContext<'_>,
    ) -> Option<Value> {
        let ty = &site.types[0];
        let mut parts = Vec::with_capacity(site.operands.len());
        for value in site.operands {
            parts.push(self.small(value).filter(|_| value.ty.dtype == ty.dtype)?);
        }
        let level = site.operands.iter().map(|value| value.level).max()?;
        let (result, to) = self.result(ty.clone(), level);
        let (steps, mut first) = (Strided::row_major(&ty.shape), 0);
        for (value, from) in site.operands.iter().zip(parts) {
            let shape = &value.ty.shape;
            let axes = (0..ty.shape.rank()).filter(|&at| has_axis || at != axis);
            let axes = shape.iter().zip(axes).map(|(&size, at)| (size, steps[at]));
            self.write(Strided::new(first, axes), value, from, to, level);
            first += steps[axis] as usize * if has_axis { shape[axis] } else { 1 };
        }
        self.pad(to, ty.dtype.size(), level);
        Some(result)
    }

    /// Writes the elements of a value by an access rule.
    fn write(&mut self, rule: Strided, value: &Value, from: Span, to: Span, level: usize) {
        if from.len > 0 {
            let (rule, size) = (Box::new(rule), value.ty.dtype.size() as u8);
            self.push_at(level, Elements::Write { rule, size, from, to });
        }
    }

    fn pad_edges(
        &mut self,
        config: &[nxla_expr::Padding],
        site: &StepContext<'_>,
    ) -> Option<Value> {
        let (ty, [x, value]) = (&site.types[0], site.operands) else { return None };
        if x.ty.dtype != ty.dtype || value.ty.dtype != ty.dtype {
            return None;
        }
        let from = self.small(x)?;
        let level = x.level.max(value.level);
        let (result, to) = self.result(ty.clone(), level);
        let size = ty.dtype.size();
        let all = to.with_padding(size);
        self.push_at(level, Elements::Repeat { from: value.bytes(), size: size as u8, to: all });
        let Some((source, target)) = padding(config, &x.ty.shape, &ty.shape) else {
            return Some(result);
        };
        let bytes = source.len() * size;
        let kept = match source.neighbors(0, source.len()) {
            Some(first) => Span::new(from.at as usize + first * size, bytes),
            None => {
                let kept = self.scratch(bytes, level);
                let from = Value { location: Location::Arena(from), ..x.clone() };
                self.read(&source, &from, kept, level);
                kept
            }
        };
        self.write(target, x, kept, to, level);
        self.pad(to, size, level);
        Some(result)
    }

    fn slice(
        &mut self,
        slice: &nxla_expr::SliceAttributes,
        site: &StepContext<'_>,
    ) -> Option<Value> {
        let ([x, numbers @ ..], ty) = (site.operands, &site.types[0]) else { return None };
        let starts = self.starts(&slice.starts, numbers, &x.ty.shape, &slice.lengths)?;
        let level = site.operands.iter().map(|value| value.level).max()?;
        let strides = slice.strides.iter().zip(Strided::row_major(&x.ty.shape));
        let steps = strides.map(|(&stride, step)| step * stride as isize);
        let rule = unless_contiguous(Strided::new(0, ty.shape.iter().copied().zip(steps)));
        let (result, to) = self.result(ty.clone(), level);
        let (size, from) = (ty.dtype.size() as u8, x.bytes());
        self.push_at(level, Elements::Slice(Box::new(Slice { starts, rule, size, from, to })));
        self.pad(to, usize::from(size), level);
        Some(result)
    }

    /// An update of a slice. A boxed operand that dies here is updated in place.
    fn put(&mut self, put: &[Begin], site: &StepContext<'_>) -> Option<Value> {
        let ([x, update, numbers @ ..], ty) = (site.operands, &site.types[0]) else { return None };
        if x.ty.dtype != ty.dtype || update.ty.dtype != ty.dtype {
            return None;
        }
        let from = self.small(update)?;
        let starts = self.starts(put, numbers, &ty.shape, &update.ty.shape)?;
        let steps = Strided::row_major(&ty.shape);
        let rule = unless_contiguous(Strided::new(0, update.ty.shape.iter().copied().zip(steps)));
        let level = self.depth();
        let result = match x.location {
            Location::Arena(_) => {
                let (result, to) = self.result(ty.clone(), level);
                self.copy(x, to);
                result
            }
            Location::Slot { owned: true, .. } if site.lasts[0] => x.clone(),
            Location::Slot { slot: from, .. } => {
                let to = self.slots.take();
                self.push(Handle::Share { from, to });
                Value { location: Location::Slot { slot: to, owned: true }, level, ..x.clone() }
            }
        };
        let (size, origin) = (ty.dtype.size() as u8, self.origin(site.schedule, site.step));
        let into = result.bytes();
        self.push(Inst::SliceUpdate(Box::new(SliceUpdate {
            starts,
            rule,
            size,
            update: from,
            into,
            origin,
        })));
        if let Location::Arena(to) = result.location {
            self.pad(to, usize::from(size), level);
        }
        Some(result)
    }

    /// The offset of a slice of these lengths in a tensor of this shape. An empty slice begins at offset 0, because its
    /// starts clamp to offsets behind the end of the memory.
    fn starts(
        &mut self,
        starts: &[Begin],
        numbers: &[Value],
        shape: &Shape,
        lengths: &[usize],
    ) -> Option<Starts> {
        if lengths.contains(&0) {
            return Some(Starts { first: 0, dynamic: Box::default() });
        }
        let mut numbers = numbers.iter();
        let (mut first, mut dynamic) = (0, Vec::new());
        for (axis, step) in Strided::row_major(shape).into_iter().enumerate() {
            let last = i64::try_from(shape[axis] - lengths[axis]).ok()?;
            let step = step as usize;
            match starts[axis] {
                Begin::Static(start) => first += start.clamp(0, last) as usize * step,
                Begin::Dynamic => {
                    let value = numbers.next()?;
                    let (number, dtype) = (self.small(value)?, value.ty.dtype);
                    dynamic.push(Start { number, dtype, last, step });
                }
            }
        }
        Some(Starts { first, dynamic: dynamic.into() })
    }

    fn product(&mut self, dot: &nxla_expr::Dot, site: &StepContext<'_>) -> Option<Value> {
        let ([left, right], ty) = (site.operands, &site.types[0]) else { return None };
        let product = Product::in_dtype(dot, &left.ty, &right.ty, ty.dtype)?;
        let level = left.level.max(right.level);
        let operands = [
            self.small_in_order(left, product.left.order.as_ref())?,
            self.small_in_order(right, product.right.order.as_ref())?,
        ];
        let (result, to) = self.result(ty.clone(), level);
        let product = Box::new(product);
        self.push_at(level, Elements::Product { product, operands, to });
        self.pad(to, ty.dtype.size(), level);
        Some(result)
    }

    /// The span of a small value, or of a copy with its elements in this order.
    fn small_in_order(&mut self, value: &Value, order: Option<&Strided>) -> Option<Span> {
        let span = self.small(value)?;
        let Some(rule) = order else { return Some(span) };
        let to = self.scratch(value.ty.byte_size(), value.level);
        self.read(rule, value, to, value.level);
        Some(to)
    }
}

/// An access rule, unless its elements are contiguous.
fn unless_contiguous(rule: Strided) -> Option<Strided> {
    Some(rule).filter(|rule| !rule.is_contiguous())
}
