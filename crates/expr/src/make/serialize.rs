//! Serialization of programs.
//!
//! The encoding is the one from which digests are computed. Instead of the digest of a region, the
//! bytes contain a table of all distinct programs, inner programs first, and a region is an index
//! into the table.
//!
//! Notable details:
//!
//! * Notes precede the nodes, so that earlier versions of the format can be read as well.
//! * Source lines and the options of the graph are serialized but not part of the digest.
//! * Host functions of hooks are not serialized; the hooks of a program from bytes have no default.
//! * `serde` on a [`Program`] supports only the empty program, which replaces a region while its op
//!   is written. Complete programs use [`to_bytes`]. Otherwise the derived implementations would
//!   nest programs without limit, and malicious input could overflow the stack.

mod read;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::graph::encode::{Writer, notes_of};
use crate::graph::{Digest, Error, ExprId, Graph, Line, Program, SourceId};

pub use crate::graph::encode::{FORMAT, OLDEST};
pub use read::from_bytes;

/// The first bytes of every serialized program.
const MAGIC: [u8; 4] = *b"nxla";

/// The length of magic bytes, version and checksum.
const HEADER: usize = MAGIC.len() + size_of::<u16>() + blake3::OUT_LEN;

/// An error in the bytes of a program.
#[derive(thiserror::Error)]
pub enum SerializeError {
    /// The bytes do not start like a serialized program.
    #[error("the bytes are not a serialized program")]
    NotAProgram,
    /// The bytes end inside the header.
    #[error("the bytes end after {length}, inside the header of {HEADER} bytes")]
    Truncated {
        /// The number of bytes.
        length: usize,
    },
    /// The version of the encoding is not supported.
    #[error("the program has format {found}, this version reads formats {OLDEST} to {FORMAT}")]
    Format {
        /// The version in the header.
        found: u16,
    },
    /// The checksum does not match: the bytes are damaged.
    #[error("the checksum does not match; the bytes are damaged or incomplete")]
    Checksum,
    /// The bytes cannot be decoded.
    #[error("{what} cannot be read; at byte {at}, {why}")]
    Malformed {
        /// The offset of the invalid value, or of the end of the bytes read so far.
        at: usize,
        /// The value that was read.
        what: &'static str,
        /// The violated requirement.
        why: String,
    },
    /// An operand that is not an earlier node.
    #[error("{node} uses a node {back} places before it, which does not exist")]
    Operand {
        /// The node.
        node: ExprId,
        /// The distance to the operand.
        back: u32,
    },
    /// An output or hook that is not a node.
    #[error("{what} {index} must be one of {count} nodes; got {node}")]
    Root {
        /// `output` or `hook`.
        what: &'static str,
        /// Its index.
        index: usize,
        /// The index of the node.
        node: u32,
        /// The number of nodes.
        count: usize,
    },
    /// A node that fails type inference.
    #[error("{node} is ill-typed: {error}")]
    IllTyped {
        /// The node.
        node: ExprId,
        /// The error of type inference.
        error: Box<Error>,
    },
    /// A node that equals an earlier node or is not simplified.
    #[error("{node} repeats another node or is not in simplified form")]
    NotSimplified {
        /// The node.
        node: ExprId,
    },
    /// A parameter that does not match the inputs.
    #[error("{node}: {why}")]
    Parameter {
        /// The node.
        node: ExprId,
        /// The violated requirement.
        why: &'static str,
    },
    /// The hooks are not listed in order.
    #[error("the hooks of a program are not listed in order")]
    Hooks,
    /// A region that is not an earlier program, or is nested too deep.
    #[error("{node}: region {region} {why}")]
    Region {
        /// The node.
        node: ExprId,
        /// The index of the region in the table of programs.
        region: u32,
        /// The violated requirement.
        why: &'static str,
    },
}

nxla_tensor::debug_as_message!(SerializeError);

/// Returns the name of the first note, in the program or in its regions, whose value stays in this
/// process ([`Note::Host`](crate::Note::Host)). Readers refuse the bytes of such a program.
pub fn host_note(program: &Program) -> Option<Arc<str>> {
    inner_first(program).into_iter().find_map(|program| {
        let graph = program.graph();
        let mut notes = graph.ids().filter_map(|id| notes_of(graph.op(id))).flatten();
        notes.find(|(_, note)| note.holds_host_value()).map(|(name, _)| name.clone())
    })
}

/// Serializes a program, for [`from_bytes`] in another process.
///
/// The bytes contain all regions (each distinct one once) and the source line of each node, but not
/// the host functions of hooks.
pub fn to_bytes(program: &Program) -> Vec<u8> {
    let programs = inner_first(program);
    let places: FxHashMap<Digest, u32> =
        (0..).zip(&programs).map(|(i, p)| (p.digest(), i)).collect();
    let mut writer = Writer::default();
    let mut files = Files::default();
    writer.put(&programs.len());
    for program in &programs {
        write_program(&mut writer, program, &places, &mut files);
    }
    let mut head = Writer::default();
    head.put(&files.names);

    let mut bytes = Vec::with_capacity(HEADER + head.bytes.len() + writer.bytes.len());
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&FORMAT.to_le_bytes());
    bytes.extend_from_slice(checksum(&[&head.bytes, &writer.bytes]).as_bytes());
    bytes.extend_from_slice(&head.bytes);
    bytes.extend_from_slice(&writer.bytes);
    bytes
}

fn checksum(parts: &[&[u8]]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize()
}

/// Returns a program and all programs inside it, each distinct one once, inner programs first.
fn inner_first(program: &Program) -> Vec<&Program> {
    fn regions(program: &Program) -> Vec<&Program> {
        let graph = program.graph();
        graph.ids().flat_map(|id| graph.op(id).regions()).map(Arc::as_ref).collect()
    }
    let mut order = Vec::new();
    let mut seen = rustc_hash::FxHashSet::default();
    seen.insert(program.digest());
    let mut stack = vec![(program, regions(program))];
    while let Some((program, waiting)) = stack.last_mut() {
        match waiting.pop() {
            Some(region) if seen.insert(region.digest()) => stack.push((region, regions(region))),
            Some(_) => {}
            None => {
                order.push(*program);
                stack.pop();
            }
        }
    }
    order
}

fn write_program(
    writer: &mut Writer,
    program: &Program,
    places: &FxHashMap<Digest, u32>,
    files: &mut Files,
) {
    let graph = program.graph();
    files.lines.clear();
    writer.put(&graph.options().reassociate_floats);
    writer.put(&program.inputs());
    writer.notes(graph);
    writer.put(&graph.len());
    for id in graph.ids() {
        let op = graph.op(id);
        writer.op(op);
        for region in op.regions() {
            writer.put(&places[&region.digest()]);
        }
        writer.operands(graph, id);
        writer.put(&files.line(graph, id));
    }
    writer.roots(program.outputs());
    writer.roots(program.effects());
}

/// A serialized line: zero if unknown, otherwise the file index plus one; and the line number.
type FileLine = (u32, u32);

/// The file names, each stored once.
#[derive(Default)]
struct Files {
    names: Vec<Arc<str>>,
    places: FxHashMap<Arc<str>, u32>,
    /// The known lines of the current graph, since looking up a line can be slow.
    lines: FxHashMap<SourceId, FileLine>,
}

impl Files {
    fn line(&mut self, graph: &Graph, id: ExprId) -> FileLine {
        let source = graph.source_id(id);
        if let Some(&line) = self.lines.get(&source) {
            return line;
        }
        let line = graph.line(id).map_or((0, 0), |line| (self.place(&line) + 1, line.line));
        self.lines.insert(source, line);
        line
    }

    fn place(&mut self, line: &Line) -> u32 {
        if let Some(&place) = self.places.get(&line.file) {
            return place;
        }
        let place = u32::try_from(self.names.len()).expect("fewer than 2^32 files");
        self.names.push(line.file.clone());
        self.places.insert(line.file.clone(), place);
        place
    }
}

#[cfg(test)]
mod tests;
