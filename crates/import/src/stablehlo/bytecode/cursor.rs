//! A cursor over MLIR bytecode. Every read is checked against the unread bytes, and every error names
//! the byte in the file.

use crate::stablehlo::malformed_at;
use crate::stablehlo::syntax::Position;
use crate::{ImportError, Result};

/// The flag of a section with an alignment.
const ALIGNED: u8 = 0x80;

/// Unread bytes and their position in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    offset: usize,
    /// The position of the bytecode in the file, from which alignments count.
    origin: usize,
}

impl<'a> Cursor<'a> {
    /// Creates a cursor at the start of bytecode.
    pub(super) fn new(bytes: &'a [u8], origin: usize) -> Self {
        Self { bytes, offset: origin, origin }
    }

    /// Returns the position of the next byte.
    pub(super) fn position(&self) -> Position {
        Position::Byte(self.offset)
    }

    /// Creates an error at the next byte.
    pub(super) fn error(&self, why: impl Into<String>) -> ImportError {
        malformed_at(self.position(), why)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns an error unless all bytes were read.
    pub(super) fn end(&self, what: &str) -> Result<()> {
        match self.bytes.len() {
            0 => Ok(()),
            left => Err(self.error(format!("{what} must end here; got {left} more bytes"))),
        }
    }

    /// Reads bytes as a cursor of their own.
    pub(super) fn part(&mut self, count: usize) -> Result<Self> {
        let start = *self;
        Ok(Self { bytes: self.take(count)?, ..start })
    }

    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let Some((taken, rest)) = self.bytes.split_at_checked(count) else {
            let left = self.bytes.len();
            return Err(self.error(format!("needs {count} bytes; got {left}")));
        };
        self.bytes = rest;
        self.offset += count;
        Ok(taken)
    }

    /// Reads the last `count` bytes.
    pub(super) fn take_end(&mut self, count: usize) -> Result<&'a [u8]> {
        let left = self.bytes.len();
        let split = left.checked_sub(count).and_then(|at| self.bytes.split_at_checked(at));
        let Some((rest, taken)) = split else {
            return Err(self.error(format!("needs {count} bytes; got {left}")));
        };
        self.bytes = rest;
        Ok(taken)
    }

    /// Skips the unread bytes.
    pub(super) fn skip_rest(&mut self) {
        self.offset += self.bytes.len();
        self.bytes = &[];
    }

    pub(super) fn byte(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    /// Reads an unsigned integer. The zeros at the low end of the first byte count the bytes that
    /// follow.
    pub(super) fn varint(&mut self) -> Result<u64> {
        let mut start = *self;
        let zeros = start.byte()?.trailing_zeros() as usize;
        let mut wide = [0; 16];
        let taken = self.take(zeros + 1)?;
        wide[..taken.len()].copy_from_slice(taken);
        let value = u128::from_le_bytes(wide) >> (zeros + 1).min(8);
        Ok(u64::try_from(value).unwrap_or(u64::MAX))
    }

    /// Reads a signed integer, whose lowest bit is the sign.
    pub(super) fn signed_integer(&mut self) -> Result<i64> {
        let value = self.varint()?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    /// Reads an index or a number of bytes.
    pub(super) fn index(&mut self) -> Result<usize> {
        // An integer beyond the address space is beyond every table and every file too.
        Ok(usize::try_from(self.varint()?).unwrap_or(usize::MAX))
    }

    /// Reads an index and a flag in its lowest bit.
    pub(super) fn index_and_flag(&mut self) -> Result<(usize, bool)> {
        let value = self.varint()?;
        Ok((usize::try_from(value >> 1).unwrap_or(usize::MAX), value & 1 == 1))
    }

    /// Reads the number of elements that follow. Each element has at least one byte, so a number
    /// beyond the unread bytes is an error.
    pub(super) fn count(&mut self) -> Result<usize> {
        let start = *self;
        let count = self.index()?;
        start.check_count(count)?;
        Ok(count)
    }

    /// Returns an error if `count` elements cannot follow.
    pub(super) fn check_count(&self, count: usize) -> Result<()> {
        let left = self.bytes.len();
        if count > left {
            return Err(self.error(format!("{count} elements do not fit in {left} bytes")));
        }
        Ok(())
    }

    /// Reads signed integers with their number.
    pub(super) fn signed_list(&mut self) -> Result<Vec<i64>> {
        (0..self.count()?).map(|_| self.signed_integer()).collect()
    }

    /// Reads bytes with their number.
    pub(super) fn blob(&mut self) -> Result<&'a [u8]> {
        let count = self.index()?;
        self.take(count)
    }

    /// Reads bytes up to a zero.
    pub(super) fn c_string(&mut self) -> Result<&'a [u8]> {
        let Some(end) = self.bytes.iter().position(|&byte| byte == 0) else {
            return Err(self.error("a string must end with a zero"));
        };
        let text = self.take(end)?;
        self.byte()?;
        Ok(text)
    }

    /// Skips bytes up to a multiple of an alignment.
    pub(super) fn align(&mut self, alignment: usize) -> Result<()> {
        if !alignment.is_power_of_two() {
            return Err(self.error(format!("an alignment must be a power of two; got {alignment}")));
        }
        let from_start = self.offset - self.origin;
        self.take(from_start.wrapping_neg() & (alignment - 1)).map(|_| ())
    }

    /// Reads the number and the content of a section.
    pub(super) fn section(&mut self) -> Result<(u8, Self)> {
        let head = self.byte()?;
        let length = self.index()?;
        if head & ALIGNED != 0 {
            let alignment = self.index()?;
            self.align(alignment)?;
        }
        Ok((head & !ALIGNED, self.part(length)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_one_to_nine_bytes() {
        for (bytes, expected) in [
            (&[0x01][..], 0),
            (&[0xff], 127),
            (&[0x02, 0x02], 128),
            (&[0xfe, 0xff], (1 << 14) - 1),
            (&[0x80, 1, 2, 3, 4, 5, 6, 7], 0x0007_0605_0403_0201),
            (&[0, 1, 2, 3, 4, 5, 6, 7, 8], 0x0807_0605_0403_0201),
        ] {
            let mut cursor = Cursor::new(bytes, 0);
            assert_eq!(cursor.varint().unwrap(), expected, "{bytes:?}");
            assert!(cursor.is_empty());
            assert!(Cursor::new(&bytes[..bytes.len() - 1], 0).varint().is_err());
        }
        for (byte, expected) in [(0x01, 0), (0x03, -1), (0x05, 1), (0x07, -2), (0xff, -64)] {
            assert_eq!(Cursor::new(&[byte], 0).signed_integer().unwrap(), expected);
        }
    }
}
