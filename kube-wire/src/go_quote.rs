//! Go's `%q`, because Kubernetes' error messages quote names with it and clients compare messages.
//!
//! [`GoQuoted`] writes it, and [`unquoted`] reads the quoted text from a message.

use std::fmt;
use std::fmt::Write as _;

/// Displays text as Go's `strconv.Quote` does.
pub struct GoQuoted<'a>(pub &'a str);

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

/// The quoted text at the beginning of `message`: its length in bytes with the quotes, and its content. `None` if there is
/// none, or if it is not UTF-8.
pub fn unquoted(message: &str) -> Option<(usize, String)> {
    let mut text = String::new();
    let mut characters = message.char_indices();
    if characters.next()?.1 != '"' {
        return None;
    }
    loop {
        let (at, character) = characters.next()?;
        match character {
            '"' => return Some((at + 1, text)),
            '\\' => {
                let (at, escape) = characters.next()?;
                let digits = match escape {
                    'x' => 2,
                    'u' => 4,
                    'U' => 8,
                    _ => {
                        text.push(plain_escape(escape)?);
                        continue;
                    }
                };
                let code = u32::from_str_radix(message.get(at + 1..at + 1 + digits)?, 16).ok()?;
                // Of bytes beyond ASCII, only invalid UTF-8 is escaped.
                if escape == 'x' && code > 0x7f {
                    return None;
                }
                text.push(char::from_u32(code)?);
                characters.nth(digits - 1);
            }
            character => text.push(character),
        }
    }
}

fn plain_escape(escape: char) -> Option<char> {
    Some(match escape {
        '"' | '\\' => escape,
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        _ => return None,
    })
}

/// Go's `strconv.IsPrint`: letters, marks, numbers, punctuation, symbols and the ASCII space. The standard library's
/// debug escape uses the same Unicode categories. It also escapes a leading combining mark, so this function adds a letter
/// before it.
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
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn quoted_text_is_found(text: String, rest: String) {
            let quoted = GoQuoted(&text).to_string();
            let length = quoted.len();
            prop_assert_eq!(unquoted(&(quoted + &rest)), Some((length, text)));
        }

        #[test]
        fn no_message_panics(message: String) {
            let _ = unquoted(&message);
            let _ = unquoted(&format!("\"\\u{message}"));
        }
    }

    #[test]
    fn text_without_quotes() {
        for message in ["", "a", "\"", "\"a", r#""\q""#, r#""\xff""#, r#""\ud800""#, r#""\u12""#] {
            assert_eq!(unquoted(message), None, "{message}");
        }
    }

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
