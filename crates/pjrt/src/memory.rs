//! Memory statistics of devices.

use crate::client::{Client, PjrtDevice};
use crate::error::Error;
use crate::sys::*;

/// Figures about the memory of a device in bytes; `None` for figures that the plugin does not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceMemory {
    /// Bytes in use.
    pub in_use: i64,
    /// The most that was in use at a time.
    pub peak: Option<i64>,
    /// The limit of bytes in use.
    pub limit: Option<i64>,
    /// The size of the plugin's memory pool.
    pub pool: Option<i64>,
    /// The largest block that was requested.
    pub largest_block: Option<i64>,
}

impl Client {
    /// Figures about the memory of a device; `None` if the plugin does not count, as those for CPUs
    /// do not.
    ///
    /// # Errors
    /// Returns [`Error::ForeignObject`] for a device of another client, or the plugin's error.
    pub fn memory_of(&self, device: &PjrtDevice) -> Result<Option<DeviceMemory>, Error> {
        self.index_of(device)?;
        let mut args = PJRT_Device_MemoryStats_Args::new();
        args.device = device.as_ptr();
        // SAFETY: the device belongs to this client, which is alive.
        match unsafe { self.plugin().call(&mut args) } {
            Ok(()) => {}
            Err(error) if error.is_unimplemented() => return Ok(None),
            Err(error) => return Err(error),
        }
        let given = |is_set: bool, value: i64| is_set.then_some(value);
        Ok(Some(DeviceMemory {
            in_use: args.bytes_in_use,
            peak: given(args.peak_bytes_in_use_is_set, args.peak_bytes_in_use),
            limit: given(args.bytes_limit_is_set, args.bytes_limit),
            pool: given(args.pool_bytes_is_set, args.pool_bytes),
            largest_block: given(args.largest_alloc_size_is_set, args.largest_alloc_size),
        }))
    }
}
