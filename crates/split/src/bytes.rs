//! Serialization of stages, to run them in another process or to store them.
//!
//! A stage is a header (kind, version, stage number, preceding stage, sources of the arguments,
//! name), the digest of its program, and the bytes of the program. Numbers are little-endian.
//! Reading validates the lengths, the digest, and for a whole graph that the stages fit together.
//!
//! The functions of hooks are not serialized; the caller must attach listeners to the hooks of a
//! program from bytes.

use std::sync::Arc;

use nxla_expr::{Digest, Graph, Program, serialize};

use crate::error::SplitError;
use crate::stage::{Stage, StageGraph, StageId, ValueSource};

/// The version of both encodings, which `docs/format.md` describes; bytes of a later version are
/// rejected.
const FORMAT: u32 = 2;
/// The first version in which stages have names.
const NAMES: u32 = 2;
/// The size in bytes of a length and of a source index.
const LENGTH: usize = size_of::<u64>();
const SOURCE: usize = size_of::<u32>() + LENGTH;
/// The code for no stage.
const NO_STAGE: u32 = u32::MAX;

const STAGE: Kind = Kind { name: "stage", magic: *b"nxst" };
const STAGE_GRAPH: Kind = Kind { name: "graph of stages", magic: *b"nxsg" };

/// The kind of the encoded object.
#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    magic: [u8; 4],
}

impl Stage {
    /// Returns the digest of the program: equal for stages that compute the same function.
    pub fn digest(&self) -> Digest {
        self.program.digest()
    }

    /// Serializes the stage, for [`Stage::from_bytes`].
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new(STAGE);
        writer.stage(Some(self.id));
        writer.stage(self.follows);
        writer.sources(&self.arguments);
        writer.block(self.name.as_deref().unwrap_or_default().as_bytes());
        writer.bytes.extend_from_slice(&self.digest().0);
        writer.block(&serialize::to_bytes(&self.program));
        writer.bytes
    }

    /// Deserializes a stage.
    ///
    /// # Errors
    /// Returns an error for bytes of another kind or version, and for damaged bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SplitError> {
        let mut reader = Reader::new(STAGE, bytes)?;
        let id = reader.stage()?.ok_or_else(|| reader.error("the stage number is missing"))?;
        let follows = reader.stage()?;
        let arguments = reader.sources()?;
        let name = if reader.version >= NAMES { reader.name()? } else { None };
        let digest = Digest(reader.array()?);
        let program = serialize::from_bytes(reader.block()?)?;
        reader.end()?;
        if program.digest() != digest {
            return Err(reader.error("the digest does not match the program"));
        }
        if program.inputs().len() != arguments.len() {
            return Err(reader.error("the number of arguments differs from the number of inputs"));
        }
        Ok(Stage { id, program: Arc::new(program), arguments, follows, name })
    }
}

impl StageGraph {
    /// Serializes all stages, for [`StageGraph::from_bytes`].
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new(STAGE_GRAPH);
        // The format stores the types of the inputs as a program without outputs.
        let inputs = Program::new(&Graph::new(), self.inputs().to_vec(), &[])
            .expect("a program without outputs uses nothing");
        writer.block(&serialize::to_bytes(&inputs));
        writer.length(self.stages().len());
        for stage in self.stages() {
            writer.block(&stage.to_bytes());
        }
        writer.sources(self.outputs());
        writer.bytes
    }

    /// Deserializes a graph of stages.
    ///
    /// # Errors
    /// Returns an error for bytes of another kind or version, for damaged bytes, and for stages
    /// that do not fit together.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SplitError> {
        let mut reader = Reader::new(STAGE_GRAPH, bytes)?;
        let inputs = serialize::from_bytes(reader.block()?)?.inputs().to_vec();
        let count = reader.length(LENGTH)?;
        let stages = (0..count)
            .map(|_| Stage::from_bytes(reader.block()?))
            .collect::<Result<Vec<_>, SplitError>>()?;
        let outputs = reader.sources()?;
        reader.end()?;
        StageGraph::new(inputs, stages, outputs)
    }
}

struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    fn new(kind: Kind) -> Self {
        let mut bytes = kind.magic.to_vec();
        bytes.extend_from_slice(&FORMAT.to_le_bytes());
        Self { bytes }
    }

    fn length(&mut self, length: usize) {
        self.bytes.extend_from_slice(&(length as u64).to_le_bytes());
    }

    fn block(&mut self, block: &[u8]) {
        self.length(block.len());
        self.bytes.extend_from_slice(block);
    }

    fn stage(&mut self, stage: Option<StageId>) {
        let number = stage.map_or(NO_STAGE, |stage| {
            u32::try_from(stage.index()).expect("stage numbers fit in 32 bits")
        });
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    fn sources(&mut self, sources: &[ValueSource]) {
        self.length(sources.len());
        for source in sources {
            self.stage(source.stage);
            self.length(source.index);
        }
    }
}

/// The bytes that have not been read yet.
struct Reader<'b> {
    kind: Kind,
    version: u32,
    bytes: &'b [u8],
    /// The total number of bytes.
    end: usize,
}

impl<'b> Reader<'b> {
    fn new(kind: Kind, bytes: &'b [u8]) -> Result<Self, SplitError> {
        let mut reader = Self { kind, version: 0, bytes, end: bytes.len() };
        if reader.array()? != kind.magic {
            return Err(reader.error("the magic bytes are missing"));
        }
        reader.version = u32::from_le_bytes(reader.array()?);
        match reader.version {
            1..=FORMAT => Ok(reader),
            found => Err(SplitError::Format { kind: kind.name, found, expected: FORMAT }),
        }
    }

    fn error(&self, why: &'static str) -> SplitError {
        SplitError::Bytes { at: self.end - self.bytes.len(), expected: self.kind.name, why }
    }

    fn take(&mut self, count: usize) -> Result<&'b [u8], SplitError> {
        let (taken, rest) =
            self.bytes.split_at_checked(count).ok_or_else(|| self.error("they end too early"))?;
        self.bytes = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], SplitError> {
        let (taken, rest) =
            self.bytes.split_first_chunk().ok_or_else(|| self.error("they end too early"))?;
        self.bytes = rest;
        Ok(*taken)
    }

    fn number(&mut self) -> Result<usize, SplitError> {
        let number = u64::from_le_bytes(self.array()?);
        usize::try_from(number).map_err(|_| self.error("a number is out of range"))
    }

    /// Reads the number of items that follow. Each item takes at least `least` bytes.
    fn length(&mut self, least: usize) -> Result<usize, SplitError> {
        let length = self.number()?;
        if length > self.bytes.len() / least {
            return Err(self.error("they end too early"));
        }
        Ok(length)
    }

    fn block(&mut self) -> Result<&'b [u8], SplitError> {
        let length = self.length(1)?;
        self.take(length)
    }

    /// Reads a name; an empty name means that there is none.
    fn name(&mut self) -> Result<Option<Arc<str>>, SplitError> {
        let name = std::str::from_utf8(self.block()?);
        let name = name.map_err(|_| self.error("a name is not UTF-8"))?;
        Ok((!name.is_empty()).then(|| name.into()))
    }

    fn stage(&mut self) -> Result<Option<StageId>, SplitError> {
        let number = u32::from_le_bytes(self.array()?);
        Ok((number != NO_STAGE).then(|| StageId::from_index(number as usize)))
    }

    fn sources(&mut self) -> Result<Vec<ValueSource>, SplitError> {
        let count = self.length(SOURCE)?;
        (0..count)
            .map(|_| Ok(ValueSource { stage: self.stage()?, index: self.number()? }))
            .collect()
    }

    fn end(&self) -> Result<(), SplitError> {
        match self.bytes {
            [] => Ok(()),
            _ => Err(self.error("bytes follow the end")),
        }
    }
}
