//! Writing steps that move, reduce or multiply elements, and those that have no operands.

use nxla_expr::{Op, Start as Begin};
use nxla_tensor::{HostTensor, Shape};

use super::build::{At, Builder, Held, byte_size};
use super::region::{Region, Site};
use super::{Elements, Handle, Inst, Put, Slice, Span, Start, Starts};
use crate::contract::Product;
use crate::layout::Strided;
use crate::reduce::InMemory;
use crate::{create, movement};

impl Builder {
    /// The results of a step that is done by its op, if there are instructions for it.
    pub(super) fn op(
        &mut self,
        op: &Op,
        region: &mut Region<'_>,
        site: &Site<'_>,
    ) -> Option<Vec<Held>> {
        let is_near = site.types.iter().all(|ty| self.is_near(ty));
        let result = match op {
            Op::PutSlice(starts) => self.put(starts, region, site),
            // In a branch it may never be wanted.
            Op::Constant(constant) if !is_near && self.branches == 0 => {
                let (to, origin) = (self.new_slot(), self.origin(region, site.position));
                let ty = Box::new(site.types[0].clone());
                self.push_at(0, Handle::Full { value: constant.value, ty, to, origin });
                let at = At::Far { slot: to, is_own: false };
                Some(Held { ty: site.types[0].clone(), at, level: 0 })
            }
            _ if !is_near => None,
            Op::Constant(constant) => {
                let ty = &constant.ty;
                let tensor = HostTensor::full(constant.value, ty.dtype, ty.shape.clone());
                Some(self.literal(tensor.ok()?, site))
            }
            Op::Tensor(literal) => Some(self.literal(HostTensor::clone(&literal.0), site)),
            Op::Iota(_) | Op::Eye(_) => {
                Some(self.literal(create::evaluate(op, &site.types[0]).ok()?, site))
            }
            Op::Reshape(_) | Op::Squeeze(_) => self.reshaped(site),
            Op::Transpose(permutation) => {
                let places = movement::transposed(&site.operands[0].ty.shape, permutation);
                Some(self.moved(&places.rule(&site.types[0].shape), site))
            }
            Op::Reverse(_) | Op::Broadcast(_) => {
                let (plan, shape) = (site.plan, &site.types[0].shape);
                let id = plan.steps[site.position].id;
                let rule = movement::places(plan.program().graph(), id).rule(shape);
                Some(self.moved(&rule, site))
            }
            Op::Concatenate(axis) => self.joined(*axis, true, site),
            Op::Stack(stack) => self.joined(stack.axis, false, site),
            Op::Pad(config) => self.padded(config, site),
            Op::Slice(slice) => self.slice(slice, site),
            Op::Reduce(op, attributes) => {
                let x = self.near(&site.operands[0])?;
                let (held, ty) = (&site.operands[0], &site.types[0]);
                let reduction = InMemory::of(*op, attributes, &held.ty, ty)?;
                let (result, to) = self.result(ty.clone(), held.level);
                let reduction = Box::new(reduction);
                self.push_at(held.level, Elements::Reduce { reduction, from: x, to });
                self.spread(to, ty.dtype.size(), held.level);
                Some(result)
            }
            Op::Dot(dot) => self.product(dot, site),
            _ => None,
        };
        result.map(|held| vec![held])
    }

    /// A known tensor.
    fn literal(&mut self, from: HostTensor, site: &Site<'_>) -> Held {
        let (held, to) = self.result(site.types[0].clone(), 0);
        self.push_at(0, Elements::Literal { from, to });
        self.spread(to, held.ty.dtype.size(), 0);
        held
    }

    /// The same elements under another shape, in the same place.
    fn reshaped(&mut self, site: &Site<'_>) -> Option<Held> {
        let (held, ty) = (&site.operands[0], &site.types[0]);
        let At::Near(span) = held.at else { return None };
        self.memory.hold(span.at);
        Some(Held { ty: ty.clone(), ..held.clone() })
    }

    /// Elements in another order.
    fn moved(&mut self, rule: &Strided, site: &Site<'_>) -> Held {
        let level = site.operands[0].level;
        let (held, to) = self.result(site.types[0].clone(), level);
        self.read(rule, &site.operands[0], to, level);
        self.spread(to, held.ty.dtype.size(), level);
        held
    }

    /// Elements of several tensors beside one another.
    fn joined(&mut self, axis: usize, has_axis: bool, site: &Site<'_>) -> Option<Held> {
        let ty = &site.types[0];
        let mut parts = Vec::with_capacity(site.operands.len());
        for held in site.operands {
            parts.push(self.near(held).filter(|_| held.ty.dtype == ty.dtype)?);
        }
        let level = site.operands.iter().map(|held| held.level).max()?;
        let (result, to) = self.result(ty.clone(), level);
        let (steps, mut first) = (Strided::row_major(&ty.shape), 0);
        for (held, from) in site.operands.iter().zip(parts) {
            let shape = &held.ty.shape;
            let axes = (0..ty.shape.rank()).filter(|&at| has_axis || at != axis);
            let axes = shape.iter().zip(axes).map(|(&size, at)| (size, steps[at]));
            self.write(Strided::new(first, axes), held, from, to, level);
            first += steps[axis] as usize * if has_axis { shape[axis] } else { 1 };
        }
        self.spread(to, ty.dtype.size(), level);
        Some(result)
    }

    /// Writes the elements of a near value to where a rule says.
    fn write(&mut self, rule: Strided, held: &Held, from: Span, to: Span, level: usize) {
        if from.len > 0 {
            let (rule, size) = (Box::new(rule), held.ty.dtype.size() as u8);
            self.push_at(level, Elements::Write { rule, size, from, to });
        }
    }

    fn padded(&mut self, config: &[nxla_expr::Padding], site: &Site<'_>) -> Option<Held> {
        let (ty, [x, value]) = (&site.types[0], site.operands) else { return None };
        if x.ty.dtype != ty.dtype || value.ty.dtype != ty.dtype {
            return None;
        }
        let from = self.near(x)?;
        let level = x.level.max(value.level);
        let (result, to) = self.result(ty.clone(), level);
        let size = ty.dtype.size();
        let all = to.padded(size);
        self.push_at(level, Elements::Repeat { from: value.bytes(), size: size as u8, to: all });
        let Some((source, target)) = movement::padding(config, &x.ty.shape, &ty.shape) else {
            return Some(result);
        };
        let bytes = source.len() * size;
        let kept = match source.neighbours(0, source.len()) {
            Some(first) => Span::new(from.at as usize + first * size, bytes),
            None => {
                let kept = self.scratch(bytes, level);
                let from = Held { at: At::Near(from), ..x.clone() };
                self.read(&source, &from, kept, level);
                kept
            }
        };
        self.write(target, x, kept, to, level);
        self.spread(to, size, level);
        Some(result)
    }

    fn slice(&mut self, slice: &nxla_expr::Slice, site: &Site<'_>) -> Option<Held> {
        let ([x, numbers @ ..], ty) = (site.operands, &site.types[0]) else { return None };
        let starts = self.starts(&slice.starts, numbers, &x.ty.shape, &slice.lengths)?;
        let level = site.operands.iter().map(|held| held.level).max()?;
        let strides = slice.strides.iter().zip(Strided::row_major(&x.ty.shape));
        let steps = strides.map(|(&stride, step)| step * stride as isize);
        let rule = apart(Strided::new(0, ty.shape.iter().copied().zip(steps)));
        let (result, to) = self.result(ty.clone(), level);
        let (size, from) = (ty.dtype.size() as u8, x.bytes());
        self.push_at(level, Elements::Slice(Box::new(Slice { starts, rule, size, from, to })));
        self.spread(to, usize::from(size), level);
        Some(result)
    }

    /// Writes into the operand itself, if it is far and nobody else needs it.
    fn put(&mut self, put: &[Begin], region: &mut Region<'_>, site: &Site<'_>) -> Option<Held> {
        let ([x, update, numbers @ ..], ty) = (site.operands, &site.types[0]) else { return None };
        if x.ty.dtype != ty.dtype || update.ty.dtype != ty.dtype {
            return None;
        }
        let from = self.near(update)?;
        let starts = self.starts(put, numbers, &ty.shape, &update.ty.shape)?;
        let steps = Strided::row_major(&ty.shape);
        let rule = apart(Strided::new(0, update.ty.shape.iter().copied().zip(steps)));
        let level = self.depth();
        let result = match x.at {
            At::Near(_) => {
                let (result, to) = self.result(ty.clone(), level);
                self.copy(x, to);
                result
            }
            At::Far { is_own: true, .. } if site.lasts[0] => x.clone(),
            At::Far { slot: from, .. } => {
                let to = self.new_slot();
                self.push(Handle::Share { from, to });
                Held { at: At::Far { slot: to, is_own: true }, level, ..x.clone() }
            }
        };
        let (size, origin) = (ty.dtype.size() as u8, self.origin(region, site.position));
        let into = result.bytes();
        self.push(Inst::Put(Box::new(Put { starts, rule, size, update: from, into, origin })));
        if let At::Near(to) = result.at {
            self.spread(to, usize::from(size), level);
        }
        Some(result)
    }

    /// The offset of a slice of these lengths in a tensor of this shape. An empty slice begins at
    /// offset 0: its starts clamp to offsets behind the end of the memory, where no range begins.
    fn starts(
        &mut self,
        starts: &[Begin],
        numbers: &[Held],
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
                    let held = numbers.next()?;
                    let (number, dtype) = (self.near(held)?, held.ty.dtype);
                    dynamic.push(Start { number, dtype, last, step });
                }
            }
        }
        Some(Starts { first, dynamic: dynamic.into() })
    }

    fn product(&mut self, dot: &nxla_expr::Dot, site: &Site<'_>) -> Option<Held> {
        let ([left, right], ty) = (site.operands, &site.types[0]) else { return None };
        let product = Product::in_dtype(dot, &left.ty, &right.ty, ty.dtype)?;
        let level = left.level.max(right.level);
        let mut operands = [Span::new(0, 0); 2];
        for (index, (held, side)) in
            [(left, &product.left), (right, &product.right)].into_iter().enumerate()
        {
            let there = self.near(held)?;
            operands[index] = match &side.order {
                None => there,
                Some(rule) => {
                    let to = self.scratch(byte_size(&held.ty), held.level);
                    self.read(rule, held, to, held.level);
                    to
                }
            };
        }
        let (result, to) = self.result(ty.clone(), level);
        let product = Box::new(product);
        self.push_at(level, Elements::Product { product, operands, to });
        self.spread(to, ty.dtype.size(), level);
        Some(result)
    }
}

/// A rule, if its elements do not lie side by side.
fn apart(rule: Strided) -> Option<Strided> {
    Some(rule).filter(|rule| !rule.is_contiguous())
}
