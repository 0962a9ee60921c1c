//! Paths in text that syn does not parse: the arguments and the definitions of macros, and attributes.

use proc_macro2::{Ident, TokenStream, TokenTree};

use super::imports::plain;

/// A path in tokens.
#[derive(Debug)]
pub(super) struct TokenPath {
    /// The first one is empty if the path begins with `::`.
    pub(super) path: Vec<String>,
    pub(super) line: usize,
    /// Whether a `(` follows: a function or a variant.
    pub(super) is_call: bool,
}

/// All paths in `tokens`, at any depth. A macro can use a single name for anything, such as for a field, and `.name` is
/// a method or a field. So a single name counts only if it is called or begins with a capital letter.
pub(super) fn paths(tokens: TokenStream) -> Vec<TokenPath> {
    let mut found = Vec::new();
    collect(tokens, &mut found);
    found
}

/// The token before a name, which decides what the name is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// `.`, but not `..`; or the `'` of a lifetime; or the `fn` of a declaration.
    NoPath,
    /// The `$` of a macro's parameter, or of `$crate`.
    Dollar,
    /// `::`
    Colons,
    Other,
}

fn collect(tokens: TokenStream, found: &mut Vec<TokenPath>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match token {
            TokenTree::Group(group) => collect(group.stream(), found),
            TokenTree::Ident(first) => {
                let before = before(&tokens[..at]);
                let segments = segments(&tokens[at..]);
                at += 3 * (segments.len() - 1);
                let is_path = match before {
                    Before::NoPath => false,
                    Before::Dollar => first == "crate",
                    Before::Colons | Before::Other => true,
                };
                let next = tokens.get(at + 1);
                let is_call = matches!(next, Some(TokenTree::Group(group)) if is_parenthesis(group));
                let is_capital = first.to_string().starts_with(char::is_uppercase);
                if is_path && (segments.len() > 1 || is_call || is_capital) {
                    let start = (before == Before::Colons).then(String::new);
                    let path = start.into_iter().chain(segments.into_iter().map(plain)).collect();
                    found.push(TokenPath { path, line: first.span().start().line, is_call });
                }
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
        at += 1;
    }
}

fn before(tokens: &[TokenTree]) -> Before {
    let punct = |back: usize| match tokens.get(tokens.len().wrapping_sub(back)) {
        Some(TokenTree::Punct(punct)) => Some(punct.as_char()),
        _ => None,
    };
    match (punct(2), punct(1)) {
        (Some('.'), Some('.')) => Before::Other,
        (_, Some('$')) => Before::Dollar,
        // Not the second half of a path that begins with `<T>`.
        (Some(':'), Some(':')) if punct(3) != Some('>') => Before::Colons,
        (_, Some('.' | '\'')) | (Some(':'), Some(':')) => Before::NoPath,
        _ if matches!(tokens.last(), Some(TokenTree::Ident(word)) if word == "fn") => Before::NoPath,
        _ => Before::Other,
    }
}

/// The names of the path with which `tokens` begin: `a::b`, where each `::` is two tokens.
fn segments(tokens: &[TokenTree]) -> Vec<&Ident> {
    let mut segments = Vec::new();
    let mut rest = tokens;
    while let [TokenTree::Ident(name), tail @ ..] = rest {
        segments.push(name);
        match tail {
            [TokenTree::Punct(a), TokenTree::Punct(b), next @ ..] if a.as_char() == ':' && b.as_char() == ':' => {
                rest = next;
            }
            _ => break,
        }
    }
    segments
}

fn is_parenthesis(group: &proc_macro2::Group) -> bool {
    group.delimiter() == proc_macro2::Delimiter::Parenthesis
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let found = paths(text.parse().unwrap());
        let found: Vec<_> = found.iter().map(|found| found.path.join("::")).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn paths_are_found_at_any_depth() {
        check("\"{}\", [super::a::b(x, { crate::C })]", &["super::a::b", "crate::C"]);
        check("Some(Self::X) | None if f(y)", &["Some", "Self::X", "None", "f"]);
        check("a::b::<c::D>()", &["a::b", "c::D"]);
        check("::std::fs::read, x", &["::std::fs::read"]);
        check("..Default::default()", &["Default::default"]);
        check("$crate::a::B, $x::c, $y", &["crate::a::B"]);
    }

    #[test]
    fn what_can_be_a_field_or_a_variable_is_no_path() {
        check("a.b(c).d, e = 1, F { g: h }, 'i, fn j() {}", &["F"]);
        check("<T>::new(), &'static str", &["T"]);
    }

    #[test]
    fn calls_are_told_from_types() {
        let found = paths("A(b), C, d::e()".parse().unwrap());
        assert_eq!(found.iter().map(|found| found.is_call).collect::<Vec<_>>(), [true, false, true]);
    }
}
