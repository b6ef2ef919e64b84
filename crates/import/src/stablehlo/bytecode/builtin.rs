//! Attributes and types of the builtin dialect, which every module uses. The numbers of the encodings
//! are fixed by MLIR.

use nxla_tensor::DType;

use super::cursor::Cursor;
use super::entries::{Entries, dense, float, integer, wide_integer};
use super::vhlo::{complex, dictionary, number, scalar, tensor, text};
use crate::Result;
use crate::stablehlo::syntax::{Attribute, Dense, Type};

/// The number of a string.
pub(super) const STRING: u64 = 2;

/// The location in a function and the location of the call.
pub(super) const CALL_LOCATION: u64 = 10;

/// A line and a column of a file.
pub(super) const FILE_LOCATION: u64 = 11;

/// Several locations.
pub(super) const FUSED_LOCATION: u64 = 12;

/// Several locations and an attribute.
pub(super) const FUSED_LOCATION_WITH_DATA: u64 = 13;

/// A name and a location.
pub(super) const NAME_LOCATION: u64 = 14;

/// The location without a position.
pub(super) const UNKNOWN_LOCATION: u64 = 15;

/// The first and the last position in a file.
pub(super) const RANGE_LOCATION: u64 = 22;

/// Reads an attribute after the number of its dialect. A location with a name becomes the name.
pub(super) fn attribute(
    entries: &mut Entries<'_>,
    cursor: &mut Cursor<'_>,
    depth: usize,
) -> Result<Attribute> {
    let start = *cursor;
    Ok(match cursor.varint()? {
        0 => Attribute::List(entries.attributes(cursor, depth)?),
        1 => dictionary(entries, cursor, depth)?,
        STRING => text(entries.string(cursor)?),
        3 => {
            let value = text(entries.string(cursor)?);
            entries.ty(cursor, depth)?;
            value
        }
        4 => symbol(entries.attribute(cursor, depth)?),
        5 => {
            let root = entries.attribute(cursor, depth)?;
            let mut path = entries.attributes(cursor, depth)?;
            path.pop().unwrap_or_else(|| symbol(root))
        }
        6 => Attribute::Type(entries.ty(cursor, depth)?),
        7 | UNKNOWN_LOCATION => Attribute::Unit,
        8 => {
            let dtype = scalar(entries, cursor, depth)?;
            let bits = wide_integer(cursor, dtype.bits())?;
            if dtype.is_pred() {
                Attribute::Bool(bits != 0)
            } else {
                Attribute::Int(integer(dtype, bits))
            }
        }
        9 => {
            let dtype = scalar(entries, cursor, depth)?;
            Attribute::Float(float(cursor, dtype)?)
        }
        NAME_LOCATION => name(entries, cursor, depth)?,
        CALL_LOCATION..=FUSED_LOCATION_WITH_DATA | RANGE_LOCATION => {
            cursor.skip_rest();
            Attribute::Unit
        }
        16 => {
            let ty = entries.ty(cursor, depth)?;
            dense(ty, entries.resource(cursor)?, &start)?
        }
        17 => {
            let dtype = scalar(entries, cursor, depth)?;
            let count = cursor.index()?;
            let ty = tensor(&[i64::try_from(count).unwrap_or(-1)], number(dtype), true, &start)?;
            dense(ty, cursor.blob()?, &start)?
        }
        18 => {
            let ty = entries.ty(cursor, depth)?;
            dense(ty, cursor.blob()?, &start)?
        }
        19 => {
            cursor.skip_rest();
            Attribute::Dense(Dense::Other("tensor of strings".into()))
        }
        20 => {
            cursor.skip_rest();
            Attribute::Dense(Dense::Other("sparse tensor".into()))
        }
        21 => entries.attribute(cursor, depth)?,
        code => return Err(start.error(format!("the builtin dialect has no attribute {code}"))),
    })
}

/// Reads a location that is a name: the name, unless the location has a position in a file too.
fn name(entries: &mut Entries<'_>, cursor: &mut Cursor<'_>, depth: usize) -> Result<Attribute> {
    let name = entries.attribute(cursor, depth)?;
    let child = cursor.index()?;
    Ok(if entries.is_unknown_location(child) { name } else { Attribute::Unit })
}

fn symbol(attribute: Attribute) -> Attribute {
    match attribute {
        Attribute::String(name) => Attribute::Symbol(name),
        other => other,
    }
}

/// Reads a type after the number of its dialect.
pub(super) fn ty(entries: &mut Entries<'_>, cursor: &mut Cursor<'_>, depth: usize) -> Result<Type> {
    let start = *cursor;
    Ok(match cursor.varint()? {
        0 => {
            // The signedness is 0 without a sign, 1 for signed, 2 for unsigned integers.
            let code = cursor.varint()?;
            let name = format!("{}i{}", if code & 3 == 2 { "u" } else { "" }, code >> 2);
            DType::from_mlir_name(&name).map_or(Type::Other(name), number)
        }
        1 => number(DType::S64),
        2 => Type::Function(entries.types(cursor, depth)?, entries.types(cursor, depth)?),
        3 => number(DType::BF16),
        4 => number(DType::F16),
        5 => number(DType::F32),
        6 => number(DType::F64),
        7 => Type::Other("f80".into()),
        8 => Type::Other("f128".into()),
        9 => complex(&entries.ty(cursor, depth)?, &start)?,
        10 | 11 => other(cursor, "memref")?,
        12 => Type::Other("none".into()),
        code @ (13 | 14) => {
            if code == 14 {
                entries.attribute(cursor, depth)?;
            }
            let sizes = cursor.signed_list()?;
            tensor(&sizes, entries.ty(cursor, depth)?, code == 13, &start)?
        }
        15 => Type::Tuple(entries.types(cursor, depth)?),
        16 | 17 => other(cursor, "memref<*>")?,
        18 => other(cursor, "tensor<*>")?,
        19 | 20 => other(cursor, "vector")?,
        code => return Err(start.error(format!("the builtin dialect has no type {code}"))),
    })
}

/// Skips the parameters of a type without a counterpart.
fn other(cursor: &mut Cursor<'_>, name: &str) -> Result<Type> {
    cursor.skip_rest();
    Ok(Type::Other(name.to_owned()))
}
