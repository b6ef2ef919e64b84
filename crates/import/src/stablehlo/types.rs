//! Types in MLIR text.

use nxla_expr::TensorType;
use nxla_tensor::{DType, Shape};

use super::lexer::{Lexer, Token};
use super::syntax::Type;
use super::{MAX_DEPTH, malformed_line};
use crate::Result;

/// Returns the dtype of an element type. Indices are read as 64-bit integers.
fn dtype(name: &str) -> Option<DType> {
    if name == "index" { Some(DType::S64) } else { DType::from_mlir_name(name) }
}

/// Reads a type.
pub(super) fn read(lexer: &mut Lexer<'_>, depth: usize) -> Result<Type> {
    if depth > MAX_DEPTH {
        return Err(malformed_line(lexer.line(), "types are nested too deep"));
    }
    lexer.skip_space();
    let start = lexer.checkpoint();
    match lexer.next()? {
        Token::Word("tensor") => tensor(lexer),
        Token::Word("tuple") => {
            lexer.expect(b'<')?;
            list(lexer, b'>', depth).map(Type::Tuple)
        }
        Token::Punctuation(b'(') => {
            let inputs = list(lexer, b')', depth)?;
            if lexer.next()? != Token::Arrow {
                return Err(lexer.unexpected("`->`"));
            }
            Ok(Type::Function(inputs, results(lexer, depth)?))
        }
        Token::Word(name) if name != "complex" && dtype(name).is_some() => {
            let found = dtype(name).map(TensorType::scalar).map(Type::Tensor);
            Ok(found.unwrap_or_else(|| Type::Other(name.into())))
        }
        Token::Word(_) | Token::Bang(_) => {
            if lexer.byte() == Some(b'<') {
                lexer.skip_brackets()?;
            }
            let text = &lexer.text()[start.offset()..lexer.checkpoint().offset()];
            Ok(Type::Other(text.into()))
        }
        _ => {
            lexer.seek(start);
            Err(lexer.unexpected("a type"))
        }
    }
}

/// Reads the result types of a function: one type, or a list in parentheses.
pub(super) fn results(lexer: &mut Lexer<'_>, depth: usize) -> Result<Vec<Type>> {
    if lexer.eat(b'(')? {
        return list(lexer, b')', depth);
    }
    Ok(vec![read(lexer, depth + 1)?])
}

/// Reads types up to a closing bracket.
fn list(lexer: &mut Lexer<'_>, close: u8, depth: usize) -> Result<Vec<Type>> {
    let mut types = Vec::new();
    let mut is_end = lexer.eat(close)?;
    while !is_end {
        types.push(read(lexer, depth + 1)?);
        is_end = lexer.ends_list(close)?;
    }
    Ok(types)
}

/// Reads a tensor type after the word `tensor`.
fn tensor(lexer: &mut Lexer<'_>) -> Result<Type> {
    let start = lexer.checkpoint();
    lexer.expect(b'<')?;
    let mut sizes = Vec::new();
    let mut is_static = true;
    loop {
        lexer.skip_space();
        match lexer.byte() {
            Some(b'?') => {
                lexer.advance(1);
                is_static = false;
            }
            Some(byte) if byte.is_ascii_digit() => {
                let digits = lexer.take_while(|byte| byte.is_ascii_digit());
                let size = digits.parse::<i64>().ok().and_then(|size| usize::try_from(size).ok());
                let why = || format!("the size of an axis must fit in 63 bits; got {digits}");
                sizes.push(size.ok_or_else(|| malformed_line(lexer.line(), why()))?);
            }
            _ => break,
        }
        if lexer.byte() != Some(b'x') {
            return Err(lexer.unexpected("`x` after the size of an axis"));
        }
        lexer.advance(1);
    }
    let mut element =
        lexer.take_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_').to_owned();
    if element == "complex" {
        lexer.expect(b'<')?;
        element = format!("complex<{}>", lexer.take_while(|byte| byte.is_ascii_alphanumeric()));
        lexer.expect(b'>')?;
    }
    let known = dtype(&element).filter(|_| is_static && lexer.byte() == Some(b'>'));
    let Some(dtype) = known else {
        lexer.seek(start);
        lexer.skip_brackets()?;
        let text = &lexer.text()[start.offset()..lexer.checkpoint().offset()];
        return Ok(Type::Other(format!("tensor{text}")));
    };
    lexer.expect(b'>')?;
    let shape = Shape::from(sizes);
    if shape.check_limits().is_err() || shape.checked_size().is_none() {
        return Err(malformed_line(lexer.line(), "the tensor has too many axes or elements"));
    }
    Ok(Type::Tensor(TensorType::new(dtype, shape)))
}
