//! The state of a lowering: the current block, the current node, hooks, and functions still to be
//! written.

use std::collections::VecDeque;
use std::sync::Arc;

use nxla_expr::{
    ActiveHooks, Block, BlockKind, Digest, ExprId, Graph, HookOp, Line, Program, TensorType,
};
use nxla_tensor::{DType, Scalar, Shape};
use rustc_hash::FxHashMap;

use crate::error::{LowerError, Result};
use crate::module::HostCall;
use crate::options::{LowerOptions, Precision};
use crate::types::Ty;
use crate::writer::{Open, Value, Values, Writer};

/// The state of a lowering. Programs, and so their graphs, are borrowed for `'a`.
pub(crate) struct Cx<'a> {
    pub(crate) writer: Writer,
    pub(crate) options: &'a LowerOptions<'a>,
    /// Constants and conversions of the current block.
    pub(crate) memo: Memo,
    /// Constants and conversions of the enclosing blocks. Regions do not use them: some regions may
    /// not, and a loop would carry them as state.
    outer_memos: Vec<Memo>,
    /// The node that is being written.
    current: Option<(&'a Graph, ExprId)>,
    /// The last location.
    location: Option<Location>,
    /// The current hook token; `None` if no hook is active.
    pub(crate) hook_token: Option<Value>,
    host_calls: Vec<HostCall>,
    pub(crate) active_hooks: ActiveHooks<'a>,
    /// The functions of the bodies of blocks.
    functions: FxHashMap<(Digest, Precision), Arc<str>>,
    /// The types of the values that functions materialize, one for each function.
    pub(crate) materialized_types: Vec<Ty>,
    /// Functions that are called but not written yet.
    pending: VecDeque<Function<'a>>,
    /// The precision of products in the current function.
    pub(crate) precision: Precision,
}

/// The function of the body of a block.
pub(crate) struct Function<'a> {
    pub(crate) name: Arc<str>,
    pub(crate) body: &'a Program,
    pub(crate) precision: Precision,
}

/// A location in the user's program, and its text.
struct Location {
    line: Line,
    scope: Option<Arc<str>>,
    text: Box<str>,
}

/// The constants and conversions of one block.
#[derive(Default)]
pub(crate) struct Memo {
    pub(crate) constants: FxHashMap<(Scalar, Ty), Value>,
    pub(crate) conversions: FxHashMap<(Value, Ty), Value>,
}

impl<'a> Cx<'a> {
    pub(crate) fn new(options: &'a LowerOptions<'a>) -> Self {
        Self {
            writer: Writer::default(),
            options,
            memo: Memo::default(),
            outer_memos: Vec::new(),
            current: None,
            location: None,
            hook_token: None,
            host_calls: Vec::new(),
            active_hooks: ActiveHooks::new(options.active_hooks),
            functions: FxHashMap::default(),
            materialized_types: Vec::new(),
            pending: VecDeque::new(),
            precision: options.precision,
        }
    }

    /// The text and its host calls.
    pub(crate) fn finish(self) -> (String, Vec<HostCall>) {
        (self.writer.finish(), self.host_calls)
    }

    // --- types ---

    pub(crate) fn ty(&mut self, dtype: DType, shape: &Shape) -> Ty {
        self.writer.types.intern(dtype, shape)
    }

    pub(crate) fn tensor_ty(&mut self, ty: &TensorType) -> Ty {
        self.ty(ty.dtype, &ty.shape)
    }

    pub(crate) fn dtype(&self, ty: Ty) -> DType {
        self.writer.types.dtype(ty)
    }

    pub(crate) fn shape(&self, ty: Ty) -> &Shape {
        self.writer.types.shape(ty)
    }

    // --- nodes and their lines ---

    /// Assigns the operations that follow to a node.
    pub(crate) fn enter(&mut self, graph: &'a Graph, id: ExprId) {
        self.current = Some((graph, id));
        if self.options.locations {
            let location =
                graph.line(id).map(|line| self.location_text(line, graph.source(id).scope()));
            self.writer.set_location(location);
        }
    }

    /// Returns true if the current node is a call of a library for the device.
    pub(crate) fn calls_library(&self) -> bool {
        let calls = self.options.library_call.zip(self.current);
        calls.is_some_and(|(calls, (graph, id))| calls(graph, id))
    }

    /// The location of a line; a scope names it, and XLA shows the name in its profiles.
    fn location_text(&mut self, line: Line, scope: Option<Arc<str>>) -> Box<str> {
        match &self.location {
            Some(last) if last.line == line && last.scope == scope => last.text.clone(),
            _ => {
                let escaped = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
                let file_line = format!("\"{}\":{}:1", escaped(&line.file), line.line);
                let text: Box<str> = match &scope {
                    Some(scope) => format!(" loc(\"{}\"({file_line}))", escaped(scope)).into(),
                    None => format!(" loc({file_line})").into(),
                };
                self.location = Some(Location { line, scope, text: text.clone() });
                text
            }
        }
    }

    fn line(&self) -> Option<Line> {
        self.current.and_then(|(graph, id)| graph.line(id))
    }

    // --- regions ---

    /// Begins the next region of an operation; returns the arguments of the region.
    pub(crate) fn begin_region(&mut self, open: &mut Open, arguments: &[Ty]) -> Values {
        self.outer_memos.push(std::mem::take(&mut self.memo));
        self.writer.begin_region(open, arguments)
    }

    /// Ends a region with its results.
    pub(crate) fn end_region(&mut self, results: &[Value]) {
        self.writer.end_region(results);
        self.memo = self.outer_memos.pop().expect("every region has been begun");
    }

    /// Begins the body of a function, which shares no values with the functions before.
    pub(crate) fn begin_function_body(&mut self) {
        self.memo = Memo::default();
        self.hook_token = None;
    }

    // --- hooks ---

    /// The number of a new host call for an active hook.
    pub(crate) fn add_host_call(
        &mut self,
        hook: &HookOp,
        arguments: Vec<TensorType>,
    ) -> Result<i64> {
        if !self.options.host_calls {
            let hook = match (&hook.name, &hook.results) {
                (Some(name), None) => format!("hook {name:?}"),
                (None, None) => "a hook without a name".to_owned(),
                (Some(name), Some(_)) => format!("the host function of {name}"),
                (None, Some(_)) => "a runtime call".to_owned(),
            };
            return Err(LowerError::HostCalls { hook, line: self.line() });
        }
        let id = i64::try_from(self.host_calls.len()).expect("fewer than 2^63 hooks");
        self.host_calls.push(HostCall { id, hook: hook.clone(), arguments });
        Ok(id)
    }

    // --- functions ---

    /// The function that computes a program, written once for equal programs. It must not have
    /// active hooks: equal programs may have hooks with different functions.
    pub(crate) fn function(&mut self, block: &'a Block) -> Arc<str> {
        let number = self.functions.len();
        let pending = &mut self.pending;
        let precision = match block.kind {
            BlockKind::Factorize(_) => Precision::Highest,
            BlockKind::Cumulative { .. }
            | BlockKind::TopK { .. }
            | BlockKind::Checkpoint { .. }
            | BlockKind::Named { .. }
            | BlockKind::Threefry { .. }
            | BlockKind::Search(_)
            | BlockKind::Scatter { .. }
            | BlockKind::Solve { .. } => self.precision,
        };
        let body: &'a Program = &block.body;
        let name = self.functions.entry((body.digest(), precision)).or_insert_with(|| {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let plain: String =
                block.name().chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
            let name: Arc<str> = format!("block_{number}_{plain}").into();
            pending.push_back(Function { name: name.clone(), body, precision });
            name
        });
        name.clone()
    }

    /// The next function to write.
    pub(crate) fn next_function(&mut self) -> Option<Function<'a>> {
        self.pending.pop_front()
    }
}
