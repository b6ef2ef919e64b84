//! Construction of loops.
//!
//! A region decides once for all entries. With a vectorized condition a loop continues while any
//! entry does, and keeps the state of entries that have finished ([`Repetition`]); otherwise it is
//! an ordinary loop ([`OpenLoop`]). Users' functions are called between the steps of the
//! construction.

use nxla_expr::{
    Difference, ErrorKind, ExprId, Graph, Mark, Misfit, Region, Replay, Scope, TensorType, Traced,
};
use nxla_tensor::Scalar;

use super::control::{Vectorized, choose, truth};
use super::entry::spread;
use super::lanes::Lanes;
use super::{Vectors, mistake};
use crate::error::{Error, Result};

/// A loop whose condition decides once for all entries.
///
/// Its condition and then its body are traced on [`OpenLoop::state`]. The state for
/// collected rows is added once the body is known, so that the body is traced once.
#[derive(Debug)]
pub struct OpenLoop {
    initial: Vec<Vectorized>,
    mark: Mark,
    scope: Scope,
}

impl OpenLoop {
    /// Opens a loop over a state.
    pub fn begin(graph: &mut Graph, initial: Vec<Vectorized>) -> Self {
        let types: Vec<TensorType> =
            initial.iter().map(|&(id, _)| graph.tensor_type(id).clone()).collect();
        let (mark, scope) = (graph.mark(), graph.open_scope("while", &types));
        Self { initial, mark, scope }
    }

    /// The state before a trip.
    pub fn state(&self) -> Vec<Vectorized> {
        let parameters = self.scope.parameters.iter().copied();
        parameters.zip(self.initial.iter().map(|(_, own)| own.clone())).collect()
    }

    /// Ends the tracing of the condition.
    pub fn condition(&self, graph: &mut Graph, holds: &[Vectorized]) -> Traced {
        graph.traced(self.mark, holds.iter().map(|&(id, _)| id).collect())
    }

    /// Returns the initial state with the vectorized axes and the names that the body adds, see
    /// `widen_state`.
    ///
    /// # Errors
    /// Returns an error if axes of one name have different sizes.
    pub fn widen(&self, graph: &mut Graph, next: &[Vectorized]) -> Result<Option<Vec<Vectorized>>> {
        widen_state(graph, self.mark, &self.initial, next)
    }

    /// Ends the loop with the next state of its body.
    ///
    /// # Errors
    /// Returns an error for a next state of other types, or with additional vectorized axes or a
    /// condition that is not a scalar.
    pub fn finish(
        self,
        graph: &mut Graph,
        condition: Traced,
        next: Vec<Vectorized>,
        replay: Replay,
    ) -> Result<Vec<Vectorized>> {
        let next = self.conform(graph, next)?;
        self.close(graph, condition, next, replay)
    }

    /// Ends a loop with the next state and the rows of its body. The rows are written at `index`
    /// of `count`. Returns the last state and all rows.
    ///
    /// # Errors
    /// Returns the errors of [`OpenLoop::finish`].
    pub fn collect(
        mut self,
        graph: &mut Graph,
        condition: Traced,
        next: Vec<Vectorized>,
        (rows, index, count): (&[Vectorized], ExprId, usize),
        replay: Replay,
    ) -> Result<(Vec<Vectorized>, Vec<Vectorized>)> {
        let carried = self.initial.len();
        let mut next = self.conform(graph, next)?;
        for rows in rows {
            next.push(self.write_rows(graph, rows, index, count)?);
        }
        let mut state = self.close(graph, condition, next, replay)?;
        let rows = state.split_off(carried);
        Ok((state, rows))
    }

    /// Returns an additional loop state, which starts with zeros, after the rows of one iteration are
    /// written.
    fn write_rows(
        &mut self,
        graph: &mut Graph,
        (rows, vectors): &Vectorized,
        index: ExprId,
        count: usize,
    ) -> Result<ExprId> {
        let axis = vectors.len();
        let mut ty = graph.tensor_type(*rows).clone();
        let sizes = ty.shape.iter().enumerate();
        ty.shape = sizes.map(|(at, &n)| if at == axis { count } else { n }).collect();
        let zeros = graph.constant(Scalar::zero(ty.dtype), ty.clone())?;
        self.initial.push((zeros, vectors.clone()));
        let so_far = graph.grow_scope(&mut self.scope, ty);
        let axis = i64::try_from(axis).expect("few axes");
        Ok(graph.put_slice_along_axis(so_far, index, *rows, axis)?)
    }

    /// The next state with the vectorized axes of the state.
    fn conform(&self, graph: &mut Graph, next: Vec<Vectorized>) -> Result<Vec<ExprId>> {
        let state = self.state();
        if state.iter().chain(&next).all(|(_, vectors)| vectors.is_empty()) {
            return Ok(next.into_iter().map(|(id, _)| id).collect());
        }
        check_state(graph, &state, &next)?;
        let pairs = next.into_iter().zip(&state);
        pairs.map(|((id, own), (_, to))| spread(graph, id, &own, to)).collect()
    }

    fn close(
        self,
        graph: &mut Graph,
        condition: Traced,
        next: Vec<ExprId>,
        replay: Replay,
    ) -> Result<Vec<Vectorized>> {
        let body = graph.traced(self.mark, next);
        let (initial, vectors): (Vec<ExprId>, Vec<Vectors>) = self.initial.into_iter().unzip();
        let regions = (condition, body);
        let ids = graph.while_loop_with(self.mark, &self.scope, &initial, regions, replay)?;
        Ok(ids.into_iter().zip(vectors).collect())
    }
}

/// A loop whose condition is vectorized.
///
/// The state contains a mask of the active entries, the state of each entry, and the state before the
/// last iteration of each entry. A finished entry is recomputed from the state before its last
/// iteration, at which the body is defined, so that it does not add NaN to a derivative.
#[derive(Debug)]
pub struct Repetition {
    vectors: Vectors,
    initial: Vec<Vectorized>,
    /// For each part of the state, values that are safe in the first iteration of each entry.
    safe: Vec<ExprId>,
    mark: Mark,
    scope: Scope,
    start_mask: ExprId,
    /// The operands of an iteration.
    inputs: Vec<Vectorized>,
    lanes: Lanes,
}

impl Repetition {
    /// Returns the initial state with the vectorized axes of its condition. The condition is traced
    /// again for this state.
    ///
    /// # Errors
    /// Returns an error if axes of one name have different sizes.
    pub fn widen_by_condition(
        graph: &mut Graph,
        initial: &[Vectorized],
        condition: &Vectors,
    ) -> Result<Vec<Vectorized>> {
        let mut wide = Vec::with_capacity(initial.len());
        for (id, own) in initial {
            let vectors = Vectors::union("while", [condition, own])?;
            wide.push((spread(graph, *id, own, &vectors)?, vectors));
        }
        Ok(wide)
    }

    /// Begins a loop over a state that has the axes of the condition. `condition` is its value for
    /// the initial state.
    ///
    /// # Errors
    /// Returns an error for a condition that is not a scalar.
    pub fn begin(
        graph: &mut Graph,
        initial: Vec<Vectorized>,
        condition: &Vectorized,
    ) -> Result<Self> {
        let vectors = condition.1.clone();
        let start_mask = truth(graph, "while", condition, &vectors)?;
        let mut lanes = Lanes::new((start_mask, vectors.clone()), graph);
        let mut safe = Vec::with_capacity(initial.len());
        for value in &initial {
            let (id, found) = lanes.make_safe(graph, value)?;
            safe.push(spread(graph, id, &found, &value.1)?);
        }
        let mut types = vec![graph.tensor_type(start_mask).clone()];
        types.extend(
            initial.iter().map(|(id, _)| id).chain(&safe).map(|&id| graph.tensor_type(id).clone()),
        );
        let (mark, scope) = (graph.mark(), graph.open_scope("while", &types));
        let (mask, states) = scope.parameters.split_first().expect("the mask is a parameter");
        let (old, before) = states.split_at(initial.len());
        let mask = (*mask, vectors.clone());
        let mut inputs = Vec::with_capacity(initial.len());
        for ((&old, &before), (_, own)) in old.iter().zip(before).zip(&initial) {
            let before = graph.stop_grad(before)?;
            let (id, found) =
                choose(graph, "while", &mask, (old, own.clone()), (before, own.clone()))?;
            inputs.push((spread(graph, id, &found, own)?, own.clone()));
        }
        Ok(Self { vectors, initial, safe, mark, scope, start_mask, inputs, lanes })
    }

    /// The state to trace the body on.
    pub fn inputs(&self) -> &[Vectorized] {
        &self.inputs
    }

    /// Returns the initial state with the vectorized axes and the names that the body adds, see
    /// `widen_state`.
    ///
    /// # Errors
    /// Returns an error if axes of one name have different sizes.
    pub fn widen(&self, graph: &mut Graph, next: &[Vectorized]) -> Result<Option<Vec<Vectorized>>> {
        widen_state(graph, self.mark, &self.initial, next)
    }

    /// The entries that begin, for which the body is traced.
    pub fn lanes(&self) -> Lanes {
        self.lanes.clone()
    }

    /// The state before an iteration.
    fn state(&self) -> Vec<Vectorized> {
        let parameters = self.scope.parameters[1..].iter().copied();
        parameters.zip(self.initial.iter().map(|(_, own)| own.clone())).collect()
    }

    fn mask(&self) -> ExprId {
        self.scope.parameters[0]
    }

    /// The state after an iteration, from the results of the body: finished entries keep their
    /// state.
    ///
    /// # Errors
    /// Returns an error for results that do not have the number and types of the state.
    pub fn chosen(&self, graph: &mut Graph, body: &[Vectorized]) -> Result<Vec<Vectorized>> {
        let old = self.state();
        check_state(graph, &old, body)?;
        let mask = (self.mask(), self.vectors.clone());
        let mut state = Vec::with_capacity(old.len());
        for ((old, own), (new, vectors)) in old.into_iter().zip(body) {
            let new = spread(graph, *new, vectors, &own)?;
            let (id, found) =
                choose(graph, "while", &mask, (new, own.clone()), (old, own.clone()))?;
            state.push((spread(graph, id, &found, &own)?, own));
        }
        Ok(state)
    }

    /// Ends the loop, whose body began at `start`, with the state after a trip and the
    /// condition of that state.
    ///
    /// # Errors
    /// Returns an error for a condition that is not a scalar, or has additional vectorized axes.
    pub fn finish(
        self,
        graph: &mut Graph,
        start: Mark,
        state: &[Vectorized],
        condition: &Vectorized,
        replay: Replay,
    ) -> Result<Vec<Vectorized>> {
        if Vectors::union("while", [&self.vectors, &condition.1])? != self.vectors {
            let why = format!(
                "condition: vectorized axes must stay the same; got {} in the first iteration \
                 and {} later",
                self.vectors, condition.1
            );
            return Err(mistake("while", why));
        }
        let holds = truth(graph, "while", condition, &self.vectors)?;
        let mask = graph.logical_and(self.mask(), holds)?;
        let states = state.iter().chain(&self.inputs).map(|(id, _)| *id);
        let results = std::iter::once(mask).chain(states).collect();
        let body = graph.traced(start, results);
        let start = graph.mark();
        let any = graph.any(self.mask(), None, false)?;
        let goes_on: Traced = graph.traced(start, vec![any]);
        let mut initial = vec![self.start_mask];
        initial.extend(self.initial.iter().map(|(id, _)| *id));
        initial.extend(&self.safe);
        let ids =
            graph.while_loop_with(self.mark, &self.scope, &initial, (goes_on, body), replay)?;
        let vectors = self.initial.into_iter().map(|(_, own)| own);
        Ok(ids.into_iter().skip(1).zip(vectors).collect())
    }
}

/// Returns the initial state with the vectorized axes and the names that the body adds to it, or
/// `None` if the body adds no axes.
///
/// All entries of an added axis are equal at the start. The caller traces the loop again for the
/// returned state, until the body adds nothing: axes are only added, and there are finitely many.
/// The effects of the discarded trace are dropped.
fn widen_state(
    graph: &mut Graph,
    mark: Mark,
    initial: &[Vectorized],
    next: &[Vectorized],
) -> Result<Option<Vec<Vectorized>>> {
    let mut wide = Vec::with_capacity(initial.len());
    for ((id, own), (next, axes)) in initial.iter().zip(next) {
        let vectors = Vectors::union("loop", [own, axes])?;
        let found = axes.entry_type(graph.tensor_type(*next));
        let mut id = spread(graph, *id, own, &vectors)?;
        let entry = vectors.entry_type(graph.tensor_type(id));
        if entry.names.is_none() && found.names.is_some() && entry.shape == found.shape {
            id = graph.rename(id, vectors.full_type(&found).names)?;
        }
        wide.push((id, vectors));
    }
    if wide == initial {
        return Ok(None);
    }
    graph.drop_effects(mark);
    Ok(Some(wide))
}

/// Checks that a body returns a state of the same entry types, without further vectorized axes.
fn check_state(graph: &Graph, state: &[Vectorized], body: &[Vectorized]) -> Result<()> {
    let invalid =
        |why: String| -> Error { graph.error("while", ErrorKind::invalid("body", why)).into() };
    if state.len() != body.len() {
        let why = format!(
            "must return as many results as the state has tensors; got {} and {}",
            body.len(),
            state.len()
        );
        return Err(invalid(why));
    }
    for (position, ((old, own), (new, vectors))) in state.iter().zip(body).enumerate() {
        let expected = own.entry_type(graph.tensor_type(*old));
        let found = vectors.entry_type(graph.tensor_type(*new));
        let grows =
            vectors.iter().any(|axis| !own.contains(axis) && own.position(&axis.name).is_none());
        let difference = Difference::between(&found, &expected);
        if let Some(difference) = difference.or(grows.then_some(Difference::Shape)) {
            let misfit = Misfit {
                region: Region::Body,
                result: position,
                path: None,
                found: format!("{vectors}{found}"),
                expected: format!("{own}{expected}"),
                difference,
            };
            return Err(graph.error("while", ErrorKind::Misfit(misfit.into())).into());
        }
    }
    Ok(())
}
