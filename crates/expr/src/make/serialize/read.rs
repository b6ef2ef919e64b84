//! Deserialization of untrusted bytes.
//!
//! [`Graph::make`] creates and checks every node, and the result must be a new node at the written
//! index. Time and memory are linear in the number of bytes. A few bytes can declare a tensor of
//! any size, but its elements are not allocated.

use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::{FORMAT, FileLine, HEADER, MAGIC, OLDEST, SerializeError, checksum};
use crate::graph::encode::NoteHead;
use crate::graph::{
    ExprId, Graph, GraphOptions, Line, MAX_NESTING, MAX_NOTE_DEPTH, Note, Notes, Op, Operands,
    Program, Source, SourceId, TensorType,
};

use rustc_hash::FxHashMap;

/// The first version with notes.
const NOTES: u16 = 6;

type Result<T> = std::result::Result<T, SerializeError>;

/// Reads a program written by [`to_bytes`](super::to_bytes).
///
/// # Errors
/// Returns an error if the bytes have another kind or version, are damaged, or do not contain a
/// valid program.
pub fn from_bytes(bytes: &[u8]) -> Result<Program> {
    let (format, rest) = open(bytes)?;
    let mut reader = Reader { rest, end: bytes.len(), format };
    let files: Vec<Arc<str>> = reader.take("the list of files")?;
    let count: usize = reader.take("the number of programs")?;
    let mut programs: Vec<Arc<Program>> = Vec::new();
    for _ in 0..count {
        let program = Rebuild::new(&programs, &files).program(&mut reader)?;
        programs.push(program);
    }
    if !reader.rest.is_empty() {
        let why = format!("{} bytes follow", reader.rest.len());
        return Err(reader.malformed("the end", why));
    }
    let none = || reader.malformed("the number of programs", "there is none".into());
    let last = programs.pop().ok_or_else(none)?;
    drop(programs);
    Ok(Arc::unwrap_or_clone(last))
}

/// Checks the header, and returns the version and the remaining bytes.
fn open(bytes: &[u8]) -> Result<(u16, &[u8])> {
    if !bytes.starts_with(&MAGIC[..MAGIC.len().min(bytes.len())]) {
        return Err(SerializeError::NotAProgram);
    }
    let Some((header, rest)) = bytes.split_at_checked(HEADER) else {
        return Err(SerializeError::Truncated { length: bytes.len() });
    };
    let found = u16::from_le_bytes([header[4], header[5]]);
    if !(OLDEST..=FORMAT).contains(&found) {
        return Err(SerializeError::Format { found });
    }
    if checksum(&[rest]).as_bytes() != &header[6..] {
        return Err(SerializeError::Checksum);
    }
    Ok((found, rest))
}

/// Bytes that are being read.
struct Reader<'a> {
    rest: &'a [u8],
    /// The total number of bytes.
    end: usize,
    /// The version in the header.
    format: u16,
}

impl Reader<'_> {
    fn take<T: DeserializeOwned>(&mut self, what: &'static str) -> Result<T> {
        let (value, rest) = postcard::take_from_bytes(self.rest)
            .map_err(|error| self.malformed(what, error.to_string()))?;
        self.rest = rest;
        Ok(value)
    }

    /// Reads the notes with the indices of their nodes.
    fn read_notes(&mut self) -> Result<Vec<(usize, Notes)>> {
        if self.format < NOTES {
            return Ok(Vec::new());
        }
        let count: usize = self.take("the number of nodes with notes")?;
        let mut found: Vec<(usize, Notes)> = Vec::new();
        for _ in 0..count {
            let node = self.take("a node with notes")?;
            if found.last().is_some_and(|(last, _)| *last >= node) {
                return Err(self.malformed("a node with notes", "it is not in order".into()));
            }
            let length = self.take("the number of notes")?;
            let notes = self.notes(length, 0)?;
            if notes.is_empty() {
                return Err(self.malformed("a node with notes", "it has none".into()));
            }
            found.push((node, notes));
        }
        found.reverse();
        Ok(found)
    }

    fn notes(&mut self, length: usize, depth: usize) -> Result<Notes> {
        let mut notes = Notes::default();
        let mut last: Option<Arc<str>> = None;
        for _ in 0..length {
            let name: Arc<str> = self.take("the name of a note")?;
            if last.as_ref().is_some_and(|last| *last >= name) {
                return Err(self.malformed("the name of a note", "it is not in order".into()));
            }
            notes.insert(name.clone(), self.note(depth)?);
            last = Some(name);
        }
        Ok(notes)
    }

    fn note(&mut self, depth: usize) -> Result<Note> {
        if depth > MAX_NOTE_DEPTH {
            return Err(self.malformed("a note", "it nests too deep".into()));
        }
        Ok(match self.take("a note")? {
            NoteHead::Null => Note::Null,
            NoteHead::Bool(value) => Note::Bool(value),
            NoteHead::Int(value) => Note::Int(value),
            NoteHead::Float(value) => Note::Float(value),
            NoteHead::Text(text) => Note::Text(text),
            NoteHead::List(length) => {
                let items = (0..length).map(|_| self.note(depth + 1));
                Note::List(items.collect::<Result<_>>()?)
            }
            NoteHead::Map(length) => Note::Map(self.notes(length, depth + 1)?),
            NoteHead::Host(_) => {
                return Err(self.malformed("a note", "its value cannot be serialized".into()));
            }
        })
    }

    /// Creates an error for the value at the current position.
    fn malformed(&self, what: &'static str, why: String) -> SerializeError {
        SerializeError::Malformed { at: self.end - self.rest.len(), what, why }
    }
}

/// A program of the table that is being rebuilt.
struct Rebuild<'a> {
    programs: &'a [Arc<Program>],
    files: &'a [Arc<str>],
    graph: Graph,
    inputs: Vec<TensorType>,
    sources: FxHashMap<FileLine, SourceId>,
    /// The remaining nodes with notes, in reverse order.
    noted: Vec<(usize, Notes)>,
}

impl<'a> Rebuild<'a> {
    fn new(programs: &'a [Arc<Program>], files: &'a [Arc<str>]) -> Self {
        Self {
            programs,
            files,
            graph: Graph::new(),
            inputs: Vec::new(),
            sources: FxHashMap::default(),
            noted: Vec::new(),
        }
    }

    fn program(mut self, reader: &mut Reader<'_>) -> Result<Arc<Program>> {
        let reassociate_floats = reader.take("an option")?;
        self.graph = Graph::with_options(GraphOptions { reassociate_floats });
        self.inputs = reader.take("the inputs")?;
        self.inputs.iter().try_for_each(|ty| check_type(reader, "an input", ty))?;
        self.noted = reader.read_notes()?;
        let count: usize = reader.take("the number of nodes")?;
        if count < self.inputs.len() {
            let why = format!("{count} nodes cannot hold {} inputs", self.inputs.len());
            return Err(reader.malformed("the nodes", why));
        }
        for _ in 0..count {
            self.node(reader)?;
        }
        if let Some((node, _)) = self.noted.last() {
            let why = format!("node {node} must not have notes");
            return Err(reader.malformed("the nodes with notes", why));
        }
        let outputs = self.roots(reader, "output")?;
        let effects = self.roots(reader, "hook")?;
        if effects != self.graph.effects() {
            return Err(SerializeError::Hooks);
        }
        let parameters = (0..self.inputs.len()).map(ExprId::from_index).collect();
        let program = Program::from_parts(self.graph, self.inputs, parameters, outputs, effects);
        Ok(Arc::new(program))
    }

    fn node(&mut self, reader: &mut Reader<'_>) -> Result<()> {
        let node = ExprId::from_index(self.graph.len());
        let mut op: Op = reader.take("an operation")?;
        if let Op::Metadata(metadata) = &mut op
            && let Some((_, notes)) = self.noted.pop_if(|(place, _)| *place == node.index())
        {
            metadata.notes = notes;
        }
        self.check_op(node, &op, reader)?;
        let op = self.with_regions(node, op, reader)?;
        let operands = self.operands(node, reader)?;
        let line = reader.take("a source line")?;
        let source = self.source(line, reader)?;
        self.graph.set_source(source);
        let made = self
            .graph
            .make(op, &operands)
            .map_err(|error| SerializeError::IllTyped { node, error: Box::new(error) })?;
        // Simplification can create further nodes, so the length is checked too.
        if made != node || self.graph.len() != node.index() + 1 {
            return Err(SerializeError::NotSimplified { node });
        }
        Ok(())
    }

    /// Checks the properties of an op's attributes that type inference assumes.
    fn check_op(&mut self, node: ExprId, op: &Op, reader: &Reader<'_>) -> Result<()> {
        let wrong = |why| Err(SerializeError::Parameter { node, why });
        match op {
            Op::Parameter(parameter) => match self.inputs.get(parameter.index as usize) {
                _ if parameter.scope != 0 => wrong("the parameter belongs to an unfinished region"),
                Some(ty) if *ty == parameter.ty && parameter.index as usize == node.index() => {
                    Ok(())
                }
                Some(_) | None => wrong("the parameter does not match an input"),
            },
            _ if node.index() < self.inputs.len() => wrong("the node must be a parameter"),
            Op::Constant(constant) => {
                check_type(reader, "a constant", &constant.ty)?;
                if constant.value.canonical(constant.ty.dtype) == constant.value {
                    return Ok(());
                }
                let why = format!("{:?} is not of dtype {}", constant.value, constant.ty.dtype);
                Err(reader.malformed("a constant", why))
            }
            Op::Iota(iota) => check_type(reader, "an iota", &iota.ty),
            Op::Eye(ty) => check_type(reader, "an identity matrix", ty),
            // Type inference checks other attributes together with the operands.
            _ => Ok(()),
        }
    }

    fn with_regions(&mut self, node: ExprId, op: Op, reader: &mut Reader<'_>) -> Result<Op> {
        let mut programs = Vec::new();
        for _ in 0..op.regions().len() {
            let region: u32 = reader.take("a region")?;
            let wrong = |why| SerializeError::Region { node, region, why };
            let program = self
                .programs
                .get(region as usize)
                .ok_or_else(|| wrong("must be an earlier program"))?;
            if program.graph().nesting_depth() >= MAX_NESTING {
                return Err(wrong("is nested too deeply"));
            }
            programs.push(program.clone());
        }
        if programs.is_empty() {
            return Ok(op);
        }
        let mut programs = programs.into_iter();
        Ok(op.map_regions(|_| programs.next().expect("one program was read for each region")))
    }

    fn operands(&self, node: ExprId, reader: &mut Reader<'_>) -> Result<Operands> {
        let count: usize = reader.take("the number of operands")?;
        let mut operands = Operands::new();
        for _ in 0..count {
            let back: u32 = reader.take("an operand")?;
            let operand = (back > 0)
                .then(|| node.index().checked_sub(back as usize))
                .flatten()
                .ok_or(SerializeError::Operand { node, back })?;
            operands.push(ExprId::from_index(operand));
        }
        Ok(operands)
    }

    fn roots(&self, reader: &mut Reader<'_>, what: &'static str) -> Result<Vec<ExprId>> {
        let number: usize = reader.take("the number of roots")?;
        let mut roots = Vec::new();
        for index in 0..number {
            let node: u32 = reader.take("a root")?;
            let count = self.graph.len();
            if node as usize >= count {
                return Err(SerializeError::Root { what, index, node, count });
            }
            let root = ExprId::from_index(node as usize);
            if what == "output" && self.graph.ty(root).as_tensor().is_none() {
                let why = format!("output {index} is a tuple");
                return Err(reader.malformed("the outputs", why));
            }
            roots.push(root);
        }
        Ok(roots)
    }

    fn source(&mut self, line: FileLine, reader: &Reader<'_>) -> Result<SourceId> {
        if let Some(&source) = self.sources.get(&line) {
            return Ok(source);
        }
        let (place, number) = line;
        let source = match place.checked_sub(1) {
            None => Source::Unknown,
            Some(place) => {
                let file = self.files.get(place as usize).ok_or_else(|| {
                    reader.malformed(
                        "a source line",
                        format!("it names file {place}, which does not exist"),
                    )
                })?;
                Source::Line(Line { file: file.clone(), line: number })
            }
        };
        let id = self.graph.add_source(source);
        self.sources.insert(line, id);
        Ok(id)
    }
}

/// Checks that a type has a size in memory, a valid rank, and a name entry for each axis.
fn check_type(reader: &Reader<'_>, what: &'static str, ty: &TensorType) -> Result<()> {
    ty.shape.check_limits().map_err(|error| reader.malformed(what, error.to_string()))?;
    let bytes = ty.shape.checked_byte_size(ty.dtype);
    if bytes.is_none_or(|bytes| isize::try_from(bytes).is_err()) {
        return Err(reader.malformed(what, format!("{ty} is too large")));
    }
    if ty.names.as_ref().is_some_and(|names| names.len() != ty.rank()) {
        let why = format!("{} does not have one name for each axis", ty.shape);
        return Err(reader.malformed(what, why));
    }
    Ok(())
}
