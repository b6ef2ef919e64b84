//! Tensors over memory that a running program lends for the time of a call.

use std::sync::Arc;

use nxla_tensor::{Frozen, HostTensor};

use crate::host::{HostCall, HostView};
use crate::mapped::SHARED_FROM;

/// The bytes of an argument, which are there until the last [`Loans`] of its call are settled.
struct Borrowed {
    bytes: &'static [u8],
    _loan: Arc<()>,
}

impl AsRef<[u8]> for Borrowed {
    fn as_ref(&self) -> &[u8] {
        self.bytes
    }
}

/// What is lent during a call. Tensors can be kept and sent anywhere, so that nothing but counting tells
/// whether they are gone.
struct Loans(Arc<()>);

impl Drop for Loans {
    #[expect(clippy::print_stderr, reason = "the process says why it ends")]
    fn drop(&mut self) {
        if Arc::strong_count(&self.0) > 1 {
            // Whoever reads such a tensor later would read memory of someone else.
            eprintln!("nxla: a host function kept an argument beyond its call");
            std::process::abort();
        }
    }
}

impl HostCall<'_> {
    /// Calls `work` with the arguments as tensors, large ones without a copy, and with this call, to
    /// whose results it writes. It must not keep any of the tensors: one that is kept ends the
    /// process.
    pub fn with_tensors<R>(&mut self, work: impl FnOnce(&mut Self, Vec<HostTensor>) -> R) -> R {
        let loans = Loans(Arc::new(()));
        let tensors = self.args.iter().map(|view| loans.tensor(view)).collect();
        work(self, tensors)
    }
}

impl Loans {
    fn tensor(&self, view: &HostView<'_>) -> HostTensor {
        if view.dtype.bits() < 8 || view.bytes.len() < SHARED_FROM {
            return view.to_tensor();
        }
        // SAFETY: the bytes live as long as the call, which outlives these loans, and nobody writes
        // to them meanwhile: they are borrowed from the program. The loans end the process rather
        // than to leave behind a tensor that refers to them.
        let bytes = unsafe { std::mem::transmute::<&[u8], &'static [u8]>(view.bytes) };
        let memory = Frozen::promised_by(Borrowed { bytes, _loan: self.0.clone() });
        let tensor = HostTensor::from_frozen(view.dtype, view.shape.clone(), memory);
        // What does not lie as tensors do is copied.
        tensor.unwrap_or_else(|_| view.to_tensor())
    }
}

#[cfg(test)]
mod tests {
    use nxla_tensor::{DType, Shape};

    use super::*;

    #[test]
    fn large_arguments_are_not_copied() {
        let memory = HostTensor::zeros(DType::F32, [8192]).unwrap();
        for (len, is_borrowed) in [(8192, true), (16, false)] {
            let bytes = &memory.bytes()[..4 * len];
            let view = HostView { dtype: DType::F32, shape: Shape::from([len]), bytes };
            let mut call = HostCall { args: vec![view], results: vec![], attributes: vec![] };
            let sum = call.with_tensors(|_, tensors| {
                let same = std::ptr::eq(tensors[0].bytes(), bytes);
                assert_eq!(same, is_borrowed);
                tensors[0].as_slice::<f32>().unwrap().iter().sum::<f32>()
            });
            assert_eq!(sum, 0.0);
        }
    }
}
