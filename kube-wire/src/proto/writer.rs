//! Writing fields.

/// Appends fields to a buffer, in the order they are given.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    out: Vec<u8>,
}

/// How many bytes a varint takes: 1 to 10.
pub fn varint_len(number: u64) -> usize {
    let bits = 64 - (number | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

// === impl Writer ===

impl Writer {
    /// Starts an empty message.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends to existing bytes, such as a magic number.
    pub fn after(out: Vec<u8>) -> Self {
        Self { out }
    }

    /// The message.
    pub fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    /// A number: int32, int64 (as two's complement), uint32, uint64, bool, enum.
    pub fn varint(&mut self, field: u32, number: u64) {
        self.raw_varint(tag(field, 0));
        self.raw_varint(number);
    }

    /// A string, bytes, or an encoded message.
    pub fn bytes(&mut self, field: u32, bytes: &[u8]) {
        let (tag, length) = (tag(field, 2), bytes.len() as u64);
        // One allocation for all three.
        self.out.reserve(varint_len(tag) + varint_len(length) + bytes.len());
        self.raw_varint(tag);
        self.raw_varint(length);
        self.out.extend_from_slice(bytes);
    }

    /// A whole field of a reader.
    pub fn raw(&mut self, field: &[u8]) {
        self.out.extend_from_slice(field);
    }

    /// A number without a tag.
    pub fn raw_varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.out.push(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        self.out.push(number.to_le_bytes()[0]);
    }
}

fn tag(field: u32, wire_type: u8) -> u64 {
    debug_assert!((1..1 << 29).contains(&field), "field numbers come from our own schema");
    u64::from(field) << 3 | u64::from(wire_type)
}
