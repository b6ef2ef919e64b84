//! Programs as bytes.
//!
//! The form is that from which digests are computed. Where a digest takes the digest of a region, the
//! bytes carry a table of all distinct programs, inner ones first, and a region is its place in that
//! table.
//!
//! What is surprising:
//!
//! * What users write on nodes precedes all nodes, so that bytes from before there was such a thing
//!   are read as well.
//! * Source lines and the graph's options travel in the bytes but are no part of the digest.
//! * Host functions of hooks do not travel; a program from bytes has hooks without a default.
//! * `serde` on a [`Program`] works only for the empty one, which stands for a region while its op
//!   is written. A program by itself goes through [`to_bytes`]; the derived impls of the op types
//!   would otherwise nest programs without bound, and a hostile input could overflow the stack.

mod read;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::graph::encode::Writer;
use crate::graph::{Digest, Error, ExprId, Graph, Line, Program, SourceId};

pub use crate::graph::encode::{FORMAT, OLDEST};
pub use read::from_bytes;

/// The first bytes of every serialized program.
const MAGIC: [u8; 4] = *b"nxla";

/// Magic, version and checksum.
const HEADER: usize = MAGIC.len() + size_of::<u16>() + blake3::OUT_LEN;

/// Why bytes are no program.
#[derive(Debug, thiserror::Error)]
pub enum SerializeError {
    /// The bytes do not begin like a serialized program.
    #[error("the bytes are no serialized program")]
    NotAProgram,
    /// The bytes end inside the header.
    #[error("the bytes end after {length}, inside the header of {HEADER} bytes")]
    Truncated {
        /// Number of bytes given.
        length: usize,
    },
    /// Another version of the encoding.
    #[error("the program has format {found}, this version reads formats {OLDEST} to {FORMAT}")]
    Format {
        /// The version in the header.
        found: u16,
    },
    /// The checksum does not match: bytes were lost or changed.
    #[error("the checksum does not match, the bytes are damaged or incomplete")]
    Checksum,
    /// The bytes do not decode.
    #[error("{what} cannot be read before byte {at}: {why}")]
    Malformed {
        /// Where its bytes begin, or where reading had come to when it was found to be wrong.
        at: usize,
        /// What was being read.
        what: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// An operand that is not made before its user.
    #[error("{node} uses a node {back} places before it, which does not exist")]
    Operand {
        /// The node.
        node: ExprId,
        /// How far back the operand is said to be.
        back: u32,
    },
    /// An output or hook that is not a node.
    #[error("{what} {index} names node {node}, but there are {count}")]
    Root {
        /// `output` or `hook`.
        what: &'static str,
        /// Its position.
        index: usize,
        /// The position of the node it names.
        node: u32,
        /// The number of nodes.
        count: usize,
    },
    /// A node that inference refuses.
    #[error("{node} is ill-typed: {error}")]
    IllTyped {
        /// The node.
        node: ExprId,
        /// What inference says.
        error: Box<Error>,
    },
    /// A node that repeats an earlier one, or simplifies to something else.
    #[error("{node} is no new node in simplified form")]
    NotSimplified {
        /// The node.
        node: ExprId,
    },
    /// Parameters and inputs do not match.
    #[error("{node}: {why}")]
    Parameter {
        /// The node.
        node: ExprId,
        /// What is wrong.
        why: &'static str,
    },
    /// The hooks are not listed in order.
    #[error("the hooks of a program are not listed in order")]
    Hooks,
    /// A region that is not an earlier program, or that nests too deep.
    #[error("{node} has region {region}, {why}")]
    Region {
        /// The node.
        node: ExprId,
        /// The place of its region in the table of programs.
        region: u32,
        /// What is wrong.
        why: &'static str,
    },
}

/// The bytes of a program, from which [`from_bytes`] rebuilds it in another process.
///
/// They hold all regions (each distinct one once) and the source line of each node, but not the
/// host functions of hooks.
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

/// A program and all programs inside it, each distinct one once, inner ones first.
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

/// A line as it is written: zero if unknown, else the file's place plus one; and the line number.
type FileLine = (u32, u32);

/// The file names, each written once.
#[derive(Default)]
struct Files {
    names: Vec<Arc<str>>,
    places: FxHashMap<Arc<str>, u32>,
    /// What is known of the present graph, since looking up a line can be slow.
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
