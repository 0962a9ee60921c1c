//! Words of a label selector.

/// One word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A key, a value, or `in` / `notin`: only the place tells them apart.
    Word(&'a str),
    /// `! = == != > < ( ) ,`
    Symbol(&'a str),
    /// Nothing follows.
    End,
}

/// Cuts a selector into words, one ahead.
pub(super) struct Lexer<'a> {
    rest: &'a str,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text }
    }

    /// The next word, which is consumed.
    pub(super) fn next(&mut self) -> Token<'a> {
        let (token, rest) = split(self.rest);
        self.rest = rest;
        token
    }

    /// The next word, which stays.
    pub(super) fn peek(&self) -> Token<'a> {
        split(self.rest).0
    }
}

impl<'a> Token<'a> {
    /// The word as error messages show it.
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

/// Kubernetes' own set of blanks; other Unicode spaces end up in a key or a value and are refused there.
fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n')
}
