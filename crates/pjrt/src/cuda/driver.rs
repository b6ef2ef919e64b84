//! The CUDA driver: copies between the memory of a device and the host in the order of a stream of
//! XLA, and copies and waits in the context that XLA shares with other libraries.
//!
//! Host functions need the copies, because programs on such a device pass addresses of its memory.
//! Exchanging memory with other libraries needs the context.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::marker::PhantomData;
use std::ptr::{null, null_mut};
use std::sync::OnceLock;

use libloading::Library;

use crate::plugin::reason;

/// `CUresult`; 0 is success.
type Status = c_int;

/// `CUdeviceptr`: an address in the memory of a device.
type DeviceAddress = u64;

/// `CUdevice`.
type Device = c_int;

/// `CUcontext`.
type Context = *mut c_void;

/// `CUstream`.
pub(crate) type RawStream = *mut c_void;

/// `CU_STREAM_LEGACY`: the default stream of a context, which DLPack calls stream 1.
const DEFAULT_STREAM: RawStream = std::ptr::without_provenance_mut(1);

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
    within_device: unsafe extern "C" fn(DeviceAddress, DeviceAddress, usize, RawStream) -> Status,
    synchronize: unsafe extern "C" fn(RawStream) -> Status,
    device: unsafe extern "C" fn(*mut Device, c_int) -> Status,
    retain_context: unsafe extern "C" fn(*mut Context, Device) -> Status,
    release_context: unsafe extern "C" fn(Device) -> Status,
    synchronize_context: unsafe extern "C" fn() -> Status,
    attribute: unsafe extern "C" fn(*mut c_void, c_uint, DeviceAddress) -> Status,
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
                within_device: *library.get(b"cuMemcpyDtoDAsync_v2\0").map_err(missing)?,
                synchronize: *library.get(b"cuStreamSynchronize\0").map_err(missing)?,
                device: *library.get(b"cuDeviceGet\0").map_err(missing)?,
                retain_context: *library.get(b"cuDevicePrimaryCtxRetain\0").map_err(missing)?,
                release_context: *library
                    .get(b"cuDevicePrimaryCtxRelease_v2\0")
                    .map_err(missing)?,
                synchronize_context: *library.get(b"cuCtxSynchronize\0").map_err(missing)?,
                attribute: *library.get(b"cuPointerGetAttribute\0").map_err(missing)?,
                error_name: *library.get(b"cuGetErrorName\0").map_err(missing)?,
            }
        };
        // The library must stay loaded, because its functions are used until the process ends.
        std::mem::forget(library);
        Ok(driver)
    }

    /// Starts a copy of device memory in a stream.
    ///
    /// # Safety
    /// `from` and `to` are addresses of `length` bytes of the device's memory that do not overlap,
    /// and `stream` is a stream of the current context.
    unsafe fn copy(
        &self,
        from: *const u8,
        to: *mut u8,
        length: usize,
        stream: RawStream,
    ) -> Result<(), String> {
        if length == 0 {
            return Ok(());
        }
        let (from, to) = (from.addr() as DeviceAddress, to.addr() as DeviceAddress);
        // SAFETY: the caller guarantees the requirements in `# Safety` above.
        let status = unsafe { (self.within_device)(to, from, length, stream) };
        self.check("copy on the device", status)
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

    /// The stream in the driver's terms.
    pub(crate) fn raw(&self) -> RawStream {
        self.raw
    }

    /// Copies bytes of the device's memory, between the earlier and the later work of the stream.
    ///
    /// # Safety
    /// `from` and `to` are addresses of `length` bytes of the device's memory that do not overlap.
    pub(crate) unsafe fn copy(
        &self,
        from: *const u8,
        to: *mut u8,
        length: usize,
    ) -> Result<(), String> {
        // SAFETY: the caller guarantees the addresses, and the stream orders the copy.
        unsafe { self.driver.copy(from, to, length, self.raw) }
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

/// The primary context of a device, which XLA shares with PyTorch and CuPy. It is current on this
/// thread while the value lives.
pub(crate) struct Primary {
    driver: &'static Driver,
    device: Device,
    /// Contexts are left on the thread that entered them.
    _thread: PhantomData<*mut ()>,
}

impl Primary {
    /// Makes the context of a device current on this thread.
    pub(crate) fn enter(ordinal: i32) -> Result<Primary, String> {
        let driver = Driver::get()?;
        let (mut device, mut context) = (0, null_mut());
        // SAFETY: the driver writes the device and the context, and checks the number of the
        // device. It is initialized, because a client for the device exists.
        unsafe {
            driver.check("find a device", (driver.device)(&raw mut device, ordinal))?;
            let status = (driver.retain_context)(&raw mut context, device);
            driver.check("use the context of a device", status)?;
            let entered = driver.check("enter a context", (driver.push_context)(context));
            if entered.is_err() {
                (driver.release_context)(device);
            }
            entered?;
        }
        Ok(Primary { driver, device, _thread: PhantomData })
    }

    /// Returns the number of the device with the memory at an address; `None` for host memory and for
    /// addresses that the driver does not know.
    pub(crate) fn owner_of(&self, address: usize) -> Option<i32> {
        /// `CU_POINTER_ATTRIBUTE_MEMORY_TYPE` and its value `CU_MEMORYTYPE_DEVICE`.
        const MEMORY_TYPE: c_uint = 2;
        const DEVICE_MEMORY: c_int = 2;
        /// `CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL`.
        const DEVICE_ORDINAL: c_uint = 9;
        let address = address as DeviceAddress;
        let attribute = |name: c_uint| {
            let mut value: c_int = 0;
            // SAFETY: the driver checks the address, and writes an integer for either attribute.
            let status = unsafe { (self.driver.attribute)((&raw mut value).cast(), name, address) };
            (status == 0).then_some(value)
        };
        attribute(MEMORY_TYPE).filter(|&kind| kind == DEVICE_MEMORY)?;
        attribute(DEVICE_ORDINAL)
    }

    /// Waits until the work in the default stream is complete.
    pub(crate) fn wait_for_default_stream(&self) -> Result<(), String> {
        // SAFETY: every context has this stream.
        let status = unsafe { (self.driver.synchronize)(DEFAULT_STREAM) };
        self.driver.check("wait for the default stream", status)
    }

    /// Waits until the work in all streams is complete.
    pub(crate) fn wait_for_all(&self) -> Result<(), String> {
        // SAFETY: a context is current on this thread.
        let status = unsafe { (self.driver.synchronize_context)() };
        self.driver.check("wait for a device", status)
    }

    /// Copies bytes on the device after all earlier work of the default stream, and waits for the
    /// copy.
    ///
    /// # Safety
    /// `from` and `to` are addresses of `length` bytes of the device's memory. The target has no
    /// other user.
    pub(crate) unsafe fn copy(
        &self,
        from: *const u8,
        to: *mut u8,
        length: usize,
    ) -> Result<(), String> {
        // SAFETY: the caller guarantees the ranges, and every context has this stream.
        unsafe { self.driver.copy(from, to, length, DEFAULT_STREAM)? };
        self.wait_for_default_stream()
    }
}

impl Drop for Primary {
    fn drop(&mut self) {
        let mut context = null_mut();
        // SAFETY: this thread entered the context, and has left every context that it entered
        // later. The reference to the context was taken by `enter`.
        unsafe {
            (self.driver.pop_context)(&raw mut context);
            (self.driver.release_context)(self.device);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_drivers_are_named() {
        let error = Driver::load("libcuda_of_nobody.so").err().unwrap();
        assert!(error.starts_with("the CUDA driver libcuda_of_nobody.so: "), "{error}");
    }

    #[test]
    fn libraries_without_driver_functions_are_rejected() {
        let error = Driver::load("libc.so.6").err().unwrap();
        assert!(error.contains("cuStreamGetCtx"), "{error}");
    }
}
