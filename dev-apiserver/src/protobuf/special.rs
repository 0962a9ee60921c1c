//! Messages whose JSON is a string, a number or a list.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use kube_wire::proto::Reader;
use serde_json::Value;

use super::error::DecodeError;

/// The JSON of bytes.
pub(super) fn base64(bytes: &[u8]) -> Value {
    STANDARD.encode(bytes).into()
}

/// Reads a message. Null if it is empty.
pub(super) fn read(name: &'static str, mut reader: Reader<'_>) -> Result<Value, DecodeError> {
    let (mut numbers, mut texts) = ([0_i64; 4], Vec::new());
    while let Some(field) = reader.next_field()? {
        let slot = numbers.get_mut(usize::try_from(field.number).unwrap_or(usize::MAX));
        match (field.varint(), slot) {
            (Ok(number), Some(slot)) => *slot = number.cast_signed(),
            _ => texts.push(field.bytes()?),
        }
    }
    let text = || texts.first().and_then(|bytes| std::str::from_utf8(bytes).ok());
    Ok(match name {
        "Time" | "MicroTime" => time(name, numbers[1], numbers[2])?,
        "Quantity" => text().unwrap_or("0").into(),
        // Type 1 is a string.
        "IntOrString" if numbers[1] == 1 => text().unwrap_or_default().into(),
        "IntOrString" => numbers[2].into(),
        "ExtraValue" => texts.iter().filter_map(|bytes| std::str::from_utf8(bytes).ok()).collect(),
        "FieldsV1" | "RawExtension" => match texts.first() {
            Some(json) => serde_json::from_slice(json).map_err(|_| DecodeError::Special(name))?,
            None => Value::Null,
        },
        "Duration" => format!("{}ns", numbers[1]).into(),
        _ => return Err(DecodeError::Special(name)),
    })
}

fn time(name: &'static str, seconds: i64, nanoseconds: i64) -> Result<Value, DecodeError> {
    if (seconds, nanoseconds) == (0, 0) {
        return Ok(Value::Null);
    }
    let nanoseconds = i32::try_from(nanoseconds).map_err(|_| DecodeError::Special(name))?;
    let time = Timestamp::new(seconds, nanoseconds).map_err(|_| DecodeError::Special(name))?;
    let format = if name == "Time" { "%Y-%m-%dT%H:%M:%SZ" } else { "%Y-%m-%dT%H:%M:%S.%6fZ" };
    Ok(time.strftime(format).to_string().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube_wire::proto::Writer;

    #[test]
    fn they_have_the_json_of_go() {
        let mut port = Writer::new();
        port.varint(1, 0);
        port.varint(2, 80);
        port.bytes(3, b"");
        assert_eq!(read("IntOrString", Reader::new(&port.into_bytes())).unwrap(), 80);
        let mut name = Writer::new();
        name.varint(1, 1);
        name.varint(2, 0);
        name.bytes(3, b"http");
        assert_eq!(read("IntOrString", Reader::new(&name.into_bytes())).unwrap(), "http");
        let mut time = Writer::new();
        time.varint(1, 1_700_000_000);
        assert_eq!(read("Time", Reader::new(&time.into_bytes())).unwrap(), "2023-11-14T22:13:20Z");
        assert_eq!(read("Time", Reader::new(&[])).unwrap(), Value::Null);
    }
}
