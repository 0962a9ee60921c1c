//! The tokens of a label selector.

/// One token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A key, a value, or `in` / `notin`: only the position distinguishes them.
    Word(&'a str),
    /// `! = == != > < ( ) ,`
    Symbol(&'a str),
    /// The end.
    End,
}

/// Splits a selector into tokens, with one token of lookahead.
pub(super) struct Lexer<'a> {
    rest: &'a str,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text }
    }

    /// Consumes the next token.
    pub(super) fn next(&mut self) -> Token<'a> {
        let (token, rest) = split(self.rest);
        self.rest = rest;
        token
    }

    /// The next token, without consuming it.
    pub(super) fn peek(&self) -> Token<'a> {
        split(self.rest).0
    }
}

impl<'a> Token<'a> {
    /// The token in error messages.
    pub(super) fn text(self) -> &'a str {
        match self {
            Self::Word(text) | Self::Symbol(text) => text,
            Self::End => "",
        }
    }
}

fn split(text: &str) -> (Token<'_>, &str) {
    let text = text.trim_start_matches(is_space);
    if text.is_empty() {
        return (Token::End, text);
    }
    for symbol in ["==", "!=", "=", "!", "(", ")", ",", ">", "<"] {
        if let Some(rest) = text.strip_prefix(symbol) {
            return (Token::Symbol(symbol), rest);
        }
    }
    let end = text.find(|character| is_space(character) || "=!(),><".contains(character)).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    (Token::Word(word), rest)
}

/// The white space of Kubernetes. Other Unicode spaces become part of a key or a value, and are refused there.
fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n')
}
