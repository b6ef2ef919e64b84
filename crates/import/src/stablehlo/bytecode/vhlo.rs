//! Attributes and types of VHLO, the versioned dialect of portable artifacts. The numbers of the
//! encodings are fixed by StableHLO.

use nxla_expr::TensorType;
use nxla_tensor::{DType, Shape};

use super::cursor::Cursor;
use super::entries::{Entries, dense, float, integer, wide_integer};
use crate::Result;
use crate::stablehlo::syntax::{Attribute, Type};

const COMPARISON_DIRECTIONS: &[&str] = &["EQ", "NE", "GE", "GT", "LE", "LT"];
const COMPARISON_TYPES: &[&str] = &["NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"];
const API_VERSIONS: &[&str] = &[
    "API_VERSION_UNSPECIFIED",
    "API_VERSION_ORIGINAL",
    "API_VERSION_STATUS_RETURNING",
    "API_VERSION_STATUS_RETURNING_UNIFIED",
    "API_VERSION_TYPED_FFI",
];
const FFT_TYPES: &[&str] = &["FFT", "IFFT", "RFFT", "IRFFT"];
const PRECISIONS: &[&str] = &["DEFAULT", "HIGH", "HIGHEST"];
const RNG_ALGORITHMS: &[&str] = &["DEFAULT", "THREE_FRY", "PHILOX"];
const RNG_DISTRIBUTIONS: &[&str] = &["", "UNIFORM", "NORMAL"];
const TRANSPOSES: &[&str] = &["TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"];
const ACCURACY_MODES: &[&str] = &["DEFAULT", "HIGHEST", "TOLERANCE"];

/// Reads an attribute after the number of its dialect.
pub(super) fn attribute(
    entries: &mut Entries<'_>,
    cursor: &mut Cursor<'_>,
    depth: usize,
) -> Result<Attribute> {
    let start = *cursor;
    Ok(match cursor.varint()? {
        1 => Attribute::List(entries.attributes(cursor, depth)?),
        2 => match cursor.varint()? {
            value @ 0..=1 => Attribute::Bool(value == 1),
            value => return Err(start.error(format!("a boolean must be 0 or 1; got {value}"))),
        },
        3 => keyword(cursor, COMPARISON_DIRECTIONS)?,
        4 => keyword(cursor, COMPARISON_TYPES)?,
        5 => keyword(cursor, API_VERSIONS)?,
        6 => dictionary(entries, cursor, depth)?,
        7 => keyword(cursor, FFT_TYPES)?,
        8 => {
            let dtype = scalar(entries, cursor, depth)?;
            Attribute::Float(float(cursor, dtype)?)
        }
        9 => {
            let dtype = scalar(entries, cursor, depth)?;
            Attribute::Int(integer(dtype, wide_integer(cursor, dtype.bits())?))
        }
        10 => {
            cursor.signed_list()?;
            cursor.signed_integer()?;
            cursor.signed_list()?;
            Attribute::Unit
        }
        11 => keyword(cursor, PRECISIONS)?,
        12 => keyword(cursor, RNG_ALGORITHMS)?,
        13 => keyword(cursor, RNG_DISTRIBUTIONS)?,
        14 => text(entries.string(cursor)?),
        15 => {
            let ty = entries.ty(cursor, depth)?;
            dense(ty, cursor.blob()?, &start)?
        }
        16 => keyword(cursor, TRANSPOSES)?,
        17 => Attribute::Type(entries.ty(cursor, depth)?),
        18 => {
            let bounds = cursor.signed_list()?;
            Attribute::List(bounds.into_iter().map(|size| Attribute::Int(size.into())).collect())
        }
        19 => keyword(cursor, ACCURACY_MODES)?,
        20 => {
            // The tolerances of a result, which is computed as exactly as without them.
            float(cursor, DType::F64)?;
            float(cursor, DType::F64)?;
            cursor.signed_integer()?;
            entries.attribute(cursor, depth)?
        }
        21..=25 => skip_mesh(cursor)?,
        code => return Err(start.error(format!("VHLO has no attribute {code}"))),
    })
}

/// Skips axes of a mesh of devices, which only collective operations refer to.
fn skip_mesh(cursor: &mut Cursor<'_>) -> Result<Attribute> {
    while !cursor.is_empty() {
        cursor.varint()?;
    }
    Ok(Attribute::Unit)
}

/// Reads pairs of a name and a value.
pub(super) fn dictionary(
    entries: &mut Entries<'_>,
    cursor: &mut Cursor<'_>,
    depth: usize,
) -> Result<Attribute> {
    let mut found = Vec::new();
    for _ in 0..cursor.count()? {
        let start = *cursor;
        let Attribute::String(name) = entries.attribute(cursor, depth)? else {
            return Err(start.error("the name of an attribute must be a string"));
        };
        found.push((name, entries.attribute(cursor, depth)?));
    }
    Ok(Attribute::Dictionary(found))
}

/// Converts a string. Binary strings, which only custom calls have, lose the bytes that are not UTF-8.
pub(super) fn text(bytes: &[u8]) -> Attribute {
    Attribute::String(String::from_utf8_lossy(bytes).into_owned())
}

/// Reads the keyword of an enumeration.
fn keyword(cursor: &mut Cursor<'_>, keywords: &[&str]) -> Result<Attribute> {
    let start = *cursor;
    let index = cursor.index()?;
    match keywords.get(index) {
        Some(&keyword) => Ok(Attribute::Keyword(keyword.to_owned())),
        None => Err(start.error(format!("an enumeration has no value {index}"))),
    }
}

/// Returns the type of a number.
pub(super) fn number(dtype: DType) -> Type {
    Type::Tensor(TensorType::scalar(dtype))
}

/// Reads the type of a number.
pub(super) fn scalar(
    entries: &mut Entries<'_>,
    cursor: &mut Cursor<'_>,
    depth: usize,
) -> Result<DType> {
    let start = *cursor;
    match entries.ty(cursor, depth)? {
        Type::Tensor(ty) if ty.rank() == 0 && !ty.dtype.is_complex() => Ok(ty.dtype),
        _ => Err(start.error("the type of a number is not supported")),
    }
}

/// Returns a type without parameters.
fn plain_type(code: u64) -> Option<Type> {
    let other = |name: &str| Some(Type::Other(name.to_owned()));
    Some(number(match code {
        0 => DType::Pred,
        2 => DType::BF16,
        3 => DType::F16,
        4 => DType::F32,
        5 => DType::F64,
        6 => DType::F8E4M3FN,
        7 => DType::F8E5M2,
        9 | 14 => DType::S64,
        10 => DType::S4,
        11 => DType::S8,
        12 => DType::S16,
        13 => DType::S32,
        15 => DType::U4,
        16 => DType::U8,
        17 => DType::U16,
        18 => DType::U32,
        19 => DType::U64,
        31 => DType::S2,
        32 => DType::U2,
        22 => return other("!stablehlo.token"),
        26 => return other("!shape.witness"),
        27 => return other("f8E4M3FNUZ"),
        28 => return other("f8E5M2FNUZ"),
        29 => return other("f8E4M3B11FNUZ"),
        33 => return other("none"),
        34 => return other("tf32"),
        35 => return other("f8E4M3"),
        36 => return other("f8E3M4"),
        37 => return other("f4E2M1FN"),
        38 => return other("f6E2M3FN"),
        39 => return other("f6E3M2FN"),
        40 => return other("f8E8M0FNU"),
        _ => return None,
    }))
}

/// Reads a type after the number of its dialect.
pub(super) fn ty(entries: &mut Entries<'_>, cursor: &mut Cursor<'_>, depth: usize) -> Result<Type> {
    let start = *cursor;
    let code = cursor.varint()?;
    if let Some(plain) = plain_type(code) {
        return Ok(plain);
    }
    Ok(match code {
        1 => complex(&entries.ty(cursor, depth)?, &start)?,
        8 => Type::Function(entries.types(cursor, depth)?, entries.types(cursor, depth)?),
        20 | 21 => {
            if code == 21 {
                entries.attribute(cursor, depth)?;
            }
            let sizes = cursor.signed_list()?;
            tensor(&sizes, entries.ty(cursor, depth)?, code == 20, &start)?
        }
        23 => Type::Tuple(entries.types(cursor, depth)?),
        24 | 30 => {
            // Quantized types have no counterpart; their parameters are skipped.
            cursor.skip_rest();
            Type::Other("!quant.uniform".into())
        }
        25 => {
            entries.ty(cursor, depth)?;
            Type::Other("tensor<*>".into())
        }
        41 => {
            cursor.signed_list()?;
            entries.ty(cursor, depth)?;
            Type::Other("memref".into())
        }
        42 => {
            entries.types(cursor, depth)?;
            Type::Other("!stablehlo.future".into())
        }
        code => return Err(start.error(format!("VHLO has no type {code}"))),
    })
}

/// Returns the type of complex numbers with parts of a type.
pub(super) fn complex(part: &Type, start: &Cursor<'_>) -> Result<Type> {
    let dtype = match part {
        Type::Tensor(ty) if ty.dtype == DType::F32 => DType::C64,
        Type::Tensor(ty) if ty.dtype == DType::F64 => DType::C128,
        Type::Tensor(_) | Type::Tuple(_) | Type::Function(..) | Type::Other(_) => {
            return Err(start.error("the parts of a complex number must be f32 or f64"));
        }
    };
    Ok(number(dtype))
}

/// Returns the type of a tensor. A negative size is dynamic.
pub(super) fn tensor(
    sizes: &[i64],
    element: Type,
    is_plain: bool,
    start: &Cursor<'_>,
) -> Result<Type> {
    let fixed: Option<Vec<usize>> = sizes.iter().map(|&size| usize::try_from(size).ok()).collect();
    let name = match element {
        Type::Tensor(ty) => match fixed {
            Some(sizes) if is_plain => {
                let shape = Shape::from(sizes);
                if shape.check_limits().is_err() || shape.checked_size().is_none() {
                    return Err(start.error("the tensor has too many axes or elements"));
                }
                return Ok(Type::Tensor(TensorType::new(ty.dtype, shape)));
            }
            _ => ty.dtype.to_string(),
        },
        Type::Other(name) => name,
        Type::Tuple(_) | Type::Function(..) => {
            return Err(start.error("the elements of a tensor must be numbers"));
        }
    };
    let size = |&size: &i64| if size < 0 { "?x".to_owned() } else { format!("{size}x") };
    let sizes: String = sizes.iter().map(size).collect();
    Ok(Type::Other(format!("tensor<{sizes}{name}>")))
}
