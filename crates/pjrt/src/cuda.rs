//! Copies between the memory of a CUDA device and the host, in the order of a stream of XLA.
//!
//! Host functions need them: programs on such a device pass addresses of its memory. The driver is
//! a library that is installed with the hardware. It is loaded when the first program calls the host,
//! and is not needed to build.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::{null, null_mut};
use std::sync::OnceLock;

use libloading::Library;

use crate::plugin::reason;

/// `CUresult`; 0 is success.
type Status = c_int;

/// `CUdeviceptr`: an address in the memory of a device.
type DeviceAddress = u64;

/// `CUcontext`.
type Context = *mut c_void;

/// `CUstream`.
pub(crate) type RawStream = *mut c_void;

#[cfg(windows)]
const LIBRARY: &str = "nvcuda.dll";
#[cfg(not(windows))]
const LIBRARY: &str = "libcuda.so.1";

/// The functions of the driver that are used, under the names of `cuda.h`.
struct Driver {
    stream_context: unsafe extern "C" fn(RawStream, *mut Context) -> Status,
    push_context: unsafe extern "C" fn(Context) -> Status,
    pop_context: unsafe extern "C" fn(*mut Context) -> Status,
    to_host: unsafe extern "C" fn(*mut c_void, DeviceAddress, usize, RawStream) -> Status,
    to_device: unsafe extern "C" fn(DeviceAddress, *const c_void, usize, RawStream) -> Status,
    synchronize: unsafe extern "C" fn(RawStream) -> Status,
    error_name: unsafe extern "C" fn(Status, *mut *const c_char) -> Status,
}

impl Driver {
    fn get() -> Result<&'static Driver, String> {
        static DRIVER: OnceLock<Result<Driver, String>> = OnceLock::new();
        DRIVER.get_or_init(|| Driver::load(LIBRARY)).as_ref().map_err(Clone::clone)
    }

    fn load(name: &str) -> Result<Driver, String> {
        let missing =
            |error: libloading::Error| format!("the CUDA driver {name}: {}", reason(&error));
        // SAFETY: a plugin that runs programs on CUDA has loaded the driver already, so loading it
        // again runs no initializers.
        let library = unsafe { Library::new(name) }.map_err(missing)?;
        // SAFETY: the driver never changes the signatures of its exported functions.
        let driver = unsafe {
            Driver {
                stream_context: *library.get(b"cuStreamGetCtx\0").map_err(missing)?,
                push_context: *library.get(b"cuCtxPushCurrent_v2\0").map_err(missing)?,
                pop_context: *library.get(b"cuCtxPopCurrent_v2\0").map_err(missing)?,
                to_host: *library.get(b"cuMemcpyDtoHAsync_v2\0").map_err(missing)?,
                to_device: *library.get(b"cuMemcpyHtoDAsync_v2\0").map_err(missing)?,
                synchronize: *library.get(b"cuStreamSynchronize\0").map_err(missing)?,
                error_name: *library.get(b"cuGetErrorName\0").map_err(missing)?,
            }
        };
        // The library must stay loaded, because its functions are used until the process ends.
        std::mem::forget(library);
        Ok(driver)
    }

    fn check(&self, what: &str, status: Status) -> Result<(), String> {
        if status == 0 {
            return Ok(());
        }
        let mut name = null();
        // SAFETY: the name of a status is a constant string of the driver, and stays null for an
        // unknown status.
        let name = unsafe {
            (self.error_name)(status, &raw mut name);
            if name.is_null() { c"an unknown error" } else { CStr::from_ptr(name) }
        };
        let number = status as c_uint;
        Err(format!("CUDA could not {what}: {} ({number})", name.to_string_lossy()))
    }
}

/// A stream, on whose device this thread works while it lives.
pub(crate) struct Stream {
    driver: &'static Driver,
    raw: RawStream,
}

impl Stream {
    /// Makes the context of a stream current on this thread.
    ///
    /// # Safety
    /// `raw` is a stream of the driver that outlives the result, and the result is dropped on this
    /// thread.
    pub(crate) unsafe fn enter(raw: RawStream) -> Result<Stream, String> {
        let driver = Driver::get()?;
        let mut context = null_mut();
        // SAFETY: the caller guarantees that the stream is valid, and the driver returns its
        // context.
        unsafe {
            let status = (driver.stream_context)(raw, &raw mut context);
            driver.check("tell the context of a stream", status)?;
            driver.check("enter the context of a stream", (driver.push_context)(context))?;
        }
        Ok(Stream { driver, raw })
    }

    /// Copies bytes from the device to the host after all earlier work of the stream, and waits for
    /// the copy.
    ///
    /// # Safety
    /// `from` is the address of `to.len()` bytes of the device's memory.
    pub(crate) unsafe fn read(&self, from: *const u8, to: &mut [u8]) -> Result<(), String> {
        if to.is_empty() {
            return Ok(());
        }
        let (address, length) = (from.addr() as DeviceAddress, to.len());
        // SAFETY: the caller guarantees that the source is valid; the target is owned here, and is
        // not used before the copy is complete.
        let status =
            unsafe { (self.driver.to_host)(to.as_mut_ptr().cast(), address, length, self.raw) };
        self.driver.check("copy to the host", status)?;
        self.wait()
    }

    /// Copies from the host, before all later work of the stream, and waits until that is done.
    ///
    /// # Safety
    /// `to` is the address of `from.len()` bytes of the device's memory without other users.
    pub(crate) unsafe fn write(&self, from: &[u8], to: *mut u8) -> Result<(), String> {
        if from.is_empty() {
            return Ok(());
        }
        let (address, length) = (to.addr() as DeviceAddress, from.len());
        // SAFETY: the caller guarantees that the target is valid; the source does not change before
        // the copy is complete.
        let status =
            unsafe { (self.driver.to_device)(address, from.as_ptr().cast(), length, self.raw) };
        self.driver.check("copy to the device", status)?;
        self.wait()
    }

    fn wait(&self) -> Result<(), String> {
        // SAFETY: the caller of `enter` guarantees that the stream is valid.
        let status = unsafe { (self.driver.synchronize)(self.raw) };
        self.driver.check("wait for a stream", status)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let mut context = null_mut();
        // SAFETY: this thread entered the context, and has left every context that it entered
        // later.
        unsafe { (self.driver.pop_context)(&raw mut context) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_that_is_missing_is_named() {
        let error = Driver::load("libcuda_of_nobody.so").err().unwrap();
        assert!(error.starts_with("the CUDA driver libcuda_of_nobody.so: "), "{error}");
    }

    #[test]
    fn a_library_that_is_no_driver_is_refused() {
        let error = Driver::load("libc.so.6").err().unwrap();
        assert!(error.contains("cuStreamGetCtx"), "{error}");
    }
}
