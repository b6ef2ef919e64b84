//! The operations and regions of MLIR bytecode.

use super::cursor::Cursor;
use super::entries::Entries;
use super::{names, section};
use crate::Result;
use crate::stablehlo::MAX_DEPTH;
use crate::stablehlo::syntax::{Attribute, Operation, Region, ValueId};

/// The longest name of an operation: the names of all operations are copied.
const MAX_NAME: usize = 128;

/// The parts of an operation that are present, as bits.
mod part {
    pub(super) const ATTRIBUTES: u8 = 1;
    pub(super) const RESULTS: u8 = 1 << 1;
    pub(super) const OPERANDS: u8 = 1 << 2;
    pub(super) const SUCCESSORS: u8 = 1 << 3;
    pub(super) const REGIONS: u8 = 1 << 4;
    pub(super) const USE_ORDERS: u8 = 1 << 5;
    pub(super) const PROPERTIES: u8 = 1 << 6;
}

/// The versions of the encoding that change the encoding of operations.
pub(super) mod version {
    pub(in super::super) const DIALECT_VERSIONS: u64 = 1;
    pub(in super::super) const ISOLATED_SECTIONS: u64 = 2;
    pub(in super::super) const USE_ORDERS: u64 = 3;
    pub(in super::super) const OPTIONAL_LOCATIONS: u64 = 4;
    pub(in super::super) const PROPERTIES: u64 = 5;
    pub(in super::super) const NEWEST: u64 = 6;
}

/// The operation that becomes a function of the syntax tree.
const FUNCTION: &str = "func.func";

/// The name of an operation in the table of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Name<'a> {
    pub(super) dialect: &'a [u8],
    pub(super) name: &'a [u8],
    /// True if the writer knew the operation. The properties of such an operation have a fixed order.
    pub(super) is_registered: bool,
}

/// The reader of operations.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    entries: Entries<'a>,
    names: Vec<Name<'a>>,
    properties: Vec<Cursor<'a>>,
    version: u64,
    /// The values that can be referred to by an index, as far as they are defined.
    scope: Vec<Option<ValueId>>,
    /// The number of values of the function.
    values: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(
        entries: Entries<'a>,
        names: Vec<Name<'a>>,
        properties: Vec<Cursor<'a>>,
        version: u64,
    ) -> Self {
        Self { entries, names, properties, version, scope: Vec::new(), values: 0 }
    }

    /// Reads a block: its parameters and operations. `next` is the index of its first value.
    pub(super) fn block(
        &mut self,
        cursor: &mut Cursor<'a>,
        next: &mut usize,
        depth: usize,
    ) -> Result<Region> {
        let mut region = Region::default();
        let start = *cursor;
        let (count, has_parameters) = cursor.index_and_flag()?;
        start.check_count(count)?;
        if has_parameters {
            for _ in 0..cursor.count()? {
                region.parameter_names.push(self.parameter(cursor)?);
                region.parameters.push(self.define(1, next, cursor)?);
            }
            if self.version >= version::USE_ORDERS && cursor.byte()? != 0 {
                skip_use_orders(cursor, region.parameters.len())?;
            }
        }
        for _ in 0..count {
            region.operations.push(self.operation(cursor, next, depth)?);
        }
        Ok(region)
    }

    /// Reads the type and the location of a parameter, and returns the name in the location.
    fn parameter(&mut self, cursor: &mut Cursor<'a>) -> Result<Option<String>> {
        let start = *cursor;
        let (ty, has_location) = if self.version >= version::OPTIONAL_LOCATIONS {
            cursor.index_and_flag()?
        } else {
            (cursor.index()?, true)
        };
        self.entries.type_at(ty, &start, 0)?;
        if !has_location {
            return Ok(None);
        }
        match self.entries.attribute(cursor, 0)? {
            Attribute::String(name) => Ok(Some(name)),
            _ => Ok(None),
        }
    }

    /// Numbers new values, and returns the first number.
    fn define(&mut self, count: usize, next: &mut usize, start: &Cursor<'_>) -> Result<ValueId> {
        let first = self.values;
        let end = next.saturating_add(count);
        let Some(slots) = self.scope.get_mut(*next..end) else {
            return Err(start.error("the region has more values than it declares"));
        };
        for slot in slots {
            *slot = Some(self.values);
            self.values += 1;
        }
        *next = end;
        Ok(first)
    }

    fn operation(
        &mut self,
        cursor: &mut Cursor<'a>,
        next: &mut usize,
        depth: usize,
    ) -> Result<Operation> {
        let start = *cursor;
        let index = cursor.index()?;
        let Some(&name) = self.names.get(index) else {
            return Err(start.error(format!("operation name {index} does not exist")));
        };
        let full = full_name(name, &start)?;
        let mut operation = Operation::new(&names::counterpart(&full), start.position());
        let parts = cursor.byte()?;
        operation.line = self.entries.line(cursor.index()?);
        if parts & part::ATTRIBUTES != 0 {
            let at = *cursor;
            let Attribute::Dictionary(found) = self.entries.attribute(cursor, 0)? else {
                return Err(at.error("the attributes of an operation must be a dictionary"));
            };
            operation.attributes = found;
        }
        if parts & part::PROPERTIES != 0 {
            self.read_properties(cursor, name, &full, &mut operation)?;
        }
        if parts & part::RESULTS != 0 {
            operation.result_types = self.entries.types(cursor, 0)?;
        }
        if parts & part::OPERANDS != 0 {
            for _ in 0..cursor.count()? {
                operation.operands.push(self.operand(cursor)?);
            }
        }
        if parts & part::SUCCESSORS != 0 {
            return Err(cursor.error("branches between blocks are not supported"));
        }
        let results = operation.result_types.len();
        if parts & part::USE_ORDERS != 0 && self.version >= version::USE_ORDERS {
            skip_use_orders(cursor, results)?;
        }
        let regions = *cursor;
        let (count, is_isolated) =
            if parts & part::REGIONS != 0 { cursor.index_and_flag()? } else { (0, false) };
        regions.check_count(count)?;
        operation.first_result = self.define(results, next, &start)?;
        if count > 0 {
            self.regions(cursor, &mut operation, count, is_isolated, depth)?;
        }
        Ok(operation)
    }

    /// Reads the properties of an operation: the attributes that its definition names.
    fn read_properties(
        &mut self,
        cursor: &mut Cursor<'a>,
        name: Name<'_>,
        full: &str,
        operation: &mut Operation,
    ) -> Result<()> {
        let start = *cursor;
        let index = cursor.index()?;
        let Some(&properties) = self.properties.get(index) else {
            return Err(start.error(format!("properties {index} do not exist")));
        };
        let mut properties = properties;
        if !name.is_registered {
            if let Attribute::Dictionary(found) = self.entries.attribute(&mut properties, 0)? {
                operation.attributes.extend(found);
            }
            return Ok(());
        }
        if full == "builtin.module" {
            let at = properties;
            let (symbol, is_present) = properties.index_and_flag()?;
            if is_present {
                let symbol = self.entries.attribute_at(symbol, &at, 0)?;
                operation.attributes.push(("sym_name".into(), symbol));
            }
            return Ok(());
        }
        // Operations of other dialects and versions are reported by name, or have no effect.
        let Some(keys) = names::properties(full) else { return Ok(()) };
        for &key in keys {
            let value = self.entries.attribute(&mut properties, 0)?;
            operation.attributes.push((key.to_owned(), value));
        }
        properties.end(full)
    }

    fn operand(&self, cursor: &mut Cursor<'_>) -> Result<ValueId> {
        let start = *cursor;
        let index = cursor.index()?;
        let found = self.scope.get(index).copied().flatten();
        found.ok_or_else(|| start.error(format!("value {index} is not defined at this position")))
    }

    /// Reads the regions of an operation. Functions and isolated regions have values of their own.
    fn regions(
        &mut self,
        cursor: &mut Cursor<'a>,
        operation: &mut Operation,
        count: usize,
        is_isolated: bool,
        depth: usize,
    ) -> Result<()> {
        let start = *cursor;
        if depth > MAX_DEPTH {
            return Err(start.error("regions are nested too deep"));
        }
        if !is_isolated && operation.name != FUNCTION {
            for _ in 0..count {
                operation.regions.push(self.region(cursor, depth + 1)?);
            }
            return Ok(());
        }
        let is_function = operation.name == FUNCTION;
        if is_function
            && !(operation.result_types.is_empty() && (is_isolated || self.scope.is_empty()))
        {
            return Err(start.error("a function must not have results, or values around it"));
        }
        let outer = std::mem::take(&mut self.scope);
        let values = if is_function { std::mem::take(&mut self.values) } else { 0 };
        let mut section;
        let content = if is_isolated && self.version >= version::ISOLATED_SECTIONS {
            let kind;
            (kind, section) = cursor.section()?;
            if usize::from(kind) != section::OPERATIONS {
                return Err(start.error("a region must be a section of operations"));
            }
            &mut section
        } else {
            cursor
        };
        for _ in 0..count {
            operation.regions.push(self.region(content, depth + 1)?);
        }
        if is_function {
            // A function has no results; the number of its values takes their place.
            operation.first_result = std::mem::replace(&mut self.values, values);
        }
        self.scope = outer;
        Ok(())
    }

    /// Reads a region: nothing, or one block.
    fn region(&mut self, cursor: &mut Cursor<'a>, depth: usize) -> Result<Region> {
        let start = *cursor;
        match cursor.index()? {
            0 => return Ok(Region::default()),
            1 => {}
            _ => return Err(start.error("a region must have one block")),
        }
        // Each value has at least one byte: the number of its type.
        let values = cursor.count()?;
        let first = self.scope.len();
        self.scope.resize(first + values, None);
        let mut next = first;
        let region = self.block(cursor, &mut next, depth)?;
        self.scope.truncate(first);
        Ok(region)
    }
}

fn full_name(name: Name<'_>, start: &Cursor<'_>) -> Result<String> {
    if name.dialect.len() + name.name.len() > MAX_NAME {
        return Err(start.error(format!("a name must have at most {MAX_NAME} bytes")));
    }
    let dialect = String::from_utf8_lossy(name.dialect);
    // A portable artifact has no operations of dialects whose encodings change.
    if matches!(&*dialect, "stablehlo" | "mhlo" | "chlo" | "func") {
        let why = format!(
            "operations of the dialect {dialect} have no stable encoding; write the module as a \
             portable artifact or as text"
        );
        return Err(start.error(why));
    }
    Ok(format!("{dialect}.{}", String::from_utf8_lossy(name.name)))
}

/// Skips the orders of the uses of values, which only restore the memory of the writer.
fn skip_use_orders(cursor: &mut Cursor<'_>, values: usize) -> Result<()> {
    let count = if values > 1 { cursor.count()? } else { 1 };
    for _ in 0..count {
        if values > 1 {
            cursor.index()?;
        }
        let start = *cursor;
        let (indices, _) = cursor.index_and_flag()?;
        start.check_count(indices)?;
        for _ in 0..indices {
            cursor.index()?;
        }
    }
    Ok(())
}
