//! Attributes in MLIR text.

use super::lexer::{Lexer, Token};
use super::syntax::{Attribute, Dense, Position, Type};
use super::text::Resources;
use super::{MAX_DEPTH, literal, malformed_line, types};
use crate::Result;

/// Reads an attribute.
pub(super) fn read(
    lexer: &mut Lexer<'_>,
    resources: &Resources<'_>,
    depth: usize,
) -> Result<Attribute> {
    if depth > MAX_DEPTH {
        return Err(malformed_line(lexer.line(), "attributes are nested too deep"));
    }
    lexer.skip_space();
    let start = lexer.checkpoint();
    let attribute = match lexer.next()? {
        Token::Number(text) => number(lexer, text, depth)?,
        Token::String(text) => {
            read_type_suffix(lexer, depth)?;
            Attribute::String(unescape(text))
        }
        Token::Symbol(name) => {
            let mut path = name.to_owned();
            while lexer.text()[lexer.checkpoint().offset()..].starts_with("::") {
                lexer.advance(2);
                if let Token::Symbol(name) = lexer.next()? {
                    path = name.to_owned();
                }
            }
            Attribute::Symbol(path)
        }
        Token::Punctuation(b'[') => Attribute::List(list(lexer, resources, b']', depth)?),
        Token::Punctuation(b'{') => Attribute::Dictionary(dictionary(lexer, resources, depth)?),
        Token::Punctuation(b'(') => {
            let inside = lexer.checkpoint();
            lexer.seek(start);
            match types::read(lexer, depth) {
                Ok(ty) => Attribute::Type(ty),
                Err(_) => {
                    lexer.seek(inside);
                    Attribute::List(list(lexer, resources, b')', depth)?)
                }
            }
        }
        Token::Word("true") => Attribute::Bool(true),
        Token::Word("false") => Attribute::Bool(false),
        Token::Word("unit") => Attribute::Unit,
        Token::Word("dense") if lexer.byte() == Some(b'<') => dense(lexer, depth)?,
        Token::Word("dense_resource") => resource(lexer, resources, depth)?,
        Token::Word("array") if lexer.byte() == Some(b'<') => array(lexer, depth)?,
        Token::Word("tensor" | "tuple") | Token::Bang(_) => {
            lexer.seek(start);
            Attribute::Type(types::read(lexer, depth)?)
        }
        Token::Word("loc") => {
            lexer.skip_brackets()?;
            Attribute::Unit
        }
        Token::Word(word) => Attribute::Keyword(word.to_owned()),
        Token::Hash(name) => hash(lexer, resources, name, depth)?,
        Token::Punctuation(b'<') => {
            lexer.seek(start);
            angle(lexer, resources, depth)?
        }
        _ => {
            lexer.seek(start);
            return Err(lexer.unexpected("an attribute"));
        }
    };
    pairs(lexer, resources, attribute, depth)
}

/// Reads the second half of `[0] x [1]`, `[b, f]x[i, o]->[b, f]`.
fn pairs(
    lexer: &mut Lexer<'_>,
    resources: &Resources<'_>,
    first: Attribute,
    depth: usize,
) -> Result<Attribute> {
    if !matches!(first, Attribute::List(_) | Attribute::Pair(..)) {
        return Ok(first);
    }
    let is_pair = matches!(lexer.peek()?, Token::Word("x") | Token::Arrow);
    if !is_pair {
        return Ok(first);
    }
    lexer.next()?;
    let second = read(lexer, resources, depth + 1)?;
    Ok(Attribute::Pair(Box::new(first), Box::new(second)))
}

/// Reads `: type` if it follows.
fn read_type_suffix(lexer: &mut Lexer<'_>, depth: usize) -> Result<Option<Type>> {
    if lexer.eat(b':')? { types::read(lexer, depth + 1).map(Some) } else { Ok(None) }
}

fn number(lexer: &mut Lexer<'_>, text: &str, depth: usize) -> Result<Attribute> {
    let line = lexer.line();
    let bad = || malformed_line(line, format!("expected a number; got {text}"));
    // In an attribute dictionary, `:` and a type follow the value. In short forms, `:` begins the
    // type of the operation.
    let before = lexer.checkpoint();
    if lexer.eat(b':')? {
        let is_scalar = matches!(lexer.peek()?, Token::Word(name) if name != "tensor");
        if is_scalar {
            let ty = types::read(lexer, depth + 1)?;
            if let (Some(digits), Type::Tensor(ty)) = (text.strip_prefix("0x"), ty)
                && ty.dtype.is_float()
            {
                let bits = u64::from_str_radix(digits, 16).map_err(|_| bad())?;
                let value = literal::number_of_bits(bits, ty.dtype).map_err(|_| bad())?;
                return Ok(Attribute::Float(value));
            }
        } else {
            lexer.seek(before);
        }
    }
    if let Some(digits) = text.strip_prefix("0x") {
        return Ok(Attribute::Int(i128::from_str_radix(digits, 16).map_err(|_| bad())?));
    }
    match text.parse::<i128>() {
        Ok(value) => Ok(Attribute::Int(value)),
        Err(_) => Ok(Attribute::Float(text.parse().map_err(|_| bad())?)),
    }
}

/// Reads attributes up to a closing bracket.
fn list(
    lexer: &mut Lexer<'_>,
    resources: &Resources<'_>,
    close: u8,
    depth: usize,
) -> Result<Vec<Attribute>> {
    let mut entries = Vec::new();
    let mut is_end = lexer.eat(close)?;
    while !is_end {
        entries.push(read(lexer, resources, depth + 1)?);
        // The ranges of slices, `[0:2:1]`, become lists of numbers.
        let mut range = Vec::new();
        while lexer.eat(b':')? {
            range.push(read(lexer, resources, depth + 1)?);
        }
        if !range.is_empty()
            && let Some(first) = entries.pop()
        {
            range.insert(0, first);
            entries.push(Attribute::List(range));
        }
        is_end = lexer.ends_list(close)?;
    }
    Ok(entries)
}

/// Reads `key = value` entries up to a closing brace; the opening brace is consumed.
pub(super) fn dictionary(
    lexer: &mut Lexer<'_>,
    resources: &Resources<'_>,
    depth: usize,
) -> Result<Vec<(String, Attribute)>> {
    entries(lexer, resources, b'}', depth)
}

fn entries(
    lexer: &mut Lexer<'_>,
    resources: &Resources<'_>,
    close: u8,
    depth: usize,
) -> Result<Vec<(String, Attribute)>> {
    let mut entries = Vec::new();
    let mut is_end = lexer.eat(close)?;
    while !is_end {
        let key = match lexer.next()? {
            Token::Word(key) => key.to_owned(),
            Token::String(key) => unescape(key),
            _ => return Err(lexer.unexpected("the name of an attribute")),
        };
        let value =
            if lexer.eat(b'=')? { read(lexer, resources, depth + 1)? } else { Attribute::Unit };
        entries.push((key, value));
        is_end = lexer.ends_list(close)?;
    }
    Ok(entries)
}

/// Reads `<key = value, …>`, or skips other contents of angle brackets.
fn angle(lexer: &mut Lexer<'_>, resources: &Resources<'_>, depth: usize) -> Result<Attribute> {
    let start = lexer.checkpoint();
    lexer.expect(b'<')?;
    match entries(lexer, resources, b'>', depth) {
        Ok(entries) => Ok(Attribute::Dictionary(entries)),
        Err(_) => {
            lexer.seek(start);
            lexer.skip_brackets()?;
            Ok(Attribute::Unit)
        }
    }
}

/// Reads a `#dialect.name<…>` attribute: a dictionary, a keyword, or something that is skipped.
fn hash(
    lexer: &mut Lexer<'_>,
    resources: &Resources<'_>,
    name: &str,
    depth: usize,
) -> Result<Attribute> {
    if lexer.byte() != Some(b'<') {
        return Ok(Attribute::Unit);
    }
    let is_own =
        name.starts_with("stablehlo") || name.starts_with("chlo") || name.starts_with("mhlo");
    if !is_own {
        lexer.skip_brackets()?;
        return Ok(Attribute::Unit);
    }
    if name.ends_with(".conv") {
        lexer.expect(b'<')?;
        let value = read(lexer, resources, depth + 1)?;
        lexer.expect(b'>')?;
        return Ok(value);
    }
    // `#stablehlo<precision DEFAULT>` has the name of the enumeration and a keyword.
    let start = lexer.checkpoint();
    lexer.expect(b'<')?;
    if let (Token::Word(_), Token::Word(word)) = (lexer.next()?, lexer.next()?)
        && lexer.eat(b'>')?
    {
        return Ok(Attribute::Keyword(word.to_owned()));
    }
    lexer.seek(start);
    angle(lexer, resources, depth)
}

/// Reads `array<i64: 1, 2>` after the word.
fn array(lexer: &mut Lexer<'_>, depth: usize) -> Result<Attribute> {
    lexer.expect(b'<')?;
    types::read(lexer, depth + 1)?;
    let mut entries = Vec::new();
    if lexer.eat(b':')? {
        loop {
            entries.push(match lexer.next()? {
                Token::Word("true") => Attribute::Bool(true),
                Token::Word("false") => Attribute::Bool(false),
                Token::Number(text) => match text.parse::<i128>() {
                    Ok(value) => Attribute::Int(value),
                    Err(_) => Attribute::Float(text.parse().unwrap_or(f64::NAN)),
                },
                _ => return Err(lexer.unexpected("a number")),
            });
            if !lexer.eat(b',')? {
                break;
            }
        }
    }
    lexer.expect(b'>')?;
    Ok(Attribute::List(entries))
}

/// Reads `dense<…> : type` after the word. The type determines how the elements are read.
fn dense(lexer: &mut Lexer<'_>, depth: usize) -> Result<Attribute> {
    let start = lexer.checkpoint();
    lexer.skip_brackets()?;
    lexer.expect(b':')?;
    let ty = types::read(lexer, depth + 1)?;
    let end = lexer.checkpoint();
    let Type::Tensor(ty) = ty else {
        let Type::Other(text) = ty else { return Err(lexer.unexpected("a tensor type")) };
        return Ok(Attribute::Dense(Dense::Other(text)));
    };
    lexer.seek(start);
    lexer.expect(b'<')?;
    let dense = literal::read(lexer, &ty)?;
    lexer.seek(end);
    Ok(Attribute::Dense(dense))
}

/// Reads `dense_resource<name> : type` after the word.
fn resource(lexer: &mut Lexer<'_>, resources: &Resources<'_>, depth: usize) -> Result<Attribute> {
    lexer.expect(b'<')?;
    let name = match lexer.next()? {
        Token::Word(name) | Token::String(name) => name,
        _ => return Err(lexer.unexpected("the name of a resource")),
    };
    lexer.expect(b'>')?;
    lexer.expect(b':')?;
    let line = lexer.line();
    let Type::Tensor(ty) = types::read(lexer, depth + 1)? else {
        return Err(malformed_line(line, "a resource must have a tensor type with a known dtype"));
    };
    let missing = || malformed_line(line, format!("the resource {name} is missing"));
    let bytes = literal::hex_bytes(resources.get(name).ok_or_else(missing)?, line)?;
    // The first four bytes hold the alignment.
    let content = bytes.get(4..).ok_or_else(missing)?;
    Ok(Attribute::Dense(literal::from_bytes(content, &ty, Position::Line(line))?))
}

/// Resolves the escapes of a string.
pub(super) fn unescape(text: &str) -> String {
    if !text.contains('\\') {
        return text.to_owned();
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [byte, tail @ ..] = rest {
        rest = tail;
        if *byte != b'\\' {
            bytes.push(*byte);
            continue;
        }
        if let [high, low, tail @ ..] = rest
            && let Some(byte) = literal::hex_byte(*high, *low)
        {
            bytes.push(byte);
            rest = tail;
        } else if let [byte, tail @ ..] = rest {
            bytes.push(match byte {
                b'n' => b'\n',
                b't' => b'\t',
                other => *other,
            });
            rest = tail;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
