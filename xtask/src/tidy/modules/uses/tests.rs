use std::path::{Path as FilePath, PathBuf};

use super::*;
use crate::tidy::modules::read;

/// The uses in a crate with one file and inline modules.
fn found(text: &str) -> Vec<String> {
    let tree = [(PathBuf::from("src/lib.rs"), text.to_owned())].into_iter().collect();
    let unit = read("x".to_owned(), FilePath::new("src/lib.rs"), &tree).unwrap();
    let mut found: Vec<_> = uses(&unit, &Scopes::new(&unit))
        .iter()
        .map(|found| format!("{} -> {}", unit.path(found.from), unit.path(found.to)).replace("crate::", ""))
        .collect();
    found.dedup();
    found
}

/// `code` is in the module `a`, beside `b` and above `a::c`.
#[track_caller]
fn check(code: &str, expected: &[&str]) {
    let rest = "mod b {
            pub struct B; pub enum E { V } pub fn f() {} pub const K: u8 = 0; pub trait T { fn t(); } pub static S: u8 = 0;
            pub mod d { pub struct D; pub fn f() {} pub mod e { pub struct E; } }
            pub type Alias = u8; made!(struct Made); macro_rules! m { () => {} } pub(crate) use m;
        }
        struct Root; fn root() {}";
    let text = format!("mod a {{ {code} mod c {{ pub struct C; pub fn f() {{}} }} }} {rest}");
    assert_eq!(found(&text), expected, "{code}");
}

#[test]
fn every_form_of_path_is_a_use() {
    for code in [
        "use crate::b::B;",
        "use super::b::B;",
        "use self::super::b::B;",
        "use crate::b::{B, K as _};",
        "use crate::{b::{self, B}};",
        "use crate::b::*;",
        "use crate::b;",
        "fn x() { crate::b::f() }",
        "fn x(_: super::b::B) {}",
        "fn x() -> Vec<super::b::B> {}",
        "struct X { y: Option<crate::b::B> }",
        "enum X { Y(crate::b::B) }",
        "const X: u8 = crate::b::K;",
        "static X: &u8 = &super::b::S;",
        "type X = crate::b::Alias;",
        "impl crate::b::T for u8 {}",
        "impl<X: crate::b::T> Clone for X {}",
        "fn x() where u8: crate::b::T {}",
        "fn x(y: &dyn crate::b::T, z: impl crate::b::T) {}",
        "fn x() { <u8 as crate::b::T>::t() }",
        "fn x() { <crate::b::B>::new() }",
        "fn x() { y::<crate::b::B>() }",
        "fn x() { y.z::<crate::b::B>() }",
        "fn x() { let crate::b::B = y; }",
        "fn x() { match y { crate::b::E::V => {} } }",
        "fn x() { crate::b::B { y: 1 } }",
        "fn x() { y.map(crate::b::f) }",
        "fn x() { use crate::b::f; }",
        "fn x() { fn y() { crate::b::f() } }",
        "pub use crate::b::B;",
        "pub(crate) use super::b;",
    ] {
        check(code, &["a -> b"]);
    }
}

#[test]
fn a_path_leads_to_the_module_that_defines_the_item() {
    check("use super::b::d::D;", &["a -> b::d"]);
    check("use super::b::d; fn x() { d::e::E }", &["a -> b::d", "a -> b::d::e"]);
    check("use super::b as y; fn x() { y::d::f() }", &["a -> b", "a -> b::d"]);
    check("fn x() { c::f() }", &["a -> a::c"]);
    check("fn x() { self::c::f() }", &["a -> a::c"]);
    check("use crate::Root;", &["a -> crate"]);
    check("fn x() { super::root() }", &["a -> crate"]);
    let above = "mod a { struct A; mod b { struct B; mod c { fn x() { super::super::A; super::B; super::super::super::R } } } } struct R;";
    assert_eq!(found(above), ["a::b::c -> crate", "a::b::c -> a", "a::b::c -> a::b"]);
}

#[test]
fn variants_and_associated_items_are_no_modules() {
    check("use crate::b::E::V;", &["a -> b"]);
    check("use crate::b::E::*;", &["a -> b"]);
    check("use crate::b::E; fn x() { E::V }", &["a -> b"]);
    check("fn x() { crate::b::B::new().d() }", &["a -> b"]);
    check("fn x() { crate::b::B::K }", &["a -> b"]);
}

#[test]
fn a_re_export_is_used_where_its_item_is_defined() {
    let shared = "mod a { use super::B; } mod b { pub struct B; } pub use b::B;";
    assert_eq!(found(shared), ["a -> b"]);
    let private = "mod a { use super::B; } mod b { pub struct B; } use b::B;";
    assert_eq!(found(private), ["crate -> b", "a -> b"]);
    let renamed = "mod a { fn x() { crate::p::Q } } mod p { pub use crate::b::B as Q; } mod b { pub struct B; }";
    assert_eq!(found(renamed), ["a -> b", "p -> b"]);
    let glob = "mod a { use crate::p::B; } mod p { pub use super::b::*; } mod b { pub struct B; }";
    assert_eq!(found(glob), ["a -> b", "p -> b"]);
    let twice = "mod a { use crate::B; } mod b { pub use c::B; mod c { pub struct B; } } pub use b::B;";
    assert_eq!(found(twice), ["a -> b::c"]);
}

#[test]
fn a_parent_that_only_re_exports_uses_nothing() {
    for code in
        ["pub use c::C;", "pub use c::*;", "pub(crate) use self::c::{C, f};", "pub(super) use crate::a::c::C as D;"]
    {
        check(code, &[]);
    }
    check("use c::C;", &["a -> a::c"]);
    check("pub use c::C; fn x() { C }", &["a -> a::c"]);
    check("pub use c::*; fn x(_: C) {}", &["a -> a::c"]);
}

#[test]
fn a_module_that_is_named_from_within_is_not_used_by_that() {
    assert_eq!(found("mod a { struct A; mod b { use super::super::a; } }"), [""; 0]);
    assert_eq!(found("mod a { struct A; mod b { use crate::{self, a}; } }"), [""; 0]);
    assert_eq!(found("mod a { struct A; mod b { use crate::a; fn x() { a::A } } }"), ["a::b -> a"]);
    assert_eq!(found("mod a { struct A; mod b { use super::*; } }"), ["a::b -> a"]);
}

#[test]
fn names_of_other_crates_are_no_uses() {
    for code in [
        "use std::fmt; use bytes::Bytes; fn x() { fmt::d::f(); ::b::f(); Bytes::new(); }",
        "use ::b::B; fn x() { B }",
        "extern crate b as y; fn x() { y::f() }",
        "fn x() { Some(u8::MAX); Self::f(); b.f(); }",
    ] {
        check(code, &[]);
    }
}

#[test]
fn what_a_function_declares_hides_what_the_module_imports() {
    let imports = "pub use c::{C, f};";
    for code in [
        "fn x(f: u8) { f; f() }",
        "fn x() { let f = 1; y(f) }",
        "fn x() { |f| f }",
        "fn x() { if let Some(f) = y { m!(f()) } }",
        "fn x<C>(y: C) -> C {}",
        "impl<C> Clone for Y<C> { fn x() -> C {} }",
        "struct X<C>(C);",
    ] {
        check(&format!("{imports} {code}"), &[]);
    }
    check(&format!("{imports} fn x() {{ let f = 1; }} fn y() {{ f() }}"), &["a -> a::c"]);
    check("pub use super::b::K; fn x() { match y { K => {} } }", &["a -> b"]);
}

#[test]
fn macros_are_read_too() {
    for code in [
        "fn x() { println!(\"{}\", crate::b::f()) }",
        "fn x() { select! { y = super::b::f() => { z } } }",
        "fn x() { vec![Some(crate::b::B)] }",
        "macro_rules! y { ($z:ident) => { $crate::b::$z; $crate::b::f() } }",
        "crate::b::m!();",
        "use crate::b::m;",
        "fn x() { super::b::m!() }",
        "made! { struct X { y: super::b::B } }",
    ] {
        check(code, &["a -> b"]);
    }
    check("pub use c::f; fn x() { assert!(f()) }", &["a -> a::c"]);
    check("fn x() { debug!(b, f = 1, y.b(), \"crate::b::f()\") }", &[]);
    // What a macro declares has no visible definition.
    check("use crate::b::Made;", &["a -> b"]);
    let exported = "mod a { fn x() { crate::m!(); } } mod b { #[macro_export] macro_rules! m { () => {} } }";
    assert_eq!(found(exported), ["a -> b"]);
}

#[test]
fn attributes_are_read_but_for_documentation() {
    check("struct X { #[serde(default, with = \"crate::b\", default = \"super::b::f\")] y: u8 }", &["a -> b"]);
    check("struct X { #[arg(value_parser = crate::b::f)] y: u8 }", &["a -> b"]);
    check("/// See [`crate::b::f()`].\n #[doc(alias = \"crate::b::f\")] struct X;", &[]);
}

#[test]
fn a_visibility_is_no_use() {
    check("pub(in crate::b) fn x() {} pub(super) struct X; pub(in super::b::d) use c::C;", &[]);
}

#[test]
fn tests_do_not_count() {
    for code in [
        "#[cfg(test)] use crate::b::B;",
        "#[cfg(test)] mod tests { use crate::b::B; }",
        "#[cfg(all(test, unix))] fn x() { crate::b::f() }",
        "#[test] fn x() { crate::b::f() }",
        "impl X { #[cfg(test)] fn x() { crate::b::f() } }",
        "trait X { #[cfg(test)] fn x() { crate::b::f() } }",
        "struct X { #[cfg(test)] y: crate::b::B }",
        "enum X { #[cfg(test)] Y(crate::b::B) }",
        "fn x() { match y { #[cfg(test)] crate::b::B => {} _ => {} } }",
        "fn x() { #[cfg(test)] let y = crate::b::f(); }",
    ] {
        check(code, &[]);
    }
    check("#[cfg(not(test))] use crate::b::B;", &["a -> b"]);
    check("#[cfg(any(test, unix))] use crate::b::B;", &["a -> b"]);
}

#[test]
fn imports_of_each_other_end() {
    assert_eq!(
        found("mod a { pub use super::b::*; fn x() { Y } } mod b { pub use super::a::*; }"),
        ["a -> b", "b -> a"]
    );
    assert_eq!(found("mod a { use x::x; fn y() { x() } }"), [""; 0]);
}

#[test]
fn each_use_has_its_line() {
    let tree = [(PathBuf::from("l.rs"), "mod a {\n use crate::b::{\n  B,\n  C};\n}\nmod b {}".to_owned())]
        .into_iter()
        .collect();
    let unit = read("x".to_owned(), FilePath::new("l.rs"), &tree).unwrap();
    let lines: Vec<_> = uses(&unit, &Scopes::new(&unit)).iter().map(|found| found.line).collect();
    assert_eq!(lines, [3, 4]);
}
