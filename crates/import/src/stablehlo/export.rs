//! The reader of functions that `jax.export` serialized: a table of FlatBuffers with a portable
//! artifact in one field.

use super::syntax::Position;
use super::{FORMAT, MAX_DEPTH, malformed_at};
use crate::numbers::to_i64;
use crate::{ImportError, ImportErrorKind, Result};

/// The numbers of the fields of an export.
mod field {
    pub(super) const INPUTS: usize = 2;
    pub(super) const OUTPUTS: usize = 4;
    pub(super) const PLATFORMS: usize = 9;
    pub(super) const MODULE: usize = 13;
    pub(super) const KEPT: usize = 15;
}

/// The numbers of the fields of a container.
mod tree_field {
    pub(super) const KIND: usize = 0;
    pub(super) const CHILDREN: usize = 1;
    pub(super) const KEYS: usize = 2;
}

/// The structure of arguments or results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExportTree {
    /// A tensor.
    Leaf,
    /// The value `None`.
    None,
    /// A tuple.
    Tuple(Vec<ExportTree>),
    /// A list.
    List(Vec<ExportTree>),
    /// A dictionary.
    Dict(Vec<(String, ExportTree)>),
}

/// The signature of a function that JAX exported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportSignature {
    /// The arguments: a tuple of the positional arguments and the dictionary of keyword arguments.
    pub inputs: ExportTree,
    /// The result.
    pub outputs: ExportTree,
    /// The number of the leaf of the arguments for each input of the program. JAX drops unused leaves.
    pub kept: Vec<usize>,
}

impl ExportTree {
    /// Returns the number of tensors.
    pub fn leaves(&self) -> usize {
        match self {
            ExportTree::Leaf => 1,
            ExportTree::None => 0,
            ExportTree::Tuple(items) | ExportTree::List(items) => {
                items.iter().map(ExportTree::leaves).sum()
            }
            ExportTree::Dict(items) => items.iter().map(|(_, item)| item.leaves()).sum(),
        }
    }
}

/// A table of FlatBuffers. All offsets are checked against the file.
#[derive(Clone, Copy, Debug)]
struct Table<'a> {
    file: &'a [u8],
    at: usize,
}

/// Reads bytes at an offset.
fn array<const N: usize>(file: &[u8], at: usize) -> Result<[u8; N]> {
    let bytes = file.get(at..).and_then(|bytes| bytes.first_chunk());
    bytes.copied().ok_or_else(|| outside(at))
}

fn outside(at: usize) -> ImportError {
    let why = "the file must be StableHLO in textual form, bytecode, or an export of JAX";
    malformed_at(Position::Byte(at), why)
}

/// Reads a number of bytes, entries or positions.
fn offset(file: &[u8], at: usize) -> Result<usize> {
    Ok(usize::try_from(u32::from_le_bytes(array(file, at)?)).unwrap_or(usize::MAX))
}

impl<'a> Table<'a> {
    /// Returns the table at the start of a file.
    fn root(file: &'a [u8]) -> Result<Self> {
        Ok(Self { file, at: offset(file, 0)? })
    }

    /// Returns the position of a field, if the table has it.
    fn field(&self, number: usize) -> Result<Option<usize>> {
        let back = i32::from_le_bytes(array(self.file, self.at)?);
        let layout = to_i64(self.at) - i64::from(back);
        let layout = usize::try_from(layout).map_err(|_| outside(self.at))?;
        let size = usize::from(u16::from_le_bytes(array(self.file, layout)?));
        let entry = 4 + 2 * number;
        if entry + 2 > size {
            return Ok(None);
        }
        let place = usize::from(u16::from_le_bytes(array(self.file, layout + entry)?));
        Ok((place != 0).then_some(self.at + place))
    }

    /// Returns the elements of a field with a list, and the position of the first element.
    fn list(&self, number: usize, size: usize) -> Result<Option<(&'a [u8], usize)>> {
        let Some(field) = self.field(number)? else { return Ok(None) };
        let vector = field.saturating_add(offset(self.file, field)?);
        let length = offset(self.file, vector)?.saturating_mul(size);
        let start = vector + 4;
        let elements = self.file[start..].get(..length).ok_or_else(|| outside(start))?;
        Ok(Some((elements, start)))
    }

    /// Returns the positions of the tables or strings in a field with a list.
    fn references(&self, number: usize) -> Result<Vec<usize>> {
        let Some((elements, start)) = self.list(number, 4)? else { return Ok(Vec::new()) };
        (0..elements.len() / 4)
            .map(|index| {
                Ok((start + 4 * index).saturating_add(offset(self.file, start + 4 * index)?))
            })
            .collect()
    }

    /// Returns the bytes of a string at a position.
    fn string(&self, at: usize) -> Result<&'a [u8]> {
        let length = offset(self.file, at)?;
        self.file[at + 4..].get(..length).ok_or_else(|| outside(at))
    }

    fn child(&self, number: usize) -> Result<Option<Self>> {
        let Some(field) = self.field(number)? else { return Ok(None) };
        let at = field.saturating_add(offset(self.file, field)?);
        Ok(Some(Self { at, ..*self }))
    }

    /// Reads a structure; `None` if it has a container of a class. Tables may be shared, so `budget`
    /// limits the number of nodes.
    fn tree(&self, budget: &mut usize, depth: usize) -> Result<Option<ExportTree>> {
        if depth > MAX_DEPTH {
            return Err(malformed_at(Position::Byte(self.at), "containers are nested too deep"));
        }
        let mut spend = |size| match budget.checked_sub(size) {
            Some(left) => {
                *budget = left;
                Ok(())
            }
            None => {
                let why = "the containers are too large for the file";
                Err(malformed_at(Position::Byte(self.at), why))
            }
        };
        spend(1)?;
        let kind = match self.field(tree_field::KIND)? {
            Some(at) => array::<1>(self.file, at)?[0],
            None => 0,
        };
        let mut keys = Vec::new();
        if kind == DICT {
            for at in self.references(tree_field::KEYS)? {
                let text = self.string(at)?;
                spend(text.len())?;
                keys.push(String::from_utf8_lossy(text).into_owned());
            }
        }
        let mut items = Vec::new();
        for at in self.references(tree_field::CHILDREN)? {
            match (Self { at, ..*self }).tree(budget, depth + 1)? {
                Some(item) => items.push(item),
                None => return Ok(None),
            }
        }
        Ok(match kind {
            0 => Some(ExportTree::Leaf),
            1 => Some(ExportTree::None),
            2 => Some(ExportTree::Tuple(items)),
            3 => Some(ExportTree::List(items)),
            DICT if keys.len() == items.len() => {
                Some(ExportTree::Dict(keys.into_iter().zip(items).collect()))
            }
            _ => None,
        })
    }
}

/// The kind of a container that is a dictionary.
const DICT: u8 = 4;

/// Returns the portable artifact of an export and its position.
pub(super) fn module(file: &[u8]) -> Result<(&[u8], usize)> {
    Table::root(file)?.list(field::MODULE, 1)?.ok_or_else(|| outside(0))
}

/// Returns the names of the platforms of an export.
pub(super) fn platforms(file: &[u8]) -> Result<Vec<&[u8]>> {
    let root = Table::root(file)?;
    root.references(field::PLATFORMS)?.into_iter().map(|at| root.string(at)).collect()
}

/// Returns the index of a platform among the platforms of a file, by default of `cpu`.
pub(super) fn platform_index(names: &[&[u8]], wanted: Option<&str>) -> Result<usize> {
    let find = |name: &str| names.iter().position(|found| *found == name.as_bytes());
    let Some(wanted) = wanted else { return Ok(find("cpu").unwrap_or(0)) };
    find(wanted).ok_or_else(|| {
        let names: Vec<_> = names.iter().map(|name| String::from_utf8_lossy(name)).collect();
        let why = match &names[..] {
            [] => format!("the file must name its platforms; got {wanted:?}"),
            names => format!("must be one of {}; got {wanted:?}", names.join(", ")),
        };
        ImportError { format: FORMAT, kind: ImportErrorKind::Option { name: "platform", why } }
    })
}

/// Returns the signature of an export, unless it has containers of a class.
pub(super) fn signature(file: &[u8]) -> Result<Option<ExportSignature>> {
    let root = Table::root(file)?;
    let mut budget = file.len();
    let mut tree = |number| match root.child(number)? {
        Some(table) => table.tree(&mut budget, 0),
        None => Ok(None),
    };
    let (Some(inputs), Some(outputs)) = (tree(field::INPUTS)?, tree(field::OUTPUTS)?) else {
        return Ok(None);
    };
    let kept = root.list(field::KEPT, 2)?.unwrap_or_default().0.chunks_exact(2);
    let kept = kept.map(|pair| usize::from(u16::from_le_bytes([pair[0], pair[1]]))).collect();
    Ok(Some(ExportSignature { inputs, outputs, kept }))
}
