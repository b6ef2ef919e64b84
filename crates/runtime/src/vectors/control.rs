//! Conditionals that entries take differently, and custom rules of entries.
//!
//! A region decides once for all entries. Where a predicate is vectorized, a conditional computes
//! each branch that some entry takes and selects between their results.

use std::ops::ControlFlow;

use nxla_expr::build::OpenRule;
use nxla_expr::{
    Difference, ErrorKind, ExprId, Graph, Mark, Misfit, Region, RuleFor, TensorType, Traced,
};
use nxla_tensor::{DType, Scalar, broadcast_shapes};

use super::VectorAxes;
use super::active_entries::ActiveEntries;
use super::entry::{reduce_to_vectors, spread};
use super::moves::align_vectors;
use crate::error::Result;

/// A node and its vectorized axes.
pub type Vectorized = (ExprId, VectorAxes);

/// A predicate as booleans over vectorized axes.
pub(super) fn predicate_mask(
    graph: &mut Graph,
    function: &str,
    (predicate, own): &Vectorized,
    vectors: &VectorAxes,
) -> Result<ExprId> {
    let entry = own.entry_type(graph.tensor_type(*predicate));
    if entry.rank() != 0 {
        let (found, expected) = (entry.to_string(), "a scalar (reduce it with all or any)".into());
        let kind = ErrorKind::Shape { argument: "predicate", found, expected };
        return Err(graph.error(function, kind).into());
    }
    let mask = graph.as_type(*predicate, DType::Pred)?;
    spread(graph, mask, own, vectors)
}

/// `on_true` for the entries of a mask; results have the axes of all three.
pub(super) fn choose(
    graph: &mut Graph,
    function: &str,
    mask: &Vectorized,
    on_true: Vectorized,
    on_false: Vectorized,
) -> Result<Vectorized> {
    let aligned = align_vectors(graph, function, &[mask.clone(), on_true, on_false], true, true)?;
    let id = graph.select(aligned[0].0, aligned[1].0, aligned[2].0)?;
    Ok((id, aligned[0].1.clone()))
}

/// The entries that take each branch of a conditional, in the order in which they are traced.
#[derive(Default, Debug)]
pub struct Clauses {
    /// The entries that take no branch so far; `None` if the predicates are not vectorized.
    undecided: Option<Vectorized>,
}

impl Clauses {
    /// Returns the entries that enter the next branch, which has this predicate; `None` if all entries
    /// take the same decision.
    ///
    /// # Errors
    /// Returns an error for a vectorized predicate that is not a scalar for each entry or axes of
    /// equal names and different sizes.
    pub fn next(
        &mut self,
        graph: &mut Graph,
        predicate: &Vectorized,
    ) -> Result<Option<ActiveEntries>> {
        let before = self.undecided.iter().map(|(_, vectors)| vectors);
        let vectors = VectorAxes::union("cond", before.chain([&predicate.1]))?;
        if vectors.is_empty() {
            return Ok(None);
        }
        let holds = predicate_mask(graph, "cond", predicate, &vectors)?;
        let fails = graph.logical_not(holds)?;
        let (takes, left) = match &self.undecided {
            Some((undecided, own)) => {
                let undecided = spread(graph, *undecided, own, &vectors)?;
                (graph.logical_and(undecided, holds)?, graph.logical_and(undecided, fails)?)
            }
            None => (holds, fails),
        };
        self.undecided = Some((left, vectors.clone()));
        Ok(Some(ActiveEntries::new((takes, vectors), graph)))
    }

    /// Returns the entries that enter the last branch.
    pub fn last(&self, graph: &Graph) -> Option<ActiveEntries> {
        self.undecided.clone().map(|undecided| ActiveEntries::new(undecided, graph))
    }
}

/// A traced branch, with the vectorized axes of its results.
pub type Branch = (Traced, Vec<VectorAxes>);

fn results_of((branch, vectors): &Branch) -> Vec<Vectorized> {
    branch.outputs().iter().copied().zip(vectors.iter().cloned()).collect()
}

/// Selects the body of the first clause with a nonzero predicate, or `otherwise`; see
/// [`Graph::cond`]. With a vectorized predicate, each entry selects a body.
///
/// # Errors
/// Returns the errors of [`Graph::cond`], and an error for vectorized axes of equal names and
/// different sizes.
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

/// Adds axes to the results of branches, so that results at one position have the same vectorized
/// axes and the same rank.
fn unify(graph: &mut Graph, branches: &mut [Branch]) -> Result<Vec<VectorAxes>> {
    let mut results: Vec<Vec<Vectorized>> = branches.iter().map(results_of).collect();
    check_branches(graph, &results)?;
    let count = results.iter().map(Vec::len).min().unwrap_or(0);
    let mut vectors = Vec::with_capacity(count);
    for leaf in 0..count {
        let leaves: Vec<Vectorized> = results.iter().map(|branch| branch[leaf].clone()).collect();
        let aligned = align_vectors(graph, "cond", &leaves, true, true)?;
        vectors.push(aligned[0].1.clone());
        results.iter_mut().zip(aligned).for_each(|(branch, aligned)| branch[leaf] = aligned);
    }
    for ((branch, _), results) in branches.iter_mut().zip(results) {
        let ids = results.into_iter().map(|(id, _)| id).collect();
        *branch = branch.clone().with_outputs(ids);
    }
    Ok(vectors)
}

/// Checks that entries of the results of branches broadcast, position by position. The check comes
/// before the vectorized axes are merged, because later errors could not name the branch.
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

/// Each branch is computed, for all entries, if some entry takes it; then each entry selects the
/// results of its branch.
fn choice(
    graph: &mut Graph,
    mark: Mark,
    clauses: Vec<(Vectorized, Branch)>,
    otherwise: Branch,
) -> Result<Vec<Vectorized>> {
    let branches = clauses.iter().map(|(_, branch)| branch).chain([&otherwise]);
    check_branches(graph, &branches.map(results_of).collect::<Vec<_>>())?;
    let vectors = VectorAxes::union("cond", clauses.iter().map(|((_, own), _)| own))?;
    let all = TensorType::new(DType::Pred, vectors.sizes());
    let mut undecided = graph.constant(Scalar::one(DType::Pred), all)?;
    let mut chosen = Vec::with_capacity(clauses.len());
    for (predicate, branch) in clauses {
        let holds = predicate_mask(graph, "cond", &predicate, &vectors)?;
        let takes = graph.logical_and(undecided, holds)?;
        let fails = graph.logical_not(holds)?;
        undecided = graph.logical_and(undecided, fails)?;
        chosen.push((takes, run_branch_if_any(graph, mark, takes, branch)?));
    }
    let mut results = run_branch_if_any(graph, mark, undecided, otherwise)?;
    for (takes, values) in chosen.into_iter().rev() {
        if values.len() != results.len() {
            let why = format!(
                "must return as many results as the other branches; got {} and {}",
                values.len(),
                results.len()
            );
            return Err(graph.error("cond", ErrorKind::invalid("branch", why)).into());
        }
        let mask = (takes, vectors.clone());
        for (result, value) in results.iter_mut().zip(values) {
            *result = choose(graph, "cond", &mask, value, result.clone())?;
        }
    }
    Ok(results)
}

/// Computes the results of a branch if the mask of an entry is true, and zeros otherwise.
fn run_branch_if_any(
    graph: &mut Graph,
    mark: Mark,
    mask: ExprId,
    branch: Branch,
) -> Result<Vec<Vectorized>> {
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

/// A custom rule that is being traced for outputs and inputs with vectorized axes.
///
/// The rule is called with [`CustomRule::changes`]: the cotangents of the outputs, or the tangents
/// of the inputs.
#[derive(Debug)]
pub struct CustomRule {
    rule: RuleFor,
    open: OpenRule,
    outputs: Vec<Vectorized>,
    inputs: Vec<Vectorized>,
}

impl CustomRule {
    /// Opens a rule for outputs and inputs.
    ///
    /// # Errors
    /// Returns an error for vectorized axes of equal names and different sizes.
    pub fn open(
        graph: &mut Graph,
        rule: RuleFor,
        mut outputs: Vec<Vectorized>,
        inputs: Vec<Vectorized>,
    ) -> Result<Self> {
        let values = match rule {
            RuleFor::Cotangents => {
                // The cotangent of an output that all entries share would be a sum over the entries.
                let common = union_of(rule, outputs.iter().chain(&inputs))?;
                outputs = spread_all(graph, &outputs, &common)?;
                &outputs
            }
            RuleFor::Tangents => &inputs,
        };
        Ok(Self { rule, open: graph.open_rule(rule, &ids(values)), outputs, inputs })
    }

    /// Returns the outputs. The tangents of a rule have their dtypes.
    pub fn outputs(&self) -> &[Vectorized] {
        &self.outputs
    }

    /// Returns the arguments of the rule.
    pub fn changes(&self) -> Vec<Vectorized> {
        let values = match self.rule {
            RuleFor::Cotangents => &self.outputs,
            RuleFor::Tangents => &self.inputs,
        };
        let vectors = values.iter().map(|(_, vectors)| vectors.clone());
        self.open.changes().iter().copied().zip(vectors).collect()
    }

    /// Ends the tracing of a rule that returned these cotangents or tangents. Returns the outputs.
    /// If a captured value adds vectorized axes to the cotangents, the cotangents of the outputs
    /// differ along them; the rule must then be opened and traced again for the outputs in `Continue`.
    ///
    /// # Errors
    /// Returns an error for a result of the rule that does not fit its input or output.
    pub fn close(
        self,
        graph: &mut Graph,
        results: &[Vectorized],
    ) -> Result<ControlFlow<Vec<Vectorized>, Vec<Vectorized>>> {
        let Self { rule, open, mut outputs, inputs } = self;
        let results = match rule {
            RuleFor::Cotangents => {
                let common = union_of(rule, outputs.iter().chain(results))?;
                if outputs.iter().any(|(_, own)| *own != common) {
                    graph.drop_effects(open.mark());
                    return Ok(ControlFlow::Continue(spread_all(graph, &outputs, &common)?));
                }
                let mut cotangents = Vec::with_capacity(results.len());
                for (position, (id, own)) in results.iter().enumerate() {
                    // The graph checks the number of cotangents.
                    cotangents.push(match inputs.get(position) {
                        Some((_, vectors)) => reduce_to_vectors(graph, *id, own, vectors)?,
                        None => *id,
                    });
                }
                cotangents
            }
            RuleFor::Tangents => {
                // Entries that share an output may have different tangents.
                let common = union_of(rule, outputs.iter().chain(results))?;
                outputs = spread_all(graph, &outputs, &common)?;
                ids(&spread_all(graph, results, &common)?)
            }
        };
        let parts = graph.close_rule(open, &ids(&outputs), &ids(&inputs), results)?;
        let vectors = outputs.into_iter().map(|(_, vectors)| vectors);
        Ok(ControlFlow::Break(parts.into_iter().zip(vectors).collect()))
    }
}

/// Returns the nodes of values.
fn ids(values: &[Vectorized]) -> Vec<ExprId> {
    values.iter().map(|(id, _)| *id).collect()
}

/// Returns the vectorized axes of all values of a rule.
fn union_of<'a>(rule: RuleFor, values: impl Iterator<Item = &'a Vectorized>) -> Result<VectorAxes> {
    VectorAxes::union(rule.function_name(), values.map(|(_, vectors)| vectors))
}

/// Returns values with all these axes.
fn spread_all(
    graph: &mut Graph,
    values: &[Vectorized],
    to: &VectorAxes,
) -> Result<Vec<Vectorized>> {
    values.iter().map(|(id, own)| Ok((spread(graph, *id, own, to)?, to.clone()))).collect()
}
