use super::*;

use std::path::Path;
use std::str::FromStr;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use proptest::prelude::*;

use crate::tree::Tree;

#[track_caller]
fn check(text: &str, code: &str, comments: &str) {
    let views = views(text);
    let words = |view: &str| view.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(words(&views.code), code, "code of {text}");
    assert_eq!(words(&views.comments), comments, "comments of {text}");
}

#[test]
fn comments_end_where_they_end() {
    check("a // b \"c\"\nd", "a d", "// b \"c\"");
    check("a /* b /* c */ d */ e", "a e", "/* b /* c */ d */");
    check("a /* b", "a", "/* b");
    check("/**/a", "a", "/**/");
    check("/*/ a */ b", "b", "/*/ a */");
}

#[test]
fn literals_are_neither() {
    check(r#"f("// no", 1)"#, "f( , 1)", "");
    check(r#""\"//" a"#, "a", "");
    check(r##"r#"a"//"# b"##, "b", "");
    check(r#"br"\" a"#, "a", "");
    check(r#"c"//" a"#, "a", "");
    check(r"'\'' a", "a", "");
    check(r"'\u{2f}' '/' a", "a", "");
    check("'\"' a '\"'", "a", "");
    check("b'x' b'\\'' a", "a", "");
}

#[test]
fn what_looks_like_a_literal_is_code() {
    check("&'a str", "&'a str", "");
    check("'outer: loop {}", "'outer: loop {}", "");
    check("r#type", "r#type", "");
    check("for\"x\"", "for", "");
}

proptest! {
    #[test]
    fn any_text_keeps_its_lines(text in "[a-c'\"/*\\\\#r\n {}é]{0,60}") {
        let views = views(&text);
        let shape = |text: &str| text.lines().map(|line| line.chars().count()).collect::<Vec<_>>();
        prop_assert_eq!(shape(&views.code), shape(&text));
        prop_assert_eq!(shape(&views.comments), shape(&text));
        for ((char, code), comment) in text.chars().zip(views.code.chars()).zip(views.comments.chars()) {
            prop_assert!(code == char || code == ' ');
            prop_assert!(comment == char || comment == ' ');
            prop_assert!(code == ' ' || comment == ' ' || char == '\n', "a character is of one kind");
        }
    }
}

/// proc-macro2 is the oracle: the code view contains the names that it finds in the whole text.
#[test]
fn names_are_those_of_proc_macro2() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut compared = 0;
    for (path, text) in Tree::read(root).unwrap().with_extension("rs") {
        // rustc reports text that does not lex.
        if let Ok(tokens) = TokenStream::from_str(text) {
            let ours =
                TokenStream::from_str(&views(text).code).unwrap_or_else(|err| panic!("{}: {err}", path.display()));
            assert_eq!(names(ours), names(tokens), "{}", path.display());
            compared += 1;
        }
    }
    assert!(compared > 10, "only {compared} files were compared");
}

/// All identifiers, without the `doc` attributes that the oracle creates from doc comments.
fn names(tokens: TokenStream) -> Vec<String> {
    let mut names = Vec::new();
    let mut open: Vec<_> = vec![tokens.into_iter()];
    while let Some(tokens) = open.last_mut() {
        match tokens.next() {
            None => drop(open.pop()),
            Some(TokenTree::Group(group)) => {
                let inner = group.stream();
                let is_doc = group.delimiter() == Delimiter::Bracket
                    && matches!(inner.clone().into_iter().next(), Some(TokenTree::Ident(name)) if name == "doc");
                if !is_doc {
                    open.push(inner.into_iter());
                }
            }
            Some(TokenTree::Ident(name)) => names.push(name.to_string()),
            Some(_) => {}
        }
    }
    names
}
