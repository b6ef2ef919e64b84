//! The canonical encoding of programs, and the digests that identify programs.
//!
//! `postcard` writes the inputs, the nodes in id order (op, and operands as distances to earlier
//! nodes), the outputs and the hooks. The digest is the BLAKE3 hash of these bytes. A region
//! contributes its digest, so hashing takes time linear in the number of own nodes. The encoding of
//! an op is its position in the enum. Reordering [`Op`] or its attributes therefore requires a new
//! [`FORMAT`] and a new [`DIGESTS`].
//!
//! Notes follow at the end if there are any, so programs without notes have the same digests as in
//! versions without notes.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::ids::ExprId;
use super::notes::{Note, Notes};
use super::op::Op;
use super::program::{Roots, empty_program};
use super::store::Graph;
use super::types::TensorType;

/// The version of the encoding; bytes of later versions are rejected.
pub const FORMAT: u16 = 6;

/// The earliest version that can be read. It has no notes and is otherwise equal.
pub const OLDEST: u16 = 5;

/// The version of digests: the first [`FORMAT`] that has the same digests.
const DIGESTS: u16 = 5;

/// The number of bytes that are collected before they are hashed.
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

/// Returns the digest of the program with these parts.
pub(super) fn digest_of(graph: &Graph, inputs: &[TensorType], roots: &Roots<'_>) -> Digest {
    let mut hasher = blake3::Hasher::new();
    let mut writer = Writer::default();
    writer.put(&("nxla program", DIGESTS));
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
    if graph.ids().any(|id| notes_of(graph.op(id)).is_some()) {
        writer.notes(graph);
    }
    hasher.update(&writer.bytes);
    Digest(*hasher.finalize().as_bytes())
}

/// Returns the notes of a node.
pub(crate) fn notes_of(op: &Op) -> Option<&Notes> {
    match op {
        Op::Metadata(metadata) if !metadata.notes.is_empty() => Some(&metadata.notes),
        _ => None,
    }
}

/// The head of an encoded note: a scalar note, or the number of items that follow.
#[derive(Serialize, Deserialize)]
pub(crate) enum NoteHead {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Arc<str>),
    List(usize),
    Map(usize),
    /// The identity of a value of the host language, for digests alone.
    Host(u64),
}

/// Bytes that are being written.
#[derive(Default)]
pub(crate) struct Writer {
    pub(crate) bytes: Vec<u8>,
}

impl Writer {
    pub(crate) fn put<T: Serialize + ?Sized>(&mut self, value: &T) {
        postcard::serialize_with_flavor(value, &mut *self)
            .expect("every serialized type has a known length, and writing to memory cannot fail");
    }

    /// Writes an op with its regions left empty.
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
            // Wraps around only in a corrupt graph, whose digest `verify` computes.
            self.put(&id.index().wrapping_sub(operand.index()));
        }
    }

    /// Writes the number of nodes with notes, and for each its index and its notes.
    pub(crate) fn notes(&mut self, graph: &Graph) {
        let noted = || graph.ids().filter_map(|id| Some((id, notes_of(graph.op(id))?)));
        self.put(&noted().count());
        for (id, notes) in noted() {
            self.put(&id.index());
            self.put(&notes.len());
            self.note_map(notes);
        }
    }

    fn note_map(&mut self, notes: &Notes) {
        for (name, note) in notes {
            self.put(name);
            self.note(note);
        }
    }

    /// The recursion depth is the depth of notes, which type inference limits.
    fn note(&mut self, note: &Note) {
        match note {
            Note::Null => self.put(&NoteHead::Null),
            Note::Bool(value) => self.put(&NoteHead::Bool(*value)),
            Note::Int(value) => self.put(&NoteHead::Int(*value)),
            Note::Float(value) => self.put(&NoteHead::Float(*value)),
            Note::Text(text) => self.put(&NoteHead::Text(text.clone())),
            Note::List(items) => {
                self.put(&NoteHead::List(items.len()));
                items.iter().for_each(|item| self.note(item));
            }
            Note::Map(notes) => {
                self.put(&NoteHead::Map(notes.len()));
                self.note_map(notes);
            }
            Note::Host(note) => self.put(&NoteHead::Host(note.identity() as u64)),
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
