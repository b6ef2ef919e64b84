//! Functions over several devices: tensors that are sharded over a mesh.
//!
//! A [`Mesh`] arranges devices along named axes. A [`Sharding`] assigns mesh axes to the axes of a
//! tensor, which are divided along them. [`Jit::over`](crate::Jit::over) compiles a function of
//! whole tensors for all devices: XLA partitions the program by the shardings of its arguments, and
//! inserts communication between devices. Data parallelism is a sharded batch; tensor parallelism
//! is sharded weights.
//!
//! ```no_run
//! use nxla::sharding::shard;
//! use nxla::{Expr, Mesh, Tensor, jit};
//!
//! let mesh = Mesh::new([("batch", 2)])?;
//! let x = Tensor::from([[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]);
//! let x = shard(&x, &mesh.sharding(["batch"])?)?;
//! let f = jit(|w: Expr, x: Expr| x.dot(&w).sum()).over(&mesh);
//! let total = f.call((Tensor::from([1.0f32, 10.0]), &x))?;
//! assert_eq!(total.gather()?.item::<f32>()?, 216.0);
//! # Ok::<(), nxla::Error>(())
//! ```
//!
//! A CPU plugin can provide any number of devices, so all of this can be tried without special
//! hardware.

pub mod collectives;
mod function;
mod map;
mod shardings;
mod tensor;
mod varying;

use std::panic::Location;

pub use nxla_runtime::{Mesh, MeshAxes, Sharding};

pub use function::ShardedFunction;
pub use map::shard_map;
pub use shardings::{ByPath, Same, Shardings};
pub use tensor::{ShardedArgument, ShardedTensor, shard};

use crate::containers::{Container, leaves_of, trace_of};
use crate::expr::Expr;
use crate::ops::annotate_at;

/// Requests a sharding for values inside a function over a mesh. It has no effect on results, and
/// no effect elsewhere.
///
/// An axis that cannot be divided into equal parts is an error.
///
/// ```no_run
/// use nxla::sharding::{shard, with_sharding_constraint};
/// use nxla::{Expr, Mesh, Tensor, jit};
///
/// let mesh = Mesh::new([("data", 2)])?;
/// let rows = mesh.sharding(["data"])?;
/// let f = jit(move |x: Expr| with_sharding_constraint(x * 2, &rows).sum()).over(&mesh);
/// assert_eq!(f.call(Tensor::from([1, 2, 3, 4]))?.gather()?.item::<i32>()?, 20);
/// # Ok::<(), nxla::Error>(())
/// ```
#[must_use]
#[track_caller]
pub fn with_sharding_constraint<C: Container>(value: C, sharding: &Sharding) -> C {
    let location = Location::caller();
    let trace = trace_of(&leaves_of(&value).items);
    value.map(|leaf: &Expr| {
        let shape = leaf.shape();
        let fits = trace.attempt(location, || sharding.part(&shape));
        match fits {
            Some(_) => annotate_at(leaf.clone(), &sharding.note(shape.rank()), location),
            None => leaf.clone(),
        }
    })
}
