//! The reader of MLIR bytecode that holds a portable artifact: a module of the versioned dialect VHLO.
//!
//! Attributes and types are decoded on their first use. Memory is proportional to the size of the
//! file: each count is compared with the unread bytes, and the copies of shared attributes are limited.

mod builtin;
mod cursor;
mod entries;
mod names;
mod operations;
mod vhlo;

use cursor::Cursor;
use entries::Entries;
use operations::{Name, Reader, version};

use super::syntax::{Function, Operation, Syntax};
use crate::Result;

/// The first bytes of bytecode.
pub(super) const MAGIC: &[u8; 4] = b"ML\xefR";

/// The numbers of the sections. Regions that refer to no values around them are sections of operations
/// too.
mod section {
    pub(super) const STRINGS: usize = 0;
    pub(super) const DIALECTS: usize = 1;
    pub(super) const ENTRIES: usize = 2;
    pub(super) const OFFSETS: usize = 3;
    pub(super) const OPERATIONS: usize = 4;
    pub(super) const RESOURCES: usize = 5;
    pub(super) const RESOURCE_OFFSETS: usize = 6;
    pub(super) const DIALECT_VERSION: u8 = 7;
    pub(super) const PROPERTIES: usize = 8;
    pub(super) const COUNT: usize = 9;
}

/// Reads a module. `origin` is the position of the bytecode in the file.
pub(super) fn read(bytes: &[u8], origin: usize) -> Result<Syntax> {
    let mut cursor = Cursor::new(bytes, origin);
    let start = cursor;
    if cursor.take(MAGIC.len())? != MAGIC {
        return Err(start.error("bytecode must start with the bytes 4d 4c ef 52"));
    }
    let at = cursor;
    let version = cursor.varint()?;
    if version > version::NEWEST {
        let why = format!("the version must be at most {}; got {version}", version::NEWEST);
        return Err(at.error(why));
    }
    // The name of the writer.
    cursor.c_string()?;
    let mut sections = [None; section::COUNT];
    while !cursor.is_empty() {
        let at = cursor;
        let (kind, content) = cursor.section()?;
        match sections.get_mut(usize::from(kind)) {
            Some(slot @ None) => *slot = Some(content),
            Some(Some(_)) => return Err(at.error(format!("section {kind} occurs twice"))),
            None => return Err(at.error(format!("section {kind} does not exist"))),
        }
    }
    let find = |kind: usize| {
        sections[kind].ok_or_else(|| start.error(format!("section {kind} is missing")))
    };
    let strings = entries::strings(find(section::STRINGS)?)?;
    let mut entries = Entries::new(strings, bytes.len());
    let names = dialects(find(section::DIALECTS)?, &mut entries, version)?;
    entries.read_offsets(find(section::OFFSETS)?, find(section::ENTRIES)?)?;
    if let (Some(offsets), Some(content)) =
        (sections[section::RESOURCE_OFFSETS], sections[section::RESOURCES])
    {
        entries.read_resources(offsets, content)?;
    }
    let properties = sections[section::PROPERTIES].map(properties).transpose()?;
    let mut operations = find(section::OPERATIONS)?;
    let mut reader = Reader::new(entries, names, properties.unwrap_or_default(), version);
    let block = reader.block(&mut operations, &mut 0, 0)?;
    operations.end("the operations")?;
    let mut syntax = Syntax::default();
    for operation in block.operations {
        add_module(&mut syntax, operation)?;
    }
    Ok(syntax)
}

/// Reads the names of dialects and operations.
fn dialects<'a>(
    mut cursor: Cursor<'a>,
    entries: &mut Entries<'a>,
    version: u64,
) -> Result<Vec<Name<'a>>> {
    for _ in 0..cursor.count()? {
        let start = cursor;
        let (name, is_versioned) = if version >= version::DIALECT_VERSIONS {
            cursor.index_and_flag()?
        } else {
            (cursor.index()?, false)
        };
        let name = entries.string_at(name, &start)?;
        entries.dialects.push(name);
        if is_versioned && cursor.section()?.0 != section::DIALECT_VERSION {
            return Err(start.error("a dialect must have a section with its version"));
        }
    }
    if version >= version::OPTIONAL_LOCATIONS {
        // The number of names, which the groups imply.
        cursor.index()?;
    }
    let mut names = Vec::new();
    while !cursor.is_empty() {
        let dialect = entries.dialect(&mut cursor)?;
        for _ in 0..cursor.count()? {
            let start = cursor;
            let (name, is_registered) = if version >= version::PROPERTIES {
                cursor.index_and_flag()?
            } else {
                (cursor.index()?, true)
            };
            let name = entries.string_at(name, &start)?;
            names.push(Name { dialect: entries.dialects[dialect], name, is_registered });
        }
    }
    Ok(names)
}

/// Reads the properties of all operations.
fn properties(mut cursor: Cursor<'_>) -> Result<Vec<Cursor<'_>>> {
    let mut properties = Vec::new();
    for _ in 0..cursor.count()? {
        let size = cursor.index()?;
        properties.push(cursor.part(size)?);
    }
    cursor.end("the properties")?;
    Ok(properties)
}

/// Adds the functions of a module.
fn add_module(syntax: &mut Syntax, module: Operation) -> Result<()> {
    if module.name != "builtin.module" {
        let why = format!("the file must hold a module; got {}", module.name);
        return Err(super::malformed_at(module.position, why));
    }
    syntax.name = module.symbol_name();
    for operation in module.regions.into_iter().flat_map(|body| body.operations) {
        match operation.name.as_str() {
            // A mesh of devices has no effect on one device.
            "sdy.mesh" => {}
            "func.func" => syntax.functions.extend(Function::of_operation(operation)),
            name => {
                let why = format!("expected a function; got {name}");
                return Err(super::malformed_at(operation.position, why));
            }
        }
    }
    Ok(())
}
