//! Tolerations of a pod.

use kube_wire::proto::{Reader, Value, WireError, Writer};

use crate::guard::Toleration;

/// `Toleration` in core/v1 generated.proto.
const KEY: u32 = 1;
const OPERATOR: u32 = 2;
const VALUE: u32 = 3;
const EFFECT: u32 = 4;
const SECONDS: u32 = 5;

/// Reads a toleration. `None` if it has unknown fields.
pub(crate) fn read(message: &[u8]) -> Result<Option<Toleration>, WireError> {
    let mut found = Toleration::empty();
    let mut fields = Reader::new(message);
    while let Some(field) = fields.next_field()? {
        let text = || field.bytes().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        match field.number {
            KEY => found.key = text()?,
            OPERATOR if field.value == Value::Bytes(b"") => {}
            OPERATOR => found.operator = text()?,
            VALUE => found.value = text()?,
            EFFECT => found.effect = text()?,
            SECONDS => found.seconds = Some(field.varint()?.cast_signed()),
            _ => return Ok(None),
        }
    }
    Ok(Some(found))
}

/// As Kubernetes writes it, including empty fields.
pub(crate) fn write(toleration: &Toleration) -> Vec<u8> {
    let mut message = Writer::new();
    message.bytes(KEY, toleration.key.as_bytes());
    message.bytes(OPERATOR, toleration.operator.as_bytes());
    message.bytes(VALUE, toleration.value.as_bytes());
    message.bytes(EFFECT, toleration.effect.as_bytes());
    if let Some(seconds) = toleration.seconds {
        message.varint(SECONDS, seconds.cast_unsigned());
    }
    message.into_bytes()
}
