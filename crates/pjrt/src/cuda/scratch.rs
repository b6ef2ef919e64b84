//! Memory of the device for the time of a call.

use std::ffi::c_void;
use std::ptr::null_mut;

use crate::ffi::is_success;
use crate::sys::*;

/// The largest alignment that XLA accepts in a request; its memory is aligned more strictly.
const ALIGNMENT: usize = 16;

/// Memory from XLA's allocator. It returns to the allocator when this value is dropped; later users
/// of the same stream wait for the work that uses it.
pub(super) struct Scratch<'a> {
    frame: &'a XLA_FFI_CallFrame,
    data: *mut c_void,
    size: usize,
}

impl<'a> Scratch<'a> {
    /// Allocates bytes on the device of a call; the address is null for none.
    ///
    /// # Safety
    /// `frame` is a call frame of the execute stage.
    pub(super) unsafe fn new(
        frame: &'a XLA_FFI_CallFrame,
        size: usize,
    ) -> Result<Scratch<'a>, String> {
        if size == 0 {
            return Ok(Scratch { frame, data: null_mut(), size });
        }
        let mut args = XLA_FFI_DeviceMemory_Allocate_Args::new();
        args.ctx = frame.ctx;
        args.size = size;
        args.alignment = ALIGNMENT;
        // SAFETY: the function table and the context belong to the frame. The error is not used
        // again.
        unsafe {
            let allocate = (*frame.api)
                .XLA_FFI_DeviceMemory_Allocate
                .ok_or("this version of XLA does not allocate memory for calls")?;
            if !is_success(frame.api, allocate(&mut args)) {
                return Err(format!(
                    "RESOURCE_EXHAUSTED: no {size} bytes of device memory are free"
                ));
            }
        }
        Ok(Scratch { frame, data: args.data, size })
    }

    pub(super) fn data(&self) -> *mut c_void {
        self.data
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        if self.size == 0 {
            return;
        }
        let mut args = XLA_FFI_DeviceMemory_Free_Args::new();
        args.ctx = self.frame.ctx;
        args.size = self.size;
        args.data = self.data;
        // SAFETY: the memory was allocated for this frame, and is not used by calls after this one.
        // An error cannot be reported from here.
        unsafe {
            if let Some(free) = (*self.frame.api).XLA_FFI_DeviceMemory_Free {
                is_success(self.frame.api, free(&mut args));
            }
        }
    }
}
