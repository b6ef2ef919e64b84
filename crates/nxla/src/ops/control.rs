//! Conditionals, blocks and annotations inside a trace; other modules contain loops and hooks.
//!
//! Branches and bodies are closures that may use outer values, which become operands of the node.
//! Outside a trace, values are known, so Rust's `if` and `while` suffice.

use std::fmt;
use std::ops::ControlFlow;
use std::panic::Location;

use nxla_expr::build::OpenBlock;
use nxla_expr::{ErrorKind, ExprId, Graph, Keep, Mark, Metadata, Notes, RuleFor, TensorType};

use super::methods;
use crate::Trace;
use crate::containers::{
    Container, Expected, Leaves, Outputs, Structure, Tree, attempt_call, difference, leaves_of,
    locate_error, paths_of, trace_of,
};
use crate::expr::Expr;
use crate::{Error, Result};
use crate::{Operand, Value};
use nxla_runtime::resolve;
use nxla_runtime::vectors::active_entries::ActiveEntries;
use nxla_runtime::vectors::control::{Branch, Clauses, CustomRule, Vectorized, conditional};
use nxla_tensor::broadcast_shapes;

/// Returns the results of `on_true` if the predicate, a scalar, is nonzero, and the results of
/// `on_false` otherwise. Only the selected branch is computed.
///
/// Both branches return the same container with the same shapes; dtypes are promoted. A branch that
/// a constant predicate excludes is not part of the program.
///
/// ```
/// use nxla::{Expr, cond, jit};
///
/// let root = jit(|x: Expr| cond(x.greater(0), || x.sqrt(), || x.zeros_like()));
/// assert_eq!(root.call(4.0f32)?.item::<f64>()?, 2.0);
/// assert_eq!(root.call(-4.0f32)?.item::<f64>()?, 0.0);
/// # Ok::<(), nxla::Error>(())
/// ```
#[must_use = "write `let _ = …` for a conditional that runs only for its effects"]
#[track_caller]
pub fn cond<R: Outputs>(
    predicate: impl Operand,
    on_true: impl FnOnce() -> R,
    on_false: impl FnOnce() -> R,
) -> R::Return<R::Container> {
    when(predicate, on_true).otherwise(on_false)
}

/// Returns the results of `then` if the predicate, a scalar, is nonzero, and zeros of the same
/// types otherwise.
///
/// ```
/// use nxla::{Expr, if_, jit};
///
/// let f = jit(|x: Expr| if_(x.greater(1), || &x * 10));
/// assert_eq!(f.call(2)?.item::<f64>()?, 20.0);
/// assert_eq!(f.call(1)?.item::<f64>()?, 0.0);
/// # Ok::<(), nxla::Error>(())
/// ```
#[must_use = "write `let _ = …` for a conditional that runs only for its effects"]
#[track_caller]
pub fn if_<R: Outputs>(
    predicate: impl Operand,
    then: impl FnOnce() -> R,
) -> R::Return<R::Container> {
    let chosen = when(predicate, then);
    R::from_result(chosen.close(|result| Ok(result.map(|leaf| leaf.zeros_like()))))
}

/// Starts a conditional with several branches, which ends with [`When::otherwise`].
///
/// ```
/// use nxla::{Expr, jit, when};
///
/// let sign = jit(|x: Expr| {
///     when(x.greater(0), || Expr::of(1))
///         .or_when(x.less(0), || Expr::of(-1))
///         .otherwise(|| Expr::of(0))
/// });
/// assert_eq!(sign.call(-3)?.item::<f64>()?, -1.0);
/// # Ok::<(), nxla::Error>(())
/// ```
#[track_caller]
pub fn when<R: Outputs>(predicate: impl Operand, then: impl FnOnce() -> R) -> When<R> {
    let operands = [predicate.to_value()];
    let (trace, location) = (Expr::trace_of(&operands), Location::caller());
    let mark = trace.attempt(location, || trace.edit(|graph| graph.mark()));
    let open = When {
        trace,
        location,
        mark,
        clauses: Vec::new(),
        entries: Clauses::default(),
        last: None,
        branches: 0,
        types: None,
        error: None,
    };
    open.clause(operands, then)
}

/// A conditional without its last branch, created by [`when`].
///
/// ```
/// use nxla::{Expr, jit, when};
///
/// let sign = jit(|x: Expr| when(x.less(0), || Expr::of(-1)).otherwise(|| Expr::of(1)));
/// assert_eq!(sign.call(-3)?.item::<i32>()?, -1);
/// # Ok::<(), nxla::Error>(())
/// ```
#[must_use = "a conditional ends with `otherwise`"]
pub struct When<R: Outputs> {
    trace: Trace,
    location: &'static Location<'static>,
    /// The position before the first branch; `None` after an error.
    mark: Option<Mark>,
    clauses: Vec<(Vectorized, Branch)>,
    /// The entries that take each branch.
    entries: Clauses,
    /// The results of the last branch so far.
    last: Option<(R::Container, Structure)>,
    /// The number of branches so far, and the result types of the first branch.
    branches: usize,
    types: Option<Vec<TensorType>>,
    /// The first error that a branch returned. Later branches are not traced.
    error: Option<Error>,
}

impl<R: Outputs> fmt::Debug for When<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("When").field("branches", &self.branches).finish_non_exhaustive()
    }
}

impl<R: Outputs> When<R> {
    /// Adds a branch for the case that all previous predicates are zero and this predicate is
    /// nonzero.
    ///
    /// ```
    /// use nxla::{Expr, jit, when};
    ///
    /// let clamped = jit(|x: Expr| {
    ///     when(x.greater(9), || Expr::of(9)).or_when(x.less(0), || Expr::of(0)).otherwise(|| x.clone())
    /// });
    /// assert_eq!(clamped.call(-4)?.item::<i32>()?, 0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    pub fn or_when(self, predicate: impl Operand, then: impl FnOnce() -> R) -> When<R> {
        self.clause([predicate.to_value()], then)
    }

    fn clause(mut self, predicate: [Value; 1], then: impl FnOnce() -> R) -> When<R> {
        if self.error.is_some() {
            return self;
        }
        let trace = self.trace.clone();
        let vectors = predicate[0].view().vectors().clone();
        let asked = trace.attempt(self.location, || {
            let [predicate] = resolve(&trace, &predicate)?[..] else {
                unreachable!("one operand is one node")
            };
            Ok(predicate)
        });
        let asked = asked.map(|id| (id, vectors));
        let active = trace.attempt(self.location, || {
            let Some(asked) = &asked else { return Ok(None) };
            trace.build(|graph| self.entries.next(graph, asked))
        });
        let branch = self.branch(active.flatten(), || then().into_container());
        self.clauses.extend(asked.zip(branch));
        self
    }

    /// Traces a branch for the entries that take it, and checks that it returns the same container
    /// as the previous branches.
    fn branch(
        &mut self,
        active: Option<ActiveEntries>,
        then: impl FnOnce() -> Result<R::Container>,
    ) -> Option<Branch> {
        let trace = self.trace.clone();
        let start = trace.attempt(self.location, || trace.edit(|graph| graph.mark()));
        let entered = trace.enter_entries(active);
        let result = trace.drop_hooks_on_error(then);
        drop(entered);
        let result = result.map_err(|error| self.error = Some(error)).ok()?;
        let leaves = leaves_of(&result);
        self.branches += 1;
        let before = self.last.replace((result, leaves.structure.clone()));
        trace.attempt(self.location, || {
            if let Some((earlier, structure)) = before
                && structure != leaves.structure
            {
                let branch = self.branches - 1;
                let why = format!(
                    "must return the structure of the earlier branches; got {} (branch {branch})",
                    difference::<Expr, Expr>(&earlier, self.last(), ("", "result"))
                );
                return Err(ErrorKind::invalid("branch", why).of("cond").into());
            }
            self.check_shapes(&leaves)?;
            let (ids, vectors) = vectorized_nodes(&trace, &leaves)?.into_iter().unzip();
            let start = start.expect("nothing has failed");
            let traced = trace.edit(|graph| graph.traced(start, ids))?;
            Ok((traced, vectors))
        })
    }

    /// Checks that the results of a branch have the shapes of the first branch.
    fn check_shapes(&mut self, leaves: &Leaves<Expr>) -> Result<()> {
        let types: Vec<TensorType> = leaves.items.iter().map(|leaf| leaf.ty()).collect();
        let Some(first) = &self.types else {
            self.types = Some(types);
            return Ok(());
        };
        // Shapes that do not broadcast are reported after all branches were traced.
        let differs = |(_, (found, first)): &(usize, (&TensorType, &TensorType))| {
            found.shape != first.shape && broadcast_shapes(&found.shape, &first.shape).is_ok()
        };
        let Some((result, (found, expected))) = types.iter().zip(first).enumerate().find(differs)
        else {
            return Ok(());
        };
        let (paths, branch) = (paths_of(self.last(), "result"), self.branches - 1);
        let path = &paths[result];
        let found = format!("{found} in {path} of branch {branch}");
        let expected = format!("{expected} as in the first branch (use `broadcast_to`)");
        Err(ErrorKind::Shape { argument: "branch", found, expected }.of("cond").into())
    }

    fn last(&self) -> &R::Container {
        &self.last.as_ref().expect("there is a branch").0
    }

    /// Ends the conditional with the branch that is taken if all predicates are zero.
    ///
    /// The trace records errors (a predicate that is not a scalar, results that do not broadcast)
    /// with the number of the branch and the path of the result.
    ///
    /// ```
    /// use nxla::{Expr, jit, when};
    ///
    /// let half = jit(|x: Expr| {
    ///     when(x.remainder(2).equal(0), || x.quotient(2)).otherwise(|| x.clone())
    /// });
    /// assert_eq!(half.call(8)?.item::<i32>()?, 4);
    /// assert_eq!(half.call(7)?.item::<i32>()?, 7);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    pub fn otherwise(self, otherwise: impl FnOnce() -> R) -> R::Return<R::Container> {
        R::from_result(self.close(|_| otherwise().into_container()))
    }

    /// Adds the last branch, which receives the result of the branch before it.
    ///
    /// # Errors
    /// Returns the first error of a branch.
    fn close(
        mut self,
        otherwise: impl FnOnce(R::Container) -> Result<R::Container>,
    ) -> Result<R::Container> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let before = self.last().map(Expr::clone);
        let last = || self.trace.edit(|graph| self.entries.last(graph));
        let active = self.trace.attempt(self.location, last);
        let branch = self.branch(active.flatten(), || otherwise(before));
        let When { trace, location, mark, clauses, last, error, .. } = self;
        if let Some(error) = error {
            return Err(error);
        }
        let (result, structure) = last.expect("there is a branch");
        let values = trace.attempt(location, || {
            let (mark, branch) = mark.zip(branch).expect("nothing has failed");
            let values = trace.build(|graph| conditional(graph, mark, clauses, branch));
            values.map_err(|error| locate_error(error, "cond", &[("", "result")], &result))
        });
        let Some(values) = values else { return Ok(result) };
        Ok(Tree::rebuild(&mut Leaves::new(exprs(&trace, values), structure)))
    }
}

/// Returns leaves as nodes of a trace.
pub(super) fn vectorized_nodes(trace: &Trace, leaves: &Leaves<Expr>) -> Result<Vec<Vectorized>> {
    let value = |leaf: &Expr| {
        let leaf = trace.safe(leaf)?;
        Ok((leaf.id()?, leaf.vectors().clone()))
    };
    leaves.items.iter().map(value).collect()
}

/// Replaces leaves by their safe values in the region that is being traced.
fn make_safe(trace: &Trace, leaves: &mut Leaves<Expr>) -> Result<()> {
    for leaf in &mut leaves.items {
        *leaf = trace.safe(leaf)?.into();
    }
    Ok(())
}

/// Returns nodes of a trace as expressions.
pub(super) fn exprs(
    trace: &Trace,
    values: impl IntoIterator<Item = Vectorized>,
) -> impl Iterator<Item = Expr> {
    values.into_iter().map(|(id, vectors)| Expr::of_node(trace.clone(), id, vectors))
}

/// Returns nodes that replace leaves, with their vectorized axes.
fn in_place_of(trace: &Trace, ids: Vec<ExprId>, leaves: Leaves<Expr>) -> Leaves<Expr> {
    let vectors = leaves.items.iter().map(|leaf| leaf.vectors().clone());
    Leaves::new(exprs(trace, ids.into_iter().zip(vectors)), leaves.structure)
}

/// Replaces the leaves of a container by nodes that `build` creates from them, one for each.
pub(super) fn replace_leaves<C: Container>(
    value: C,
    location: &'static Location<'static>,
    build: impl FnOnce(&mut Graph, &[ExprId]) -> Result<Vec<ExprId>>,
) -> C {
    let mut leaves = leaves_of(&value);
    let trace = trace_of(&leaves.items);
    let ids = trace.attempt(location, || {
        make_safe(&trace, &mut leaves)?;
        let ids = trace.ids(&leaves.items)?;
        trace.build(|graph| build(graph, &ids))
    });
    match ids {
        Some(ids) => C::rebuild(&mut in_place_of(&trace, ids, leaves)),
        None => value,
    }
}

// --- annotations ---

methods! {
    /// Returns the same values, through which no gradient flows.
    ///
    /// ```
    /// use nxla::{Expr, grad, jit};
    ///
    /// let slope = jit(grad(|x: Expr| &x * x.stop_grad()));
    /// assert_eq!(slope.call(3.0f32)?.item::<f32>()?, 3.0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[doc(alias = "stop_gradient")]
    #[doc(alias = "detach")]
    fn stop_grad(x) one |graph| graph.stop_grad(x);
}

/// Annotates a container of values with a string, which expression text shows and split policies
/// can use. The values are one node, so a cut at the node does not separate them.
///
/// ```
/// use nxla::annotate;
/// use nxla::{DType, Expr, TensorType, jit};
///
/// let f = jit(|x: Expr| annotate(x.sin(), "a wave"));
/// let (program, _) = f.trace(TensorType::scalar(DType::F32))?;
/// assert!(program.to_string().contains("a wave"));
/// # Ok::<(), nxla::Error>(())
/// ```
#[must_use]
#[track_caller]
pub fn annotate<C: Container>(value: C, note: &str) -> C {
    annotate_at(value, note, Location::caller())
}

/// Implements [`annotate`] for a line of the user's program.
pub(crate) fn annotate_at<C: Container>(
    value: C,
    note: &str,
    location: &'static Location<'static>,
) -> C {
    replace_leaves(value, location, |graph, ids| {
        let metadata = Metadata { inspect: Some(note.into()), ..Metadata::default() };
        let node = graph.metadata(ids, metadata)?;
        Ok(graph.parts(node)?)
    })
}

/// Attaches notes to a container of values: strings, scalars, booleans, and lists and maps of them,
/// by name. Notes are part of the program and of its digest; computations ignore them. A printed
/// expression contains only the strings of [`annotate`]. The trace reports an error if lists and
/// maps are nested deeper than [`MAX_NOTE_DEPTH`](nxla_expr::MAX_NOTE_DEPTH).
///
/// ```
/// use nxla::graph::{Note, Op};
/// use nxla::{DType, Expr, TensorType, jit, metadata};
///
/// let noted = |x: Expr| metadata(x.sin(), [("layer", Note::from(3)), ("kind", "wave".into())]);
/// let f = jit(noted);
/// let (program, _) = f.trace(TensorType::scalar(DType::F32))?;
/// let found = program.graph().ids().find_map(|id| match program.graph().op(id) {
///     Op::Metadata(metadata) => metadata.notes.get("layer"),
///     _ => None,
/// });
/// assert_eq!(found, Some(&Note::Int(3)));
/// # Ok::<(), nxla::Error>(())
/// ```
#[must_use]
#[track_caller]
pub fn metadata<C: Container>(value: C, notes: impl Into<Notes>) -> C {
    let notes = notes.into();
    replace_leaves(value, Location::caller(), |graph, ids| {
        let node = graph.metadata(ids, Metadata { notes, ..Metadata::default() })?;
        Ok(graph.parts(node)?)
    })
}

/// Creates a named block: `body` applied to the inputs, as one node. The body defines the results,
/// and a compiler that knows the name may use a faster method.
///
/// ```
/// use nxla::{Expr, block, jit};
///
/// let scaled = |[x, by]: [Expr; 2]| x.sin() * by;
/// let f = jit(move |x: Expr, by: Expr| block("scaled_sine", [x, by], scaled));
/// assert_eq!(f.call((0.0f32, 2.0f32))?.item::<f64>()?, 0.0);
/// # Ok::<(), nxla::Error>(())
/// ```
#[doc(alias = "composite")]
#[must_use = "write `let _ = …` for a block that runs only for its effects"]
#[track_caller]
pub fn block<I: Container, R: Outputs>(
    name: &str,
    inputs: I,
    body: impl FnOnce(I) -> R,
) -> R::Return<R::Container> {
    R::from_result(composite(Location::caller(), inputs, body, |graph, open, results| {
        graph.close_block(open, name, Vec::new(), results)
    }))
}

/// Returns a function whose derivative stores few of its values and recomputes the others. This
/// takes the time of one more pass over the function, and the memory of the stored values.
///
/// ```
/// use nxla::{Expr, Keep, Tensor, checkpoint, grad, jit};
///
/// let layer = checkpoint(|[x, w]: [Expr; 2]| x.matmul(&w).tanh(), Keep::Products);
/// let loss = move |[x, w]: [Expr; 2]| layer([x, w]).sum();
/// let x = Tensor::from(vec![0.0f32; 4]).reshape([2, 2])?;
/// let [dx, _dw] = jit(grad(loss)).call([&x, &x])?;
/// assert_eq!(dx.to_vec::<f32>()?, [0.0; 4]);
/// # Ok::<(), nxla::Error>(())
/// ```
#[doc(alias = "remat")]
#[track_caller]
pub fn checkpoint<I: Container, R: Outputs>(
    function: impl Fn(I) -> R,
    keep: Keep,
) -> impl Fn(I) -> R::Return<R::Container> {
    let location = Location::caller();
    move |inputs| {
        R::from_result(composite(location, inputs, &function, |graph, open, results| {
            graph.close_checkpoint(open, keep.clone(), results)
        }))
    }
}

/// Creates one node for the results of `body`.
fn composite<I: Container, R: Outputs>(
    location: &'static Location<'static>,
    inputs: I,
    body: impl FnOnce(I) -> R,
    close: impl FnOnce(&mut Graph, OpenBlock, Vec<ExprId>) -> nxla_expr::Result<Vec<ExprId>>,
) -> Result<R::Container> {
    let mut leaves = leaves_of(&inputs);
    let trace = trace_of(&leaves.items);
    let made = trace.attempt(location, || {
        make_safe(&trace, &mut leaves)?;
        let operands = trace.ids(&leaves.items)?;
        trace.edit(|graph| graph.open_block(&operands))
    });
    let Some(open) = made else { return body(inputs).into_container() };
    let parameters = open.parameters().to_vec();
    let inner = I::rebuild(&mut in_place_of(&trace, parameters, leaves));
    let answer = trace.drop_hooks_on_error(|| body(inner).into_container())?;
    let results = leaves_of(&answer);
    let ids = trace.attempt(location, || {
        let ids = trace.ids(&results.items)?;
        trace.build(|graph| close(graph, open, ids))
    });
    let Some(ids) = ids else { return Ok(answer) };
    Ok(Tree::rebuild(&mut in_place_of(&trace, ids, results)))
}

/// Returns `value` with a custom derivative: `rule` receives the cotangents of `value`, in the same
/// container, and returns the cotangents of `inputs`. The function calls `rule` again if `rule` uses
/// a value with vectorized axes that `value` and `inputs` lack.
///
/// ```
/// use nxla::{Expr, custom_grad, grad, jit};
///
/// // The gradient of a clipped value as if it were not clipped.
/// let straight = |x: Expr| {
///     let clipped = x.stop_grad().clip(0, 1);
///     custom_grad(clipped, &x, |cotangent| cotangent)
/// };
/// assert_eq!(jit(grad(straight)).call(7.0f32)?.item::<f64>()?, 1.0);
/// # Ok::<(), nxla::Error>(())
/// ```
#[track_caller]
#[doc(alias = "custom_vjp")]
#[must_use]
pub fn custom_grad<C: Container, I: Container, R: Outputs<Container = I>>(
    value: C,
    inputs: &I,
    rule: impl Fn(C) -> R,
) -> R::Return<C> {
    R::from_result(custom_rule(RuleFor::Cotangents, value, inputs, rule))
}

/// Returns `value` with a custom derivative in the other mode than [`custom_grad`]: `rule` receives
/// the tangents of `inputs`, in the same container, and returns the tangents of `value`. It must be
/// linear, so that gradients can use its transpose.
///
/// ```
/// use nxla::{Expr, custom_jvp, grad, jit};
///
/// // The slope of a rounded value as if it were not rounded.
/// let straight = |x: Expr| custom_jvp(x.round(), &x, |change| change);
/// assert_eq!(jit(grad(move |x: Expr| straight(x) * 3)).call(7.2f32)?.item::<f64>()?, 3.0);
/// # Ok::<(), nxla::Error>(())
/// ```
#[must_use]
#[track_caller]
pub fn custom_jvp<C: Container, I: Container, R: Outputs<Container = C>>(
    value: C,
    inputs: &I,
    rule: impl Fn(I) -> R,
) -> R::Return<C> {
    R::from_result(custom_rule(RuleFor::Tangents, value, inputs, rule))
}

/// Implements [`custom_grad`] and [`custom_jvp`]: `rule` maps the cotangents of the outputs to the
/// cotangents of the inputs, or the tangents of the inputs to the tangents of the outputs.
#[track_caller]
fn custom_rule<C: Container, I: Container, D: Container, R: Outputs>(
    kind: RuleFor,
    value: C,
    inputs: &I,
    rule: impl Fn(D) -> R,
) -> Result<C> {
    let location = Location::caller();
    let (outputs, inputs) = (leaves_of(&value), leaves_of(inputs));
    let trace = trace_of(&outputs.items);
    let values = attempt_call(&trace, location, |errors| {
        let mut output_nodes = vectorized_nodes(&trace, &outputs)?;
        let input_nodes = vectorized_nodes(&trace, &inputs)?;
        let (function, of, from, to) = match kind {
            RuleFor::Cotangents => ("custom_grad", "the inputs", &outputs, &inputs),
            RuleFor::Tangents => ("custom_jvp", "the value", &inputs, &outputs),
        };
        let expected = Expected { function, argument: "rule", of, root: ("", "result") };
        loop {
            let open = |graph: &mut Graph| {
                CustomRule::open(graph, kind, output_nodes, input_nodes.clone())
            };
            let open = trace.build(open)?;
            let changes = exprs(&trace, open.changes());
            let changes = D::rebuild(&mut Leaves::new(changes, from.structure.clone()));
            let results = expected.check(&errors.check(rule(changes))?, to)?;
            let results = vectorized_nodes(&trace, &results)?;
            let close = |graph: &mut Graph| {
                graph.enter_rust(location);
                open.close(graph, &results)
            };
            match trace.build(close)? {
                ControlFlow::Break(values) => return Ok(values),
                ControlFlow::Continue(wide) => output_nodes = wide,
            }
        }
    })?;
    let Some(values) = values else { return Ok(value) };
    Ok(C::rebuild(&mut Leaves::new(exprs(&trace, values), outputs.structure)))
}
