//! Substitutes without the feature `xla`: the types of clients, devices and buffers have no values.

use std::sync::Arc;

use nxla_expr::Program;

use crate::compiler::{Compiler, compiler_named};
use crate::device::Device;
use crate::error::{ErrorClass, Result};
use crate::mesh::{Mesh, Sharding};
use crate::options::{Options, Settings};
use crate::tensor::RawTensor;

/// The error of lowering, which does not occur without XLA.
#[derive(Debug, thiserror::Error)]
#[error("{0:?}")]
pub struct LowerError(pjrt::Never);

/// Returns `None`, because the crate is built without XLA.
pub(crate) fn compiler() -> Option<Arc<dyn Compiler>> {
    None
}

/// Returns `None`: without the feature, plugins do not load.
pub(crate) fn installed_device(_: &Settings, _: Option<&Device>) -> Result<Option<Device>> {
    Ok(None)
}

/// Accepts all flags, because no plugin compiles with them.
pub(crate) fn check_flags(_: &Settings, _: Option<&Device>) -> Result<()> {
    Ok(())
}

/// Never called, because no such error exists.
pub(crate) fn class_of(error: &pjrt::Error) -> ErrorClass {
    match error.0 {}
}

/// Never called, because no such error exists.
pub(crate) fn class_of_lowering(error: &LowerError) -> ErrorClass {
    match error.0 {}
}

/// Does nothing, because no client exists.
pub(crate) fn load_default_client() -> Result<()> {
    Ok(())
}

/// Returns no clients.
pub(crate) fn known_clients() -> Vec<pjrt::Client> {
    Vec::new()
}

/// Never called, because no client exists.
pub(crate) fn ordinal(client: &pjrt::Client) -> usize {
    match client.0 {}
}

/// Never called, because no client exists.
pub(crate) fn original(client: &pjrt::Client) -> pjrt::Client {
    match client.0 {}
}

/// Never created, because no client exists.
pub(crate) struct AbandonedProgram;

impl AbandonedProgram {
    pub(crate) fn new(client: &pjrt::Client) -> Self {
        match client.0 {}
    }
}

/// Returns no devices.
pub(crate) fn mesh_devices(_: usize) -> Result<Vec<Device>> {
    compiler_named("xla").map(|_| Vec::new())
}

/// A program over a mesh, which does not exist without XLA.
#[derive(Debug)]
pub struct Divided(pjrt::Never);

impl Divided {
    /// Never called, because no mesh exists.
    ///
    /// # Errors
    /// Returns no errors, because the function cannot be called.
    pub fn compile(
        _: &str,
        _: &Program,
        _: &Options,
        mesh: &Mesh,
        _: &[Sharding],
        _: Option<&[Sharding]>,
    ) -> Result<Self> {
        match mesh.client_and_devices().0.0 {}
    }

    /// Never called, because no such program exists.
    pub fn text(&self) -> &str {
        match self.0 {}
    }

    /// Never called, because no such program exists.
    ///
    /// # Errors
    /// Returns no errors, because the function cannot be called.
    pub fn run(&self, _: &[Vec<RawTensor>]) -> Result<Vec<Vec<RawTensor>>> {
        match self.0 {}
    }
}

/// The types of `nxla-pjrt` that this crate names, without values.
pub mod pjrt {
    use nxla_tensor::{DType, HostTensor, Shape};

    /// A type without values.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    pub(super) enum Never {}

    macro_rules! absent {
        ($(
            $(#[$doc:meta])*
            $name:ident { $(fn $function:ident($($type:ty),*) -> $result:ty;)* }
        )*) => {$(
            $(#[$doc])*
            #[derive(Clone, PartialEq, Eq, Hash, Debug)]
            pub struct $name(pub(super) Never);

            impl $name {$(
                pub(crate) fn $function(&self, $(_: $type),*) -> $result {
                    match self.0 {}
                }
            )*}
        )*};
    }

    absent! {
        /// The memory of a device.
        Buffer {
            fn client() -> &Client;
            fn device() -> &PjrtDevice;
            fn dtype() -> DType;
            fn shape() -> &Shape;
            fn address() -> usize;
            fn is(&Buffer) -> bool;
            fn to_host() -> Result<HostTensor, Error>;
            fn share() -> Result<HostTensor, Error>;
            fn cause(Error) -> Error;
            fn is_deferred() -> bool;
            fn read(&[std::ops::Range<usize>]) -> Result<HostTensor, Error>;
            fn copy_to(&PjrtDevice) -> Result<Buffer, Error>;
            fn delete() -> Result<bool, Error>;
            fn donate(&str) -> Result<(), Error>;
            fn mark_donated(&str) -> ();
            fn is_deleted() -> Result<bool, Error>;
            fn is_ready() -> Result<bool, Error>;
            fn wait() -> Result<(), Error>;
            fn on_ready(impl FnOnce(Result<(), Error>) + Send + 'static) -> Result<(), Error>;
        }
        /// A client of a plugin.
        Client {
            fn platform_name() -> &str;
            fn devices() -> &[PjrtDevice];
            fn memory_of(&PjrtDevice) -> Result<Option<DeviceMemory>, Error>;
            fn put(&HostTensor, &PjrtDevice) -> Result<Buffer, Error>;
            fn adopt(&HostTensor, &PjrtDevice) -> Result<Buffer, Error>;
        }
        /// A device of a client.
        PjrtDevice {
            fn index() -> usize;
        }
        /// Figures about the memory of a device.
        DeviceMemory {}
        /// Figures about the memory that a run takes.
        MemoryStats {}
        /// The error of a plugin.
        Error {}
    }

    impl std::fmt::Display for Error {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            match self.0 {}
        }
    }

    impl std::error::Error for Error {}
}
