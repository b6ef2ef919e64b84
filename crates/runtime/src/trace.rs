//! A trace: the running of a user's function on expressions instead of tensors.
//!
//! The trace owns the graph under construction. While it is entered, functions that take no
//! expression (such as `iota`) know from the thread-local stack where to build. When it finishes,
//! the graph becomes a [`Program`], and expressions that outlive it answer with an error.

use std::cell::RefCell;
use std::fmt;
use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nxla_expr::{Error as ExprError, ErrorKind, ExprId, Graph, Line, Program, Source, TensorType};
use nxla_tensor::TensorError;
use rustc_hash::FxHashMap;

use crate::error::{Error, Result};
use crate::expr::RawExpr;
use crate::options::graph_options;
use crate::tensor::RawTensor;
use crate::thresholds::LITERAL_LIMIT_BYTES;
use crate::vectors::active_entries::{ActiveEntries, ActiveEntriesStack};
use crate::vectors::control::Vectorized;

/// A function being traced. Clones are the same trace.
#[derive(Clone)]
pub struct Trace(Arc<SharedTrace>);

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace").finish_non_exhaustive()
    }
}

/// The number of inputs whose positions a caller may choose. A trace has an entry for each position
/// up to the last one.
const MAX_POSITIONS: usize = 1 << 16;

/// The fields of a trace, which all its clones share.
struct SharedTrace {
    number: u64,
    /// One lock for the whole state, so that an operator locks once.
    state: Mutex<TraceState>,
    /// The current regions that only some entries of vectorized axes enter. `state` must be locked
    /// before `active`.
    active: Mutex<ActiveEntriesStack>,
}

/// The graph of a trace, and what the trace has recorded with it.
#[derive(Default)]
struct TraceState {
    graph: Graph,
    /// The types of the inputs. A position may be skipped until the trace finishes.
    inputs: Vec<Option<TensorType>>,
    finished: bool,
    /// Tensors that the function captures, if they are large or on a device: they are inputs after
    /// the inputs of the function.
    captured: Vec<CapturedTensor>,
    /// The positions in `captured` of tensors by the address of their data. Equal addresses are
    /// necessary for equal data, but not sufficient.
    captured_at: FxHashMap<usize, Vec<usize>>,
    /// The first error of an operator, which cannot return one.
    failure: Option<Error>,
}

impl TraceState {
    /// The graph; a finished trace has no graph.
    fn graph(&mut self) -> Result<&mut Graph> {
        if self.finished { Err(finished_trace_error()) } else { Ok(&mut self.graph) }
    }

    fn parameter(&mut self, ty: TensorType) -> Result<ExprId> {
        self.parameter_at(self.inputs.len(), ty)
    }

    fn parameter_at(&mut self, position: usize, ty: TensorType) -> Result<ExprId> {
        let known = self.inputs.get(position).and_then(Option::as_ref);
        if let Some(known) = known.filter(|known| **known != ty) {
            let why = format!("pos: input {position} is {known} already; got {ty}");
            return Err(Error::Arguments { function: "parameter".into(), why });
        }
        // The caller may have set the names of the type without a check.
        let checked = ty.names.as_ref().map_or(Ok(()), |names| names.check_length(ty.rank()));
        checked.map_err(TensorError::from)?;
        let id = self.graph()?.parameter(position, ty.clone());
        self.inputs.resize(self.inputs.len().max(position + 1), None);
        self.inputs[position] = Some(ty);
        Ok(id)
    }

    /// The types of the inputs, once every position has one.
    fn input_types(&self) -> Result<Vec<TensorType>> {
        let types = self.inputs.iter().enumerate().map(|(position, ty)| {
            ty.clone().ok_or_else(|| {
                let why = format!("pos: every input needs a parameter; input {position} has none");
                Error::Arguments { function: "parameter".into(), why }
            })
        });
        types.collect()
    }

    /// Records the first error, with the line of the operator unless the error has a line.
    fn fail(&mut self, location: &'static Location<'static>, error: Error) {
        self.failure.get_or_insert_with(|| error.at_location(location));
    }
}

/// A tensor that became an input.
struct CapturedTensor {
    tensor: RawTensor,
    id: ExprId,
    /// The source line of its first use.
    source: Source,
}

thread_local! {
    /// The traces entered on this thread, the innermost last, and the names of the compilers that
    /// they are traced for.
    static ENTERED: RefCell<Vec<(Trace, Arc<str>)>> = const { RefCell::new(Vec::new()) };
}

/// The name of the compiler for which a function is being traced on this thread; `None` outside of
/// a trace.
///
/// ```
/// use nxla::{Expr, current_compiler, jit};
///
/// let f = jit(|x: Expr| {
///     assert_eq!(current_compiler().as_deref(), Some("evaluator"));
///     x + 1
/// });
/// f.call(1)?;
/// assert_eq!(current_compiler(), None);
/// # Ok::<(), nxla::Error>(())
/// ```
pub fn current_compiler() -> Option<Arc<str>> {
    ENTERED.with_borrow(|stack| stack.last().map(|(_, compiler)| compiler.clone()))
}

/// Returns whether a function is being traced on this thread.
///
/// ```
/// use nxla::{Expr, is_tracing, jit};
///
/// let f = jit(|x: Expr| {
///     assert!(is_tracing());
///     x + 1
/// });
/// f.call(1)?;
/// assert!(!is_tracing());
/// # Ok::<(), nxla::Error>(())
/// ```
pub fn is_tracing() -> bool {
    Trace::is_entered()
}

/// Leaves the trace when dropped.
#[derive(Debug)]
#[must_use = "the trace is left when this is dropped"]
pub struct Entered(());

impl Drop for Entered {
    fn drop(&mut self) {
        ENTERED.with_borrow_mut(Vec::pop);
    }
}

/// Leaves the region of some entries when dropped; see [`Trace::enter_entries`].
#[derive(Debug)]
#[must_use = "the region is left when this is dropped"]
pub struct EnteredEntries(Option<Trace>);

impl Drop for EnteredEntries {
    fn drop(&mut self) {
        if let Some(trace) = &self.0 {
            trace.active().pop();
        }
    }
}

impl Default for Trace {
    fn default() -> Self {
        Self::new()
    }
}

impl Trace {
    /// An empty trace, whose graph simplifies as this thread wants it
    /// ([`graph_options`]).
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let graph = Graph::with_options(graph_options());
        let state = TraceState { graph, ..TraceState::default() };
        Self(Arc::new(SharedTrace {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            state: Mutex::new(state),
            active: Mutex::default(),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, TraceState> {
        // A panic during an operator leaves the graph valid, because a node is added in a single step.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The innermost trace entered on this thread.
    ///
    /// ```
    /// use nxla::{Expr, Trace, jit};
    ///
    /// assert!(Trace::current().is_none());
    /// let f = jit(|x: Expr| {
    ///     assert!(Trace::current().is_some_and(|trace| trace.is(x.trace())));
    ///     x
    /// });
    /// f.call(1)?;
    /// # Ok::<(), nxla::Error>(())
    /// ```
    pub fn current() -> Option<Trace> {
        ENTERED.with_borrow(|stack| stack.last().map(|(trace, _)| trace.clone()))
    }

    /// Returns `true` if a trace is entered on this thread: [`Trace::current`] without a handle.
    pub fn is_entered() -> bool {
        ENTERED.with_borrow(|stack| !stack.is_empty())
    }

    /// Makes this the current trace of the thread until the result is dropped. It is traced for a
    /// compiler of this name.
    pub fn enter(&self, compiler: &str) -> Entered {
        ENTERED.with_borrow_mut(|stack| stack.push((self.clone(), compiler.into())));
        Entered(())
    }

    /// A number that no other trace of the process has.
    pub fn number(&self) -> u64 {
        self.0.number
    }

    /// Returns `true` if two traces are the same.
    pub fn is(&self, other: &Trace) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Builds in the graph. The trace is locked meanwhile, so `build` must not call methods of its
    /// expressions.
    ///
    /// # Errors
    /// Returns an error if the trace has finished, and the error of `build`.
    pub fn build<T, E>(&self, build: impl FnOnce(&mut Graph) -> Result<T, E>) -> Result<T>
    where
        Error: From<E>,
    {
        Ok(build(self.lock().graph()?)?)
    }

    /// Edits the graph with a function that cannot fail.
    ///
    /// # Errors
    /// Returns an error if the trace has finished.
    pub fn edit<T>(&self, edit: impl FnOnce(&mut Graph) -> T) -> Result<T> {
        Ok(edit(self.lock().graph()?))
    }

    /// Traces a region. If this fails, the hooks of the region leave the trace: the caller may catch
    /// the error, and hooks of a region that does not exist would be part of the program.
    ///
    /// # Errors
    /// Returns the error of `build`.
    pub fn drop_hooks_on_error<T, E>(&self, build: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        // A finished trace has no hooks.
        let start = self.edit(|graph| graph.mark()).ok();
        build().inspect_err(|_| {
            if let Some(start) = start {
                let _ = self.edit(|graph| graph.drop_effects(start));
            }
        })
    }

    /// Builds for an operator at a location in Rust code: the first error is kept for
    /// [`Trace::finish`], and after it everything is `None`.
    pub fn operate<T>(
        &self,
        location: &'static Location<'static>,
        build: impl FnOnce(&mut Graph) -> Result<T>,
    ) -> Option<T> {
        let mut state = self.lock();
        if state.failure.is_some() {
            return None;
        }
        let built = state.graph().and_then(|graph| {
            graph.enter_rust(location);
            build(graph)
        });
        built.map_err(|error| state.fail(location, error)).ok()
    }

    /// Sets the Rust source location of new nodes.
    pub fn enter_rust(&self, location: &'static Location<'static>) -> Result<()> {
        self.edit(|graph| graph.enter_rust(location))
    }

    /// Reads the graph. Returns `None` for a finished trace, which has no graph.
    pub fn read<T>(&self, read: impl FnOnce(&Graph) -> T) -> Option<T> {
        self.lock().graph().ok().map(|graph| read(graph))
    }

    /// The next input of the program.
    ///
    /// # Errors
    /// Returns an error if the trace has finished, or if the type has another number of names than
    /// axes.
    pub fn parameter(&self, ty: TensorType) -> Result<RawExpr> {
        let id = self.lock().parameter(ty)?;
        Ok(RawExpr::new(self.clone(), id))
    }

    /// The input at a position of the program. The same position has the same type each time.
    ///
    /// # Errors
    /// Returns an error if the trace has finished, if the input has another type, if the type has
    /// another number of names than axes, or for a position above 65,535.
    pub fn parameter_at(&self, position: usize, ty: TensorType) -> Result<RawExpr> {
        if position >= MAX_POSITIONS {
            let why = format!("pos: must be below {MAX_POSITIONS}; got {position}");
            return Err(Error::Arguments { function: "parameter".into(), why });
        }
        let id = self.lock().parameter_at(position, ty)?;
        Ok(RawExpr::new(self.clone(), id))
    }

    /// Makes a node of a tensor that the function captures. A small tensor becomes a literal, part
    /// of the program and its digest; a large tensor that repeats a number becomes that number. Any
    /// other large tensor becomes a hidden input, so that the program stays small and is compiled
    /// once for all values. A tensor on a device becomes a hidden input too: it is not copied to
    /// the host, and selects the device of the program.
    ///
    /// # Errors
    /// Returns an error if the trace has finished.
    pub fn capture(&self, tensor: &RawTensor) -> Result<RawExpr> {
        let (tensor, vectors) = (tensor.data(), tensor.vectors().clone());
        let id = match tensor {
            RawTensor::Host(host) if host.byte_size() <= LITERAL_LIMIT_BYTES => {
                self.build(|graph| graph.tensor(host.clone()))?
            }
            RawTensor::Host(host) => match host.splat_value() {
                Some(value) => self.build(|graph| graph.constant(value, tensor.ty()))?,
                None => self.capture_input(tensor)?,
            },
            RawTensor::Device(_) | RawTensor::Vectorized(_) => self.capture_input(tensor)?,
        };
        Ok(RawExpr::with_vectors(self.clone(), id, vectors))
    }

    fn capture_input(&self, tensor: &RawTensor) -> Result<ExprId> {
        let mut state = self.lock();
        let positions = state.captured_at.get(&tensor.address()).into_iter().flatten();
        // Axis names are part of the type, so the same data with other names is another input.
        let known = positions.map(|&position| &state.captured[position]).find(|captured| {
            captured.tensor.is(tensor) && captured.tensor.names() == tensor.names()
        });
        if let Some(captured) = known {
            return Ok(captured.id);
        }
        let id = state.parameter(tensor.ty())?;
        let source = state.graph.source(id).clone();
        let position = state.captured.len();
        state.captured_at.entry(tensor.address()).or_default().push(position);
        state.captured.push(CapturedTensor { tensor: tensor.clone(), id, source });
        Ok(id)
    }

    /// Returns the tensors that became additional inputs, in the order of these inputs. The regular inputs
    /// must have been created before.
    pub fn captured_tensors(&self) -> Vec<RawTensor> {
        self.lock().captured.iter().map(|captured| captured.tensor.clone()).collect()
    }

    /// The source line of the first use of each tensor of [`Trace::captured_tensors`], if known.
    pub fn captured_lines(&self) -> Vec<Option<Line>> {
        self.lock().captured.iter().map(|captured| captured.source.line()).collect()
    }

    /// Ends the trace with these results.
    ///
    /// # Errors
    /// Returns the first error of an operator, or an error for a result that belongs to another trace
    /// or to a region.
    pub fn finish(&self, outputs: &[impl AsRef<RawExpr>]) -> Result<Program> {
        let mut state = self.lock();
        if let Some(error) = state.failure.take() {
            state.finished = true;
            return Err(error);
        }
        drop(state);
        let outputs = self.ids(outputs)?;
        let mut state = self.lock();
        let graph = std::mem::take(state.graph()?);
        state.finished = true;
        let inputs = state.input_types()?;
        drop(state);
        Ok(Program::new(&graph, inputs, &outputs)?)
    }

    /// Ends the trace without a result.
    pub fn abandon(&self) {
        let mut state = self.lock();
        state.finished = true;
        state.graph = Graph::new();
    }

    /// The ids of expressions, which must be of this trace.
    ///
    /// # Errors
    /// Returns an error for an expression of another trace.
    pub fn ids(&self, exprs: &[impl AsRef<RawExpr>]) -> Result<Vec<ExprId>> {
        exprs.iter().map(|expr| self.id(expr.as_ref())).collect()
    }

    /// The id of an expression, which must be of this trace.
    ///
    /// # Errors
    /// Returns an error for an expression of another trace.
    pub fn id(&self, expr: &RawExpr) -> Result<ExprId> {
        if self.is(expr.trace()) { expr.id() } else { Err(foreign(expr)) }
    }

    fn active(&self) -> MutexGuard<'_, ActiveEntriesStack> {
        self.0.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Traces operations only for these entries until the result is dropped. `None` keeps the current
    /// entries.
    pub fn enter_entries(&self, active: Option<ActiveEntries>) -> EnteredEntries {
        let trace = active.map(|active| {
            self.active().push(active);
            self.clone()
        });
        EnteredEntries(trace)
    }

    /// Returns a value for use in the current region: with safe values for entries that do not enter the
    /// region, and with the vectorized axes that distinguish them. `is_data` is true for a tensor, which
    /// comes from outside every region.
    ///
    /// # Errors
    /// Returns an error for vectorized axes of equal names and different sizes.
    pub fn mask_entries(
        &self,
        graph: &mut Graph,
        value: Vectorized,
        is_data: bool,
    ) -> Result<Vectorized> {
        if value.1.is_empty() { Ok(value) } else { self.active().make_safe(graph, value, is_data) }
    }

    /// [`Trace::mask_entries`] of an expression, which must be of this trace.
    ///
    /// # Errors
    /// Returns an error for an expression of another trace or vectorized axes of equal names and
    /// different sizes.
    pub fn safe(&self, expr: &RawExpr) -> Result<RawExpr> {
        let value = (self.id(expr)?, expr.vectors().clone());
        if value.1.is_empty() {
            return Ok(expr.clone());
        }
        let (id, vectors) = self.build(|graph| self.mask_entries(graph, value, false))?;
        Ok(RawExpr::with_vectors(self.clone(), id, vectors))
    }

    /// Remembers the first error of operators, with the line of the operator unless the error has a
    /// line.
    pub fn fail(&self, location: &'static Location<'static>, error: Error) {
        self.lock().fail(location, error);
    }

    /// Removes and returns the first error of an operator.
    pub fn take_failure(&self) -> Option<Error> {
        self.lock().failure.take()
    }

    /// The message of the first error of an operator. The error stays in the trace.
    pub fn why_failed(&self) -> Option<String> {
        self.lock().failure.as_ref().map(ToString::to_string)
    }

    /// The message of the first error of an operator without its line, and the line. The error stays
    /// in the trace.
    fn failure(&self) -> Option<(String, Option<Line>)> {
        Some(match self.lock().failure.as_ref()? {
            Error::Expr(error) => {
                let unplaced = ExprError { line: None, ..error.clone() };
                (unplaced.to_string(), error.line.clone())
            }
            Error::Operation { line, error } => (error.to_string(), Some(line.clone())),
            error => (error.to_string(), None),
        })
    }

    /// Returns `true` if an operator has failed.
    pub fn has_failed(&self) -> bool {
        self.lock().failure.is_some()
    }

    /// Calls `build` for a function that cannot return an error, and that the user called at a
    /// location in Rust code, which new nodes have. The first error is stored for [`Trace::finish`],
    /// with the line of the call unless the error has a line; later results are `None`.
    pub fn attempt<T>(
        &self,
        location: &'static Location<'static>,
        build: impl FnOnce() -> Result<T>,
    ) -> Option<T> {
        if self.has_failed() {
            return None;
        }
        let built = self.enter_rust(location).and_then(|()| build());
        built.map_err(|error| self.fail(location, error)).ok()
    }
}

pub(crate) fn finished_trace_error() -> Error {
    let why = "a value of a finished trace is used; return it from the traced function instead";
    Error::Expr(ErrorKind::Trace(why.into()).of("trace"))
}

fn foreign(expr: &RawExpr) -> Error {
    if let Some((why, line)) = expr.trace().failure().filter(|_| expr.has_failed()) {
        let mut error = ErrorKind::Trace(why).of("trace");
        error.line = line;
        return Error::Expr(error);
    }
    let why = "a value of another trace is used here; pass it as an argument instead";
    let mut error = ErrorKind::Trace(why.into()).of("trace");
    error.line = expr.read(|graph, id| graph.line(id)).flatten();
    Error::Expr(error)
}
