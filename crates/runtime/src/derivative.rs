//! Traced functions and their derivatives: JVPs, VJPs, linear maps and Jacobian matrices.

use std::sync::Arc;

use nxla_expr::batch::Batched;
use nxla_expr::build::SliceStart;
use nxla_expr::{Axes, ExprId, Graph, Op, Padding, Program, TensorType};
use nxla_grad::DiffCounts;
use nxla_tensor::{DType, Names, Scalar, Shape, to_i64};

use crate::error::{Error, Result};
use crate::expr::RawExpr;
use crate::trace::Trace;
use crate::tracers::Tracers;
use crate::vectors::{self, VectorAxes};

/// The mode of differentiation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// From changes of the arguments to changes of the results.
    Forward,
    /// From cotangents of the results to cotangents of the arguments.
    Reverse,
}

/// The results of a function to differentiate.
#[derive(Debug)]
pub struct Called<T> {
    /// Results to differentiate.
    pub results: Vec<RawExpr>,
    /// Results that are returned unchanged.
    pub passed_on: Vec<RawExpr>,
    /// Further values for the caller.
    pub more: T,
}

/// Calls a function on tracers for values of a trace. Returns the traced function, its results to
/// differentiate, and the function's further values.
///
/// Captured values are constant, even if they were computed from the same values. The function is
/// called again if its results have vectorized axes that the values lack, since each entry then has
/// a separate derivative. If `tangents` contains the tangents of a later [`Differentiable::jvp`],
/// only the axes of the tangents count; without tangents, no axes do, as for
/// [`Differentiable::jacobian`] in forward mode.
///
/// # Errors
/// Returns errors of the function and an error for values, tangents or results of another trace or
/// incompatible vectorized axes.
pub fn differentiable<T>(
    trace: &Trace,
    values: &[impl AsRef<RawExpr>],
    tangents: Option<&[RawExpr]>,
    mut function: impl FnMut(Vec<RawExpr>) -> Result<Called<T>>,
) -> Result<(Differentiable, Vec<RawExpr>, T)> {
    let directions = tangents.map(|tangents| {
        let tangents = safe(trace, tangents)?;
        VectorAxes::union("jvp", tangents.iter().map(RawExpr::vectors))
    });
    let directions = directions.transpose()?;
    let (tracers, results, (passed_on, more)) =
        Tracers::begin("derivative", trace, values)?.call(directions.as_ref(), |tracers| {
            let Called { results, passed_on, more } = function(tracers)?;
            Ok((results, (passed_on, more)))
        })?;
    Ok((Differentiable::of(tracers, &results, &passed_on)?, results, more))
}

/// A function that has been traced, with the values that it was called with.
#[derive(Debug)]
pub struct Differentiable {
    trace: Trace,
    /// The inputs are the values, followed by the captured values.
    program: Arc<Program>,
    operands: Vec<ExprId>,
    /// The number of values among the operands, and of results among the outputs.
    sides: DiffCounts,
    /// The vectorized axes of the values.
    vectors: VectorAxes,
    /// The vectorized axes of each output: the results, then the values returned unchanged.
    outputs: Vec<VectorAxes>,
}

impl Differentiable {
    fn of(tracers: Tracers, results: &[RawExpr], passed_on: &[RawExpr]) -> Result<Self> {
        let Tracers { trace, values, vectors, mark, scope, .. } = tracers;
        let mut outputs = trace.ids(results)?;
        outputs.extend(trace.ids(passed_on)?);
        let (program, captures) =
            trace.build(|graph| graph.close_function(mark, &scope, outputs))?;
        let sides = DiffCounts { inputs: values.len(), outputs: results.len() };
        let mut operands = values;
        operands.extend(captures);
        let outputs = results.iter().chain(passed_on).map(|output| output.vectors().clone());
        Ok(Self { trace, program, operands, sides, vectors, outputs: outputs.collect() })
    }

    /// Returns the results with the auxiliary values, and the tangents of the results.
    ///
    /// # Errors
    /// Returns an error for a tangent of another type, or an op without a derivative.
    pub fn jvp(&self, tangents: &[impl AsRef<RawExpr>]) -> Result<(Vec<RawExpr>, Vec<RawExpr>)> {
        let expected: Vec<Slot> = self.value_slots();
        let tangents = &safe(&self.trace, tangents)?;
        let further = further("jvp", &[&expected], tangents)?;
        let given = fit(&self.trace, ("jvp", "tangent"), &expected, tangents, &further)?;
        if !further.is_empty() {
            return self.jvp_for_each(given, &further);
        }
        let (outputs, changes) = self.trace.build(|graph| {
            let mut directions: Vec<Option<ExprId>> = given.into_iter().map(Some).collect();
            directions.resize(self.operands.len(), None);
            let outputs = self.sides.outputs;
            nxla_grad::jvp(graph, &self.program, &self.operands, &directions, outputs)
        })?;
        Ok((self.exprs(outputs), self.exprs(changes)))
    }

    /// [`Differentiable::jvp`] for tangents with an entry for each of some vectorized axes that the
    /// values have not: the values themselves are computed once.
    fn jvp_for_each(
        &self,
        given: Vec<ExprId>,
        further: &VectorAxes,
    ) -> Result<(Vec<RawExpr>, Vec<RawExpr>)> {
        let (values, changes) = self.trace.build(|graph| {
            let whole = nxla_grad::pushforward(&self.program, self.sides)?;
            let arguments: Vec<Batched> = (self.operands.iter().copied().map(Batched::from_shared))
                .chain(given.into_iter().map(Batched::each))
                .collect();
            let sizes = further.sizes();
            let found = graph.batch(whole.graph(), whole.outputs(), &arguments, &sizes)?;
            let (values, changes) = found.split_at(self.outputs.len());
            let shared = values.iter().map(|&value| any_entry(graph, value, sizes.rank()));
            let shared = shared.collect::<Result<Vec<_>>>()?;
            let mut lifted = Vec::with_capacity(changes.len());
            for &change in changes {
                lifted.push(graph.lift(change, &sizes)?);
            }
            Ok::<_, Error>((shared, lifted))
        })?;
        let changes = changes.into_iter().zip(&self.outputs);
        let changes = changes.map(|(id, own)| self.expr(id, &join_axes(further, own))).collect();
        Ok((self.exprs(values), changes))
    }

    /// Placeholders of the results after an error of the trace, for callers that cannot return an
    /// error.
    pub fn placeholders(&self) -> Vec<RawExpr> {
        vec![RawExpr::new_failed(self.trace.clone()); self.outputs.len()]
    }

    /// The mode in which a Jacobian takes fewer directions.
    pub fn cheaper_mode(&self) -> Mode {
        let total =
            |slots: Vec<Slot>| -> usize { slots.iter().map(|slot| slot.entry.shape.size()).sum() };
        let is_tall = total(self.value_slots()) <= total(self.result_slots());
        if is_tall { Mode::Forward } else { Mode::Reverse }
    }

    /// Returns the results with the auxiliary values, and the derivative at the values as a linear map,
    /// which can be applied any number of times.
    ///
    /// # Errors
    /// Returns an error for an op without a derivative.
    pub fn linear(&self, mode: Mode) -> Result<(Vec<RawExpr>, Linearized)> {
        let quiet = nxla_grad::strip_effects(&self.program)?;
        let whole = match mode {
            Mode::Forward => nxla_grad::pushforward(&quiet, self.sides)?,
            Mode::Reverse => nxla_grad::pullback(&quiet, self.sides)?,
        };
        // Outputs begin with the values in both modes. In forward mode, the values may be results
        // of a loop that also computes tangents. If the program has hooks, it computes the values
        // itself.
        let count = self.outputs.len();
        let outputs: Vec<usize> = (count..whole.outputs().len()).collect();
        let split = nxla_grad::partial_eval(&whole, self.operands.len(), &outputs)?;
        let values = if mode == Mode::Reverse && self.program.effects().is_empty() {
            Arc::new(nxla_grad::restrict(&whole, self.operands.len(), count)?)
        } else {
            self.program.clone()
        };
        let (values, known) = self.trace.build(|graph| {
            let known = split.known.inline(graph, &self.operands)?;
            Ok::<_, Error>((values.inline(graph, &self.operands)?, known))
        })?;
        let known = known.into_iter().map(|id| RawExpr::new(self.trace.clone(), id)).collect();
        let (arguments, results) = match mode {
            Mode::Forward => (self.value_slots(), self.result_slots()),
            Mode::Reverse => (self.result_slots(), self.value_slots()),
        };
        let map = LinearMap { mode, program: split.unknown, arguments, results };
        Ok((self.exprs(values), Linearized { known, map }))
    }

    /// Returns the results with the auxiliary values, and the Jacobian of each result with respect to
    /// each value: the axes of the result, followed by the axes of the value. One vectorized pass over
    /// the function covers all elements.
    ///
    /// # Errors
    /// Returns an error for an op without a derivative, complex values in forward mode, complex
    /// results in reverse mode, or vectorized axes of values that a result lacks although it
    /// depends on the values.
    pub fn jacobian(&self, mode: Mode) -> Result<(Vec<RawExpr>, Vec<Vec<RawExpr>>)> {
        let (values, results) = (self.value_slots(), self.result_slots());
        let (function, sources, argument) = match mode {
            Mode::Forward => ("jacfwd", &values, "an argument"),
            Mode::Reverse => ("jacrev", &results, "a result"),
        };
        if let Some(slot) = sources.iter().find(|slot| slot.entry.dtype.is_complex()) {
            let why = format!(
                "{argument} is {}, and not every function of complex numbers has a derivative; \
                 differentiate for real and imaginary part, or use jvp",
                slot.entry
            );
            return Err(Error::Arguments { function: function.into(), why });
        }
        for (at, slot) in results.iter().enumerate().filter(|(_, slot)| !slot.is_constant) {
            if let Some(axis) = self.vectors.without_all(&slot.vectors).first() {
                let why = format!(
                    "result {at}: must have the vectorized axis {:?} of the arguments, because it \
                     depends on them",
                    axis.name
                );
                return Err(Error::Vectors { function: function.into(), why });
            }
        }
        self.trace.build(|graph| match mode {
            Mode::Forward => self.jacobian_forward(graph, &values, &results),
            Mode::Reverse => self.jacobian_reverse(graph, &values, &results),
        })
    }

    /// Returns the diagonal of the Jacobian: the derivative of each element of a result with respect
    /// to the same element of the value at the same position. An element-wise function takes one
    /// pass, other functions one direction for each element.
    ///
    /// # Errors
    /// Returns the errors of [`Differentiable::jacobian`], and an error for results whose shapes
    /// differ from the values.
    pub fn diagonal(&self) -> Result<Vec<RawExpr>> {
        let (values, results) = (self.value_slots(), self.result_slots());
        let shapes = |slots: &[Slot]| -> Vec<Shape> {
            slots.iter().map(|slot| slot.entry.shape.clone()).collect()
        };
        if shapes(&values) != shapes(&results) {
            let (values, results) = (shapes(&values), shapes(&results));
            let why =
                format!("results: must have the shapes of the values, {values:?}; got {results:?}");
            return Err(Error::Arguments { function: "diagonal".into(), why });
        }
        if nxla_grad::is_elementwise(&self.program, self.sides) {
            let ones = self.trace.build(|graph| {
                let ones = values.iter().map(|slot| {
                    let dtype = slot.entry.dtype.to_floating();
                    let ty = TensorType::new(dtype, slot.entry.shape.clone());
                    graph.constant(Scalar::one(dtype), ty)
                });
                ones.collect::<nxla_expr::Result<Vec<_>>>()
            })?;
            let ones = ones.into_iter().map(|id| RawExpr::new(self.trace.clone(), id));
            return Ok(self.jvp(&ones.collect::<Vec<_>>())?.1);
        }
        let (_, rows) = self.jacobian(Mode::Forward)?;
        let mut diagonals = Vec::with_capacity(rows.len());
        for (at, (row, slot)) in rows.into_iter().zip(&results).enumerate() {
            let id = row[at].id()?;
            diagonals.push(self.trace.build(|graph| {
                let size = slot.entry.shape.size();
                let vectors = row[at].vectors();
                let square: Shape = vectors.sizes().iter().copied().chain([size, size]).collect();
                let matrix = graph.reshape(id, square)?;
                let diagonal = graph.take_diagonal(matrix, 0)?;
                let diagonal = graph.reshape(diagonal, vectors.full_type(&slot.entry).shape)?;
                Ok::<_, Error>(self.expr(diagonal, vectors))
            })?);
        }
        Ok(diagonals)
    }

    fn jacobian_forward(
        &self,
        graph: &mut Graph,
        values: &[Slot],
        results: &[Slot],
    ) -> Result<(Vec<RawExpr>, Vec<Vec<RawExpr>>)> {
        let whole = nxla_grad::pushforward(&self.program, self.sides)?;
        let (total, columns) = self.in_all_directions(graph, &whole, values)?;
        let (outputs, changes) = columns.split_at(self.outputs.len());
        let mut rows = Vec::with_capacity(results.len());
        for (&change, slot) in changes.iter().zip(results) {
            let change = graph.lift(change, &[total])?;
            // A constant result can lack axes of the values, but its derivatives have them as in
            // reverse mode.
            let vectors = VectorAxes::union("jacfwd", [&slot.vectors, &self.vectors])?;
            // The axis of directions moves behind the axes of the result.
            let rank = graph.shape(change).rank();
            let order: Axes = (1..rank).chain([0]).collect();
            let change = strip_names(graph, change)?;
            let change = graph.make(Op::Transpose(order), &[change])?;
            let mut row = Vec::with_capacity(values.len());
            let mut start = 0;
            for value in values {
                let size = value.entry.shape.size();
                let part = range(graph, change, rank - 1, start, size)?;
                start += size;
                let entry = value.entry.shape.iter().copied();
                let shape: Shape = slot.sizes().chain(entry).collect();
                let part = graph.reshape(part, shape)?;
                let part = vectors::spread(graph, part, &slot.vectors, &vectors)?;
                row.push(self.expr(part, &vectors));
            }
            rows.push(row);
        }
        let shared = outputs.iter().map(|&output| any_entry(graph, output, 1));
        let shared = shared.collect::<Result<Vec<_>>>()?;
        Ok((self.exprs(shared), rows))
    }

    fn jacobian_reverse(
        &self,
        graph: &mut Graph,
        values: &[Slot],
        results: &[Slot],
    ) -> Result<(Vec<RawExpr>, Vec<Vec<RawExpr>>)> {
        let whole = nxla_grad::pullback(&self.program, self.sides)?;
        let (total, found) = self.in_all_directions(graph, &whole, results)?;
        let (shared, found) = found.split_at(self.outputs.len());
        // The function itself has already called the hooks.
        let outputs = if self.program.effects().is_empty() {
            shared.iter().map(|output| output.id).collect()
        } else {
            self.program.inline(graph, &self.operands)?
        };
        let mut rows = vec![Vec::with_capacity(values.len()); results.len()];
        for (&cotangent, value) in found.iter().zip(values) {
            let cotangent = graph.lift(cotangent, &[total])?;
            let cotangent = strip_names(graph, cotangent)?;
            // The axis of directions moves behind the vectorized axes.
            let (depth, rank) = (self.vectors.len(), graph.shape(cotangent).rank());
            let order: Axes = (1..=depth).chain([0]).chain(depth + 1..rank).collect();
            let cotangent = graph.make(Op::Transpose(order), &[cotangent])?;
            let mut start = 0;
            for (result, row) in results.iter().zip(&mut rows) {
                let size = result.entry.shape.size();
                let part = range(graph, cotangent, depth, start, size)?;
                start += size;
                let entry = result.entry.shape.iter().chain(&value.entry.shape);
                let sizes = self.vectors.iter().map(|axis| axis.size);
                let shape: Shape = sizes.chain(entry.copied()).collect();
                let part = graph.reshape(part, shape)?;
                row.push(self.expr(part, &self.vectors));
            }
        }
        Ok((self.exprs(outputs), rows))
    }

    /// The derivative in each direction that changes one element of `slots`, and the number of
    /// directions. The directions are a batch.
    fn in_all_directions(
        &self,
        graph: &mut Graph,
        derivative: &Program,
        slots: &[Slot],
    ) -> Result<(usize, Vec<Batched>)> {
        let total = slots.iter().map(|slot| slot.entry.shape.size()).sum();
        let mut arguments: Vec<Batched> =
            self.operands.iter().copied().map(Batched::from_shared).collect();
        let mut start = 0;
        for slot in slots {
            arguments.push(Batched::each(directions(graph, slot, start, total)?));
            start += slot.entry.shape.size();
        }
        if total != 1 {
            let (from, outputs) = (derivative.graph(), derivative.outputs());
            return Ok((total, graph.batch(from, outputs, &arguments, &[total])?));
        }
        // A single direction needs no batch.
        let mut operands = self.operands.clone();
        for &argument in &arguments[self.operands.len()..] {
            operands.push(any_entry(graph, argument, 1)?);
        }
        let found = derivative.inline(graph, &operands)?;
        Ok((total, found.into_iter().map(Batched::from_shared).collect()))
    }

    /// The values as callers see them.
    fn value_slots(&self) -> Vec<Slot> {
        let types = &self.program.inputs()[..self.sides.inputs];
        types.iter().map(|ty| Slot::new(ty, &self.vectors)).collect()
    }

    /// The results as callers see them.
    fn result_slots(&self) -> Vec<Slot> {
        let count = self.sides.outputs;
        let lacks_axes = |vectors: &VectorAxes| !self.vectors.without_all(vectors).is_empty();
        let dependent = self.outputs.iter().take(count).any(lacks_axes).then(|| {
            let inputs = 0..self.program.inputs().len();
            let is_value: Vec<bool> = inputs.map(|input| input < self.sides.inputs).collect();
            self.program.dependent_outputs(&is_value)
        });
        let types = self.program.output_types().take(count);
        let slots = types.zip(&self.outputs).enumerate().map(|(at, (ty, vectors))| {
            let depends = dependent.as_ref().is_none_or(|dependent| dependent[at]);
            Slot { is_constant: lacks_axes(vectors) && !depends, ..Slot::new(ty, vectors) }
        });
        slots.collect()
    }

    fn expr(&self, id: ExprId, vectors: &VectorAxes) -> RawExpr {
        RawExpr::with_vectors(self.trace.clone(), id, vectors.clone())
    }

    /// Nodes of the types of the first outputs.
    fn exprs(&self, ids: Vec<ExprId>) -> Vec<RawExpr> {
        ids.into_iter().zip(&self.outputs).map(|(id, vectors)| self.expr(id, vectors)).collect()
    }
}

/// A linear map with the residuals of the point at which it is the derivative.
#[derive(Debug)]
pub struct Linearized {
    /// Values of the trace; [`LinearMap::apply`] wants them.
    pub known: Vec<RawExpr>,
    /// The map.
    pub map: LinearMap,
}

/// A linear map: the derivative of a function at one point.
#[derive(Clone, Debug)]
pub struct LinearMap {
    mode: Mode,
    /// The inputs are the residuals, followed by the arguments.
    program: Arc<Program>,
    arguments: Vec<Slot>,
    results: Vec<Slot>,
}

impl LinearMap {
    /// Applies the map.
    ///
    /// # Errors
    /// Returns an error for arguments whose types differ from the types of the map.
    pub fn apply(
        &self,
        trace: &Trace,
        known: &[RawExpr],
        arguments: &[impl AsRef<RawExpr>],
    ) -> Result<Vec<RawExpr>> {
        let (function, argument) = match self.mode {
            Mode::Forward => ("linearize", "tangent"),
            Mode::Reverse => ("vjp", "cotangent"),
        };
        let mut operands = trace.ids(known)?;
        let arguments = &safe(trace, arguments)?;
        let further = further(function, &[&self.arguments, &self.results], arguments)?;
        let given = fit(trace, (function, argument), &self.arguments, arguments, &further)?;
        let found = trace.build(|graph| {
            if further.is_empty() {
                operands.extend(given);
                return self.program.inline(graph, &operands);
            }
            let operands: Vec<Batched> = (operands.into_iter().map(Batched::from_shared))
                .chain(given.into_iter().map(Batched::each))
                .collect();
            let (from, sizes) = (&self.program, further.sizes());
            let found = graph.batch(from.graph(), from.outputs(), &operands, &sizes)?;
            found.into_iter().map(|result| graph.lift(result, &sizes)).collect()
        })?;
        let vectors = self.results.iter().map(|slot| join_axes(&further, &slot.vectors));
        let exprs = found.into_iter().zip(vectors);
        Ok(exprs.map(|(id, vectors)| RawExpr::with_vectors(trace.clone(), id, vectors)).collect())
    }
}

/// The type of a value: the type of an entry, and vectorized axes.
#[derive(Clone, Debug)]
struct Slot {
    entry: TensorType,
    vectors: VectorAxes,
    /// True if a result lacks a vectorized axis of the values, because it does not depend on them.
    is_constant: bool,
}

impl Slot {
    /// Returns the slot of a node with a type and vectorized axes.
    fn new(ty: &TensorType, vectors: &VectorAxes) -> Self {
        Slot { entry: vectors.entry_type(ty), vectors: vectors.clone(), is_constant: false }
    }

    /// The sizes of the vectorized axes, then of an entry.
    fn sizes(&self) -> impl Iterator<Item = usize> {
        self.vectors.iter().map(|axis| axis.size).chain(self.entry.shape.iter().copied())
    }
}

/// Returns values for use in the current region.
fn safe(trace: &Trace, values: &[impl AsRef<RawExpr>]) -> Result<Vec<RawExpr>> {
    values.iter().map(|value| trace.safe(value.as_ref())).collect()
}

/// Returns the vectorized axes of tangents or cotangents that no slot has; the derivative is applied
/// for each entry of these axes.
fn further(function: &str, slots: &[&[Slot]], given: &[impl AsRef<RawExpr>]) -> Result<VectorAxes> {
    let all = VectorAxes::union(function, given.iter().map(|expr| expr.as_ref().vectors()))?;
    let slots = slots.iter().copied().flatten();
    Ok(slots.fold(all, |further, slot| further.without_all(&slot.vectors)))
}

/// Returns axes followed by other axes.
fn join_axes(further: &VectorAxes, own: &VectorAxes) -> VectorAxes {
    VectorAxes::new(further.iter().chain(own.iter()).cloned())
}

/// Nodes for a caller's tangents or cotangents: in the dtype of the values they belong to,
/// with its vectorized axes behind the further ones. Cotangents of constants that have axes of the
/// differentiated values become zeros.
fn fit(
    trace: &Trace,
    (function, argument): (&str, &str),
    slots: &[Slot],
    given: &[impl AsRef<RawExpr>],
    further: &VectorAxes,
) -> Result<Vec<ExprId>> {
    let mistake = |why: String| Error::Arguments { function: function.into(), why };
    if given.len() != slots.len() {
        let (found, expected) = (given.len(), slots.len());
        return Err(mistake(format!("expected {expected} {argument}s; got {found}")));
    }
    let ids = trace.ids(given)?;
    trace.build(|graph| {
        let mut fitted = Vec::with_capacity(ids.len());
        for (at, ((id, expr), slot)) in ids.into_iter().zip(given).zip(slots).enumerate() {
            let own = expr.as_ref().vectors();
            let found = own.entry_type(graph.tensor_type(id));
            let dtype = slot.entry.dtype.to_floating();
            let loses = found.dtype.is_complex() && !dtype.is_complex();
            if found.shape != slot.entry.shape || loses {
                let expected = TensorType::new(dtype, slot.entry.shape.clone());
                return Err(mistake(format!("{argument} {at}: expected {expected}; got {found}")));
            }
            let id = strip_names(graph, id)?;
            let id = graph.as_type(id, dtype)?;
            let to = join_axes(further, &slot.vectors);
            // A program accepts exactly the types for which it was created, including axis names.
            let ty = TensorType { dtype, ..to.full_type(&slot.entry) };
            if let Some(axis) = own.without_all(&to).first() {
                if slot.is_constant {
                    // The cotangent of a constant contributes to no derivative.
                    fitted.push(graph.constant(Scalar::zero(dtype), ty)?);
                    continue;
                }
                return Err(mistake(format!(
                    "{argument} {at}: must not have the vectorized axis {:?}, which its value does not have",
                    axis.name
                )));
            }
            let id = vectors::spread(graph, id, own, &to)?;
            fitted.push(graph.rename(id, ty.names)?);
        }
        Ok(fitted)
    })
}

/// A value without its batch axes, which come first: the first entry of a batch whose entries are
/// equal. A loop computes a value once for each entry if another part of its state has the batch axes.
fn any_entry(graph: &mut Graph, value: Batched, batch_axes: usize) -> Result<ExprId> {
    if !value.batched {
        return Ok(value.id);
    }
    let ty = graph.tensor_type(value.id).clone();
    let mut first = strip_names(graph, value.id)?;
    for axis in 0..batch_axes {
        first = range(graph, first, axis, 0, 1)?;
    }
    let first = graph.reshape(first, Shape::from(&ty.shape[batch_axes..]))?;
    let names = ty.names.map(|names| Names::new(names[batch_axes..].iter().cloned()));
    Ok(graph.rename(first, names)?)
}

fn strip_names(graph: &mut Graph, id: ExprId) -> Result<ExprId> {
    Ok(graph.rename(id, None)?)
}

/// Returns the tangents of a value for each of `total` directions: unit vectors for the directions
/// from `start` on, one for each element, and zeros for the other directions.
fn directions(graph: &mut Graph, slot: &Slot, start: usize, total: usize) -> Result<ExprId> {
    let size = slot.entry.shape.size();
    let dtype = slot.entry.dtype.to_floating();
    let eye = graph.eye([size, size], dtype)?;
    let rows = Padding { low: to_i64(start), high: to_i64(total - start - size), interior: 0 };
    let zero = graph.zero_like(eye)?;
    let eye = graph.pad(eye, zero, &[rows, Padding::NONE])?;
    let ones = std::iter::repeat_n(1, slot.vectors.len());
    let narrow: Shape =
        [total].into_iter().chain(ones).chain(slot.entry.shape.iter().copied()).collect();
    let wide: Shape = [total].into_iter().chain(slot.sizes()).collect();
    let changes = graph.reshape(eye, narrow)?;
    let changes = graph.broadcast(changes, wide, None)?;
    let names = slot.vectors.full_type(&slot.entry);
    let ty = TensorType { dtype: DType::F32, ..names };
    let names = nxla_expr::batch::batched_type(&ty, &[total]).names;
    Ok(graph.rename(changes, names)?)
}

/// A range of an axis.
fn range(graph: &mut Graph, x: ExprId, axis: usize, start: usize, size: usize) -> Result<ExprId> {
    Ok(graph.slice_along_axis(x, SliceStart::at(start), size, to_i64(axis), 1)?)
}
