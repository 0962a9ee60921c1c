//! The grammar of a label selector:
//!
//! ```text
//! selector    = [ requirement *( "," requirement ) ]
//! requirement = KEY | "!" KEY | KEY ( "=" | "==" | "!=" | ">" | "<" ) [ VALUE ] | KEY ( "in" | "notin" ) set
//! set         = "(" [ VALUE ] *( "," [ VALUE ] ) ")"
//! ```
//!
//! There is one difference from Kubernetes: its lexer treats a NUL as the end of the text and ignores the rest
//! (`labels/selector.go`, `Lexer.read`). Here, a NUL is part of a token, so it is refused as a bad key or value.

use super::error::LabelSelectorError;
use super::lexer::{Lexer, Token};
use super::requirement::{Requirement, Test};
use crate::go_quote::GoQuoted;
use crate::name::label_key;

/// All requirements, in order.
pub(super) fn parse(text: &str) -> Result<Vec<Requirement>, LabelSelectorError> {
    let mut lexer = Lexer::new(text);
    let mut requirements = Vec::new();
    match lexer.peek() {
        Token::End => return Ok(requirements),
        Token::Word(_) | Token::Symbol("!") => {}
        Token::Symbol(other) => {
            let expected = "!, identifier, or 'end of string'";
            return Err(LabelSelectorError::new(format!("found '{other}', expected: {expected}")));
        }
    }
    loop {
        requirements.push(requirement(&mut lexer)?);
        match lexer.next() {
            Token::End => return Ok(requirements),
            Token::Symbol(",") => {}
            other => {
                let found = other.text();
                return Err(LabelSelectorError::new(format!("found '{found}', expected: ',' or 'end of string'")));
            }
        }
        match lexer.peek() {
            Token::Word(_) | Token::Symbol("!") => {}
            other => {
                let found = other.text();
                return Err(LabelSelectorError::new(format!("found '{found}', expected: identifier after ','")));
            }
        }
    }
}

fn requirement(lexer: &mut Lexer<'_>) -> Result<Requirement, LabelSelectorError> {
    let negated = lexer.peek() == Token::Symbol("!");
    if negated {
        lexer.next();
    }
    let key = match lexer.next() {
        Token::Word(word) => word,
        other => return Err(unexpected(other, "expected: identifier")),
    };
    // Kubernetes reports an invalid key before it reads the rest.
    if let Err(violations) = label_key(key) {
        return Err(LabelSelectorError::about_key(key, &violations.to_string()));
    }
    if negated {
        return Requirement::new(key, Test::DoesNotExist);
    }
    if matches!(lexer.peek(), Token::End | Token::Symbol(",")) {
        return Requirement::new(key, Test::Exists);
    }
    let test = match lexer.next() {
        Token::Symbol("=" | "==") => Test::Equals(value(lexer)?.to_owned()),
        Token::Symbol("!=") => Test::NotEquals(value(lexer)?.to_owned()),
        Token::Symbol(">") => Test::GreaterThan(bound(lexer)?),
        Token::Symbol("<") => Test::LessThan(bound(lexer)?),
        Token::Word("in") => Test::In(values(lexer)?),
        Token::Word("notin") => Test::NotIn(values(lexer)?),
        other => return Err(unexpected(other, "expected: in, notin, =, ==, !=, gt, lt")),
    };
    Requirement::new(key, test)
}

/// One value. A missing value is the empty one.
fn value<'a>(lexer: &mut Lexer<'a>) -> Result<&'a str, LabelSelectorError> {
    if matches!(lexer.peek(), Token::End | Token::Symbol(",")) {
        return Ok("");
    }
    match lexer.next() {
        Token::Word(word) => Ok(word),
        other => Err(unexpected(other, "expected: identifier")),
    }
}

fn bound(lexer: &mut Lexer<'_>) -> Result<i64, LabelSelectorError> {
    let text = value(lexer)?;
    text.parse().map_err(|_| {
        let quoted = GoQuoted(text);
        let rule = "for 'Gt', 'Lt' operators, the value must be an integer";
        LabelSelectorError::in_requirement(&format!("values[0]: Invalid value: {quoted}: {rule}"))
    })
}

/// A set in parentheses. Between two commas, or next to a parenthesis, there is the empty value.
fn values(lexer: &mut Lexer<'_>) -> Result<Vec<String>, LabelSelectorError> {
    match lexer.next() {
        Token::Symbol("(") => {}
        other => {
            let found = other.text();
            return Err(LabelSelectorError::in_requirement(&format!("found '{found}' expected: '('")));
        }
    }
    let mut values = Vec::new();
    let mut expected = "expected: ',', ')' or identifier";
    loop {
        let value = match lexer.peek() {
            Token::Word(word) => {
                lexer.next();
                word
            }
            Token::Symbol("," | ")") => "",
            other => return Err(unexpected(other, expected)),
        };
        values.push(value.to_owned());
        match lexer.next() {
            Token::Symbol(")") => return Ok(values),
            Token::Symbol(",") => expected = "expected: ',', or identifier",
            other => return Err(unexpected(other, "expected: ',' or ')'")),
        }
    }
}

fn unexpected(found: Token<'_>, expected: &str) -> LabelSelectorError {
    LabelSelectorError::in_requirement(&format!("found '{}', {expected}", found.text()))
}
