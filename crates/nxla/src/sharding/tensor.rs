//! Tensors of which each device of a mesh has a part.

use std::fmt;

use nxla_expr::TensorType;
use nxla_runtime::{self as runtime, Result, Sharding};
use nxla_tensor::{DType, Shape};

use super::layouts::{Layouts, bare};
use crate::containers::{Arguments, Container, Leaves, Tree};
use crate::tensor::Tensor;

/// A tensor of which each device of a mesh has a part; made by [`shard`], and by functions over a mesh.
///
/// Functions over the mesh take the parts where they are.
#[derive(Clone)]
pub struct ShardedTensor {
    ty: TensorType,
    sharding: Sharding,
    parts: Vec<runtime::Tensor>,
}

impl ShardedTensor {
    pub(super) fn new(
        ty: TensorType,
        sharding: Sharding,
        parts: Vec<runtime::Tensor>,
    ) -> ShardedTensor {
        ShardedTensor { ty, sharding, parts }
    }

    /// Divides a tensor: each device is sent its part and nothing else.
    fn divided(whole: &Tensor, sharding: &Sharding) -> Result<ShardedTensor> {
        let parts = sharding.divide(whole)?;
        Ok(ShardedTensor { ty: whole.ty(), sharding: sharding.clone(), parts })
    }

    /// Dtype, shape and axis names of the whole tensor.
    ///
    /// ```no_run
    /// use nxla::{Mesh, Tensor, sharding::shard};
    ///
    /// let rows = Mesh::of([("data", 2)])?.sharding(["data"])?;
    /// let x = shard(&Tensor::from([1, 2, 3, 4]), &rows)?;
    /// assert_eq!((x.ty().to_string(), x.parts()[0].ty().to_string()), ("s32[4]".into(), "s32[2]".into()));
    /// # Ok::<(), nxla::Error>(())
    /// ```
    pub fn ty(&self) -> &TensorType {
        &self.ty
    }

    /// The shape of the whole tensor.
    pub fn shape(&self) -> &Shape {
        &self.ty.shape
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.ty.dtype
    }

    /// How it is divided.
    pub fn sharding(&self) -> &Sharding {
        &self.sharding
    }

    /// What each device of the mesh has, in their order.
    pub fn parts(&self) -> &[runtime::Tensor] {
        &self.parts
    }

    /// The whole tensor on the host. Each part is read once, from the first device that has it.
    ///
    /// ```no_run
    /// use nxla::{Mesh, Tensor, sharding::shard};
    ///
    /// let rows = Mesh::of([("data", 2)])?.sharding(["data"])?;
    /// let x = shard(&Tensor::from([1, 2, 3, 4]), &rows)?;
    /// assert_eq!(x.gather()?.to_vec::<i32>()?, [1, 2, 3, 4]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// What the computation of a part ran into.
    pub fn gather(&self) -> Result<Tensor> {
        Ok(self.sharding.gather(&self.parts, &self.ty.shape)?.into())
    }
}

/// The type, and what each device has.
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

/// What a function over a mesh takes for a tensor: one that is divided stays where it is, of any other
/// every device is sent all.
#[derive(Clone, Debug)]
pub enum Given {
    /// A tensor as a whole.
    Whole(Tensor),
    /// A tensor that is divided.
    Sharded(ShardedTensor),
}

impl Given {
    pub(super) fn ty(&self) -> TensorType {
        match self {
            Given::Whole(tensor) => tensor.ty(),
            Given::Sharded(tensor) => tensor.ty.clone(),
        }
    }

    /// Whether it is of this type, and divided so or to be.
    pub(super) fn is_like(&self, ty: &TensorType, sharding: &Sharding) -> bool {
        match self {
            Given::Whole(tensor) => tensor.ty() == *ty && sharding.is_replicated(),
            Given::Sharded(tensor) => tensor.ty == *ty && tensor.sharding == *sharding,
        }
    }

    /// Divided in any case, over the mesh.
    pub(super) fn over(self, mesh: &runtime::Mesh) -> Result<ShardedTensor> {
        match self {
            Given::Whole(tensor) => ShardedTensor::divided(&tensor, &mesh.replicated()),
            Given::Sharded(tensor) => Ok(tensor),
        }
    }

    /// How it is divided, or will be.
    pub(super) fn sharding(&self, mesh: &runtime::Mesh) -> Sharding {
        match self {
            Given::Whole(_) => mesh.replicated(),
            Given::Sharded(tensor) => tensor.sharding.clone(),
        }
    }
}

/// Divides the tensors of a container among the devices of a mesh, as [`Layouts`] say. Each device is
/// sent its part and nothing else.
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
/// let mesh = Mesh::of([("model", 2)])?;
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
/// An axis that cannot be divided into equal parts; vectorized axes; those of the layouts.
pub fn shard<C: Container, Kind>(
    container: impl Arguments<C, Tensor>,
    layouts: impl Layouts<Kind>,
) -> Result<C::Sharded> {
    let mut leaves = Leaves::default();
    container.append(&mut leaves);
    let mut paths = Vec::new();
    C::Tensors::rebuild(&mut leaves.clone()).paths("", &mut paths);
    let mut divided = Vec::with_capacity(paths.len());
    for (path, whole) in paths.iter().zip(&leaves.items) {
        let sharding = layouts.sharding_of(bare(path), &whole.ty())?;
        divided.push(ShardedTensor::divided(whole, &sharding)?);
    }
    Ok(Tree::rebuild(&mut Leaves::new(divided, leaves.structure)))
}
