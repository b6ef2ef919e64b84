//! Tokens of MLIR text.

use super::malformed_line;
use crate::Result;

/// A token. Strings are slices of the text.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'a> {
    /// A keyword or a name, such as `stablehlo.add`.
    Word(&'a str),
    /// `%name`, without `%`; the number of a result stays a part of the name.
    Value(&'a str),
    /// `@name`, without `@` and quotation marks.
    Symbol(&'a str),
    /// `#name`, without `#`.
    Hash(&'a str),
    /// `!name`, without `!`.
    Bang(&'a str),
    /// `^name`.
    Block(&'a str),
    /// A number, with its sign.
    Number(&'a str),
    /// A string with its escapes, without quotation marks.
    String(&'a str),
    Arrow,
    Punctuation(u8),
    End,
}

/// A position in the text from which reading can continue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Checkpoint {
    offset: usize,
    line: usize,
}

impl Checkpoint {
    pub(super) fn offset(self) -> usize {
        self.offset
    }
}

/// A reader of tokens.
#[derive(Clone, Debug)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    offset: usize,
    line: usize,
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.' | b'-')
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, offset: 0, line: 1 }
    }

    pub(super) fn checkpoint(&self) -> Checkpoint {
        Checkpoint { offset: self.offset, line: self.line }
    }

    pub(super) fn seek(&mut self, to: Checkpoint) {
        (self.offset, self.line) = (to.offset, to.line);
    }

    pub(super) fn line(&self) -> usize {
        self.line
    }

    pub(super) fn text(&self) -> &'a str {
        self.text
    }

    pub(super) fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.offset).copied()
    }

    /// Moves over bytes without line breaks.
    pub(super) fn advance(&mut self, bytes: usize) {
        self.offset += bytes;
    }

    /// Moves over white space and comments.
    pub(super) fn skip_space(&mut self) {
        while let Some(byte) = self.byte() {
            match byte {
                b'\n' => {
                    self.line += 1;
                    self.offset += 1;
                }
                b' ' | b'\t' | b'\r' => self.offset += 1,
                b'/' if self.text.as_bytes()[self.offset..].starts_with(b"//") => {
                    let rest = &self.text.as_bytes()[self.offset..];
                    self.offset +=
                        rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
                }
                _ => return,
            }
        }
    }

    /// Reads bytes that satisfy a predicate.
    pub(super) fn take_while(&mut self, accept: impl Fn(u8) -> bool) -> &'a str {
        let rest = &self.text[self.offset..];
        let length = rest.bytes().position(|byte| !accept(byte)).unwrap_or(rest.len());
        self.offset += length;
        // The predicates accept ASCII only.
        &rest[..length]
    }

    fn name(&mut self) -> &'a str {
        let start = self.offset;
        self.take_while(is_name);
        // A minus that begins an arrow ends the name.
        if self.text[start..self.offset].ends_with('-') && self.byte() == Some(b'>') {
            self.offset -= 1;
        }
        &self.text[start..self.offset]
    }

    fn string(&mut self) -> Result<&'a str> {
        let (start, line) = (self.offset + 1, self.line);
        self.offset = start;
        loop {
            match self.byte() {
                None => {
                    return Err(malformed_line(line, "the string must end with a quotation mark"));
                }
                Some(b'"') => {
                    let text = &self.text[start..self.offset];
                    self.offset += 1;
                    return Ok(text);
                }
                Some(b'\\') => self.offset += 2,
                Some(byte) => {
                    self.line += usize::from(byte == b'\n');
                    self.offset += 1;
                }
            }
            if self.offset > self.text.len() {
                self.offset = self.text.len();
            }
        }
    }

    fn number(&mut self) -> &'a str {
        let start = self.offset;
        if self.byte() == Some(b'-') {
            self.offset += 1;
        }
        if self.text.as_bytes()[self.offset..].starts_with(b"0x") {
            self.offset += 2;
            self.take_while(|byte| byte.is_ascii_hexdigit());
            return &self.text[start..self.offset];
        }
        self.take_while(|byte| byte.is_ascii_digit());
        let rest = self.text.as_bytes();
        if self.byte() == Some(b'.') {
            self.offset += 1;
            self.take_while(|byte| byte.is_ascii_digit());
        }
        if matches!(self.byte(), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(rest.get(self.offset + 1), Some(b'+' | b'-')));
            if rest.get(self.offset + 1 + sign).is_some_and(u8::is_ascii_digit) {
                self.offset += 1 + sign;
                self.take_while(|byte| byte.is_ascii_digit());
            }
        }
        &self.text[start..self.offset]
    }

    /// Reads the next token.
    pub(super) fn next(&mut self) -> Result<Token<'a>> {
        self.skip_space();
        let Some(byte) = self.byte() else { return Ok(Token::End) };
        let following = self.text.as_bytes().get(self.offset + 1).copied();
        Ok(match byte {
            b'%' => {
                self.offset += 1;
                Token::Value(self.take_while(|byte| is_name(byte) || byte == b'#'))
            }
            b'@' if following == Some(b'"') => {
                self.offset += 1;
                Token::Symbol(self.string()?)
            }
            b'@' => {
                self.offset += 1;
                Token::Symbol(self.name())
            }
            b'#' => {
                self.offset += 1;
                Token::Hash(self.name())
            }
            b'!' => {
                self.offset += 1;
                Token::Bang(self.name())
            }
            b'^' => {
                self.offset += 1;
                Token::Block(self.name())
            }
            b'"' => Token::String(self.string()?),
            b'-' if following == Some(b'>') => {
                self.offset += 2;
                Token::Arrow
            }
            b'-' if following.is_some_and(|byte| byte.is_ascii_digit()) => {
                Token::Number(self.number())
            }
            byte if byte.is_ascii_digit() => Token::Number(self.number()),
            byte if byte.is_ascii_alphabetic() || byte == b'_' => Token::Word(self.name()),
            byte if byte.is_ascii() => {
                self.offset += 1;
                Token::Punctuation(byte)
            }
            _ => {
                return Err(malformed_line(self.line, "the text must be ASCII outside of strings"));
            }
        })
    }

    /// Returns the next token without consuming it.
    pub(super) fn peek(&self) -> Result<Token<'a>> {
        self.clone().next()
    }

    /// Consumes the next token if it is this punctuation mark.
    pub(super) fn eat(&mut self, mark: u8) -> Result<bool> {
        self.skip_space();
        let found = self.byte() == Some(mark);
        self.offset += usize::from(found);
        Ok(found)
    }

    /// Consumes a punctuation mark.
    pub(super) fn expect(&mut self, mark: u8) -> Result<()> {
        if self.eat(mark)? {
            return Ok(());
        }
        Err(self.unexpected(&format!("`{}`", char::from(mark))))
    }

    /// Consumes the closing bracket of a list, or the comma before its next entry. Returns whether
    /// the list ends.
    pub(super) fn ends_list(&mut self, close: u8) -> Result<bool> {
        if self.eat(close)? {
            return Ok(true);
        }
        self.expect(b',')?;
        Ok(false)
    }

    /// Consumes the next token if it is this word.
    pub(super) fn eat_word(&mut self, word: &str) -> Result<bool> {
        let mut ahead = self.clone();
        let found = ahead.next()? == Token::Word(word);
        if found {
            *self = ahead;
        }
        Ok(found)
    }

    /// Creates an error about the next token.
    pub(super) fn unexpected(&mut self, expected: &str) -> crate::ImportError {
        self.skip_space();
        let rest: String = self.text[self.offset.min(self.text.len())..].chars().take(30).collect();
        let found = rest.lines().next().unwrap_or_default();
        let found = if found.is_empty() { "the end of the text" } else { found };
        malformed_line(self.line, format!("expected {expected}; got {found}"))
    }

    /// Skips everything from the next opening bracket to its closing bracket. Brackets inside of
    /// strings do not count.
    pub(super) fn skip_brackets(&mut self) -> Result<()> {
        let line = self.line;
        let mut open = Vec::new();
        loop {
            match self.next()? {
                Token::Punctuation(mark @ (b'(' | b'[' | b'{' | b'<')) => open.push(mark),
                Token::Punctuation(mark @ (b')' | b']' | b'}' | b'>')) => {
                    let pair = match mark {
                        b')' => b'(',
                        b']' => b'[',
                        b'}' => b'{',
                        _ => b'<',
                    };
                    if open.pop() != Some(pair) {
                        return Err(malformed_line(line, "the brackets must be balanced"));
                    }
                    if open.is_empty() {
                        return Ok(());
                    }
                }
                Token::End => return Err(malformed_line(line, "the bracket must be closed")),
                _ if open.is_empty() => return Err(self.unexpected("a bracket")),
                _ => {}
            }
        }
    }
}
