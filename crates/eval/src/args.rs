//! The operands of a step, in the slots where the values of a run live.

use nxla_tensor::HostTensor;

/// The values of a run; an empty slot holds nothing that is still needed.
pub(crate) type Slots = [Option<HostTensor>];

/// Names a slot, and tells whether the value in it dies with this use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Arg(u32);

impl Arg {
    const LAST: u32 = 1 << 31;

    pub(crate) fn new(slot: u32, last: bool) -> Self {
        assert!(slot < Self::LAST, "fewer than 2^31 values live at a time");
        Self(if last { slot | Self::LAST } else { slot })
    }

    pub(crate) fn slot(self) -> usize {
        (self.0 & !Self::LAST) as usize
    }

    pub(crate) fn is_last(self) -> bool {
        self.0 & Self::LAST != 0
    }
}

/// The operands of one step.
///
/// They can be read without touching a reference count. One that dies with the step can be taken,
/// and then be overwritten if the slot held the only handle to it.
pub(crate) struct Args<'a> {
    slots: &'a mut Slots,
    args: &'a [Arg],
}

impl<'a> Args<'a> {
    pub(crate) fn new(slots: &'a mut Slots, args: &'a [Arg]) -> Self {
        Self { slots, args }
    }

    /// The number of operands.
    pub(crate) fn len(&self) -> usize {
        self.args.len()
    }

    /// Whether an operand has not been taken.
    pub(crate) fn is_there(&self, index: usize) -> bool {
        self.slots[self.args[index].slot()].is_some()
    }

    /// Reads an operand, which must not have been taken.
    pub(crate) fn get(&self, index: usize) -> &HostTensor {
        self.slots[self.args[index].slot()].as_ref().expect("a value lives until its last use")
    }

    /// An operand to own: the value itself where it dies here, and another handle otherwise.
    pub(crate) fn take(&mut self, index: usize) -> HostTensor {
        let arg = self.args[index];
        let slot = &mut self.slots[arg.slot()];
        let value = if arg.is_last() { slot.take() } else { slot.clone() };
        value.expect("a value lives until its last use")
    }

    /// Whether an operand dies here, and there is no other handle to it, nor another mention of it
    /// among the operands.
    pub(crate) fn is_unique(&mut self, index: usize) -> bool {
        let arg = self.args[index];
        if !arg.is_last() || self.args[..index].iter().any(|other| other.slot() == arg.slot()) {
            return false;
        }
        let slot = &mut self.slots[arg.slot()];
        slot.as_mut().is_some_and(|tensor| tensor.try_unique_mut().is_some())
    }
}
