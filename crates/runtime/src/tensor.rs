//! Data, on the host or on a device.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use nxla_eval::Interrupt;
use nxla_expr::{Graph, Program, TensorType};
use nxla_tensor::{
    DType, HostTensor, ListElement, Names, PrintOptions, Scalar, Shape, TensorError,
};
use rustc_hash::FxHashMap;

use crate::background;
use crate::device::Device;
use crate::donation::RunDonation;
use crate::error::{Error, Result};
use crate::options::Options;
use crate::out_of_memory::LargestValues;
use crate::pjrt;
use crate::print::DeviceText;
use crate::profile::{self, Span, Work};
use crate::program::run_on_backend;
use crate::vectors::VectorTensor;
use crate::xla;

/// The data of a tensor, on the host or in the memory of a device, without the operations of
/// `nxla::Tensor`. Compilers and executors receive and return raw tensors.
///
/// Clones share the data. A device tensor may still be under computation: its dtype and shape are
/// available immediately, and reading it waits.
///
/// ```
/// use nxla::runtime::RawTensor;
/// use nxla::{DType, Tensor};
///
/// let x: RawTensor = Tensor::from(vec![1.0f32, 2.0]).into_inner();
/// assert_eq!((x.dtype(), &x.shape()[..]), (DType::F32, &[2usize][..]));
/// let doubled = (Tensor::from(x) * 2)?;
/// # Ok::<(), nxla::Error>(())
/// ```
#[derive(Clone)]
pub enum RawTensor {
    /// A tensor in host memory.
    Host(HostTensor),
    /// A tensor in the memory of a PJRT device.
    Device(DeviceTensor),
    /// A host or device tensor with [vectorized axes](crate::vectors). Unless stated otherwise,
    /// methods describe one entry.
    Vectorized(Arc<VectorTensor>),
}

/// Data in the memory of a device, with its dtype, shape and names.
#[derive(Clone)]
pub struct DeviceTensor {
    buffer: pjrt::Buffer,
    names: Option<Names>,
    /// The largest values of the program that computes the buffer, for errors about memory.
    values: Option<Arc<LargestValues>>,
}

impl fmt::Debug for DeviceTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (dtype, shape) = (self.buffer.dtype(), self.buffer.shape().clone());
        let ty = TensorType { dtype, shape, names: self.names.clone() };
        write!(f, "DeviceTensor({ty} on {})", Device::of_buffer(&self.buffer))
    }
}

impl DeviceTensor {
    /// A tensor of a buffer's data whose axes have no names.
    pub fn new(buffer: pjrt::Buffer) -> Self {
        Self { buffer, names: None, values: None }
    }

    /// Sets the largest values of the program that computes the buffer.
    #[cfg(feature = "xla")]
    pub(crate) fn computed_by(self, values: Arc<LargestValues>) -> Self {
        Self { values: Some(values), ..self }
    }

    /// Copies ranges of elements, in row-major order, to a vector on the host. No other element is
    /// read from the device.
    ///
    /// # Errors
    /// Returns the errors of [`RawTensor::to_host`].
    pub(crate) fn read(&self, ranges: &[Range<usize>]) -> Result<HostTensor> {
        let _span = transfer("read from device", &self.buffer);
        self.buffer.read(ranges).map_err(|error| self.explain(error))
    }

    /// Copies the buffer on its device by a compiled program that returns its input, because PJRT copies
    /// only between different devices.
    fn duplicate(&self, device: &Device) -> Result<pjrt::Buffer> {
        let ty = TensorType::new(self.buffer.dtype(), self.buffer.shape().clone());
        let mut graph = Graph::new();
        let input = graph.parameter(0, ty.clone());
        let program = Arc::new(Program::new(&graph, vec![ty], &[input])?);
        // The evaluator would return the input itself.
        let options = Options::new().compiler("xla").device(device.clone());
        let (target, tensor) = (options.target(None)?, RawTensor::Device(self.clone()));
        let none = RunDonation::default();
        let results = run_on_backend(&program, &options, &target, &[&tensor], &none, None)?;
        let copy = results.first().and_then(RawTensor::buffer).cloned();
        Ok(copy.expect("a program of XLA returns device tensors"))
    }

    /// Names the cause of an error of the buffer.
    fn explain(&self, error: pjrt::Error) -> Error {
        let error = self.buffer.cause(error);
        match &self.values {
            Some(values) => values.explain(error),
            None => error.into(),
        }
    }

    /// With names for its axes, one for each; `None` takes them away.
    ///
    /// # Errors
    /// Returns an error for a number of names that differs from the rank.
    pub fn with_names(self, names: Option<Names>) -> Result<Self, TensorError> {
        let rank = self.buffer.shape().rank();
        names.as_ref().map_or(Ok(()), |names| names.check_length(rank))?;
        Ok(Self { names, ..self })
    }

    /// The memory.
    pub fn buffer(&self) -> &pjrt::Buffer {
        &self.buffer
    }
}

impl RawTensor {
    /// Creates a tensor of a shape from its elements in row-major order.
    ///
    /// ```
    /// use nxla::runtime::RawTensor;
    ///
    /// let x = RawTensor::new(vec![1, 2, 3, 4], [2, 2])?;
    /// assert_eq!(x.shape()[..], [2, 2]);
    /// assert!(RawTensor::new(vec![1, 2, 3], [2, 2]).is_err());
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error for a number of elements that differs from the size of the shape.
    pub fn new<T: ListElement>(
        elements: Vec<T>,
        shape: impl Into<Shape>,
    ) -> Result<Self, TensorError> {
        Ok(Self::Host(HostTensor::from_vec(elements, shape)?))
    }

    /// Creates a scalar of a dtype; see [`HostTensor::scalar`].
    ///
    /// ```
    /// use nxla::runtime::RawTensor;
    /// use nxla::{DType, Scalar};
    ///
    /// let x = RawTensor::scalar(Scalar::Float(0.5), DType::F16);
    /// assert_eq!((x.dtype(), x.shape().rank()), (DType::F16, 0));
    /// ```
    pub fn scalar(value: Scalar, dtype: DType) -> Self {
        Self::Host(HostTensor::scalar(value, dtype))
    }

    /// Returns the element type.
    ///
    /// ```
    /// use nxla::{DType, Tensor};
    ///
    /// assert_eq!(Tensor::from([1, 2]).dtype(), DType::S32);
    /// assert_eq!(Tensor::from([true]).dtype(), DType::Pred);
    /// ```
    pub fn dtype(&self) -> DType {
        match self {
            RawTensor::Host(tensor) => tensor.dtype(),
            RawTensor::Device(tensor) => tensor.buffer.dtype(),
            RawTensor::Vectorized(tensor) => tensor.entry().dtype,
        }
    }

    /// Returns the size of each axis.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([[1, 2, 3], [4, 5, 6]]);
    /// assert_eq!(x.shape()[..], [2, 3]);
    /// assert_eq!((x.shape().rank(), x.shape().size()), (2, 6));
    /// ```
    pub fn shape(&self) -> &Shape {
        match self {
            RawTensor::Host(tensor) => tensor.shape(),
            RawTensor::Device(tensor) => tensor.buffer.shape(),
            RawTensor::Vectorized(tensor) => &tensor.entry().shape,
        }
    }

    /// Returns the names of the axes, or `None` for a tensor without names.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([1, 2]);
    /// assert_eq!(x.names(), None);
    /// let x = x.with_names(["row"])?;
    /// assert_eq!(x.names().unwrap()[0].as_deref(), Some("row"));
    /// # Ok::<(), nxla::Error>(())
    /// ```
    pub fn names(&self) -> Option<&Names> {
        match self {
            RawTensor::Host(tensor) => tensor.names(),
            RawTensor::Device(tensor) => tensor.names.as_ref(),
            RawTensor::Vectorized(tensor) => tensor.entry().names.as_ref(),
        }
    }

    /// Returns the same data with other axis names, or without names.
    ///
    /// # Errors
    /// Returns an error for a number of names that differs from the rank.
    pub fn with_names(self, names: Option<Names>) -> Result<Self, TensorError> {
        Ok(match self {
            RawTensor::Host(tensor) => RawTensor::Host(tensor.with_names(names)?),
            RawTensor::Device(tensor) => RawTensor::Device(tensor.with_names(names)?),
            RawTensor::Vectorized(tensor) => tensor.with_names(names)?,
        })
    }

    /// Returns dtype, shape and axis names.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([[1.0f32, 2.0]]).with_names(["row", "column"])?;
    /// assert_eq!(x.ty().to_string(), "f32[row: 1][column: 2]");
    /// # Ok::<(), nxla::Error>(())
    /// ```
    pub fn ty(&self) -> TensorType {
        TensorType {
            dtype: self.dtype(),
            shape: self.shape().clone(),
            names: self.names().cloned(),
        }
    }

    /// Returns `true` if dtype, shape and axis names equal `ty`, without constructing
    /// [`RawTensor::ty`]. The answer for a vectorized tensor is `false`.
    ///
    /// ```
    /// use nxla::{DType, Tensor, TensorType};
    ///
    /// let x = Tensor::from([1.0f32, 2.0]);
    /// assert!(x.is_of(&TensorType::new(DType::F32, [2])));
    /// assert!(!x.is_of(&TensorType::new(DType::F64, [2])));
    /// ```
    #[inline]
    pub fn is_of(&self, ty: &TensorType) -> bool {
        self.dtype() == ty.dtype
            && *self.shape() == ty.shape
            && self.names() == ty.names.as_ref()
            && self.vectors().is_empty()
    }

    /// Returns `true` if two tensors share their data.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([1, 2]);
    /// assert!(x.is(&x.clone()));
    /// assert!(!x.is(&Tensor::from([1, 2])));
    /// ```
    pub fn is(&self, other: &RawTensor) -> bool {
        match (self, other) {
            (RawTensor::Host(left), RawTensor::Host(right)) => {
                let same = std::ptr::eq(left.bytes(), right.bytes());
                same && left.dtype() == right.dtype() && left.shape() == right.shape()
            }
            (RawTensor::Device(left), RawTensor::Device(right)) => left.buffer.is(&right.buffer),
            (RawTensor::Vectorized(left), RawTensor::Vectorized(right)) => {
                left.data().is(right.data()) && left.vectors() == right.vectors()
            }
            (RawTensor::Host(_) | RawTensor::Device(_) | RawTensor::Vectorized(_), _) => false,
        }
    }

    /// The address of the memory, which tensors of equal data share.
    pub(crate) fn address(&self) -> usize {
        match self.data() {
            RawTensor::Host(tensor) => tensor.bytes().as_ptr() as usize,
            RawTensor::Device(tensor) => tensor.buffer.address(),
            RawTensor::Vectorized(_) => unreachable!("data has no vectorized axes"),
        }
    }

    /// Returns the data on the host, after waiting for a device tensor and copying it. Vectorized
    /// axes are its first axes.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let host = Tensor::from([1.5f32, 2.5]).to_host()?;
    /// assert_eq!(host.bytes()[..4], 1.5f32.to_ne_bytes());
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the error of a failed computation, or an error for a tensor that was freed.
    pub fn to_host(&self) -> Result<HostTensor> {
        match self {
            RawTensor::Host(tensor) => Ok(tensor.clone()),
            RawTensor::Device(tensor) => {
                let _span = transfer("read from device", &tensor.buffer);
                let read = tensor.buffer.to_host().map_err(|error| tensor.explain(error))?;
                Ok(read.with_names(tensor.names.clone())?)
            }
            RawTensor::Vectorized(tensor) => tensor.data().to_host(),
        }
    }

    /// The data on the host, in the memory of a device where the host can read that; a device
    /// tensor is waited for. While the result lives, no program reuses such memory.
    ///
    /// # Errors
    /// Returns the errors of [`RawTensor::to_host`].
    pub(crate) fn share(&self) -> Result<HostTensor> {
        match self.data() {
            RawTensor::Device(tensor) => {
                let _span = transfer("read from device", &tensor.buffer);
                let shared = tensor.buffer.share().map_err(|error| tensor.explain(error))?;
                Ok(shared.with_names(tensor.names.clone())?)
            }
            other => other.to_host(),
        }
    }

    /// Returns the first `limit` elements in row-major order, as a vector. No other element is read
    /// from a device. The elements of all entries of vectorized axes count.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([[1, 2], [3, 4]]);
    /// assert_eq!(x.first(3)?.to_vec::<i32>()?, [1, 2, 3]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`RawTensor::to_host`].
    pub fn first(&self, limit: usize) -> Result<HostTensor> {
        match self.data() {
            RawTensor::Device(tensor) => tensor.read(std::slice::from_ref(&(0..limit))),
            other => {
                let host = other.to_host()?;
                let count = limit.min(host.shape().size());
                let bytes = &host.bytes()[..count * host.dtype().size()];
                Ok(HostTensor::from_bytes(host.dtype(), [count], bytes)?)
            }
        }
    }

    /// Returns the elements of all entries in row-major order.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([[1, 2], [3, 4]]);
    /// assert_eq!(x.to_vec::<i32>()?, [1, 2, 3, 4]);
    /// let error = x.to_vec::<f32>().unwrap_err().to_string();
    /// assert!(error.contains("s32"), "{error}");
    /// assert_eq!(x.greater(2)?.to_vec::<bool>()?, [false, false, true, true]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`RawTensor::to_host`], and an error for a dtype other than the dtype of `T`.
    pub fn to_vec<T: ListElement>(&self) -> Result<Vec<T>> {
        Ok(self.to_host()?.to_vec()?)
    }

    /// Returns the only element.
    ///
    /// ```
    /// use nxla::Scalar;
    /// use nxla::runtime::RawTensor;
    ///
    /// assert_eq!(RawTensor::from(2).item()?, Scalar::Int(2));
    /// assert!(RawTensor::from([1, 2]).item().is_err());
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`RawTensor::to_host`], and an error for a tensor that does not have exactly
    /// one element, or that has vectorized axes.
    pub fn item(&self) -> Result<Scalar> {
        if let RawTensor::Vectorized(tensor) = self {
            return Err(tensor.no_number());
        }
        Ok(self.to_host()?.item()?)
    }

    /// Returns the device of the tensor.
    ///
    /// ```
    /// use nxla::{Device, Tensor};
    ///
    /// assert_eq!(Tensor::from([1, 2]).device(), Device::HOST);
    /// ```
    pub fn device(&self) -> Device {
        self.buffer().map_or(Device::HOST, Device::of_buffer)
    }

    /// Returns the memory on a device, or `None` for the host.
    #[inline]
    pub fn buffer(&self) -> Option<&pjrt::Buffer> {
        match self.data() {
            RawTensor::Device(tensor) => Some(&tensor.buffer),
            RawTensor::Host(_) | RawTensor::Vectorized(_) => None,
        }
    }

    /// Returns `true` if the host can read the tensor without a wait or a copy: it is host memory,
    /// or a buffer whose transfer to the plugin is deferred.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// assert!(Tensor::from([1, 2]).is_readable());
    /// ```
    #[inline]
    pub fn is_readable(&self) -> bool {
        self.buffer().is_none_or(pjrt::Buffer::is_deferred)
    }

    /// Returns `true` if its device memory was freed or donated.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([1, 2]);
    /// x.deallocate()?;
    /// assert!(!x.is_released()?); // Host memory is freed with the last clone.
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns errors of the plugin.
    pub fn is_released(&self) -> Result<bool> {
        self.buffer().map_or(Ok(false), |buffer| Ok(buffer.is_deleted()?))
    }

    /// Returns `true` if reading it need not wait.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// assert!(Tensor::from([1, 2]).is_ready()?);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error for a tensor that was freed.
    pub fn is_ready(&self) -> Result<bool> {
        self.buffer().map_or(Ok(true), |buffer| Ok(buffer.is_ready()?))
    }

    /// Calls `callback` when the data is available or its computation has failed; immediately for the
    /// host.
    ///
    /// ```
    /// use std::sync::mpsc::channel;
    ///
    /// use nxla::{Expr, jit};
    ///
    /// let (sender, receiver) = channel();
    /// let y = jit(|x: Expr| x.sin()).call(0.0f32)?;
    /// y.on_ready(move || sender.send("ready").unwrap())?;
    /// assert_eq!(receiver.recv(), Ok("ready"));
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the plugin does not support events; the callback is then dropped.
    pub fn on_ready(&self, callback: impl FnOnce() + Send + 'static) -> Result<()> {
        match self.data() {
            RawTensor::Device(tensor) => tensor.buffer.on_ready(move |_| callback())?,
            RawTensor::Host(_) | RawTensor::Vectorized(_) => callback(),
        }
        Ok(())
    }

    /// Waits until the data is available.
    ///
    /// ```
    /// use std::time::Instant;
    ///
    /// use nxla::{Expr, jit};
    ///
    /// let f = jit(|x: Expr| x.sin().sum());
    /// let start = Instant::now();
    /// f.call(nxla::Tensor::from([0.0f32, 1.0]))?.wait()?;
    /// println!("computed in {:?}", start.elapsed());
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the error of a failed computation.
    pub fn wait(&self) -> Result<()> {
        match self {
            RawTensor::Host(_) => Ok(()),
            RawTensor::Device(tensor) => {
                tensor.buffer.wait().map_err(|error| tensor.explain(error))
            }
            RawTensor::Vectorized(tensor) => tensor.data().wait(),
        }
    }

    /// Waits like [`RawTensor::wait`], and regularly checks for an interrupt.
    ///
    /// After an interrupt the computation of the tensor continues, and may occupy every thread of its
    /// client. Until its end, later programs start on a substitute client.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// assert!(Tensor::from([1, 2]).wait_watched(&|| true).is_ok()); // Host data needs no wait.
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`RawTensor::wait`], and an error if `interrupt` returns `true`.
    pub fn wait_watched(&self, interrupt: &Interrupt<'_>) -> Result<()> {
        let Some(buffer) = self.buffer() else { return Ok(()) };
        if !buffer.is_ready()? {
            let (done, is_done) = sync_channel(1);
            buffer.on_ready(move |_| {
                // Sending fails if the waiting thread was interrupted.
                let _ = done.try_send(());
            })?;
            if let Err(interrupted) = background::wait(&is_done, interrupt) {
                let abandoned = xla::AbandonedProgram::new(buffer.client());
                // Without a callback, the program counts as finished.
                let _ = buffer.on_ready(move |_| drop(abandoned));
                return Err(interrupted);
            }
        }
        self.wait()
    }

    /// Copies the tensor to a device. The transfer may still be running when this returns.
    ///
    /// On the device that holds the tensor, the copy is a new buffer: freeing or donating one
    /// does not affect the other. The device makes the copy, without a transfer to the host. On the host,
    /// clones share memory that never changes, so a copy of a host tensor there is a clone, unless the
    /// memory belongs to another library.
    ///
    /// ```
    /// use nxla::Device;
    /// use nxla::runtime::RawTensor;
    ///
    /// let x = RawTensor::from([1, 2]).copy_to(&Device::HOST)?;
    /// assert_eq!(x.device(), Device::HOST);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the error of the plugin if the transfer fails, or if the tensor was freed.
    pub fn copy_to(&self, device: &Device) -> Result<RawTensor> {
        if let RawTensor::Vectorized(tensor) = self {
            return Ok(tensor.with_data(tensor.data().copy_to(device)?));
        }
        let Some(client) = device.client() else {
            return Ok(RawTensor::Host(match self {
                RawTensor::Host(tensor) => tensor.clone_owned()?,
                _ => self.to_host()?,
            }));
        };
        let buffer = match self {
            RawTensor::Device(tensor)
                if !tensor.buffer.is_deferred() && device.holds(&tensor.buffer) =>
            {
                tensor.duplicate(device)?
            }
            _ => self.copy_in(client, device.index())?,
        };
        let names = self.names().cloned();
        Ok(RawTensor::Device(DeviceTensor { names, ..DeviceTensor::new(buffer) }))
    }

    /// The data as it is in memory, copied to a device of this very client.
    pub(crate) fn copy_in(&self, client: &pjrt::Client, device: usize) -> Result<pjrt::Buffer> {
        let to = &client.devices()[device];
        let _span = profile::span(Work::Transfer, "copy to device")
            .detail("bytes", || self.shape().byte_size(self.dtype()).to_string());
        Ok(match self.buffer() {
            Some(buffer) if buffer.client() == client => buffer.copy_to(to)?,
            Some(buffer) => client.put(&buffer.to_host()?, to)?,
            None => client.put(&self.data().to_host()?, to)?,
        })
    }

    /// Returns a host tensor as a tensor of `device`, without a copy if the device computes in host
    /// memory. Other tensors are copied as by [`RawTensor::copy_to`].
    ///
    /// # Errors
    /// Returns the errors of [`RawTensor::copy_to`].
    pub(crate) fn adopt_on(&self, device: &Device) -> Result<RawTensor> {
        match (self, device.client()) {
            (RawTensor::Host(tensor), Some(client)) => {
                let buffer = client.adopt(tensor, &client.devices()[device.index()])?;
                let names = tensor.names().cloned();
                Ok(RawTensor::Device(DeviceTensor { names, ..DeviceTensor::new(buffer) }))
            }
            _ => self.copy_to(device),
        }
    }

    /// Returns the tensor itself if it is on the device, or else a copy on the device.
    ///
    /// ```
    /// use nxla::Device;
    /// use nxla::runtime::RawTensor;
    ///
    /// let x = RawTensor::from([1, 2]);
    /// assert!(x.on(&Device::HOST)?.is(&x));
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`RawTensor::copy_to`].
    pub fn on(&self, device: &Device) -> Result<RawTensor> {
        match self.buffer() {
            Some(buffer) if device.holds(buffer) => Ok(self.clone()),
            None if device.is_host() => Ok(self.clone()),
            _ => self.copy_to(device),
        }
    }

    /// Moves the tensor to a device. A tensor on another device is copied, and then freed even if the
    /// copy failed.
    ///
    /// ```
    /// use nxla::Device;
    /// use nxla::runtime::RawTensor;
    ///
    /// let x = RawTensor::from([1, 2]).transfer_to(&Device::HOST)?;
    /// assert_eq!(x.to_vec::<i32>()?, [1, 2]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`RawTensor::copy_to`].
    pub fn transfer_to(self, device: &Device) -> Result<RawTensor> {
        let moved = Self::transfer_all(&[self], device)?;
        Ok(moved.into_iter().next().expect("one tensor was moved"))
    }

    /// Moves tensors to a device. Tensors on other devices are copied, each buffer once, and then
    /// freed even if a copy failed.
    ///
    /// ```
    /// use nxla::Device;
    /// use nxla::runtime::RawTensor;
    ///
    /// let x = RawTensor::from([1, 2]);
    /// let moved = RawTensor::transfer_all(&[x.clone(), x], &Device::HOST)?;
    /// assert_eq!(moved[1].to_vec::<i32>()?, [1, 2]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`RawTensor::copy_to`].
    pub fn transfer_all(tensors: &[RawTensor], device: &Device) -> Result<Vec<RawTensor>> {
        let mut moved: Vec<RawTensor> = Vec::with_capacity(tensors.len());
        // Equal addresses are necessary for equal data, but not sufficient.
        let mut by_address: FxHashMap<usize, Vec<usize>> = FxHashMap::default();
        let mut failure = None;
        for (position, tensor) in tensors.iter().enumerate() {
            let known = by_address.entry(tensor.address()).or_default();
            let earlier = known.iter().find(|&&at| tensors[at].data().is(tensor.data()));
            let result = match earlier {
                Some(&at) => moved[at].like(tensor),
                None if tensor.device() == *device => Ok(tensor.clone()),
                None => tensor.copy_to(device),
            };
            match result {
                Ok(result) => {
                    known.push(position);
                    moved.push(result);
                }
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        for tensor in tensors.iter().filter(|tensor| tensor.device() != *device) {
            if let Err(error) = tensor.deallocate() {
                failure.get_or_insert(error);
            }
        }
        failure.map_or(Ok(moved), Err)
    }

    /// The same data with the axis names and the vectorized axes of another tensor of its full shape.
    fn like(&self, other: &RawTensor) -> Result<RawTensor> {
        let data = self.data().clone().with_names(other.data().names().cloned())?;
        Ok(data.with_vectors(other.vectors().clone()))
    }

    /// Frees the device memory of all clones. Returns `true` if it freed any: host memory is freed
    /// with the last clone, so for the host the answer is `false`.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// assert!(!Tensor::from([1, 2]).deallocate()?);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns errors of the plugin.
    pub fn deallocate(&self) -> Result<bool> {
        self.buffer().map_or(Ok(false), |buffer| Ok(buffer.delete()?))
    }
}

/// A transfer in the profile.
fn transfer(name: &'static str, buffer: &pjrt::Buffer) -> Span {
    let bytes = || buffer.shape().byte_size(buffer.dtype()).to_string();
    profile::span(Work::Transfer, name).detail("bytes", bytes)
}

impl From<DeviceTensor> for RawTensor {
    fn from(tensor: DeviceTensor) -> Self {
        RawTensor::Device(tensor)
    }
}

impl From<HostTensor> for RawTensor {
    fn from(tensor: HostTensor) -> Self {
        RawTensor::Host(tensor)
    }
}

impl fmt::Debug for RawTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RawTensor::Host(tensor) => write!(f, "{tensor}"),
            RawTensor::Device(tensor) => write!(f, "{tensor:?}"),
            RawTensor::Vectorized(tensor) => write!(f, "{tensor:?}"),
        }
    }
}

impl fmt::Display for RawTensor {
    /// Writes the type, the device and the elements, and waits for them. Equal tensors have equal
    /// strings: the address of a buffer is in [`RawTensor::text`] only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(&PrintOptions::default(), DeviceText::Name))
    }
}
