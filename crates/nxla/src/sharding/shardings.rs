//! Shardings of all tensors of a container.

use nxla_expr::TensorType;
use nxla_runtime::{Error, Result, Sharding};

use crate::containers::relative_path;

/// The shardings of the tensors of a container: one [`Sharding`] for all, a tuple with shardings
/// for each item of a tuple, or a function of the path of a tensor in the container (`weights`,
/// `layers[0].offset`) and of its type.
///
/// `Kind` only distinguishes these implementations.
///
/// ```no_run
/// use nxla::sharding::shard;
/// use nxla::{Mesh, Tensor};
///
/// let mesh = Mesh::new([("data", 2)])?;
/// let (rows, everywhere) = (mesh.sharding(["data"])?, mesh.replicated());
/// let (x, scale) = (Tensor::from([1, 2]), Tensor::from(3));
/// let pair = shard((&x, &scale), (&rows, &everywhere))?;
/// assert_eq!((pair.0.parts()[1].to_vec::<i32>()?, pair.1.parts()[1].to_vec::<i32>()?), (vec![2], vec![3]));
/// # Ok::<(), nxla::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not define shardings",
    note = "pass a `Sharding`, a tuple of them, or `|path: &str, ty: &TensorType| -> Result<Sharding>`"
)]
pub trait Shardings<Kind> {
    /// Returns the sharding of the tensor at a path of the container.
    ///
    /// # Errors
    /// Returns an error for a path without a sharding, and the errors of a function.
    fn sharding_of(&self, path: &str, ty: &TensorType) -> Result<Sharding>;
}

/// A single sharding for all tensors.
#[derive(Debug)]
pub enum Same {}

/// A sharding for each path.
#[derive(Debug)]
pub enum ByPath {}

impl Shardings<Same> for Sharding {
    fn sharding_of(&self, _: &str, _: &TensorType) -> Result<Sharding> {
        Ok(self.clone())
    }
}

impl Shardings<Same> for &Sharding {
    fn sharding_of(&self, _: &str, _: &TensorType) -> Result<Sharding> {
        Ok((*self).clone())
    }
}

impl<F> Shardings<ByPath> for F
where
    F: Fn(&str, &TensorType) -> Result<Sharding>,
{
    fn sharding_of(&self, path: &str, ty: &TensorType) -> Result<Sharding> {
        self(path, ty)
    }
}

macro_rules! tuples {
    ($($count:literal: $(($name:ident $kind:ident $index:tt))+;)*) => {
        $(
            impl<$($name: Shardings<$kind>, $kind),+> Shardings<($($kind,)+)> for ($($name,)+) {
                fn sharding_of(&self, path: &str, ty: &TensorType) -> Result<Sharding> {
                    let (item, rest) = item_of(path);
                    match item {
                        $(Some($index) => self.$index.sharding_of(rest, ty),)+
                        _ => Err(Error::Layout(format!(
                            "shardings must be one for each item; got {}, without one for {path:?}", $count
                        ))),
                    }
                }
            }
        )*
    };
}

tuples! {
    2: (A KA 0) (B KB 1);
    3: (A KA 0) (B KB 1) (C KC 2);
    4: (A KA 0) (B KB 1) (C KC 2) (D KD 3);
    5: (A KA 0) (B KB 1) (C KC 2) (D KD 3) (E KE 4);
    6: (A KA 0) (B KB 1) (C KC 2) (D KD 3) (E KE 4) (F KF 5);
}

/// Returns the index of a tuple item at the start of a path, and the rest of the path.
fn item_of(path: &str) -> (Option<usize>, &str) {
    let digits = path.find(|c: char| !c.is_ascii_digit()).unwrap_or(path.len());
    (path[..digits].parse().ok(), relative_path(&path[digits..]))
}
