//! The graph: ops and their attributes, types, nodes, programs and digests.
//!
//! This module stores and reads data. Type inference and simplification are in other modules and
//! are applied in [`make`](crate::make). An op can contain a program, a program contains a graph,
//! and a graph contains ops; these modules and the encoding import each other in a cycle.

mod block;
mod cost;
mod detach;
pub(crate) mod encode;
mod error;
mod factorization;
mod facts;
mod family;
mod hook;
mod ids;
mod layout;
mod monoid;
mod nested;
mod notes;
mod op;
mod program;
mod region;
mod source;
pub(crate) mod store;
mod table;
mod trips;
mod types;
mod walk;

pub use block::{BlockKind, Combine, Cumulative, Keep, Order};
pub use cost::operations;
pub use detach::DetachedProgram;
pub use encode::Digest;
pub(crate) use error::shape_text;
pub use error::{Difference, Error, ErrorKind, Misfit, Region, Result};
pub use factorization::Factorization;
pub use facts::{Fact, Sources, close_over_iterations};
pub use hook::{Compute, HookOp, HostError, HostFn, Listener};
pub use ids::{ExprId, IdMap, IdSet, Operands};
pub use layout::{Layout, SHARDING_NOTE, layout_text, sharding_note};
pub use nested::{ActiveHooks, Contents, MAX_NESTING, Regions};
pub use notes::{HostNote, HostValue, MAX_NOTE_DEPTH, Note, Notes};
pub use op::*;
pub use program::Program;
pub(crate) use region::Invariants;
pub use region::{Mark, Scope, Traced};
pub use source::{AtLine, Line, Locate, Source, SourceId, SourceMap};
pub(crate) use store::ClosedBody;
pub use store::{Graph, GraphOptions, Node};
pub use table::{BinaryClass, BinaryOp, Composed, Lowering, UnaryClass, UnaryOp};
pub use trips::{Counter, counter};
pub use types::{TensorType, Type, TypeId};
