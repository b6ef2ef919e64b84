//! Runs whose results go to memory of others.

use nxla_tensor::HostTensor;

use crate::args::{Arg, Args};
use crate::elementwise::{Code, Outs};
use crate::error::EvalError;
use crate::hooks::Hooks;
use crate::long::is_large;
use crate::memory::guarded;
use crate::parallel;
use crate::plan::{Action, Plan, Target};
use crate::run::check_inputs;
use crate::threads::aboard;

impl Plan {
    /// Runs the program as [`Plan::run`] does, with the bytes of the results put into `places`: as they are in
    /// row-major order, of each result as many as it has. Element-wise code writes them there itself.
    ///
    /// # Errors
    /// As for [`Plan::run`].
    ///
    /// # Panics
    /// If there are more or fewer places than results, or places of other sizes.
    pub fn run_into(
        &self,
        inputs: Vec<HostTensor>,
        hooks: &Hooks,
        places: Vec<&mut [u8]>,
    ) -> Result<(), EvalError> {
        let sizes = self.program.output_types().map(|ty| ty.shape.size() * ty.dtype.size());
        assert!(sizes.eq(places.iter().map(|place| place.len())), "places have the results' sizes");
        if let Some(code) = self.lone_code() {
            check_inputs(&self.program, &inputs)?;
            return self.compute_into(code, inputs, places.into_iter().collect());
        }
        let results = self.run(inputs, hooks)?;
        places.into_iter().zip(&results).for_each(|(place, from)| copy(place, from.bytes()));
        Ok(())
    }

    /// The element-wise code that gives all results, in order, if it is the only step.
    fn lone_code(&self) -> Option<&Code> {
        let [step] = &self.steps[..] else { return None };
        let Action::Code(code) = &step.action else { return None };
        let targets = self.targets_of(0);
        let is_output = |(target, output): (&Target, &Arg)| {
            target.is_some_and(|slot| slot as usize == output.slot())
        };
        let are_all = targets.len() == self.outputs.len();
        (are_all && targets.iter().zip(&self.outputs).all(is_output)).then_some(code)
    }

    fn compute_into(
        &self,
        code: &Code,
        inputs: Vec<HostTensor>,
        outs: Outs<'_>,
    ) -> Result<(), EvalError> {
        let mut slots = vec![None; self.slots];
        for (input, slot) in inputs.into_iter().zip(&self.inputs) {
            if let Some(slot) = slot {
                slots[*slot as usize] = Some(input);
            }
        }
        let run = || {
            let args = Args::new(&mut slots, self.args_of(0));
            guarded(|| {
                code.run_into(&args, outs);
                Ok(())
            })
            .map_err(|stop| stop.at(self.program.graph(), self.steps[0].id))
        };
        if is_large(self.work) { aboard(None, |_| run()) } else { run() }
    }
}

/// Copies bytes, many of them on all threads.
fn copy(to: &mut [u8], from: &[u8]) {
    /// Bytes from which on one thread takes longer than waking another, and those that are copied at a time.
    const MANY: usize = 1 << 20;
    const PIECE: usize = 1 << 17;
    if to.len() < MANY {
        return to.copy_from_slice(from);
    }
    parallel::pieces(to, PIECE, 1, |first, part| {
        part.copy_from_slice(&from[first..first + part.len()]);
    });
}
