use std::path::Path;

use super::*;
use crate::tidy::modules;

/// The cycles in a crate with these files. The first file is the root.
fn cycles(files: &[(&str, &str)]) -> Vec<Cycle> {
    let tree = files.iter().map(|(path, text)| (path.into(), (*text).to_owned())).collect();
    measure(&modules::read("x".to_owned(), Path::new(files[0].0), &tree).unwrap())
}

/// `text` is the whole crate, with inline modules.
#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let found: Vec<_> = cycles(&[("l.rs", text)]).iter().map(|cycle| cycle.violation().to_string()).collect();
    assert_eq!(found, expected, "{text}");
}

#[test]
fn dependencies_without_cycles_are_accepted() {
    check("mod a { use super::b::B; use super::c::C; } mod b { use super::c::C; } mod c {}", &[]);
    check("mod a { fn f() {} } fn x() { a::f() }", &[]);
    check("mod a { fn x() { super::f() } } mod b { fn x() { super::f() } } fn f() {}", &[]);
    // Recursion within a module is allowed.
    check("mod a { fn x() { self::y() } fn y() { crate::a::x() } }", &[]);
}

#[test]
fn siblings_that_use_each_other_are_a_cycle() {
    check(
        "mod a { use super::b::B; struct A; } mod b { use crate::a::A; struct B; }",
        &["cycle x of 2: crate::a crate::b"],
    );
    check(
        "mod a { use super::b::B; } mod b { fn x() { super::c::f() } } mod c { impl super::a::T for u8 {} } mod d { use super::a::T; }",
        &["cycle x of 3: crate::a crate::b crate::c"],
    );
    check(
        "mod a { use super::b::B; } mod b { use super::a::A; } mod c { use super::d::D; } mod d { use super::c::C; }",
        &["cycle x of 2: crate::a crate::b", "cycle x of 2: crate::c crate::d"],
    );
}

#[test]
fn what_is_inside_a_child_counts_as_the_child() {
    check(
        "mod a { mod x { use crate::b::B; } mod y { struct Y; } } mod b { use super::a::y::Y; struct B; }",
        &["cycle x of 2: crate::a crate::b"],
    );
    check(
        "mod a { mod x { mod p { use super::super::y::Y; } } mod y { use super::x::p::P; struct Y; } }",
        &["cycle x of 2: crate::a::x crate::a::y"],
    );
}

#[test]
fn a_parent_takes_part_with_its_own_code() {
    let cycle = ["cycle x of 2: crate::a crate::a::b"];
    check("mod a { struct Own; mod b { use super::Own; fn f() {} } fn x() { b::f() } }", &cycle);
    check("mod a { struct Own; mod b { use super::Own; struct B; } use b::B; }", &cycle);
    check("struct Own; mod b { use crate::Own; fn f() {} } fn main() { b::f() }", &["cycle x of 2: crate crate::b"]);
    // There is no cycle if it only declares and re-exports, or if only one of the two uses the other.
    check("mod a { pub use b::*; mod b { use super::c::C; pub struct B; } mod c { pub struct C; } pub use c::C; }", &[]);
    check("mod a { struct Own; mod b { use super::Own; fn f() {} } pub use b::f; }", &[]);
    check("mod a { use b::B; mod b { use super::C; } mod c { pub struct C; } pub use c::C; }", &[]);
    // Nor in the cycles of its children, or in those above it.
    check(
        "mod a { struct Own; mod b { use super::{c::C, Own}; } mod c { use super::b::B; } }",
        &["cycle x of 2: crate::a::b crate::a::c"],
    );
}

#[test]
fn methods_outside_of_the_types_module_are_part_of_the_type() {
    check(
        "mod a { pub struct A; mod b { impl super::A { fn f(&self) {} } } }",
        &["cycle x of 2: crate::a crate::a::b"],
    );
    check("mod a { pub struct A; } mod b { use super::a::A; impl A {} }", &["cycle x of 2: crate::a crate::b"]);
    check("mod a { pub struct A; mod b { impl Clone for super::A {} } #[cfg(test)] mod c { impl super::A {} } }", &[]);
}

#[test]
fn a_cycle_is_shown_with_a_use_for_each_edge() {
    let files = [
        ("x/src/lib.rs", "mod a;\nmod b;\nmod c;"),
        ("x/src/a.rs", "mod inner;"),
        ("x/src/a/inner.rs", "\n\nuse crate::b::B;\nuse crate::b::f;\nstruct I;"),
        ("x/src/b.rs", "pub struct B;\nfn x() { crate::c::f() }"),
        ("x/src/c.rs", "use crate::{\n    b::Unused,\n    a::inner::I,\n};"),
    ];
    let found: Vec<_> = cycles(&files).iter().map(|cycle| cycle.finding(&Known::default()).to_string()).collect();
    let expected = "\
x/src/b.rs:2: 3 modules form cycles, such as:
    crate::b -> crate::c  x/src/b.rs:2
    crate::c -> crate::b  x/src/c.rs:2
    all 3: crate::a, crate::b, crate::c; ";
    assert_eq!(found, [format!("{expected}{REMEDY}")]);
}

#[test]
fn methods_are_shown_as_the_reason() {
    let cycles = cycles(&[("l.rs", "mod a { pub struct A; mod b {\n impl super::A {} } }")]);
    let found = cycles[0].finding(&Known::default()).to_string();
    let expected = "\
l.rs:2: these modules form a cycle:
    crate::a -> crate::a::b  l.rs:2 (methods of A)
    crate::a::b -> crate::a  l.rs:2; ";
    assert_eq!(found, format!("{expected}{REMEDY}"));
}

/// The cycle of `a` and `b` is known and is the shortest. The path through `c` and `d` is new.
#[test]
fn what_is_shown_is_new() {
    let text = "mod a { use super::b::B; } mod b { use super::a::A; use super::c::C; } mod c { use super::d::D; } mod d { use super::b::B; }";
    let known = Known::parse("cycle x\n    crate::a\n    crate::b\n").unwrap();
    let found = cycles(&[("l.rs", text)])[0].finding(&known).to_string();
    assert!(found.contains("4 modules form cycles"), "{found}");
    assert!(found.contains("crate::d -> crate::b  l.rs:1\n    all 4"), "{found}");
    assert!(!found.contains("crate::a ->"), "{found}");
}
