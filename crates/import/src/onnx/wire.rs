//! The wire format of protocol buffers: a cursor over bytes that yields tagged fields.
//!
//! The reader allocates nothing, so memory is bounded by what the callers store. Every error names
//! the byte in the file.

use crate::error::ImportError;

/// The value of a field.
#[derive(Clone, Copy, Debug)]
pub(super) enum Field<'a> {
    /// A variable-length integer.
    Varint(u64),
    /// Eight bytes.
    Fixed64(u64),
    /// A string, bytes, a message or packed numbers.
    Bytes(Message<'a>),
    /// Four bytes.
    Fixed32(u32),
}

/// Bytes of a message with their position in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) offset: usize,
}

impl<'a> Message<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, offset: 0 }
    }

    /// Creates an error at the start of the unread bytes.
    pub(super) fn error(&self, why: impl Into<String>) -> ImportError {
        super::error::at_byte(self.offset, why)
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], ImportError> {
        let Some((taken, rest)) = self.bytes.split_at_checked(count) else {
            let why = format!("a field of {count} bytes ends after {} bytes", self.bytes.len());
            return Err(self.error(why));
        };
        self.bytes = rest;
        self.offset += count;
        Ok(taken)
    }

    /// Reads a variable-length integer.
    pub(super) fn varint(&mut self) -> Result<u64, ImportError> {
        let mut value = 0_u64;
        for (index, &byte) in self.bytes.iter().enumerate().take(10) {
            value |= u64::from(byte & 0x7f) << (7 * index).min(63);
            if byte < 0x80 {
                self.bytes = &self.bytes[index + 1..];
                self.offset += index + 1;
                return Ok(value);
            }
        }
        Err(self.error("an integer is truncated or longer than 10 bytes"))
    }

    /// Reads the next field and its number, or `None` at the end of the message.
    pub(super) fn field(&mut self) -> Result<Option<(u64, Field<'a>)>, ImportError> {
        if self.bytes.is_empty() {
            return Ok(None);
        }
        let start = *self;
        let tag = self.varint()?;
        let number = tag >> 3;
        if number == 0 {
            return Err(start.error("a field has the number 0"));
        }
        let field = match tag & 7 {
            0 => Field::Varint(self.varint()?),
            1 => Field::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let count = usize::try_from(self.varint()?).unwrap_or(usize::MAX);
                let offset = self.offset;
                Field::Bytes(Message { bytes: self.take(count)?, offset })
            }
            5 => Field::Fixed32(u32::from_le_bytes(self.array()?)),
            other => return Err(start.error(format!("a field has the unknown wire type {other}"))),
        };
        Ok(Some((number, field)))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ImportError> {
        let taken = self.take(N)?;
        Ok(taken.try_into().expect("the slice has this length"))
    }

    /// Returns the bytes as a string.
    pub(super) fn text(self) -> Result<&'a str, ImportError> {
        std::str::from_utf8(self.bytes).map_err(|_| self.error("a string is not valid UTF-8"))
    }
}

impl<'a> Field<'a> {
    /// Returns the message, string or bytes.
    pub(super) fn message(self, around: &Message<'a>) -> Result<Message<'a>, ImportError> {
        match self {
            Field::Bytes(message) => Ok(message),
            Field::Varint(_) | Field::Fixed64(_) | Field::Fixed32(_) => {
                Err(around.error("a field before this byte must have a length"))
            }
        }
    }

    /// Returns the string.
    pub(super) fn text(self, around: &Message<'a>) -> Result<String, ImportError> {
        Ok(self.message(around)?.text()?.to_owned())
    }

    /// Returns the integer.
    pub(super) fn integer(self, around: &Message<'a>) -> Result<i64, ImportError> {
        match self {
            Field::Varint(value) => Ok(value.cast_signed()),
            Field::Bytes(_) | Field::Fixed64(_) | Field::Fixed32(_) => {
                Err(around.error("a field before this byte must be an integer"))
            }
        }
    }

    /// Appends the integers of a field, packed or not.
    pub(super) fn integers(
        self,
        around: &Message<'a>,
        to: &mut Vec<u64>,
    ) -> Result<(), ImportError> {
        match self {
            Field::Varint(value) => to.push(value),
            Field::Bytes(mut packed) => {
                while !packed.bytes.is_empty() {
                    to.push(packed.varint()?);
                }
            }
            Field::Fixed64(_) | Field::Fixed32(_) => {
                return Err(around.error("a field before this byte must contain integers"));
            }
        }
        Ok(())
    }

    /// Appends the 32-bit floats of a field, packed or not.
    pub(super) fn floats(self, around: &Message<'a>, to: &mut Vec<f32>) -> Result<(), ImportError> {
        match self {
            Field::Fixed32(bits) => to.push(f32::from_bits(bits)),
            Field::Bytes(packed) if packed.bytes.len().is_multiple_of(4) => {
                let (chunks, _) = packed.bytes.as_chunks::<4>();
                to.extend(chunks.iter().map(|&chunk| f32::from_le_bytes(chunk)));
            }
            Field::Bytes(_) | Field::Varint(_) | Field::Fixed64(_) => {
                return Err(around.error("a field before this byte must contain 32-bit floats"));
            }
        }
        Ok(())
    }

    /// Appends the 64-bit floats of a field, packed or not.
    pub(super) fn doubles(
        self,
        around: &Message<'a>,
        to: &mut Vec<f64>,
    ) -> Result<(), ImportError> {
        match self {
            Field::Fixed64(bits) => to.push(f64::from_bits(bits)),
            Field::Bytes(packed) if packed.bytes.len().is_multiple_of(8) => {
                let (chunks, _) = packed.bytes.as_chunks::<8>();
                to.extend(chunks.iter().map(|&chunk| f64::from_le_bytes(chunk)));
            }
            Field::Bytes(_) | Field::Varint(_) | Field::Fixed32(_) => {
                return Err(around.error("a field before this byte must contain 64-bit floats"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(bytes: &[u8]) -> Result<Vec<u64>, String> {
        let mut message = Message::new(bytes);
        let mut numbers = Vec::new();
        while let Some((number, _)) = message.field().map_err(|error| error.to_string())? {
            numbers.push(number);
        }
        Ok(numbers)
    }

    #[test]
    fn fields_of_every_wire_type_are_read() {
        let bytes = [
            &[0x08, 0x96, 0x01][..],
            &[0x11, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f],
            &[0x1a, 2, b'h', b'i'],
            &[0x25, 0, 0, 0x80, 0x3f],
        ];
        assert_eq!(fields(&bytes.concat()), Ok(vec![1, 2, 3, 4]));
        let mut message = Message::new(bytes[0]);
        let (_, field) = message.field().unwrap().unwrap();
        assert_eq!(field.integer(&message).unwrap(), 150);
    }

    #[test]
    fn packed_and_unpacked_integers_are_equal() {
        let (mut packed, mut single) = (Vec::new(), Vec::new());
        let mut message = Message::new(&[0x0a, 3, 1, 0x80, 0x01]);
        let (_, field) = message.field().unwrap().unwrap();
        field.integers(&message, &mut packed).unwrap();
        let mut message = Message::new(&[0x08, 1, 0x08, 0x80, 0x01]);
        while let Some((_, field)) = message.field().unwrap() {
            field.integers(&message, &mut single).unwrap();
        }
        assert_eq!(packed, [1, 128]);
        assert_eq!(packed, single);
    }

    #[test]
    fn corrupt_fields_are_errors_with_byte_offsets() {
        for (bytes, expected) in [
            (&[0x08][..], "byte 1: an integer is truncated or longer than 10 bytes"),
            (&[0x08, 1, 0x12, 9, 1], "byte 4: a field of 9 bytes ends after 1 bytes"),
            (&[0x08, 1, 0x00, 1], "byte 2: a field has the number 0"),
            (&[0x08, 1, 0x0b], "byte 2: a field has the unknown wire type 3"),
            (&[0xff; 11], "byte 0: an integer is truncated or longer than 10 bytes"),
            (&[0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], "byte 11: a field"),
        ] {
            let error = fields(bytes).unwrap_err();
            assert!(error.contains(expected), "{error} lacks {expected}");
        }
    }
}
