//! Devices along named axes, and how tensors are divided among them.
//!
//! A mesh arranges devices along named axes. A sharding lists for each axis of a tensor the axes of the
//! mesh along which the axis is divided into equal parts. An axis without mesh axes is replicated.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use nxla_expr::{Layout, sharding_note};
use nxla_tensor::{DType, HostTensor, Shape};

use crate::device::Device;
use crate::error::{Error, Result};
use crate::pjrt;
use crate::tensor::RawTensor;
use crate::xla;

/// Devices along named axes, in row-major order.
///
/// ```no_run
/// use nxla::{Expr, Mesh, Tensor, jit};
///
/// let mesh = Mesh::new([("data", 2), ("model", 2)])?;
/// let double = jit(|x: Expr| x * 2).over(&mesh);
/// assert_eq!(double.call(Tensor::from([1, 2]))?.parts().len(), 4);
/// # Ok::<(), nxla::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Mesh(Arc<Parts>);

#[derive(PartialEq, Eq)]
struct Parts {
    axes: Vec<(String, usize)>,
    client: pjrt::Client,
    devices: Vec<usize>,
}

impl Mesh {
    /// Creates a mesh of devices of the default client. A plugin with a setting for the number of CPU
    /// devices creates as many as the mesh needs.
    ///
    /// ```no_run
    /// let mesh = nxla::Mesh::new([("data", 2), ("model", 2)])?;
    /// assert_eq!((mesh.size(), mesh.to_string()), (4, "Mesh(data=2, model=2)".to_owned()));
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error for invalid or repeated names, axes of size 0, too few devices, or a
    /// missing plugin.
    pub fn new<N: Into<String>>(axes: impl IntoIterator<Item = (N, usize)>) -> Result<Self> {
        let axes: Vec<_> = axes.into_iter().map(|(name, size)| (name.into(), size)).collect();
        let size = size_of_axes(&axes)?;
        Self::with_devices(axes, &xla::mesh_devices(size)?)
    }

    /// A mesh of these devices, which are of one client.
    ///
    /// ```no_run
    /// use nxla::{Mesh, devices};
    ///
    /// let mesh = Mesh::with_devices([("data", 2)], &devices()?[1..3])?;
    /// assert_eq!(mesh.axes(), [("data".to_owned(), 2)]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error for invalid or repeated names, a number of devices that differs from the
    /// product of the axis sizes, or repeated devices, or devices of two clients.
    pub fn with_devices<N: Into<String>>(
        axes: impl IntoIterator<Item = (N, usize)>,
        devices: &[Device],
    ) -> Result<Self> {
        let axes: Vec<_> = axes.into_iter().map(|(name, size)| (name.into(), size)).collect();
        let size = size_of_axes(&axes)?;
        if size != devices.len() {
            return wrong(format!(
                "devices: must be {size}, the product of the axis sizes; got {}",
                devices.len()
            ));
        }
        let Some(client) = devices.first().and_then(Device::client) else {
            return wrong(
                "devices: must be devices of XLA, as in nx.devices(); got the host".into(),
            );
        };
        let mut indices = Vec::with_capacity(devices.len());
        for device in devices {
            if device.client() != Some(client) {
                return wrong(format!(
                    "devices: must belong to one client; got {} and {device}",
                    devices[0]
                ));
            }
            if indices.contains(&device.index()) {
                return wrong(format!("devices: must be distinct; got {device} twice"));
            }
            indices.push(device.index());
        }
        Ok(Self(Arc::new(Parts { axes, client: client.clone(), devices: indices })))
    }

    /// Names and sizes of the axes.
    ///
    /// ```no_run
    /// let mesh = nxla::Mesh::new([("data", 2)])?;
    /// assert_eq!(mesh.axes(), [("data".to_owned(), 2)]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    pub fn axes(&self) -> &[(String, usize)] {
        &self.0.axes
    }

    /// The number of devices.
    ///
    /// ```no_run
    /// assert_eq!(nxla::Mesh::new([("data", 2), ("model", 4)])?.size(), 8);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    pub fn size(&self) -> usize {
        self.0.devices.len()
    }

    /// The devices, in their order.
    ///
    /// ```no_run
    /// assert_eq!(nxla::Mesh::new([("data", 2)])?.devices()?[1].to_string(), "cpu:1");
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the error of [`Device::of`], which accepts the devices of every mesh.
    pub fn devices(&self) -> Result<Vec<Device>> {
        self.0.devices.iter().map(|&index| Device::of(&self.0.client, index)).collect()
    }

    /// Returns the client of the devices, and the index of each device in the client.
    pub(crate) fn client_and_devices(&self) -> (&pjrt::Client, &[usize]) {
        (&self.0.client, &self.0.devices)
    }

    /// Returns a sharding that lists for each tensor axis the mesh axes along which it is divided: one,
    /// several or none. Further axes are not divided.
    ///
    /// ```no_run
    /// use nxla::Mesh;
    ///
    /// let mesh = Mesh::new([("data", 2), ("model", 2)])?;
    /// assert_eq!(mesh.sharding(["data"])?.part(&[4, 3].into())?[..], [2, 3]);
    /// assert_eq!(mesh.sharding([None, Some("model")])?.part(&[3, 4].into())?[..], [3, 2]);
    /// assert_eq!(mesh.sharding([["data", "model"]])?.part(&[4].into())?[..], [1]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error for an unknown or repeated name.
    pub fn sharding<A: Into<MeshAxes>>(
        &self,
        along: impl IntoIterator<Item = A>,
    ) -> Result<Sharding> {
        Sharding::new(self, along.into_iter().map(|along| along.into().0).collect())
    }

    /// Returns the sharding of tensors that every device holds completely.
    ///
    /// ```no_run
    /// use nxla::{Mesh, Tensor, sharding::shard};
    ///
    /// let everywhere = Mesh::new([("data", 2)])?.replicated();
    /// assert_eq!(shard(&Tensor::from([1, 2]), &everywhere)?.parts()[1].shape()[..], [2]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    pub fn replicated(&self) -> Sharding {
        Sharding { mesh: self.clone(), layout: Layout::new() }
    }

    fn size_of(&self, axis: &str) -> Option<usize> {
        self.0.axes.iter().find(|(name, _)| name == axis).map(|(_, size)| *size)
    }

    /// Returns the index of each device along each mesh axis, in the order of the devices.
    fn coordinates(&self) -> impl Iterator<Item = BTreeMap<&str, usize>> {
        (0..self.size()).map(|mut number| {
            let mut coordinates = BTreeMap::new();
            for (name, size) in self.0.axes.iter().rev() {
                coordinates.insert(name.as_str(), number % size);
                number /= size;
            }
            coordinates
        })
    }
}

/// Checks the axes of a mesh and returns the number of its devices.
fn size_of_axes(axes: &[(String, usize)]) -> Result<usize> {
    for (index, (name, size)) in axes.iter().enumerate() {
        let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(is_letter) {
            return wrong(format!(
                "axes: names must consist of letters, digits and _; got {name:?}"
            ));
        }
        if axes[..index].iter().any(|(other, _)| other == name) {
            return wrong(format!("axes: names must be distinct; got {name:?} twice"));
        }
        if *size == 0 {
            return wrong(format!("axes: size of {name:?} must be at least 1; got 0"));
        }
    }
    let product = axes.iter().try_fold(1usize, |product, (_, size)| product.checked_mul(*size));
    product.map_or_else(
        || {
            let sizes: Vec<usize> = axes.iter().map(|(_, size)| *size).collect();
            wrong(format!("axes: product of the sizes must fit in 64 bits; got {sizes:?}"))
        },
        Ok,
    )
}

fn wrong<T>(why: String) -> Result<T> {
    Err(Error::Options(format!("mesh: {why}")))
}

impl fmt::Display for Mesh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let axes: Vec<String> =
            self.0.axes.iter().map(|(name, size)| format!("{name}={size}")).collect();
        write!(f, "Mesh({})", axes.join(", "))
    }
}

impl fmt::Debug for Mesh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Axes of a mesh along which one axis of a tensor is divided.
#[derive(Clone, Debug)]
pub struct MeshAxes(Vec<String>);

impl From<&str> for MeshAxes {
    fn from(name: &str) -> Self {
        Self(vec![name.into()])
    }
}

impl From<Option<&str>> for MeshAxes {
    fn from(name: Option<&str>) -> Self {
        Self(name.into_iter().map(Into::into).collect())
    }
}

impl<const N: usize> From<[&str; N]> for MeshAxes {
    fn from(names: [&str; N]) -> Self {
        Self(names.into_iter().map(Into::into).collect())
    }
}

impl From<Vec<String>> for MeshAxes {
    fn from(names: Vec<String>) -> Self {
        Self(names)
    }
}

/// The division of tensors over a mesh; [`Mesh::sharding`] creates it.
#[derive(Clone, PartialEq, Eq)]
pub struct Sharding {
    mesh: Mesh,
    /// The mesh axes of each tensor axis, without empty entries at the end.
    layout: Layout,
}

impl Sharding {
    /// A sharding of this layout.
    ///
    /// # Errors
    /// Returns an error for a name that is unknown or repeated.
    pub fn new(mesh: &Mesh, mut layout: Layout) -> Result<Self> {
        let mut seen: Vec<&str> = Vec::new();
        for name in layout.iter().flatten() {
            if mesh.size_of(name).is_none() {
                let names: Vec<&str> = mesh.axes().iter().map(|(name, _)| name.as_str()).collect();
                let names = names.join(", ");
                return Err(Error::Options(format!(
                    "sharding: axes: must be axes of the mesh ({names}); got {name:?}"
                )));
            }
            if seen.contains(&name.as_str()) {
                return Err(Error::Options(format!(
                    "sharding: axes: must be distinct; got {name:?} twice"
                )));
            }
            seen.push(name);
        }
        while layout.last().is_some_and(Vec::is_empty) {
            layout.pop();
        }
        Ok(Self { mesh: mesh.clone(), layout })
    }

    /// The mesh.
    pub fn mesh(&self) -> &Mesh {
        &self.mesh
    }

    /// For each axis of a tensor the axes of the mesh along which it is divided.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns `true` if every device has the whole tensor.
    pub fn is_replicated(&self) -> bool {
        self.layout.is_empty()
    }

    /// Returns the shape of the part on one device.
    ///
    /// # Errors
    /// Returns an error if an axis cannot be divided into equal parts, or if the tensor has too few axes.
    pub fn part(&self, shape: &Shape) -> Result<Shape> {
        let axes = self.layout.len();
        if axes > shape.rank() {
            let why =
                format!("tensor must have at least {axes} axes for {self}; got {}", shape.rank());
            return Err(Error::Layout(why));
        }
        let mut sizes: Vec<usize> = shape.iter().copied().collect();
        for (axis, along) in self.layout.iter().enumerate() {
            let count: usize = along.iter().filter_map(|name| self.mesh.size_of(name)).product();
            if !sizes[axis].is_multiple_of(count) {
                let along: Vec<String> = along.iter().map(|name| format!("{name:?}")).collect();
                return Err(Error::Layout(format!(
                    "axis {axis} of shape {shape} must be divisible into {count} equal parts along {}",
                    along.join(" and ")
                )));
            }
            sizes[axis] /= count;
        }
        Ok(Shape::from(sizes))
    }

    /// Returns for each device of the mesh the start of its part along each axis of a tensor.
    ///
    /// # Errors
    /// Returns the errors of [`Sharding::part`].
    pub fn starts(&self, shape: &Shape) -> Result<Vec<Vec<usize>>> {
        let part = self.part(shape)?;
        let start = |coordinates: &BTreeMap<&str, usize>, axis: usize| {
            let along = self.layout.get(axis).map_or(&[][..], Vec::as_slice);
            let number = along.iter().fold(0, |number, name| {
                number * self.mesh.size_of(name).unwrap_or(1) + coordinates[name.as_str()]
            });
            number * part[axis]
        };
        let of_device =
            |coordinates| (0..shape.rank()).map(|axis| start(&coordinates, axis)).collect();
        Ok(self.mesh.coordinates().map(of_device).collect())
    }

    /// Sends each device only its part of a tensor.
    ///
    /// # Errors
    /// Returns the errors of [`Sharding::part`] and of transfers, and an error for vectorized axes.
    pub fn divide(&self, whole: &RawTensor) -> Result<Vec<RawTensor>> {
        if !whole.vectors().is_empty() {
            return Err(Error::Layout("tensor must not have vectorized axes".into()));
        }
        let devices = self.mesh.devices()?;
        let (part, starts) = (self.part(whole.shape())?, self.starts(whole.shape())?);
        if self.is_replicated() {
            return devices.iter().map(|device| whole.on(device)).collect();
        }
        let whole = whole.to_host()?;
        let mut known: BTreeMap<Vec<usize>, RawTensor> = BTreeMap::new();
        let mut parts = Vec::with_capacity(devices.len());
        for (start, device) in starts.into_iter().zip(&devices) {
            let there = match known.get(&start) {
                Some(part) => part.clone(),
                None => {
                    let taken = RawTensor::Host(copy_part(&whole, &part, &start)?);
                    known.entry(start).or_insert(taken).clone()
                }
            };
            parts.push(there.on(device)?);
        }
        Ok(parts)
    }

    /// The whole tensor of this shape, on the host. Each part is read once, from the first device
    /// that has it.
    ///
    /// # Errors
    /// Returns errors of the computations of the parts, and an error for a wrong number of
    /// parts, or parts of wrong shapes.
    pub fn gather(&self, parts: &[RawTensor], shape: &Shape) -> Result<HostTensor> {
        let (part, starts) = (self.part(shape)?, self.starts(shape)?);
        if parts.len() != starts.len() || parts.iter().any(|each| *each.shape() != part) {
            let expected = starts.len();
            let found: Vec<String> = parts.iter().map(|each| each.shape().to_string()).collect();
            let why = format!(
                "parts: must be {expected} of shape {part} for a tensor of shape {shape}; got {} of \
                 shapes [{}]",
                found.len(),
                found.join(", ")
            );
            return Err(Error::Layout(why));
        }
        let mut distinct: BTreeMap<&[usize], HostTensor> = BTreeMap::new();
        for (start, each) in starts.iter().zip(parts) {
            if !distinct.contains_key(start.as_slice()) {
                distinct.insert(start, each.to_host()?);
            }
        }
        let (dtype, names) = (parts[0].dtype(), parts[0].names().cloned());
        let whole: Result<HostTensor> = HostTensor::from_writer(dtype, shape.clone(), |bytes| {
            for (start, each) in &distinct {
                for (here, there) in runs(dtype, shape, &part, start) {
                    bytes[there].copy_from_slice(&each.bytes()[here]);
                }
            }
            Ok(())
        });
        Ok(whole?.with_names(names)?)
    }

    /// The sharding annotation for a value of `rank` axes.
    pub fn note(&self, rank: usize) -> String {
        sharding_note(&self.layout, rank)
    }
}

impl fmt::Display for Sharding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let axes = self.layout.iter().map(|along| match &along[..] {
            [] => "None".to_owned(),
            [name] => format!("{name:?}"),
            several => format!("{several:?}"),
        });
        write!(f, "Sharding({})", axes.collect::<Vec<_>>().join(", "))
    }
}

impl fmt::Debug for Sharding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} over {}", self.mesh)
    }
}

/// Copies a part of a tensor.
fn copy_part(whole: &HostTensor, part: &Shape, start: &[usize]) -> Result<HostTensor> {
    let dtype = whole.dtype();
    let copy: Result<HostTensor> = HostTensor::from_writer(dtype, part.clone(), |bytes| {
        for (here, there) in runs(dtype, whole.shape(), part, start) {
            bytes[here].copy_from_slice(&whole.bytes()[there]);
        }
        Ok(())
    });
    Ok(copy?.with_names(whole.names().cloned())?)
}

/// Returns the runs of contiguous elements of a part: the byte range of each in the part and in the
/// whole tensor.
fn runs<'a>(
    dtype: DType,
    whole: &'a Shape,
    part: &'a Shape,
    start: &'a [usize],
) -> impl Iterator<Item = (Range<usize>, Range<usize>)> + 'a {
    // The last divided axis; the axes after it are contiguous in the part.
    let inner = (0..part.rank()).rev().find(|&axis| part[axis] != whole[axis]).unwrap_or(0);
    let length = Shape::from(&part[inner..]).size();
    let count = part.size().checked_div(length).unwrap_or(0);
    let bytes = move |element: usize| element * dtype.size()..(element + length) * dtype.size();
    (0..count).map(move |run| {
        let mut index: Vec<usize> = start.to_vec();
        let mut number = run;
        for axis in (0..inner).rev() {
            index[axis] += number % part[axis];
            number /= part[axis];
        }
        let first =
            index.iter().zip(whole.iter()).fold(0, |first, (index, size)| first * size + index);
        (bytes(run * length), bytes(first))
    })
}
