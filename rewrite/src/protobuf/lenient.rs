//! Reads messages of an unknown schema as leniently as Go's decoders.
//!
//! They skip fields and groups that they do not know (`skipGenerated` in apimachinery's generated.pb.go), which
//! [`Reader`](kube_wire::proto::Reader) refuses if they are groups, or have a number that protobuf does not allow. Whatever
//! this module cannot read, Go's decoders cannot read either.

/// A field of a message. A group, which no message of Kubernetes has, is one field without content.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field<'m> {
    /// The number as Go reads it: a tag may have more bits.
    pub(crate) number: i32,
    /// The tag. Of a scalar field without a length, all of it. Of a group, only the start.
    pub(crate) head: &'m [u8],
    /// The content, if the field has a length.
    pub(crate) content: Option<&'m [u8]>,
    pub(crate) is_group: bool,
}

/// The part of a field after the tag, or a delimiter of a group.
enum Token<'m> {
    /// A value without a length.
    Scalar,
    Delimited(&'m [u8]),
    StartGroup,
    EndGroup,
}

/// The fields up to the end of the message, or to where a decoder fails.
pub(crate) fn fields(message: &[u8]) -> impl Iterator<Item = Field<'_>> {
    let mut rest = message;
    std::iter::from_fn(move || {
        let field;
        (field, rest) = next(rest)?;
        Some(field)
    })
}

/// The next field, and the rest of the message. `None` at the end, or where a decoder fails.
pub(super) fn next(message: &[u8]) -> Option<(Field<'_>, &[u8])> {
    let (tag, rest) = varint(message)?;
    let head = &message[..message.len() - rest.len()];
    #[expect(clippy::cast_possible_truncation, reason = "Go takes the low bits, too")]
    let number = (tag >> 3) as i32;
    let (first, mut rest) = token(tag, rest)?;
    let mut depth = match first {
        Token::Scalar => {
            let head = &message[..message.len() - rest.len()];
            return Some((Field { number, head, content: None, is_group: false }, rest));
        }
        Token::Delimited(content) => {
            return Some((Field { number, head, content: Some(content), is_group: false }, rest));
        }
        Token::StartGroup => 1,
        Token::EndGroup => return None,
    };
    while depth > 0 {
        let (tag, inside);
        (tag, rest) = varint(rest)?;
        (inside, rest) = token(tag, rest)?;
        match inside {
            Token::Scalar | Token::Delimited(_) => {}
            Token::StartGroup => depth += 1,
            Token::EndGroup => depth -= 1,
        }
    }
    Some((Field { number, head, content: None, is_group: true }, rest))
}

fn token(tag: u64, rest: &[u8]) -> Option<(Token<'_>, &[u8])> {
    match tag & 7 {
        0 => Some((Token::Scalar, varint(rest)?.1)),
        1 => Some((Token::Scalar, rest.get(8..)?)),
        2 => {
            let (length, rest) = varint(rest)?;
            let (field, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
            Some((Token::Delimited(field), rest))
        }
        3 => Some((Token::StartGroup, rest)),
        4 => Some((Token::EndGroup, rest)),
        5 => Some((Token::Scalar, rest.get(4..)?)),
        _ => None,
    }
}

/// A varint of at most ten bytes, and the rest. Go reads no longer one either (`ErrIntOverflowGenerated`).
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0;
    for (index, byte) in bytes.iter().take(10).enumerate() {
        number |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some((number, &bytes[index + 1..]));
        }
    }
    None
}
