//! The canonical form of a program as bytes, and the digest that identifies it.
//!
//! The inputs, the nodes in id order (operation, operands as distances back), the outputs and the
//! hooks are written with `postcard`. The digest is the BLAKE3 hash of that; a region contributes its
//! own digest, so a program is hashed in time linear in its own nodes however deep or shared its
//! regions are. The encoding of an op is its place in the enum. Reordering [`Op`] or its attributes
//! therefore calls for a new [`FORMAT`].

use std::fmt;

use serde::Serialize;

use super::ids::ExprId;
use super::op::Op;
use super::program::{Roots, empty_program};
use super::store::Graph;
use super::types::TensorType;

/// The version of the encoding; bytes of another version are refused.
pub const FORMAT: u16 = 5;

/// How much is written before it is handed to the hash.
const CHUNK: usize = 1 << 14;

/// The identity of a program: equal for structurally equal programs, in every process.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(pub [u8; 32]);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The digest of the program with these parts.
pub(super) fn digest_of(graph: &Graph, inputs: &[TensorType], roots: &Roots<'_>) -> Digest {
    let mut hasher = blake3::Hasher::new();
    let mut writer = Writer::default();
    writer.put(&("nxla program", FORMAT));
    writer.put(&inputs);
    writer.put(&graph.len());
    for id in graph.ids() {
        let op = graph.op(id);
        writer.op(op);
        for region in op.regions() {
            writer.put(&region.digest().0);
        }
        writer.operands(graph, id);
        if writer.bytes.len() >= CHUNK {
            hasher.update(&writer.bytes);
            writer.bytes.clear();
        }
    }
    writer.roots(roots.outputs);
    writer.roots(roots.effects);
    hasher.update(&writer.bytes);
    Digest(*hasher.finalize().as_bytes())
}

/// Bytes that are being written.
#[derive(Default)]
pub(crate) struct Writer {
    pub(crate) bytes: Vec<u8>,
}

impl Writer {
    pub(crate) fn put<T: Serialize + ?Sized>(&mut self, value: &T) {
        postcard::serialize_with_flavor(value, &mut *self)
            .expect("every written type knows its length, and memory cannot refuse");
    }

    /// An operation with its regions left empty.
    pub(crate) fn op(&mut self, op: &Op) {
        if op.regions().is_empty() {
            self.put(op);
        } else {
            self.put(&op.map_regions(|_| empty_program()));
        }
    }

    pub(crate) fn operands(&mut self, graph: &Graph, id: ExprId) {
        let operands = graph.operands(id);
        self.put(&operands.len());
        for operand in operands {
            // Wraps only in a corrupt graph, whose digest verification asks for.
            self.put(&id.index().wrapping_sub(operand.index()));
        }
    }

    pub(crate) fn roots(&mut self, roots: &[ExprId]) {
        self.put(&roots.len());
        for root in roots {
            self.put(&root.index());
        }
    }
}

impl postcard::ser_flavors::Flavor for &mut Writer {
    type Output = ();

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.bytes.push(byte);
        Ok(())
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}
