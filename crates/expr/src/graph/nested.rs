//! The programs inside ops: listing them, replacing them, and finding effects.
//!
//! All code that visits regions independently of the containing op (digests, serialization,
//! verification) uses these methods, so a new op with a region is added here once.
//!
//! A hook, and an op with a hook in a region that runs, has *effects*. This property is derived
//! from [`Op::contents`]. A node with effects is never merged with another node. It is a root of its
//! program, so it runs even if its results are unused. Nodes with effects run in the order of their
//! ids.
//!
//! Regions *nest*: a branch of a conditional can contain another conditional. Passes over programs,
//! and dropping programs, recurse into regions, which is safe because the depth is limited.

use std::fmt;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::hook::HookOp;
use super::op::{Block, Cond, CustomGrad, Metadata, Op, ReduceFun, While, WindowFun};
use super::program::Program;

/// The limit for the nesting of regions, chosen so that recursion fits in a stack of 1 MB. Building
/// or reading a deeper nest is an error.
pub const MAX_NESTING: usize = 64;

/// The programs of an op, in a fixed order.
pub type Regions<'a> = SmallVec<[&'a Arc<Program>; 3]>;

/// The program or function that an op contains.
#[derive(Debug)]
pub enum Contents<'a> {
    /// Neither programs nor functions.
    None,
    /// A host function, which is called.
    HostFunction(&'a HookOp),
    /// Programs that run when the node runs.
    Executed(Regions<'a>),
    /// A program that is stored and does not run with the node.
    Stored(&'a Arc<Program>),
}

impl Op {
    /// Returns the program or function that the op contains. The effects of a node follow from the
    /// result, so a new op that contains a program or a function is added only here.
    #[inline]
    pub fn contents(&self) -> Contents<'_> {
        match self {
            Op::Hook(hook) => Contents::HostFunction(hook),
            Op::ReduceFun(op) => Contents::Executed(Regions::from_slice(&[&op.function])),
            Op::WindowFun(op) => Contents::Executed(Regions::from_slice(&[&op.function])),
            Op::Cond(op) => Contents::Executed(op.programs().collect()),
            Op::While(op) => Contents::Executed(Regions::from_slice(&[&op.condition, &op.body])),
            Op::Block(op) => Contents::Executed(Regions::from_slice(&[&op.body])),
            Op::Metadata(op) => match &op.custom_grad {
                Some(custom) => Contents::Stored(&custom.program),
                None => Contents::None,
            },
            Op::Iota(_)
            | Op::Eye(_)
            | Op::Unary(_)
            | Op::Binary(_)
            | Op::Select
            | Op::Clip
            | Op::AsType(_)
            | Op::Bitcast(_)
            | Op::Reshape(_)
            | Op::Squeeze(_)
            | Op::Transpose(_)
            | Op::Reverse(_)
            | Op::Broadcast(_)
            | Op::Pad(_)
            | Op::Concatenate(_)
            | Op::Stack(_)
            | Op::Reduce(..)
            | Op::ArgReduce(..)
            | Op::Window(..)
            | Op::WindowScatter(..)
            | Op::Dot(_)
            | Op::Conv(_)
            | Op::Slice(_)
            | Op::PutSlice(_)
            | Op::Gather(_)
            | Op::IndexedAdd(_)
            | Op::IndexedPut(_)
            | Op::Sort(_)
            | Op::Argsort(..)
            | Op::Fft(_)
            | Op::TriangularSolve(_)
            | Op::Cholesky
            | Op::Factorize(_)
            | Op::Parameter(_)
            | Op::Constant(_)
            | Op::Tensor(_)
            | Op::Elem(_) => Contents::None,
        }
    }

    /// Returns the programs inside this op: for `cond` each predicate and its body, then the last
    /// branch; for `while` the condition, then the body.
    #[inline]
    pub fn regions(&self) -> Regions<'_> {
        match self.contents() {
            Contents::None | Contents::HostFunction(_) => Regions::new(),
            Contents::Executed(regions) => regions,
            Contents::Stored(region) => Regions::from_slice(&[region]),
        }
    }

    /// Returns whether running the op has an observable effect: it is a hook, or a program that
    /// runs with it contains a hook. Programs list their own effects, so this takes constant time
    /// at any depth.
    #[inline]
    pub fn has_effects(&self) -> bool {
        match self.contents() {
            Contents::None | Contents::Stored(_) => false,
            Contents::HostFunction(_) => true,
            Contents::Executed(regions) => {
                regions.iter().any(|region| !region.effects().is_empty())
            }
        }
    }

    /// Returns the nesting depth of regions in this op: 0 without regions.
    #[inline]
    pub fn nesting_depth(&self) -> usize {
        let regions = self.regions();
        regions.iter().map(|region| region.graph().nesting_depth() + 1).max().unwrap_or(0)
    }

    /// Returns the same op with each program replaced, in the order of [`Op::regions`].
    #[must_use]
    pub fn map_regions(&self, mut replace: impl FnMut(&Arc<Program>) -> Arc<Program>) -> Op {
        if self.regions().is_empty() {
            return self.clone();
        }
        match self {
            Op::ReduceFun(op) => {
                let function = replace(&op.function);
                Op::ReduceFun(Box::new(ReduceFun { reduce: op.reduce.clone(), function }))
            }
            Op::WindowFun(op) => {
                let function = replace(&op.function);
                Op::WindowFun(Box::new(WindowFun { window: op.window.clone(), function }))
            }
            Op::Metadata(op) => {
                let custom_grad = op.custom_grad.as_ref().map(|custom| CustomGrad {
                    program: replace(&custom.program),
                    ..custom.clone()
                });
                Op::Metadata(Box::new(Metadata { custom_grad, ..(**op).clone() }))
            }
            Op::Cond(op) => {
                let mut pair = |(predicate, body): &(Arc<Program>, Arc<Program>)| {
                    let predicate = replace(predicate);
                    (predicate, replace(body))
                };
                let clauses = op.clauses.iter().map(&mut pair).collect();
                let otherwise = replace(&op.otherwise);
                Op::Cond(Arc::new(Cond { clauses, otherwise }))
            }
            Op::While(op) => {
                let condition = replace(&op.condition);
                let body = replace(&op.body);
                Op::While(Arc::new(While { state: op.state, condition, body, replay: op.replay }))
            }
            Op::Block(op) => {
                let (kind, batch_axes) = (op.kind.clone(), op.batch_axes);
                let body = replace(&op.body);
                Op::Block(Arc::new(Block { kind, batch_axes, body }))
            }
            op => unreachable!("{} lists no regions", op.name()),
        }
    }
}

/// Finds the ops of a program that call an active hook: a hook with results, or one for which a
/// predicate returns true. Each region is searched once, however many nodes share it.
///
/// ```
/// use nxla_expr::{ActiveHooks, Graph, TensorType};
/// use nxla_tensor::DType;
///
/// let mut graph = Graph::new();
/// let x = graph.parameter(0, TensorType::new(DType::F32, [2]));
/// graph.hook(&[x], Some("seen"), None)?;
/// let node = graph.effects()[0];
/// assert!(ActiveHooks::new(&|hook| hook.name.is_some()).are_called_by(graph.op(node)));
/// assert!(!ActiveHooks::new(&|_| false).are_called_by(graph.op(node)));
/// # Ok::<(), nxla_expr::Error>(())
/// ```
pub struct ActiveHooks<'a> {
    is_active: &'a dyn Fn(&HookOp) -> bool,
    /// True if a region calls an active hook, by address: programs of equal digests may hold
    /// different host functions.
    regions: FxHashMap<*const Program, bool>,
}

impl fmt::Debug for ActiveHooks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActiveHooks").field("regions", &self.regions).finish_non_exhaustive()
    }
}

impl<'a> ActiveHooks<'a> {
    /// Searches one program, which must outlive the value: its address identifies a region.
    pub fn new(is_active: &'a dyn Fn(&HookOp) -> bool) -> Self {
        Self { is_active, regions: FxHashMap::default() }
    }

    /// Returns whether an op is an active hook or runs a region with one.
    pub fn are_called_by(&mut self, op: &Op) -> bool {
        match op.contents() {
            Contents::None | Contents::Stored(_) => false,
            Contents::HostFunction(hook) => hook.results.is_some() || (self.is_active)(hook),
            Contents::Executed(regions) => regions.into_iter().any(|region| self.are_in(region)),
        }
    }

    /// Returns whether a program contains active hooks, also in its regions.
    pub fn are_in(&mut self, program: &Program) -> bool {
        let address = std::ptr::from_ref(program);
        if let Some(&known) = self.regions.get(&address) {
            return known;
        }
        let found = program.effects().iter().any(|&id| self.are_called_by(program.graph().op(id)));
        self.regions.insert(address, found);
        found
    }
}
