//! Without the feature `xla` there are no plugins, hence no clients, devices and buffers: their types
//! have no values.

use std::sync::Arc;

use nxla_expr::Program;

use crate::compiler::{Compiler, compiler_named};
use crate::device::Device;
use crate::error::{ErrorClass, Result};
use crate::mesh::{Mesh, Sharding};
use crate::options::{Options, Settings};
use crate::tensor::Tensor;

/// No program is written for XLA.
#[derive(Debug, thiserror::Error)]
#[error("{0:?}")]
pub struct LowerError(pjrt::Never);

/// None.
pub(crate) fn compiler() -> Option<Arc<dyn Compiler>> {
    None
}

/// Returns `None`: there is no plugin.
pub(crate) fn installed_device(_: &Settings, _: Option<&Device>) -> Result<Option<Device>> {
    Ok(None)
}

/// There is no such error.
pub(crate) fn class_of(error: &pjrt::Error) -> ErrorClass {
    match error.0 {}
}

/// There is none to meet.
pub(crate) fn meet_default_client() -> Result<()> {
    Ok(())
}

/// No client has been met.
pub(crate) fn met() -> Vec<pjrt::Client> {
    Vec::new()
}

/// There is no such client.
pub(crate) fn ordinal(client: &pjrt::Client) -> usize {
    match client.0 {}
}

/// There is no such client.
pub(crate) fn original(client: &pjrt::Client) -> pjrt::Client {
    match client.0 {}
}

/// There is no such client.
pub(crate) fn leave_behind(client: &pjrt::Client) {
    match client.0 {}
}

/// There is no such client.
pub(crate) fn come_back(client: &pjrt::Client) {
    match client.0 {}
}

/// There are none.
pub(crate) fn mesh_devices(_: usize, _: &Settings) -> Result<Vec<Device>> {
    compiler_named("xla").map(|_| Vec::new())
}

/// There is no such program.
pub struct Divided(pjrt::Never);

impl Divided {
    /// There is no mesh.
    ///
    /// # Errors
    /// None, as it cannot be called.
    pub fn compile(
        _: &Program,
        _: &Options,
        mesh: &Mesh,
        _: &[Sharding],
        _: Option<&[Sharding]>,
    ) -> Result<Self> {
        match mesh.placed().0.0 {}
    }

    /// There is none.
    pub fn text(&self) -> &str {
        match self.0 {}
    }

    /// There is none.
    ///
    /// # Errors
    /// None, as it cannot be called.
    pub fn run(&self, _: &[Vec<Tensor>]) -> Result<Vec<Vec<Tensor>>> {
        match self.0 {}
    }
}

/// What the feature `xla` has, as far as the types of this crate name it. There are no values.
pub mod pjrt {
    use nxla_tensor::{DType, HostTensor, Shape};

    /// There is none.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    pub(super) enum Never {}

    macro_rules! absent {
        ($($(#[$doc:meta])* $name:ident)*) => {$(
            $(#[$doc])*
            #[derive(Clone, PartialEq, Eq, Hash, Debug)]
            pub struct $name(pub(super) Never);
        )*};
    }

    absent! {
        /// The memory of a device.
        Buffer
        /// A client of a plugin.
        Client
        /// A device of a client.
        Device
        /// Figures about the memory of a device.
        DeviceMemory
        /// Figures about the memory that a run takes.
        MemoryStats
        /// What a plugin says.
        Error
    }

    impl std::fmt::Display for Error {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            match self.0 {}
        }
    }

    impl std::error::Error for Error {}

    impl Client {
        pub(crate) fn platform_name(&self) -> &str {
            match self.0 {}
        }

        pub(crate) fn devices(&self) -> &[Device] {
            match self.0 {}
        }

        pub(crate) fn memory_of(&self, _: &Device) -> Result<Option<DeviceMemory>, Error> {
            match self.0 {}
        }

        pub(crate) fn put(&self, _: &HostTensor, _: &Device) -> Result<Buffer, Error> {
            match self.0 {}
        }

        pub(crate) fn adopt(&self, _: &HostTensor, _: &Device) -> Result<Buffer, Error> {
            match self.0 {}
        }
    }

    impl Device {
        pub(crate) fn index(&self) -> usize {
            match self.0 {}
        }
    }

    impl Buffer {
        pub(crate) fn client(&self) -> &Client {
            match self.0 {}
        }

        pub(crate) fn device(&self) -> &Device {
            match self.0 {}
        }

        pub(crate) fn dtype(&self) -> DType {
            match self.0 {}
        }

        pub(crate) fn shape(&self) -> &Shape {
            match self.0 {}
        }

        pub(crate) fn address(&self) -> usize {
            match self.0 {}
        }

        pub(crate) fn is(&self, _: &Buffer) -> bool {
            match self.0 {}
        }

        pub(crate) fn to_host(&self) -> Result<HostTensor, Error> {
            match self.0 {}
        }

        pub(crate) fn share(&self) -> Result<HostTensor, Error> {
            match self.0 {}
        }

        pub(crate) fn is_at_hand(&self) -> bool {
            match self.0 {}
        }

        pub(crate) fn read(&self, _: usize) -> Result<HostTensor, Error> {
            match self.0 {}
        }

        pub(crate) fn copy_to(&self, _: &Device) -> Result<Buffer, Error> {
            match self.0 {}
        }

        pub(crate) fn delete(&self) -> Result<bool, Error> {
            match self.0 {}
        }

        pub(crate) fn give_away(&self, _: &str) -> Result<(), Error> {
            match self.0 {}
        }

        pub(crate) fn mark_given(&self, _: &str) {
            match self.0 {}
        }

        pub(crate) fn is_deleted(&self) -> Result<bool, Error> {
            match self.0 {}
        }

        pub(crate) fn is_ready(&self) -> Result<bool, Error> {
            match self.0 {}
        }

        pub(crate) fn wait(&self) -> Result<(), Error> {
            match self.0 {}
        }

        pub(crate) fn on_ready(
            &self,
            _: impl FnOnce(Result<(), Error>) + Send + 'static,
        ) -> Result<(), Error> {
            match self.0 {}
        }
    }
}
