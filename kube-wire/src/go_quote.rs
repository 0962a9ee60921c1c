//! Go's `%q`, because Kubernetes' error messages quote names with it and clients compare messages.

use std::fmt;
use std::fmt::Write as _;

/// Displays text as Go's `strconv.Quote` does.
pub(crate) struct GoQuoted<'a>(pub(crate) &'a str);

impl fmt::Display for GoQuoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for character in self.0.chars() {
            match character {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                '\u{7}' => f.write_str("\\a")?,
                '\u{8}' => f.write_str("\\b")?,
                '\u{c}' => f.write_str("\\f")?,
                '\n' => f.write_str("\\n")?,
                '\r' => f.write_str("\\r")?,
                '\t' => f.write_str("\\t")?,
                '\u{b}' => f.write_str("\\v")?,
                _ if is_printable(character) => f.write_char(character)?,
                _ if character.is_ascii() => write!(f, "\\x{:02x}", u32::from(character))?,
                _ if u32::from(character) <= 0xffff => {
                    write!(f, "\\u{:04x}", u32::from(character))?;
                }
                _ => write!(f, "\\U{:08x}", u32::from(character))?,
            }
        }
        f.write_char('"')
    }
}

/// Go's `strconv.IsPrint`: letters, marks, numbers, punctuation, symbols and the ASCII space. The standard library's
/// debug escape rests on the same Unicode categories; it also escapes a combining mark that comes first, hence the
/// letter before it.
fn is_printable(character: char) -> bool {
    if character.is_ascii() {
        return !character.is_ascii_control();
    }
    let mut buffer = [b'a'; 5];
    let length = 1 + character.encode_utf8(&mut buffer[1..]).len();
    let text = std::str::from_utf8(&buffer[..length]).expect("a letter and a whole character");
    text.escape_debug().eq(text.chars())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_as_go_does() {
        // What `fmt.Printf("%q")` of Go 1.26 prints.
        for (text, quoted) in [
            ("a b", r#""a b""#),
            ("q\"\té\u{200b}\u{a0}\u{7f}\u{e0001}", r#""q\"\té\u200b\u00a0\x7f\U000e0001""#),
            ("\u{7}\u{8}\u{b}\u{c}\\", r#""\a\b\v\f\\""#),
            ("e\u{301}", "\"e\u{301}\""),
        ] {
            assert_eq!(GoQuoted(text).to_string(), quoted);
        }
    }
}
