//! Sharded tensors.

use std::fmt;

use nxla_expr::TensorType;
use nxla_runtime::{self as runtime, Result, Sharding};
use nxla_tensor::{DType, Shape};

use super::shardings::Shardings;
use crate::containers::{
    Arguments, Container, Leaves, Tree, leaves_of_arguments, paths_of, relative_path,
};
use crate::tensor::Tensor;

/// A tensor with a part on each device of a mesh. [`shard`] and functions over a mesh return
/// sharded tensors.
///
/// Functions over the mesh use the parts without moving them.
///
/// ```no_run
/// use nxla::sharding::{ShardedTensor, shard};
/// use nxla::{Mesh, Tensor};
///
/// let rows = Mesh::new([("data", 2)])?.sharding(["data"])?;
/// let x: ShardedTensor = shard(&Tensor::from([[1, 2], [3, 4]]), &rows)?;
/// assert_eq!((x.shape()[..].to_vec(), x.parts()[1].to_vec::<i32>()?), (vec![2, 2], vec![3, 4]));
/// # Ok::<(), nxla::Error>(())
/// ```
#[derive(Clone)]
pub struct ShardedTensor {
    ty: TensorType,
    sharding: Sharding,
    parts: Vec<runtime::RawTensor>,
}

impl ShardedTensor {
    pub(super) fn new(
        ty: TensorType,
        sharding: Sharding,
        parts: Vec<runtime::RawTensor>,
    ) -> ShardedTensor {
        ShardedTensor { ty, sharding, parts }
    }

    /// Divides a tensor: each device receives only its part.
    fn divide(whole: &Tensor, sharding: &Sharding) -> Result<ShardedTensor> {
        let parts = sharding.divide(whole)?;
        Ok(ShardedTensor { ty: whole.ty(), sharding: sharding.clone(), parts })
    }

    /// Returns dtype, shape and axis names of the whole tensor.
    ///
    /// ```no_run
    /// use nxla::{Mesh, Tensor, sharding::shard};
    ///
    /// let rows = Mesh::new([("data", 2)])?.sharding(["data"])?;
    /// let x = shard(&Tensor::from([1, 2, 3, 4]), &rows)?;
    /// assert_eq!((x.ty().to_string(), x.parts()[0].ty().to_string()), ("s32[4]".into(), "s32[2]".into()));
    /// # Ok::<(), nxla::Error>(())
    /// ```
    pub fn ty(&self) -> &TensorType {
        &self.ty
    }

    /// Returns the shape of the whole tensor.
    ///
    /// ```no_run
    /// use nxla::{Mesh, Tensor, sharding::shard};
    ///
    /// let rows = Mesh::new([("data", 2)])?.sharding(["data"])?;
    /// assert_eq!(shard(&Tensor::from([1, 2, 3, 4]), &rows)?.shape()[..], [4]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    pub fn shape(&self) -> &Shape {
        &self.ty.shape
    }

    /// Returns the element type.
    ///
    /// ```no_run
    /// use nxla::{DType, Mesh, Tensor, sharding::shard};
    ///
    /// let rows = Mesh::new([("data", 2)])?.sharding(["data"])?;
    /// assert_eq!(shard(&Tensor::from([1, 2]), &rows)?.dtype(), DType::S32);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    pub fn dtype(&self) -> DType {
        self.ty.dtype
    }

    /// Returns the sharding.
    ///
    /// ```no_run
    /// use nxla::{Mesh, Tensor, sharding::shard};
    ///
    /// let rows = Mesh::new([("data", 2)])?.sharding(["data"])?;
    /// assert_eq!(shard(&Tensor::from([1, 2]), &rows)?.sharding(), &rows);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    pub fn sharding(&self) -> &Sharding {
        &self.sharding
    }

    /// Returns the part of each device, in the order of the mesh.
    ///
    /// ```no_run
    /// use nxla::{Mesh, Tensor, sharding::shard};
    ///
    /// let rows = Mesh::new([("data", 2)])?.sharding(["data"])?;
    /// let x = shard(&Tensor::from([1, 2, 3, 4]), &rows)?;
    /// assert_eq!(x.parts()[1].to_vec::<i32>()?, [3, 4]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    pub fn parts(&self) -> &[runtime::RawTensor] {
        &self.parts
    }

    /// Copies the whole tensor to the host. Each part is read once, from the first device that has
    /// it.
    ///
    /// ```no_run
    /// use nxla::{Mesh, Tensor, sharding::shard};
    ///
    /// let rows = Mesh::new([("data", 2)])?.sharding(["data"])?;
    /// let x = shard(&Tensor::from([1, 2, 3, 4]), &rows)?;
    /// assert_eq!(x.gather()?.to_vec::<i32>()?, [1, 2, 3, 4]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the error of a failed computation.
    pub fn gather(&self) -> Result<Tensor> {
        Ok(self.sharding.gather(&self.parts, &self.ty.shape)?.into())
    }
}

/// Writes the type and the range of each device's part.
impl fmt::Debug for ShardedTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "#nxla.ShardedTensor<\n  {}, {:?}", self.ty, self.sharding)?;
        let starts = self.sharding.starts(&self.ty.shape).unwrap_or_default();
        for (part, start) in self.parts.iter().zip(starts) {
            let ranges = start.iter().zip(part.shape().iter());
            let ranges: Vec<String> =
                ranges.map(|(at, size)| format!("{at}:{}", at + size)).collect();
            writeln!(f, "  {}: [{}]", part.device(), ranges.join(", "))?;
        }
        f.write_str(">")
    }
}

impl fmt::Display for ShardedTensor {
    /// Writes the type, the sharding and the ranges on each device, as `{:?}` does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// An argument for a tensor of a function over a mesh: a sharded tensor is not moved, and another
/// tensor is copied to every device.
///
/// ```
/// use nxla::sharding::ShardedArgument;
/// use nxla::{Arguments, Expr, Leaves, Tensor};
///
/// let mut leaves: Leaves<ShardedArgument> = Leaves::default();
/// Arguments::<Expr, ShardedArgument>::append(Tensor::from([1, 2]), &mut leaves);
/// assert!(matches!(leaves.leaf(), ShardedArgument::Whole(_)));
/// ```
#[derive(Clone, Debug)]
pub enum ShardedArgument {
    /// A whole tensor.
    Whole(Tensor),
    /// A sharded tensor.
    Sharded(ShardedTensor),
}

impl ShardedArgument {
    pub(super) fn ty(&self) -> TensorType {
        match self {
            ShardedArgument::Whole(tensor) => tensor.ty(),
            ShardedArgument::Sharded(tensor) => tensor.ty.clone(),
        }
    }

    /// Returns whether the tensor has this type and has, or will have, this sharding.
    pub(super) fn is_like(&self, ty: &TensorType, sharding: &Sharding) -> bool {
        match self {
            ShardedArgument::Whole(tensor) => tensor.ty() == *ty && sharding.is_replicated(),
            ShardedArgument::Sharded(tensor) => tensor.ty == *ty && tensor.sharding == *sharding,
        }
    }

    /// Returns the tensor sharded over the mesh.
    pub(super) fn over(self, mesh: &runtime::Mesh) -> Result<ShardedTensor> {
        match self {
            ShardedArgument::Whole(tensor) => ShardedTensor::divide(&tensor, &mesh.replicated()),
            ShardedArgument::Sharded(tensor) => Ok(tensor),
        }
    }

    /// Returns the current or future sharding.
    pub(super) fn sharding(&self, mesh: &runtime::Mesh) -> Sharding {
        match self {
            ShardedArgument::Whole(_) => mesh.replicated(),
            ShardedArgument::Sharded(tensor) => tensor.sharding.clone(),
        }
    }
}

/// Shards the tensors of a container over the devices of a mesh, as [`Shardings`] define. Each device
/// receives only its part.
///
/// ```no_run
/// use nxla::sharding::shard;
/// use nxla::{Container, Mesh, Tensor, TensorType};
///
/// #[derive(Container)]
/// struct Layer<T> {
///     weights: T,
///     offset: T,
/// }
///
/// let mesh = Mesh::new([("model", 2)])?;
/// let layer = Layer { weights: Tensor::from([[1, 2], [3, 4]]), offset: Tensor::from([5, 6]) };
/// let layer = shard(&layer, |path: &str, _: &TensorType| match path {
///     "weights" => mesh.sharding([None, Some("model")]),
///     _ => mesh.sharding(["model"]),
/// })?;
/// assert_eq!(layer.weights.parts()[0].to_vec::<i32>()?, [1, 3]);
/// assert_eq!(layer.offset.parts()[1].to_vec::<i32>()?, [6]);
/// # Ok::<(), nxla::Error>(())
/// ```
///
/// # Errors
/// Returns an error for an axis that cannot be divided into equal parts and for vectorized axes,
/// and the errors of the shardings.
pub fn shard<C: Container, Kind>(
    container: impl Arguments<C, Tensor>,
    shardings: impl Shardings<Kind>,
) -> Result<C::Sharded> {
    let leaves = leaves_of_arguments(container);
    let paths = paths_of(&C::Tensors::rebuild(&mut leaves.clone()), "");
    let mut divided = Vec::with_capacity(paths.len());
    for (path, whole) in paths.iter().zip(&leaves.items) {
        let sharding = shardings.sharding_of(relative_path(path), &whole.ty())?;
        divided.push(ShardedTensor::divide(whole, &sharding)?);
    }
    Ok(Tree::rebuild(&mut Leaves::new(divided, leaves.structure)))
}
