//! The evaluator in place of a compiler, with all that is seen of a run as if the compiler's executable
//! had done it.

use std::sync::Arc;

use nxla_expr::Program;

use crate::compiler::{Executable, RunContext};
use crate::device::Device;
use crate::donation::unusable_donations;
use crate::error::Result;
use crate::tensor::Tensor;

/// An executable of the evaluator whose results are on the compiler's device.
pub(crate) struct Substitute {
    evaluator: Arc<dyn Executable>,
    home: Device,
    /// The inputs whose memory a run takes over.
    taken: Vec<usize>,
}

impl Substitute {
    /// Of a program for a device, with the inputs marked whose memory the outputs may take over.
    pub(crate) fn new(
        evaluator: Arc<dyn Executable>,
        home: Device,
        program: &Program,
        donated: &[bool],
    ) -> Self {
        let unusable = unusable_donations(program, donated);
        let is_taken = |&input: &usize| donated[input] && !unusable.contains(&input);
        let taken = (0..donated.len()).filter(is_taken).collect();
        Self { evaluator, home, taken }
    }

    /// Runs on the evaluator; afterwards results are on the device, and inputs whose memory a run takes
    /// over are gone.
    ///
    /// # Errors
    /// As for [`Executable::run`].
    pub(crate) fn run(&self, inputs: &[&Tensor], context: &RunContext<'_>) -> Result<Vec<Tensor>> {
        let results = self.evaluator.run(inputs, context)?;
        // Collecting results would not know their number, and grow step by step.
        let mut on_device = Vec::with_capacity(results.len());
        for result in &results {
            on_device.push(result.given_to(&self.home)?);
        }
        for input in self.taken.iter().filter(|input| !context.kept.contains(input)) {
            let buffer = inputs[*input].buffer();
            if let Some(buffer) = buffer.filter(|buffer| self.home.holds(buffer)) {
                buffer.give_away(context.caller.unwrap_or("a compiled program"))?;
            }
        }
        Ok(on_device)
    }

    /// As [`Executable::byte_size`].
    pub(crate) fn byte_size(&self) -> usize {
        self.evaluator.byte_size()
    }
}
