//! Copies, transfers and deallocation of whole containers of tensors.

use nxla_runtime::{Device, RawTensor};

use crate::containers::{Leaves, Tree, leaves_of};
use crate::tensor::Tensor;
use crate::{Error, Result};

/// Copies the tensors of a container to a device; the originals stay where they are.
///
/// ```
/// use nxla::{Device, Tensor, backend_copy};
///
/// let pair = (Tensor::from(1), [Tensor::from(2), Tensor::from(3)]);
/// let (_, [_, third]) = backend_copy(&pair, &Device::HOST)?;
/// assert_eq!(third.item::<i32>()?, 3);
/// # Ok::<(), nxla::Error>(())
/// ```
///
/// # Errors
/// Returns the first error of [`Tensor::copy_to`].
pub fn backend_copy<C: Tree<Tensor>>(container: &C, device: &Device) -> Result<C> {
    let leaves = leaves_of(container);
    let copies = leaves.items.iter().map(|tensor| tensor.copy_to(device));
    let copies = copies.collect::<Result<Vec<Tensor>>>()?;
    Ok(C::rebuild(&mut Leaves::new(copies, leaves.structure)))
}

/// Moves the tensors of a container to a device and frees them where they were. A tensor that is
/// on the device already stays as it is. Tensors that share memory share it on the device too.
///
/// ```
/// use nxla::{Device, Tensor, backend_transfer};
///
/// let moved = backend_transfer(vec![Tensor::from(1), Tensor::from(2)], &Device::HOST)?;
/// assert_eq!(moved[1].item::<i32>()?, 2);
/// # Ok::<(), nxla::Error>(())
/// ```
///
/// # Errors
/// Returns the first error of [`Tensor::transfer_to`]. All originals are freed all the same.
pub fn backend_transfer<C: Tree<Tensor>>(container: C, device: &Device) -> Result<C> {
    let leaves = leaves_of(&container);
    drop(container);
    let tensors: Vec<RawTensor> = leaves.items.iter().map(|tensor| (**tensor).clone()).collect();
    let moved = RawTensor::transfer_all(&tensors, device)?.into_iter().map(Tensor::from);
    Ok(C::rebuild(&mut Leaves::new(moved, leaves.structure)))
}

/// Frees the device memory of all tensors of a container. Returns whether any tensor had device
/// memory that was not freed before.
///
/// ```
/// use nxla::{Tensor, backend_deallocate};
///
/// assert!(!backend_deallocate(&[Tensor::from(1), Tensor::from(2)])?);
/// # Ok::<(), nxla::Error>(())
/// ```
///
/// # Errors
/// Returns the first error of the plugin. All tensors are freed all the same.
pub fn backend_deallocate<C: Tree<Tensor>>(container: &C) -> Result<bool> {
    let freed: Vec<Result<bool, Error>> =
        leaves_of(container).items.iter().map(|tensor| tensor.deallocate()).collect();
    Ok(freed.into_iter().collect::<Result<Vec<bool>>>()?.contains(&true))
}
