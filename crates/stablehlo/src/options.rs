//! Options of a lowering.

use std::fmt;

use nxla_expr::{ExprId, Graph, HookOp, Layout};

/// The `id` of the host function that runs custom calls, see [`LowerOptions::custom_call`]. Its
/// attribute `program` holds the program to run, see [`kernel_program`](crate::kernel_program).
pub const KERNEL_ID: i64 = -1;

/// Decides whether a node of a graph becomes a custom call.
pub type CustomCall<'a> = &'a dyn Fn(&Graph, ExprId) -> bool;

/// Options of [`lower`](crate::lower).
#[derive(Clone, Copy)]
pub struct LowerOptions<'a> {
    /// Returns true for hooks that are called; other hooks are left out. By default, hooks with a
    /// function are called.
    pub active_hooks: &'a dyn Fn(&HookOp) -> bool,
    /// For each input of the program, `true` if a result may use its memory; empty if none is
    /// donated.
    pub donated: &'a [bool],
    /// True if the plugin can call host functions.
    pub host_calls: bool,
    /// The nodes that the host function [`KERNEL_ID`] computes; `None` leaves all of them to the
    /// plugin. With it, the predicate must hold for every factorization.
    pub custom_call: Option<CustomCall<'a>>,
    /// The factorizations, Cholesky among them, that are calls of `nxla_factorize`, which the caller has
    /// registered with the plugin and which returns what LAPACK returns.
    /// Factorizations without a `custom_call` and a call of the library are composed of simpler ops,
    /// because StableHLO has no op for them.
    pub library_call: Option<CustomCall<'a>>,
    /// True if a value that must not be computed twice is the result of a call of a function that
    /// is not inlined. XLA's compiler for CPUs ignores the barrier that is written otherwise.
    pub materialize_by_calls: bool,
    /// True if the plugin applies the updates of a scatter in order, so that the last of several
    /// writes to one element stays. XLA's compiler for CPUs does.
    pub scatters_in_order: bool,
    /// True if operations carry the user's line, for XLA's errors, dumps and profiles.
    pub locations: bool,
    /// The precision with which hardware multiplies `f32` in `dot` and `conv`.
    pub precision: Precision,
    /// The division of the program over several devices.
    pub partition: Option<Partition<'a>>,
}

/// A mesh of devices, and the division of inputs and outputs of a program over it. XLA divides
/// intermediate values.
#[derive(Clone, Copy, Debug)]
pub struct Partition<'a> {
    /// The names and sizes of the axes of the mesh. Names consist of letters, digits and `_`, so MLIR
    /// needs no escapes.
    pub axes: &'a [(String, usize)],
    /// The layout of each input.
    pub inputs: &'a [Layout],
    /// The layout of each output; `None` leaves the choice to XLA.
    pub outputs: Option<&'a [Layout]>,
}

impl Default for LowerOptions<'_> {
    fn default() -> Self {
        Self {
            active_hooks: &|hook| hook.has_function(),
            donated: &[],
            host_calls: false,
            custom_call: None,
            library_call: None,
            materialize_by_calls: false,
            scatters_in_order: true,
            locations: false,
            precision: Precision::Default,
            partition: None,
        }
    }
}

impl fmt::Debug for LowerOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LowerOptions")
            .field("donated", &self.donated)
            .field("host_calls", &self.host_calls)
            .field("custom_calls", &self.custom_call.is_some())
            .field("library_calls", &self.library_call.is_some())
            .field("materialize_by_calls", &self.materialize_by_calls)
            .field("scatters_in_order", &self.scatters_in_order)
            .field("locations", &self.locations)
            .field("precision", &self.precision)
            .field("partition", &self.partition)
            .finish_non_exhaustive()
    }
}

/// The precision of products in `dot` and `conv`. CPUs always use the highest; accelerators may
/// round the factors to fewer bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Precision {
    /// The plugin's default.
    #[default]
    Default,
    /// Slower and more exact.
    High,
    /// The precision of the dtype.
    Highest,
}

impl Precision {
    /// StableHLO's word.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Precision::Default => "DEFAULT",
            Precision::High => "HIGH",
            Precision::Highest => "HIGHEST",
        }
    }
}
