//! Host functions: Rust code that compiled programs call.
//!
//! A program calls one with
//!
//! ```mlir
//! %y = stablehlo.custom_call @nxla_host_call(%x) {
//!   api_version = 4 : i32, backend_config = {id = 7 : i64}
//! } : (tensor<4xf32>) -> tensor<4xf32>
//! ```
//!
//! One handler serves all calls of all programs; the attribute `id` selects the function, first
//! in the table of the execution ([`ExecuteOptions::host_calls`](crate::ExecuteOptions)), then in
//! the process-wide one ([`register_host_fn`]). Other attributes are passed to the function. A
//! call that must not be removed when its results are unused needs `has_side_effect = true`.
//!
//! Functions run on XLA's own threads. A CPU client has about one thread per core, and other work
//! of the client waits for these threads, so a function should return soon. A function that waits
//! for another program of the same client, directly or through another thread, can wait forever.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use nxla_tensor::{DType, HostTensor, Shape};

use crate::transfer::NEW_IS_UNIQUE;

/// The name that programs call host functions by.
pub const HOST_CALL_TARGET: &str = "nxla_host_call";

/// A function that compiled programs can call. Closures are host functions.
///
/// It is called from several threads at once if programs run at once. The text of an error ends
/// up in the error of the execution, which every read of a result returns. A panic counts as an
/// error.
pub trait HostHandler: Send + Sync {
    /// Reads the arguments and fills all results.
    ///
    /// # Errors
    /// Returns the error of the function.
    fn call(&self, call: &mut HostCallFrame<'_>) -> Result<(), String>;
}

impl<F> HostHandler for F
where
    F: Fn(&mut HostCallFrame<'_>) -> Result<(), String> + Send + Sync,
{
    fn call(&self, call: &mut HostCallFrame<'_>) -> Result<(), String> {
        self(call)
    }
}

/// A call of a host function by a running program.
#[derive(Debug)]
pub struct HostCallFrame<'a> {
    /// The arguments.
    pub args: Vec<HostView<'a>>,
    /// The results; their memory holds arbitrary bytes until it is written.
    pub results: Vec<HostViewMut<'a>>,
    /// The attributes, `id` among them, in order of name.
    pub attributes: Vec<(&'a str, HostAttribute<'a>)>,
}

/// An attribute of a call. Attributes of other kinds are not passed on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum HostAttribute<'a> {
    /// An integer of any width.
    Int(i64),
    /// A number of any width.
    Float(f64),
    /// A boolean.
    Bool(bool),
    /// A string.
    Str(&'a str),
}

impl<'a> HostCallFrame<'a> {
    /// The attribute called `name`.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<HostAttribute<'a>> {
        self.attributes.iter().find(|(key, _)| *key == name).map(|(_, value)| *value)
    }
}

/// An argument in the memory of a running program, in row-major order.
#[derive(Clone, Debug)]
pub struct HostView<'a> {
    /// The element type.
    pub dtype: DType,
    /// The shape.
    pub shape: Shape,
    /// The elements. Sub-byte integers are packed, see [`HostView::to_tensor`].
    pub bytes: &'a [u8],
}

impl HostView<'_> {
    /// Copies the argument to a tensor, which holds one byte for each sub-byte integer.
    #[must_use]
    pub fn to_tensor(&self) -> HostTensor {
        let mut tensor = HostTensor::scratch(self.dtype, &self.shape)
            .expect("the argument is in memory, so its size fits");
        unpack(self.dtype, self.bytes, tensor.try_unique_mut().expect(NEW_IS_UNIQUE));
        tensor
    }
}

/// A result in the memory of a running program, in row-major order.
#[derive(Debug)]
pub struct HostViewMut<'a> {
    /// The element type.
    pub dtype: DType,
    /// The shape.
    pub shape: Shape,
    /// The elements to write. Sub-byte integers are packed, see [`HostViewMut::write`].
    pub bytes: &'a mut [u8],
}

impl HostViewMut<'_> {
    /// Copies a tensor to the result.
    ///
    /// # Errors
    /// Returns an error if the tensor has another type or shape.
    pub fn write(&mut self, tensor: &HostTensor) -> Result<(), String> {
        if tensor.dtype() != self.dtype || tensor.shape() != &self.shape {
            return Err(format!(
                "the host function returned {}{} where the program expects {}{}",
                tensor.dtype(),
                tensor.shape(),
                self.dtype,
                self.shape
            ));
        }
        pack(self.dtype, tensor.bytes(), self.bytes);
        Ok(())
    }
}

/// Bytes of `size` elements as a running program stores them.
pub(crate) fn stored_size(dtype: DType, size: usize) -> usize {
    match elements_per_byte(dtype) {
        1 => size.saturating_mul(dtype.size()),
        packed => size.div_ceil(packed),
    }
}

/// The number of elements that share a byte in a running program.
const fn elements_per_byte(dtype: DType) -> usize {
    if dtype.bits() < 8 { 8 / dtype.bits() as usize } else { 1 }
}

/// Spreads elements that share bytes, the first in the lowest bits, to one byte each.
fn unpack(dtype: DType, packed: &[u8], bytes: &mut [u8]) {
    let per_byte = elements_per_byte(dtype);
    if per_byte == 1 {
        return bytes.copy_from_slice(packed);
    }
    let bits = dtype.bits();
    for (index, to) in bytes.iter_mut().enumerate() {
        let high = packed[index / per_byte] << (8 - bits * (index % per_byte) as u32 - bits);
        // Shifting down again fills with zeros or with the sign.
        *to = if dtype.is_signed() { (high as i8 >> (8 - bits)) as u8 } else { high >> (8 - bits) };
    }
}

/// The inverse of [`unpack`].
fn pack(dtype: DType, bytes: &[u8], packed: &mut [u8]) {
    let per_byte = elements_per_byte(dtype);
    if per_byte == 1 {
        return packed.copy_from_slice(bytes);
    }
    let bits = dtype.bits();
    let mask = u8::MAX >> (8 - bits);
    for (to, group) in packed.iter_mut().zip(bytes.chunks(per_byte)) {
        let shift = |(index, byte): (u32, &u8)| (byte & mask) << (bits * index);
        *to = (0..).zip(group).map(shift).fold(0, |all, element| all | element);
    }
}

/// Host functions by the `id` that programs call them with.
#[derive(Default)]
pub struct HostCallTable {
    functions: RwLock<BTreeMap<i64, Arc<dyn HostHandler>>>,
}

impl HostCallTable {
    /// An empty table.
    #[must_use]
    pub const fn new() -> HostCallTable {
        HostCallTable { functions: RwLock::new(BTreeMap::new()) }
    }

    /// Adds a function, and returns the one that had the id before.
    pub fn insert(&self, id: i64, function: Arc<dyn HostHandler>) -> Option<Arc<dyn HostHandler>> {
        self.functions.write().unwrap_or_else(PoisonError::into_inner).insert(id, function)
    }

    /// The function with an id.
    #[must_use]
    pub fn get(&self, id: i64) -> Option<Arc<dyn HostHandler>> {
        self.functions.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }
}

impl std::fmt::Debug for HostCallTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let functions = self.functions.read().unwrap_or_else(PoisonError::into_inner);
        f.debug_set().entries(functions.keys()).finish()
    }
}

/// The functions that every program of the process can call.
pub(crate) static PROCESS_WIDE: HostCallTable = HostCallTable::new();

/// Makes a function callable for all programs of the process, and returns the one that had the id
/// before. Programs find the function when they run, so it may come and go after compilation.
///
/// Functions that belong to one execution, such as hooks with their own state, are better given
/// with [`ExecuteOptions::host_calls`](crate::ExecuteOptions).
pub fn register_host_fn(id: i64, function: Arc<dyn HostHandler>) -> Option<Arc<dyn HostHandler>> {
    PROCESS_WIDE.insert(id, function)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_round_trips() {
        for (dtype, elements, expected) in [
            (DType::U4, &[1, 2, 15][..], &[0x21, 0x0f][..]),
            (DType::S4, &[0xff, 7, 0xf8], &[0x7f, 0x08]),
            (DType::U2, &[0, 1, 2, 3, 3], &[0b1110_0100, 3]),
            (DType::S2, &[0xff, 0xfe, 1], &[0b0001_1011]),
            (DType::U16, &[1, 2, 3, 4], &[1, 2, 3, 4]),
            (DType::U4, &[], &[]),
        ] {
            let mut packed = vec![0; expected.len()];
            pack(dtype, elements, &mut packed);
            assert_eq!(packed, expected, "{dtype}");
            let mut unpacked = vec![0; elements.len()];
            unpack(dtype, &packed, &mut unpacked);
            assert_eq!(unpacked, elements, "{dtype}");
        }
    }

    #[test]
    fn stored_sizes_round_up() {
        assert_eq!(stored_size(DType::S4, 3), 2);
        assert_eq!(stored_size(DType::U2, 4), 1);
        assert_eq!(stored_size(DType::C128, 3), 48);
        assert_eq!(stored_size(DType::U2, 0), 0);
    }

    #[test]
    fn insert_returns_the_replaced_function() {
        let table = HostCallTable::new();
        let function: Arc<dyn HostHandler> = Arc::new(|_: &mut HostCallFrame<'_>| Ok(()));
        assert!(table.insert(1, function.clone()).is_none());
        assert!(table.insert(1, function).is_some());
        assert!(table.get(1).is_some() && table.get(2).is_none());
    }
}
