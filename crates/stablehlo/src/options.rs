//! What a caller chooses about the text.

use std::fmt;

use nxla_expr::{HookOp, Layout};

/// XLA's debug options under which its CPU compiler keeps to what StableHLO defines: without them
/// a maximum forgets NaN in its right operand, and narrow floats keep excess precision between
/// operations, depending on what was fused with what.
///
/// Pass them with the text when compiling it.
pub const STRICT_OPTIONS: &[(&str, bool)] =
    &[("xla_cpu_enable_fast_min_max", false), ("xla_allow_excess_precision", false)];

/// The `id` of the host function that runs what XLA does slowly or not at all, where
/// [`LowerOptions::kernels`] asks for it. Its attribute `program` says what to run, see
/// [`kernel_program`](crate::kernel_program).
pub const KERNEL_ID: i64 = -1;

/// How a program is written.
#[derive(Clone, Copy)]
pub struct LowerOptions<'a> {
    /// Whether somebody listens to a hook; others are left out. By default, those with a function
    /// of their own.
    pub active_hooks: &'a dyn Fn(&HookOp) -> bool,
    /// For each input of the program, whether its memory may be used for a result. Empty means
    /// none.
    pub donated: &'a [bool],
    /// Whether the plugin can call host functions.
    pub host_calls: bool,
    /// Whether the host function [`KERNEL_ID`] is called for factorisations of matrices, for which
    /// StableHLO has no words and which are composed of other operations otherwise, and for
    /// triangular matrices, many convolutions, large sorts, scans and reductions, and random words, which
    /// XLA's code for the processor does slowly.
    pub kernels: bool,
    /// Whether it is called for Fourier transforms as well.
    pub transforms: bool,
    /// Whether sums and extrema of `f32` along the last axes take their operand from memory, and rows
    /// are summed by themselves where several axes are. XLA hands them to a library for the processor
    /// then, or computes them in one loop, and would else make a tree of windows of each once it sees
    /// which operation the operand comes from.
    pub sums_apart: bool,
    /// Whether a value that must not be computed twice passes through a call of a function that is
    /// not inlined. XLA's compiler for the processor needs that; elsewhere it passes a barrier.
    pub kept_by_calls: bool,
    /// Whether operations carry the user's line, for XLA's errors, dumps and profiles.
    pub locations: bool,
    /// How exactly hardware multiplies `f32` in `dot` and `conv`.
    pub precision: Precision,
    /// How the program is divided over several devices, if it is.
    pub partition: Option<Partition<'a>>,
}

/// A mesh of devices, and how inputs and outputs of a program are divided over it. What is divided
/// how in between, XLA decides.
#[derive(Clone, Copy, Debug)]
pub struct Partition<'a> {
    /// The names and sizes of the axes of the mesh. Names need no quotes in MLIR's strings.
    pub axes: &'a [(String, usize)],
    /// One for each input.
    pub inputs: &'a [Layout],
    /// One for each output; without them XLA decides.
    pub outputs: Option<&'a [Layout]>,
}

impl Default for LowerOptions<'_> {
    fn default() -> Self {
        Self {
            active_hooks: &|hook| hook.has_function(),
            donated: &[],
            host_calls: false,
            kernels: false,
            transforms: false,
            sums_apart: false,
            kept_by_calls: false,
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
            .field("kernels", &self.kernels)
            .field("transforms", &self.transforms)
            .field("sums_apart", &self.sums_apart)
            .field("kept_by_calls", &self.kept_by_calls)
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
    /// What the plugin prefers.
    #[default]
    Default,
    /// Slower and more exact.
    High,
    /// As exact as the dtype.
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
