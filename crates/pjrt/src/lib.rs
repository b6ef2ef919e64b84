//! XLA through the PJRT C API: plugins, clients, devices, buffers, events, executables, and host
//! functions inside compiled programs.
//!
//! A plugin is a shared library that is found at run time, so XLA is not needed to build. Programs are
//! StableHLO modules; this crate does not depend on expressions.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # if nxla_pjrt::discover(None).is_err() { return Ok(()) }
//! use nxla_pjrt::{Client, CompileOptions, ExecuteOptions, Plugin, discover};
//! use nxla_tensor::HostTensor;
//!
//! let plugin = Plugin::load(discover(None)?)?;
//! let client = Client::new(&plugin, &[])?;
//! let text = "func.func @main(%x: tensor<f32>) -> tensor<f32> {
//!     %y = stablehlo.add %x, %x : tensor<f32>
//!     return %y : tensor<f32>
//! }";
//! let program = client.compile(text, &CompileOptions::default())?;
//! let x = HostTensor::from_slice(&[1.5_f32], [])?;
//! let x = client.buffer_from_host(&x, &client.devices()[0])?;
//! let results = program.execute(&[&x], &ExecuteOptions::default())?;
//! assert_eq!(results[0].to_host()?.to_vec::<f32>()?, [3.0]);
//! # Ok(()) }
//! ```
//!
//! Properties of all types:
//! * Every handle is `Send` and `Sync`, cheap to clone, and keeps the objects alive that it uses. PJRT
//!   requires that the functions of plugins may be called from any thread.
//! * Transfers and executions are asynchronous; errors of running programs are returned by reads
//!   and waits of their results.
//! * All foreign memory is described in one module, and the size of a plugin's table is checked
//!   before a field is used that older plugins lack.
//!
//! Unsafe code is confined to this crate and to `dlpack.rs` and `shutdown.rs` of `nxla-python`; see
//! `docs/unsafe.md`.

#![deny(clippy::undocumented_unsafe_blocks)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a panic is how a test fails"))]

mod buffer;
mod client;
mod count;
mod cuda;
mod discover;
mod dtype;
mod error;
mod event;
mod executable;
mod execute;
mod external;
mod faults;
mod ffi;
mod float_mode;
mod foreign;
mod forked;
mod host;
mod in_flight;
mod malloc;
mod mapped;
mod maps;
mod memory;
mod options;
mod plugin;
mod private_folder;
mod probe;
mod release;
#[cfg(test)]
mod scratch;
mod serialized;
mod storage;
mod sync;
mod sys;
mod traffic;
mod transfer;
mod value;

pub use buffer::Buffer;
pub use client::{Client, PjrtDevice};
pub use discover::{PLUGIN_VARIABLE, discover};
pub use error::{Error, ErrorCode};
pub use event::Event;
pub use executable::{LoadedExecutable, MemoryStats};
pub use external::ExternalReference;
pub use faults::FAULTS_VARIABLE;
pub use ffi::FACTORIZE_TARGET;
pub use foreign::ForeignMemory;
pub use forked::{call_around_forks, check_not_forked};
pub use host::{
    HOST_CALL_TARGET, HostAttribute, HostCallFrame, HostCallTable, HostHandler, HostView,
    HostViewMut, register_host_fn,
};
pub use in_flight::{wait_until_all_idle, wait_until_all_idle_for};
pub use malloc::THRESHOLDS_VARIABLE;
pub use memory::DeviceMemory;
pub use options::{CompileOptions, ExecuteOptions};
pub use plugin::Plugin;
pub use private_folder::{PrivateFolder, read_bounded};
pub use traffic::{Activity, Traffic};
pub use value::NamedValue;
