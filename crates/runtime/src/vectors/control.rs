//! Conditionals and loops that entries take differently.
//!
//! A region decides once for all entries. Where a predicate is vectorized, a conditional computes
//! each branch that some entry takes and selects between their results; a loop goes on while some
//! entry does, and keeps the state of those that are done. Users' functions are called in between,
//! so both come in steps.

use nxla_expr::{
    Difference, ErrorKind, ExprId, Graph, Mark, Misfit, Region, Replay, Scope, TensorType, Traced,
};
use nxla_tensor::{DType, Scalar, broadcast_shapes};

use super::entry::spread;
use super::moves::together;
use super::{Vectors, mistake};
use crate::error::{Error, Result};

/// A node and its vectorized axes.
pub type Vectorized = (ExprId, Vectors);

/// A predicate as truth values over vectorized axes.
fn truth(
    graph: &mut Graph,
    function: &str,
    (predicate, own): &Vectorized,
    vectors: &Vectors,
) -> Result<ExprId> {
    let entry = own.entry_type(graph.tensor_type(*predicate));
    if entry.rank() != 0 {
        let (found, expected) = (entry.to_string(), "a scalar; reduce it with all or any".into());
        let kind = ErrorKind::Shape { argument: "predicate", found, expected };
        return Err(graph.error(function, kind).into());
    }
    let truth = graph.as_type(*predicate, DType::Pred)?;
    spread(graph, truth, own, vectors)
}

/// `on_true` for the entries of a mask; results have the axes of all three.
fn choose(
    graph: &mut Graph,
    function: &str,
    mask: &Vectorized,
    on_true: Vectorized,
    on_false: Vectorized,
) -> Result<Vectorized> {
    let aligned = together(graph, function, &[mask.clone(), on_true, on_false], true, true)?;
    let id = graph.select(aligned[0].0, aligned[1].0, aligned[2].0)?;
    Ok((id, aligned[0].1.clone()))
}

/// A traced branch, with the vectorized axes of its results.
pub type Branch = (Traced, Vec<Vectors>);

fn results_of((branch, vectors): &Branch) -> Vec<Vectorized> {
    branch.outputs().iter().copied().zip(vectors.iter().cloned()).collect()
}

/// Takes the body of the first clause whose predicate is not zero, else `otherwise`; see
/// [`Graph::cond`]. With a vectorized predicate each entry takes its own.
///
/// # Errors
/// As for [`Graph::cond`]; vectorized axes of one name and different sizes.
pub fn conditional(
    graph: &mut Graph,
    mark: Mark,
    clauses: Vec<(Vectorized, Branch)>,
    otherwise: Branch,
) -> Result<Vec<Vectorized>> {
    if clauses.iter().any(|((_, own), _)| !own.is_empty()) {
        return choice(graph, mark, clauses, otherwise);
    }
    let (predicates, mut branches): (Vec<Vectorized>, Vec<Branch>) = clauses.into_iter().unzip();
    branches.push(otherwise);
    let vectors = unify(graph, &mut branches)?;
    let (last, _) = branches.pop().expect("there is a last branch");
    let predicates = predicates.into_iter().map(|(id, _)| graph.traced(graph.mark(), vec![id]));
    let predicates: Vec<Traced> = predicates.collect();
    let bodies = branches.into_iter().map(|(body, _)| body);
    let ids = graph.cond(mark, predicates.into_iter().zip(bodies).collect(), last)?;
    Ok(ids.into_iter().zip(vectors).collect())
}

/// Gives the results of branches, position by position, the same vectorized axes and as many
/// others.
fn unify(graph: &mut Graph, branches: &mut [Branch]) -> Result<Vec<Vectors>> {
    let mut results: Vec<Vec<Vectorized>> = branches.iter().map(results_of).collect();
    check_branches(graph, &results)?;
    let count = results.iter().map(Vec::len).min().unwrap_or(0);
    let mut vectors = Vec::with_capacity(count);
    for leaf in 0..count {
        let leaves: Vec<Vectorized> = results.iter().map(|branch| branch[leaf].clone()).collect();
        let aligned = together(graph, "cond", &leaves, true, true)?;
        vectors.push(aligned[0].1.clone());
        results.iter_mut().zip(aligned).for_each(|(branch, aligned)| branch[leaf] = aligned);
    }
    for ((branch, _), results) in branches.iter_mut().zip(results) {
        let ids = results.into_iter().map(|(id, _)| id).collect();
        *branch = branch.clone().with_outputs(ids);
    }
    Ok(vectors)
}

/// Checks that entries of the results of branches broadcast, position by position. Once vectorized
/// axes are brought together, no one could tell any more which branch is to blame.
fn check_branches(graph: &Graph, branches: &[Vec<Vectorized>]) -> Result<()> {
    let count = branches.iter().map(Vec::len).min().unwrap_or(0);
    for result in 0..count {
        let mut leaves = branches.iter().map(|branch| &branch[result]).enumerate();
        let Some((_, (first, own))) = leaves.next() else { return Ok(()) };
        let (mut common, mut widest) = (own.entry_type(graph.tensor_type(*first)), own);
        for (branch, (id, vectors)) in leaves {
            let entry = vectors.entry_type(graph.tensor_type(*id));
            match broadcast_shapes(&common.shape, &entry.shape) {
                Ok(shape) => common.shape = shape,
                Err(_) => {
                    let misfit = Misfit {
                        region: Region::Branch(branch),
                        result,
                        path: None,
                        found: format!("{vectors}{entry}"),
                        expected: format!("{widest}{common}"),
                        difference: Difference::Shape,
                    };
                    return Err(graph.error("cond", ErrorKind::Misfit(misfit.into())).into());
                }
            }
            if vectors.len() > widest.len() {
                widest = vectors;
            }
        }
    }
    Ok(())
}

/// Each branch is computed, for all entries, if some entry takes it; then each entry gets the
/// results of its own.
fn choice(
    graph: &mut Graph,
    mark: Mark,
    clauses: Vec<(Vectorized, Branch)>,
    otherwise: Branch,
) -> Result<Vec<Vectorized>> {
    let branches = clauses.iter().map(|(_, branch)| branch).chain([&otherwise]);
    check_branches(graph, &branches.map(results_of).collect::<Vec<_>>())?;
    let vectors = Vectors::union("cond", clauses.iter().map(|((_, own), _)| own))?;
    let all = TensorType::new(DType::Pred, vectors.sizes());
    let mut undecided = graph.constant(Scalar::one(DType::Pred), all)?;
    let mut chosen = Vec::with_capacity(clauses.len());
    for (predicate, branch) in clauses {
        let holds = truth(graph, "cond", &predicate, &vectors)?;
        let takes = graph.logical_and(undecided, holds)?;
        let fails = graph.logical_not(holds)?;
        undecided = graph.logical_and(undecided, fails)?;
        chosen.push((takes, taken(graph, mark, takes, branch)?));
    }
    let mut results = taken(graph, mark, undecided, otherwise)?;
    for (takes, values) in chosen.into_iter().rev() {
        if values.len() != results.len() {
            let why = format!("gives {} results, another gives {}", values.len(), results.len());
            return Err(graph.error("cond", ErrorKind::invalid("branch", why)).into());
        }
        let mask = (takes, vectors.clone());
        for (result, value) in results.iter_mut().zip(values) {
            *result = choose(graph, "cond", &mask, value, result.clone())?;
        }
    }
    Ok(results)
}

/// The results of a branch if some entry of a mask takes it, zeros otherwise.
fn taken(graph: &mut Graph, mark: Mark, mask: ExprId, branch: Branch) -> Result<Vec<Vectorized>> {
    let any = graph.any(mask, None, false)?;
    let start = graph.mark();
    let (branch, vectors) = branch;
    let mut zeros = Vec::with_capacity(vectors.len());
    for &id in branch.outputs() {
        let ty = graph.tensor_type(id).clone();
        zeros.push(graph.constant(Scalar::zero(ty.dtype), ty)?);
    }
    let zeros = graph.traced(start, zeros);
    let predicate = graph.traced(graph.mark(), vec![any]);
    let ids = graph.cond(mark, vec![(predicate, branch)], zeros)?;
    Ok(ids.into_iter().zip(vectors).collect())
}

/// A loop of which the condition is vectorized, in the making.
pub struct Repetition {
    vectors: Vectors,
    initial: Vec<Vectorized>,
    mark: Mark,
    scope: Scope,
    start_mask: ExprId,
}

impl Repetition {
    /// The initial state with the axes of a condition that was tried on it; it is what the
    /// condition is to be tried on again.
    ///
    /// # Errors
    /// Axes of one name and different sizes.
    pub fn widen(
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

    /// Begins a loop over a state that has the axes of the condition, of which this is the value
    /// for the initial state.
    ///
    /// # Errors
    /// A condition that is no scalar.
    pub fn begin(
        graph: &mut Graph,
        initial: Vec<Vectorized>,
        condition: &Vectorized,
    ) -> Result<Self> {
        let vectors = condition.1.clone();
        let start_mask = truth(graph, "while", condition, &vectors)?;
        let mut types = vec![graph.tensor_type(start_mask).clone()];
        types.extend(initial.iter().map(|(id, _)| graph.tensor_type(*id).clone()));
        let (mark, scope) = (graph.mark(), graph.open_scope(&types));
        Ok(Self { vectors, initial, mark, scope, start_mask })
    }

    /// The state before a trip.
    pub fn state(&self) -> Vec<Vectorized> {
        let parameters = self.scope.parameters[1..].iter().copied();
        parameters.zip(self.initial.iter().map(|(_, own)| own.clone())).collect()
    }

    fn mask(&self) -> ExprId {
        self.scope.parameters[0]
    }

    /// The state after a trip, from what the body gave: entries that are done keep theirs.
    ///
    /// # Errors
    /// Another number of results than the state has, or results of other types.
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

    /// Ends the loop, whose body began at `start`, with the state after a trip and what the
    /// condition says of it.
    ///
    /// # Errors
    /// A condition that is no scalar, or which has got further axes.
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
                "the condition has the axes {} at first and {} later",
                self.vectors, condition.1
            );
            return Err(mistake("while", why));
        }
        let holds = truth(graph, "while", condition, &self.vectors)?;
        let mask = graph.logical_and(self.mask(), holds)?;
        let results = std::iter::once(mask).chain(state.iter().map(|(id, _)| *id)).collect();
        let body = graph.traced(start, results);
        let start = graph.mark();
        let any = graph.any(self.mask(), None, false)?;
        let goes_on: Traced = graph.traced(start, vec![any]);
        let mut initial = vec![self.start_mask];
        initial.extend(self.initial.iter().map(|(id, _)| *id));
        let ids =
            graph.while_loop_with(self.mark, &self.scope, &initial, (goes_on, body), replay)?;
        let vectors = self.initial.into_iter().map(|(_, own)| own);
        Ok(ids.into_iter().skip(1).zip(vectors).collect())
    }
}

/// What the body of an ordinary loop gave, with the vectorized axes of the state.
///
/// # Errors
/// Entries of other types; further vectorized axes.
pub fn conform(
    graph: &mut Graph,
    state: &[Vectorized],
    body: Vec<Vectorized>,
) -> Result<Vec<ExprId>> {
    if state.iter().chain(&body).any(|(_, vectors)| !vectors.is_empty()) {
        check_state(graph, state, &body)?;
        let pairs = body.into_iter().zip(state);
        return pairs.map(|((id, own), (_, to))| spread(graph, id, &own, to)).collect();
    }
    Ok(body.into_iter().map(|(id, _)| id).collect())
}

/// What the trips of a loop give, collected: a part of its state that begins as zeros, and into
/// which each trip writes its rows.
pub struct Collected {
    /// The zeros.
    pub initial: ExprId,
    /// The rows so far with those of the trip.
    pub next: ExprId,
    /// The vectorized axes of both.
    pub vectors: Vectors,
}

/// Gives a loop whose body is being traced a further part of its state, for what the body gives in
/// each trip: `rows`, which begin at `place` of `count` in all. Since the rows are known before the
/// part is made, the body is traced once.
///
/// # Errors
/// None; the result is fallible like that of every builder.
pub fn collect(
    graph: &mut Graph,
    scope: &mut Scope,
    (rows, vectors): &Vectorized,
    place: ExprId,
    count: usize,
) -> Result<Collected> {
    let axis = vectors.len();
    let mut ty = graph.tensor_type(*rows).clone();
    ty.shape =
        ty.shape.iter().enumerate().map(|(at, &n)| if at == axis { count } else { n }).collect();
    let initial = graph.constant(Scalar::zero(ty.dtype), ty.clone())?;
    let so_far = graph.grow_scope(scope, ty);
    let axis = i64::try_from(axis).expect("few axes");
    let next = graph.put_slice_along_axis(so_far, place, *rows, axis)?;
    Ok(Collected { initial, next, vectors: vectors.clone() })
}

/// The initial state with the vectorized axes and the names that a trip adds to it, and that it may
/// as well have from the start on: all entries are the same there. None if a trip adds none.
///
/// # Errors
/// Axes of one name and different sizes.
pub fn widened(
    graph: &mut Graph,
    initial: &[Vectorized],
    next: &[Vectorized],
) -> Result<Option<Vec<Vectorized>>> {
    let mut wide = Vec::with_capacity(initial.len());
    for ((id, own), (next, axes)) in initial.iter().zip(next) {
        let vectors = Vectors::union("scan", [own, axes])?;
        let found = axes.entry_type(graph.tensor_type(*next));
        let mut id = spread(graph, *id, own, &vectors)?;
        let entry = vectors.entry_type(graph.tensor_type(id));
        if entry.names.is_none() && found.names.is_some() && entry.shape == found.shape {
            id = graph.rename(id, vectors.full_type(&found).names)?;
        }
        wide.push((id, vectors));
    }
    Ok((wide != initial).then_some(wide))
}

/// Checks that a body gives a state of the same entry types, and no further vectorized axes.
fn check_state(graph: &Graph, state: &[Vectorized], body: &[Vectorized]) -> Result<()> {
    let invalid =
        |why: String| -> Error { graph.error("while", ErrorKind::invalid("body", why)).into() };
    if state.len() != body.len() {
        let why = format!("gives {} results for a state of {}", body.len(), state.len());
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
