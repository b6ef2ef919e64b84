//! Constant tensors in MLIR text: nested lists of elements, one repeated element, and hexadecimal bytes.

use nxla_expr::TensorType;
use nxla_tensor::{DType, HostTensor, Kind, Scalar, Shape, TensorError};

use super::lexer::{Lexer, Token};
use super::syntax::{Dense, Position};
use super::{malformed_at, malformed_line};
use crate::Result;

/// Reads the elements between the angle brackets of a dense constant.
pub(super) fn read(lexer: &mut Lexer<'_>, ty: &TensorType) -> Result<Dense> {
    let line = lexer.line();
    lexer.skip_space();
    match lexer.peek()? {
        Token::Punctuation(b'>') => {
            lexer.expect(b'>')?;
            from_bytes(&[], ty, Position::Line(line))
        }
        Token::String(text) => {
            lexer.next()?;
            lexer.expect(b'>')?;
            from_bytes(&hex_bytes(text, line)?, ty, Position::Line(line))
        }
        Token::Punctuation(b'[') => {
            let bytes = list(lexer, ty)?;
            lexer.expect(b'>')?;
            tensor(&bytes, ty, Position::Line(line)).map(Dense::Tensor)
        }
        _ => {
            let mut bytes = Vec::new();
            element(lexer, ty.dtype, &mut bytes)?;
            lexer.expect(b'>')?;
            let scalar = TensorType::scalar(ty.dtype);
            Ok(Dense::Splat(tensor(&bytes, &scalar, Position::Line(line))?, ty.clone()))
        }
    }
}

fn tensor(bytes: &[u8], ty: &TensorType, position: Position) -> Result<HostTensor> {
    HostTensor::from_bytes(ty.dtype, ty.shape.clone(), bytes)
        .map_err(|error| malformed_at(position, error.to_string()))
}

/// Creates a constant of raw little-endian elements: all elements, or one that is repeated. Booleans
/// have one byte or one bit each; a single byte 0 or 0xff is repeated.
pub(super) fn from_bytes(bytes: &[u8], ty: &TensorType, position: Position) -> Result<Dense> {
    let (size, count) = (ty.dtype.size(), ty.shape.size());
    let is_packed = ty.dtype.is_pred()
        && bytes.len() == count.div_ceil(8)
        && bytes.len() != count
        && !matches!(bytes, [0 | 0xff]);
    let is_splat = bytes.len() == size && count != 1 && !is_packed;
    let unpacked: Vec<u8>;
    let bytes = if ty.dtype.is_pred() {
        unpacked = if is_packed {
            (0..count).map(|index| bytes[index / 8] >> (index % 8) & 1).collect()
        } else {
            bytes.iter().map(|&byte| u8::from(byte != 0)).collect()
        };
        &unpacked
    } else if ty.dtype.bits() < 8 {
        // The high bits of narrow integers are zeros in the file, and copies of the sign in tensors.
        let shift = 8 - ty.dtype.bits();
        let extend = |&byte: &u8| {
            if ty.dtype.is_signed() {
                ((byte << shift).cast_signed() >> shift).cast_unsigned()
            } else {
                byte << shift >> shift
            }
        };
        unpacked = bytes.iter().map(extend).collect();
        &unpacked
    } else {
        bytes
    };
    if is_splat {
        let scalar = TensorType::scalar(ty.dtype);
        return Ok(Dense::Splat(tensor(bytes, &scalar, position)?, ty.clone()));
    }
    tensor(bytes, ty, position).map(Dense::Tensor)
}

/// Returns the number that the low bits of an integer represent in a dtype.
pub(super) fn number_of_bits(bits: u64, dtype: DType) -> Result<f64, TensorError> {
    let bytes = &bits.to_le_bytes()[..dtype.size()];
    Ok(HostTensor::from_bytes(dtype, Shape::scalar(), bytes)?.get(0).as_f64())
}

/// Decodes a byte of two hexadecimal digits.
pub(super) fn hex_byte(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? << 4 | digit(low)?).ok()
}

/// Decodes `0x0123…`.
pub(super) fn hex_bytes(text: &str, line: usize) -> Result<Vec<u8>> {
    let digits = text.strip_prefix("0x").map(str::as_bytes).filter(|text| text.len() % 2 == 0);
    let decode = |pair: &[u8]| hex_byte(pair[0], pair[1]);
    digits.and_then(|digits| digits.chunks_exact(2).map(decode).collect()).ok_or_else(|| {
        malformed_line(line, "the bytes must be written as pairs of hexadecimal digits")
    })
}

/// Reads a nested list, whose lengths must be the sizes of the axes.
fn list(lexer: &mut Lexer<'_>, ty: &TensorType) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // The number of entries read so far, for each open bracket.
    let mut counts: Vec<usize> = Vec::new();
    loop {
        if counts.len() < ty.rank() && lexer.eat(b'[')? {
            counts.push(0);
            if !(counts.len() == ty.rank() && ty.shape[counts.len() - 1] == 0) {
                continue;
            }
        } else {
            element(lexer, ty.dtype, &mut bytes)?;
            if let Some(count) = counts.last_mut() {
                *count += 1;
            }
        }
        while lexer.eat(b']')? {
            let axis = counts.len() - 1;
            let (expected, found) = (ty.shape[axis], counts.pop().unwrap_or_default());
            if found != expected {
                let why = format!("the list must have {expected} entries; got {found}");
                return Err(malformed_line(lexer.line(), why));
            }
            match counts.last_mut() {
                Some(count) => *count += 1,
                None => return Ok(bytes),
            }
        }
        if counts.is_empty() {
            return Err(lexer.unexpected("a list"));
        }
        lexer.expect(b',')?;
    }
}

/// Reads one element and appends its bytes.
fn element(lexer: &mut Lexer<'_>, dtype: DType, bytes: &mut Vec<u8>) -> Result<()> {
    if dtype.is_complex() {
        lexer.expect(b'(')?;
        element(lexer, dtype.to_real(), bytes)?;
        lexer.expect(b',')?;
        element(lexer, dtype.to_real(), bytes)?;
        return lexer.expect(b')');
    }
    let line = lexer.line();
    let bad =
        |text: &str| malformed_line(line, format!("expected an element of {dtype}; got {text}"));
    let text = match lexer.next()? {
        Token::Word("true") => "1",
        Token::Word("false") => "0",
        Token::Number(text) => text,
        _ => return Err(bad("another token")),
    };
    if let Some(digits) = text.strip_prefix("0x")
        && dtype.kind() == Kind::Float
    {
        let bits = u64::from_str_radix(digits, 16).map_err(|_| bad(text))?;
        bytes.extend_from_slice(&bits.to_le_bytes()[..dtype.size()]);
        return Ok(());
    }
    match dtype {
        DType::F32 => bytes.extend(text.parse::<f32>().map_err(|_| bad(text))?.to_ne_bytes()),
        DType::F64 => bytes.extend(text.parse::<f64>().map_err(|_| bad(text))?.to_ne_bytes()),
        _ if dtype.is_float() => {
            let value = Scalar::Float(text.parse().map_err(|_| bad(text))?);
            bytes.extend_from_slice(HostTensor::scalar(value, dtype).bytes());
        }
        _ => {
            let value = match text.strip_prefix("0x") {
                Some(digits) => i128::from_str_radix(digits, 16),
                None => text.parse::<i128>(),
            };
            let value = value.map_err(|_| bad(text))?;
            let bits = dtype.bits();
            let limit = 1_i128 << bits;
            if value < -limit / 2 || value >= limit {
                return Err(bad(text));
            }
            // Signed sub-byte integers are stored with their sign in a byte.
            let shift = 128 - bits;
            let value =
                if dtype.is_signed() { value << shift >> shift } else { value & (limit - 1) };
            bytes.extend_from_slice(&value.to_le_bytes()[..dtype.size()]);
        }
    }
    Ok(())
}
