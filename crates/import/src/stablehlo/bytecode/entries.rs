//! The tables of strings, dialects, attributes, types and resources of MLIR bytecode.

use std::collections::BTreeMap;
use std::sync::Arc;

use nxla_expr::Line;
use nxla_tensor::DType;

use super::cursor::Cursor;
use super::{builtin, vhlo};
use crate::stablehlo::lexer::Lexer;
use crate::stablehlo::syntax::{Attribute, Dense, Type};
use crate::stablehlo::text::Resources;
use crate::stablehlo::{MAX_DEPTH, attributes, literal, types};
use crate::{ImportError, ImportErrorKind, Result};

/// The most nodes of the attributes and types of all operations, for each byte of the file. An
/// attribute that several operations refer to is copied, so a short file can describe huge trees.
const NODES_PER_BYTE: usize = 64;

/// The bytes of a string that count as one node.
const STRING_NODE: usize = 32;

/// An attribute or type in the file.
#[derive(Debug)]
struct Entry<'a> {
    dialect: usize,
    content: Cursor<'a>,
    /// True if the dialect defines the encoding, false if the content is text.
    is_custom: bool,
    /// The value and its number of nodes, after the first use. A type is an [`Attribute::Type`].
    known: Option<(Attribute, usize)>,
}

/// The two tables of entries, which have separate indices.
#[derive(Clone, Copy)]
enum Table {
    Attributes,
    Types,
}

/// The tables of a file.
#[derive(Debug)]
pub(super) struct Entries<'a> {
    pub(super) strings: Vec<&'a [u8]>,
    pub(super) dialects: Vec<&'a [u8]>,
    resources: Vec<&'a [u8]>,
    attributes: Vec<Entry<'a>>,
    types: Vec<Entry<'a>>,
    /// The names of the source files, by the number of the string.
    files: BTreeMap<usize, Arc<str>>,
    /// The number of nodes that may still be created.
    budget: usize,
}

/// Reads a string section: the lengths from the last to the first string, then the strings, each with a
/// zero at the end.
pub(super) fn strings(mut section: Cursor<'_>) -> Result<Vec<&[u8]>> {
    let mut strings = Vec::new();
    for _ in 0..section.count()? {
        let length = section.index()?;
        let text = section.take_end(length)?;
        let Some((0, text)) = text.split_last() else {
            return Err(section.error("a string must end with a zero"));
        };
        strings.push(text);
    }
    section.end("the strings")?;
    strings.reverse();
    Ok(strings)
}

impl<'a> Entries<'a> {
    pub(super) fn new(strings: Vec<&'a [u8]>, file_size: usize) -> Self {
        let budget = file_size.saturating_mul(NODES_PER_BYTE);
        let (dialects, resources) = (Vec::new(), Vec::new());
        let (attributes, types) = (Vec::new(), Vec::new());
        Self { strings, dialects, resources, attributes, types, files: BTreeMap::new(), budget }
    }

    /// Reads the sizes of all attributes and types.
    pub(super) fn read_offsets(
        &mut self,
        mut offsets: Cursor<'a>,
        mut content: Cursor<'a>,
    ) -> Result<()> {
        let (attributes, types) = (offsets.count()?, offsets.count()?);
        self.attributes = self.group(&mut offsets, &mut content, attributes)?;
        self.types = self.group(&mut offsets, &mut content, types)?;
        offsets.end("the table of attributes and types")
    }

    fn group(
        &self,
        offsets: &mut Cursor<'a>,
        content: &mut Cursor<'a>,
        count: usize,
    ) -> Result<Vec<Entry<'a>>> {
        let mut entries = Vec::new();
        while entries.len() < count {
            let dialect = self.dialect(offsets)?;
            let length = offsets.count()?;
            if length > count - entries.len() {
                return Err(offsets.error("a group has more entries than the table"));
            }
            for _ in 0..length {
                let (size, is_custom) = offsets.index_and_flag()?;
                let content = content.part(size)?;
                entries.push(Entry { dialect, content, is_custom, known: None });
            }
        }
        Ok(entries)
    }

    /// Reads the resources of dialects, and skips the resources of other owners.
    pub(super) fn read_resources(
        &mut self,
        mut offsets: Cursor<'a>,
        mut content: Cursor<'a>,
    ) -> Result<()> {
        let mut external = offsets.count()?;
        while !offsets.is_empty() {
            let is_external = external > 0;
            external = external.saturating_sub(1);
            offsets.index()?;
            for _ in 0..offsets.count()? {
                offsets.index()?;
                let size = offsets.index()?;
                let kind = offsets.byte()?;
                let mut resource = content.part(size)?;
                if is_external {
                    continue;
                }
                // Kind 0 is a blob; booleans and strings are not constants.
                let blob = if kind == 0 && !resource.is_empty() {
                    let (alignment, length) = (resource.index()?, resource.index()?);
                    resource.align(alignment)?;
                    resource.take(length)?
                } else {
                    &[]
                };
                self.resources.push(blob);
            }
        }
        Ok(())
    }

    /// Reads the index of a dialect.
    pub(super) fn dialect(&self, cursor: &mut Cursor<'_>) -> Result<usize> {
        let start = *cursor;
        let index = cursor.index()?;
        if index >= self.dialects.len() {
            return Err(start.error(format!("dialect {index} does not exist")));
        }
        Ok(index)
    }

    /// Reads the index of a string.
    pub(super) fn string(&self, cursor: &mut Cursor<'_>) -> Result<&'a [u8]> {
        let start = *cursor;
        let index = cursor.index()?;
        self.string_at(index, &start)
    }

    pub(super) fn string_at(&self, index: usize, start: &Cursor<'_>) -> Result<&'a [u8]> {
        let found = self.strings.get(index).copied();
        found.ok_or_else(|| start.error(format!("string {index} does not exist")))
    }

    /// Reads the index of a resource.
    pub(super) fn resource(&self, cursor: &mut Cursor<'_>) -> Result<&'a [u8]> {
        let start = *cursor;
        let index = cursor.index()?;
        let found = self.resources.get(index).copied();
        found.ok_or_else(|| start.error(format!("resource {index} does not exist")))
    }

    /// Reads the index of an attribute, and returns the attribute.
    pub(super) fn attribute(&mut self, cursor: &mut Cursor<'_>, depth: usize) -> Result<Attribute> {
        let start = *cursor;
        let index = cursor.index()?;
        self.attribute_at(index, &start, depth)
    }

    /// Reads the indices of attributes with their number.
    pub(super) fn attributes(
        &mut self,
        cursor: &mut Cursor<'_>,
        depth: usize,
    ) -> Result<Vec<Attribute>> {
        (0..cursor.count()?).map(|_| self.attribute(cursor, depth)).collect()
    }

    /// Returns an attribute.
    pub(super) fn attribute_at(
        &mut self,
        index: usize,
        start: &Cursor<'_>,
        depth: usize,
    ) -> Result<Attribute> {
        self.entry_at(Table::Attributes, index, start, depth)
    }

    /// Returns an entry, which is decoded on its first use.
    fn entry_at(
        &mut self,
        table: Table,
        index: usize,
        start: &Cursor<'_>,
        depth: usize,
    ) -> Result<Attribute> {
        let (entries, noun) = match table {
            Table::Attributes => (&self.attributes, "attribute"),
            Table::Types => (&self.types, "type"),
        };
        let Some(entry) = entries.get(index) else {
            return Err(start.error(format!("{noun} {index} does not exist")));
        };
        if let Some((known, size)) = &entry.known {
            spend(&mut self.budget, *size, start)?;
            return Ok(known.clone());
        }
        if depth > MAX_DEPTH {
            return Err(start.error("attributes and types are nested too deep"));
        }
        let (mut content, dialect) = (entry.content, self.dialects[entry.dialect]);
        let value = if entry.is_custom {
            let value = self.decode(table, dialect, &mut content, depth + 1)?;
            content.end(noun)?;
            value
        } else {
            textual(content, |lexer| match table {
                Table::Attributes => attributes::read(lexer, &Resources::default(), depth),
                Table::Types => types::read(lexer, depth).map(Attribute::Type),
            })?
        };
        let size = nodes(&value);
        spend(&mut self.budget, size, start)?;
        let entries = match table {
            Table::Attributes => &mut self.attributes,
            Table::Types => &mut self.types,
        };
        entries[index].known = Some((value.clone(), size));
        Ok(value)
    }

    /// Decodes an entry in the encoding of its dialect. Entries of unknown dialects, such as
    /// shardings, are annotations.
    fn decode(
        &mut self,
        table: Table,
        dialect: &[u8],
        content: &mut Cursor<'a>,
        depth: usize,
    ) -> Result<Attribute> {
        match (table, dialect) {
            (Table::Attributes, b"builtin") => builtin::attribute(self, content, depth),
            (Table::Attributes, b"vhlo") => vhlo::attribute(self, content, depth),
            (Table::Types, b"builtin") => builtin::ty(self, content, depth).map(Attribute::Type),
            (Table::Types, b"vhlo") => vhlo::ty(self, content, depth).map(Attribute::Type),
            (Table::Attributes, _) => {
                content.skip_rest();
                Ok(Attribute::Unit)
            }
            (Table::Types, name) => {
                content.skip_rest();
                let name = format!("!{}", String::from_utf8_lossy(name));
                Ok(Attribute::Type(Type::Other(name)))
            }
        }
    }

    /// Returns the line of a location: of the called function, and of the first of several locations.
    pub(super) fn line(&mut self, location: usize) -> Option<Line> {
        let mut next = location;
        for _ in 0..MAX_DEPTH {
            let mut content = self.builtin_content(next)?;
            match content.varint().ok()? {
                builtin::CALL_LOCATION => {}
                builtin::NAME_LOCATION => {
                    content.index().ok()?;
                }
                builtin::FUSED_LOCATION | builtin::FUSED_LOCATION_WITH_DATA => {
                    content.count().ok().filter(|&count| count > 0)?;
                }
                builtin::FILE_LOCATION => {
                    return self.file_line(content.index().ok()?, content.varint().ok()?);
                }
                builtin::RANGE_LOCATION => {
                    let file = content.index().ok()?;
                    content.count().ok().filter(|&count| count > 0)?;
                    return self.file_line(file, content.varint().ok()?);
                }
                _ => return None,
            }
            next = content.index().ok()?;
        }
        None
    }

    /// Returns a line of the file with the name in an attribute.
    fn file_line(&mut self, file: usize, line: u64) -> Option<Line> {
        let line = u32::try_from(line).ok()?;
        let mut content = self.builtin_content(file)?;
        if content.varint().ok()? != builtin::STRING {
            return None;
        }
        let index = content.index().ok()?;
        let name = self.strings.get(index)?;
        let shared = || String::from_utf8_lossy(name).into();
        Some(Line { file: self.files.entry(index).or_insert_with(shared).clone(), line })
    }

    /// Returns the bytes of an attribute of the builtin dialect.
    fn builtin_content(&self, index: usize) -> Option<Cursor<'a>> {
        let entry = self.attributes.get(index)?;
        (entry.is_custom && self.dialects[entry.dialect] == b"builtin").then_some(entry.content)
    }

    /// Returns whether an attribute is the location of an operation without a position.
    pub(super) fn is_unknown_location(&self, index: usize) -> bool {
        let code = self.builtin_content(index).map(|mut content| content.varint());
        code.is_some_and(|code| code.is_ok_and(|code| code == builtin::UNKNOWN_LOCATION))
    }

    /// Reads the index of a type, and returns the type.
    pub(super) fn ty(&mut self, cursor: &mut Cursor<'_>, depth: usize) -> Result<Type> {
        let start = *cursor;
        let index = cursor.index()?;
        self.type_at(index, &start, depth)
    }

    /// Reads the indices of types with their number.
    pub(super) fn types(&mut self, cursor: &mut Cursor<'_>, depth: usize) -> Result<Vec<Type>> {
        (0..cursor.count()?).map(|_| self.ty(cursor, depth)).collect()
    }

    /// Returns a type.
    pub(super) fn type_at(
        &mut self,
        index: usize,
        start: &Cursor<'_>,
        depth: usize,
    ) -> Result<Type> {
        match self.entry_at(Table::Types, index, start, depth)? {
            Attribute::Type(ty) => Ok(ty),
            _ => Err(start.error(format!("entry {index} is not a type"))),
        }
    }
}

fn spend(budget: &mut usize, size: usize, start: &Cursor<'_>) -> Result<()> {
    let left = budget.checked_sub(size);
    *budget = left.ok_or_else(|| start.error("the attributes are too large for the file"))?;
    Ok(())
}

/// Reads an attribute or type in textual form.
fn textual<'a>(
    mut content: Cursor<'a>,
    read: impl FnOnce(&mut Lexer<'a>) -> Result<Attribute>,
) -> Result<Attribute> {
    let start = content;
    let text = std::str::from_utf8(content.c_string()?);
    let text = text.map_err(|_| start.error("a string is not valid UTF-8"))?;
    read(&mut Lexer::new(text)).map_err(|error| match error {
        ImportError { kind: ImportErrorKind::Malformed { why, .. }, .. } => start.error(why),
        other => other,
    })
}

/// Returns the number of nodes of an attribute.
fn nodes(attribute: &Attribute) -> usize {
    let inside = match attribute {
        Attribute::Unit | Attribute::Bool(_) | Attribute::Int(_) | Attribute::Float(_) => 0,
        Attribute::String(text) | Attribute::Symbol(text) | Attribute::Keyword(text) => {
            text.len() / STRING_NODE
        }
        Attribute::List(entries) => entries.iter().map(nodes).sum(),
        Attribute::Dictionary(entries) => {
            entries.iter().map(|(key, value)| 1 + key.len() / STRING_NODE + nodes(value)).sum()
        }
        // The elements are shared.
        Attribute::Dense(Dense::Splat(_, ty)) => ty.rank(),
        Attribute::Dense(Dense::Tensor(tensor)) => tensor.shape().rank(),
        Attribute::Dense(Dense::Other(text)) => text.len() / STRING_NODE,
        Attribute::Type(ty) => type_nodes(ty),
        Attribute::Pair(first, second) => nodes(first) + nodes(second),
    };
    1 + inside
}

/// Returns the number of nodes of a type.
fn type_nodes(ty: &Type) -> usize {
    let list = |types: &[Type]| types.iter().map(type_nodes).sum::<usize>();
    1 + match ty {
        Type::Tensor(ty) => ty.rank(),
        Type::Tuple(types) => list(types),
        Type::Function(inputs, outputs) => list(inputs) + list(outputs),
        Type::Other(text) => text.len() / STRING_NODE,
    }
}

/// Creates a constant of a type from its bytes.
pub(super) fn dense(ty: Type, bytes: &[u8], start: &Cursor<'_>) -> Result<Attribute> {
    let ty = match ty {
        Type::Tensor(ty) => ty,
        Type::Other(text) => return Ok(Attribute::Dense(Dense::Other(text))),
        Type::Tuple(_) | Type::Function(..) => {
            return Err(start.error("a constant must have the type of a tensor"));
        }
    };
    Ok(Attribute::Dense(literal::from_bytes(bytes, &ty, start.position())?))
}

/// Returns the number in the low bits of an integer, with the sign of the dtype.
pub(super) fn integer(dtype: DType, bits: u64) -> i128 {
    let shift = 128 - dtype.bits();
    let value = i128::from(bits) << shift;
    if dtype.is_signed() { value >> shift } else { (value.cast_unsigned() >> shift).cast_signed() }
}

/// Reads an integer of a known width: one byte, or a signed integer of variable length.
pub(super) fn wide_integer(cursor: &mut Cursor<'_>, bits: u32) -> Result<u64> {
    match bits {
        0..=8 => Ok(u64::from(cursor.byte()?)),
        9..=64 => Ok(cursor.signed_integer()?.cast_unsigned()),
        _ => Err(cursor.error(format!("integers of {bits} bits are not supported"))),
    }
}

/// Reads a floating-point number of a dtype.
pub(super) fn float(cursor: &mut Cursor<'_>, dtype: DType) -> Result<f64> {
    let start = *cursor;
    let bits = wide_integer(cursor, dtype.bits())?;
    literal::number_of_bits(bits, dtype).map_err(|error| start.error(error.to_string()))
}
