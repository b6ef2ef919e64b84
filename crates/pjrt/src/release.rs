//! The thread that returns shared memory to its owner: to the plugin, or to another library.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{OnceLock, mpsc};
use std::thread;

use crate::cuda::Primary;
use crate::external::MemoryHold;
use crate::foreign::ForeignMemory;
use crate::in_flight::ProgramInFlight;

/// Memory to return.
pub(crate) enum Release {
    /// Memory of a buffer on a CUDA device. It is returned when the device has completed the work
    /// that it had accepted, because the reads of the other library may still be queued.
    Lent {
        hold: MemoryHold,
        /// Makes the end of the process and of the client wait.
        running: ProgramInFlight,
    },
    /// Memory of another library. Its owner may need a lock, such as the lock of an interpreter. A
    /// thread of the plugin must not wait for this lock, because the thread that has the lock may be
    /// waiting for the plugin.
    Viewed(Box<dyn ForeignMemory>),
}

/// Returns memory on another thread. If no thread can be started, the memory is returned at once.
pub(crate) fn release(memory: Release) {
    match queue() {
        // If the thread has ended, the error contains the memory.
        Some(queue) => drop(queue.send(memory)),
        None => drop(memory),
    }
}

/// The queue of the thread; `None` if the thread cannot be started.
fn queue() -> Option<&'static mpsc::Sender<Release>> {
    static QUEUE: OnceLock<Option<mpsc::Sender<Release>>> = OnceLock::new();
    let start = || {
        let (sender, receiver) = mpsc::channel();
        let thread = thread::Builder::new().name("nxla release".into());
        thread.spawn(move || work(&receiver)).ok().map(|_| sender)
    };
    QUEUE.get_or_init(start).as_ref()
}

/// Returns queued memory in batches. The thread waits for a device once in a batch.
fn work(queue: &mpsc::Receiver<Release>) {
    while let Ok(first) = queue.recv() {
        let batch: Vec<Release> = std::iter::once(first).chain(queue.try_iter()).collect();
        let device = |memory: &Release| match memory {
            Release::Lent { hold, .. } => hold.buffer().device().hardware_id(),
            Release::Viewed(_) => None,
        };
        let mut devices: Vec<i32> = batch.iter().filter_map(device).collect();
        devices.sort_unstable();
        devices.dedup();
        for device in devices {
            // After an error of the driver, nothing is left to wait for.
            let _ = Primary::enter(device).and_then(|context| context.wait_for_all());
        }
        for memory in batch {
            // The thread must survive a panic of the owner.
            let _ = catch_unwind(AssertUnwindSafe(|| give_back(memory)));
        }
    }
}

fn give_back(memory: Release) {
    match memory {
        Release::Lent { hold, running } => {
            let last = hold.buffer().clone();
            drop(hold);
            // The buffer may have the last handle of its client, which waits for its programs.
            drop(running);
            drop(last);
        }
        Release::Viewed(owner) => drop(owner),
    }
}
