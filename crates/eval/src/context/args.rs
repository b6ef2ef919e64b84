//! The operands of a step.

use nxla_tensor::HostTensor;

/// An operand of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Arg {
    /// The slot of the executor.
    pub(crate) slot: usize,
    /// True if the value dies with this use.
    pub(crate) is_last: bool,
}

/// The operands of a step, in the slots of the executor.
///
/// Reading an operand does not touch its reference count. A step may take an operand that dies with it, and
/// overwrite its memory if no other handle exists.
pub(crate) struct Args<'a> {
    slots: &'a mut [Option<HostTensor>],
    args: &'a [Arg],
}

impl<'a> Args<'a> {
    pub(crate) fn new(slots: &'a mut [Option<HostTensor>], args: &'a [Arg]) -> Self {
        Self { slots, args }
    }

    /// The number of operands.
    pub(crate) fn len(&self) -> usize {
        self.args.len()
    }

    /// Returns true if an operand has not been taken.
    pub(crate) fn is_present(&self, index: usize) -> bool {
        self.slots[self.args[index].slot].is_some()
    }

    /// Reads an operand, which must not have been taken.
    pub(crate) fn get(&self, index: usize) -> &HostTensor {
        self.slots[self.args[index].slot].as_ref().expect("a value lives until its last use")
    }

    /// Returns an operand by value: the tensor itself if it dies here, and another handle otherwise.
    pub(crate) fn take(&mut self, index: usize) -> HostTensor {
        let arg = self.args[index];
        let slot = &mut self.slots[arg.slot];
        let value = if arg.is_last { slot.take() } else { slot.clone() };
        value.expect("a value lives until its last use")
    }

    /// Returns true if an operand dies here, no other handle exists, and no earlier operand uses the same slot.
    pub(crate) fn is_unique(&mut self, index: usize) -> bool {
        let arg = self.args[index];
        if !arg.is_last || self.args[..index].iter().any(|other| other.slot == arg.slot) {
            return false;
        }
        let slot = &mut self.slots[arg.slot];
        slot.as_mut().is_some_and(|tensor| tensor.try_unique_mut().is_some())
    }
}
