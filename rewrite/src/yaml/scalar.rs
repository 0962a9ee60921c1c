//! Resolves scalars (`resolve.go` of yaml/v2).

use std::borrow::Cow;

use super::document::Tag;
use super::error::YamlError;

/// The value of a scalar.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value<'s> {
    Null,
    Bool(bool),
    Int(i64),
    /// An integer that is too large for [`Value::Int`].
    Uint(u64),
    Float(f64),
    Text(&'s str),
}

/// Whether a scalar is the merge key (`isMerge` in `decode.go`).
pub(super) fn is_merge((tag, text): (Tag, &str)) -> bool {
    text == "<<" && matches!(tag, Tag::Plain | Tag::NonSpecific | Tag::Merge)
}

/// The value of a scalar.
pub(super) fn resolve((tag, text): (Tag, &str)) -> Result<Value<'_>, YamlError> {
    let name = match tag {
        Tag::Plain => return Ok(untagged(text)),
        Tag::Quoted | Tag::Text | Tag::NonSpecific | Tag::Merge | Tag::Unknown => return Ok(Value::Text(text)),
        Tag::Ambiguous => return Err(YamlError::Ambiguous("a tag for binary data or times")),
        Tag::Bool => "!!bool",
        Tag::Int => "!!int",
        Tag::Float => "!!float",
        Tag::Null => "!!null",
    };
    match (tag, untagged(text)) {
        (Tag::Bool, value @ Value::Bool(_))
        | (Tag::Int, value @ (Value::Int(_) | Value::Uint(_)))
        | (Tag::Float, value @ Value::Float(_))
        | (Tag::Null, value @ Value::Null) => Ok(value),
        #[expect(clippy::cast_precision_loss, reason = "Go rounds the same way")]
        (Tag::Float, Value::Int(number)) => Ok(Value::Float(number as f64)),
        _ => Err(YamlError::Tag { value: text.chars().take(100).collect(), tag: name }),
    }
}

// === impl Value ===

impl<'s> Value<'s> {
    /// The key of a JSON object (`convertToJSONableObject` in sigs.k8s.io/yaml).
    pub(super) fn key(self) -> Result<Cow<'s, str>, YamlError> {
        Ok(match self {
            Value::Text(text) => Cow::Borrowed(text),
            Value::Bool(value) => Cow::Owned(value.to_string()),
            Value::Int(number) => Cow::Owned(number.to_string()),
            // Go writes it with the digits of a shorter type, which can be another number.
            Value::Float(_) => return Err(YamlError::Ambiguous("a key that is a fractional number")),
            Value::Null | Value::Uint(_) => return Err(YamlError::Key),
        })
    }
}

/// The value of a plain scalar without a tag.
fn untagged(text: &str) -> Value<'_> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => return Value::Bool(true),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Value::Bool(false);
        }
        ".nan" | ".NaN" | ".NAN" => return Value::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Value::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Value::Float(f64::NEG_INFINITY),
        _ => {}
    }
    let number = match text.as_bytes()[0] {
        b'.' => float(text),
        b'+' | b'-' | b'0'..=b'9' => {
            let plain = text.replace('_', "");
            integer(&plain).or_else(|| float(&plain)).or_else(|| signed_binary(&plain))
        }
        _ => None,
    };
    number.unwrap_or(Value::Text(text))
}

/// Reads an integer as `strconv.ParseInt` and `ParseUint` do in base 0, after removing underscores.
fn integer(text: &str) -> Option<Value<'static>> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'+' => (Some(false), &text[1..]),
        b'-' => (Some(true), &text[1..]),
        _ => (None, text),
    };
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &digits[2..]),
        [b'0', b'b' | b'B', ..] => (2, &digits[2..]),
        [b'0', b'o' | b'O', ..] => (8, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        _ => (10, digits),
    };
    // Rust would accept another sign.
    if !digits.bytes().next()?.is_ascii_alphanumeric() {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    match (i64::try_from(magnitude), sign) {
        (Ok(number), Some(true)) => Some(Value::Int(-number)),
        (Ok(number), _) => Some(Value::Int(number)),
        (Err(_), Some(true)) if magnitude == i64::MIN.unsigned_abs() => Some(Value::Int(i64::MIN)),
        (Err(_), None) => Some(Value::Uint(magnitude)),
        (Err(_), Some(_)) => None,
    }
}

/// Reads a number in the form of `yamlStyleFloat`.
fn float(text: &str) -> Option<Value<'static>> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => (&unsigned[..at], Some(&unsigned[at + 1..])),
        None => (unsigned, None),
    };
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let has_mantissa = match mantissa.split_once('.') {
        Some(("", fraction)) => !fraction.is_empty() && are_digits(fraction),
        Some((whole, fraction)) => are_digits(whole) && are_digits(fraction),
        None => !mantissa.is_empty() && are_digits(mantissa),
    };
    let has_exponent = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !digits.is_empty() && are_digits(digits)
    });
    if !has_mantissa || !has_exponent {
        return None;
    }
    // A number out of range is a string.
    text.parse::<f64>().ok().filter(|number| number.is_finite()).map(Value::Float)
}

/// `0b-1` and `0b+1`: Go accepts a sign after the prefix.
fn signed_binary(text: &str) -> Option<Value<'static>> {
    let digits = text.strip_prefix("0b")?;
    i64::from_str_radix(digits, 2).ok().map(Value::Int)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_have_the_values_of_yaml_1_1() {
        for (text, value) in [
            ("0400", Value::Int(256)),
            ("0o400", Value::Int(256)),
            ("0x1F", Value::Int(31)),
            ("-0b11", Value::Int(-3)),
            ("0b-1", Value::Int(-1)),
            ("1_000", Value::Int(1000)),
            ("+7", Value::Int(7)),
            ("08", Value::Float(8.0)),
            ("1.", Value::Float(1.0)),
            (".5", Value::Float(0.5)),
            ("1e3", Value::Float(1000.0)),
            ("1_0.5_0", Value::Float(10.5)),
            ("9223372036854775807", Value::Int(i64::MAX)),
            ("-9223372036854775808", Value::Int(i64::MIN)),
            ("9223372036854775808", Value::Uint(1 << 63)),
            ("18446744073709551616", Value::Float(18_446_744_073_709_551_616.0)),
            ("yes", Value::Bool(true)),
            ("Off", Value::Bool(false)),
            ("~", Value::Null),
            ("", Value::Null),
        ] {
            assert_eq!(untagged(text), value, "{text}");
        }
        for text in [
            "yES",
            "1e999",
            "0x",
            "0o",
            "0b",
            "--1",
            "+-1",
            "1:30",
            "2001-01-01",
            "1.2.3",
            ".",
            "-",
            "+",
            "e3",
            "0x1.8p3",
            "1,000",
            "._5",
        ] {
            assert_eq!(untagged(text), Value::Text(text), "{text}");
        }
    }
}
