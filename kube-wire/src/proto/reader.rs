//! Reading fields.

use std::ops::Range;

/// The maximum depth of nested messages. The readers of Go and C++ stop at 10,000 and 100. The schema of a CRD, the deepest
/// message that Kubernetes sends as protobuf, has less than 64 levels.
pub const MAX_DEPTH: u8 = 100;

/// The largest field number of the encoding.
const MAX_FIELD: u64 = (1 << 29) - 1;

/// Reads the fields of one message in order.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    message: &'a [u8],
    position: usize,
    depth: u8,
}

/// One field of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// The field's number in the schema.
    pub number: u32,
    /// What it holds.
    pub value: Value<'a>,
    /// The position of the field in the message, including its tag and length.
    pub span: Range<usize>,
}

/// The value of a field, as the wire format shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// int32, int64, uint32, uint64, bool, enum
    Varint(u64),
    /// fixed64, sfixed64, double
    Fixed64(u64),
    /// string, bytes, a message, packed numbers
    Bytes(&'a [u8]),
    /// fixed32, sfixed32, float
    Fixed32(u32),
}

/// The bytes are not a protobuf message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The message ends within a field.
    #[error("the message is cut off")]
    Truncated,
    /// A varint of more than 64 bits.
    #[error("a number has more than 64 bits")]
    Overflow,
    /// Field number 0, or beyond the range of the encoding.
    #[error("a field number is out of range")]
    FieldNumber,
    /// A group, or a wire type that does not exist.
    #[error("wire type {0} is not supported")]
    WireType(u8),
    /// The wire type of a field differs from its schema.
    #[error("field {0} has the wrong type")]
    UnexpectedType(u32),
    /// Text that is not UTF-8.
    #[error("field {0} is not UTF-8")]
    NotUtf8(u32),
    /// Messages nested beyond [`MAX_DEPTH`].
    #[error("messages are nested too deep")]
    TooDeep,
}

// === impl Reader ===

impl<'a> Reader<'a> {
    /// Reads an outermost message.
    pub fn new(message: &'a [u8]) -> Self {
        Self { message, position: 0, depth: 0 }
    }

    /// Reads a message in a field of this one.
    pub fn nested<'b>(&self, message: &'b [u8]) -> Result<Reader<'b>, WireError> {
        if self.depth == MAX_DEPTH {
            return Err(WireError::TooDeep);
        }
        Ok(Reader { message, position: 0, depth: self.depth + 1 })
    }

    /// The next field, or `None` at the end. Do not use the reader after an error.
    // The caller usually needs one part of the field.
    #[inline]
    pub fn next_field(&mut self) -> Result<Option<Field<'a>>, WireError> {
        let start = self.position;
        if start == self.message.len() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let number = match tag >> 3 {
            0 => return Err(WireError::FieldNumber),
            number @ ..=MAX_FIELD => u32::try_from(number).expect("at most 29 bits"),
            _ => return Err(WireError::FieldNumber),
        };
        let value = match tag & 7 {
            0 => Value::Varint(self.varint()?),
            1 => Value::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| WireError::Truncated)?;
                Value::Bytes(self.take(length)?)
            }
            5 => Value::Fixed32(u32::from_le_bytes(self.array()?)),
            // 3 and 4 are groups.
            other => {
                return Err(WireError::WireType(u8::try_from(other).expect("three bits")));
            }
        };
        Ok(Some(Field { number, value, span: start..self.position }))
    }

    /// Almost all tags and lengths have one byte.
    #[inline]
    fn varint(&mut self) -> Result<u64, WireError> {
        match self.message.get(self.position) {
            Some(byte) if *byte < 0x80 => {
                self.position += 1;
                Ok(u64::from(*byte))
            }
            _ => self.long_varint(),
        }
    }

    #[cold]
    fn long_varint(&mut self) -> Result<u64, WireError> {
        let mut number = 0;
        for (index, byte) in self.message[self.position..].iter().enumerate() {
            // The tenth byte contains only the 64th bit.
            if index == 9 && *byte > 1 {
                return Err(WireError::Overflow);
            }
            number |= u64::from(byte & 0x7f) << (7 * index);
            if byte & 0x80 == 0 {
                self.position += index + 1;
                return Ok(number);
            }
        }
        Err(WireError::Truncated)
    }

    #[inline]
    fn take(&mut self, length: usize) -> Result<&'a [u8], WireError> {
        let rest = &self.message[self.position..];
        let taken = rest.get(..length).ok_or(WireError::Truncated)?;
        self.position += length;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let bytes = self.take(N)?;
        Ok(bytes.try_into().expect("exactly N bytes were taken"))
    }
}

// === impl Field ===

impl<'a> Field<'a> {
    /// The bytes of a bytes or message field.
    pub fn bytes(&self) -> Result<&'a [u8], WireError> {
        match self.value {
            Value::Bytes(bytes) => Ok(bytes),
            _ => Err(WireError::UnexpectedType(self.number)),
        }
    }

    /// The text of a string field.
    pub fn text(&self) -> Result<&'a str, WireError> {
        std::str::from_utf8(self.bytes()?).map_err(|_| WireError::NotUtf8(self.number))
    }

    /// The number of a varint field.
    pub fn varint(&self) -> Result<u64, WireError> {
        match self.value {
            Value::Varint(number) => Ok(number),
            _ => Err(WireError::UnexpectedType(self.number)),
        }
    }
}
