//! Minimal replacements for the runtime modules that the files under test import.

pub(crate) mod sync {
    pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};
    pub(crate) use loom::sync::{Arc, Condvar, Mutex, MutexGuard};

    pub(crate) type SharedGuard<'a, T> = MutexGuard<'a, T>;

    /// No model forks.
    pub(crate) struct Shared<T>(Mutex<T>);

    impl<T> Shared<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> SharedGuard<'_, T> {
            self.0.lock().unwrap()
        }
    }
}

pub(crate) mod background {
    use std::time::Duration;

    use super::error::Error;

    pub(crate) type Interrupt<'a> = dyn Fn() -> bool + 'a;
    pub(crate) const ASK_EVERY: Duration = Duration::from_millis(50);

    pub(crate) fn interruption() -> Error {
        Error::Interrupted
    }
}

pub(crate) mod error {
    use crate::queue::StreamError;

    #[derive(Debug, thiserror::Error)]
    pub(crate) enum Error {
        #[error("interrupted")]
        Interrupted,
        #[error("{0}")]
        Usage(String),
        #[error(transparent)]
        Stream(#[from] StreamError),
    }

    pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;
}

pub(crate) mod tensor {
    /// The number of a chunk.
    pub(crate) type RawTensor = u32;
}

pub(crate) mod device {
    use super::error::Result;

    #[derive(Clone)]
    pub(crate) struct Device;

    pub(crate) fn common_device(_: &str, _: &[u32]) -> Result<Option<Device>> {
        Ok(None)
    }

    pub(crate) fn join_devices(
        _: &str,
        home: Option<&Device>,
        _: Option<Device>,
    ) -> Result<Option<Device>> {
        Ok(home.cloned())
    }
}
