//! Lowering: from a schedule to the instructions of the executor.
//!
//! Lowering decides where each value lives. Values of loops, and of programs on small tensors, have an offset in the
//! arena, which other values share once they are dead. Other values have slots, which are reused in the same
//! way. Regions of loops and branches become instructions in place, with jumps. Kernels that depend only on values
//! from outside of a loop run before the loop; they cannot fail, so running them early is safe.

mod arena;
mod body;
mod build;
mod control;
mod limits;
mod moves;
mod nest;
mod region;

use crate::execute::code::Bytecode;
use crate::schedule::Schedule;

/// Lowers a program.
pub(crate) fn lower(schedule: &Schedule) -> Bytecode {
    build::lower_program(schedule, schedule.uses_arena)
}
