//! The blocks that give a type methods: `impl Type { .. }`.

use syn::{ImplItem, Item, Type, TypePath};

use super::condition::{attributes, attributes_in_impl, is_test_only};
use super::imports::plain;
use super::scope::{Definition, Scopes, Wanted};
use super::unit::{ModuleId, Unit};

/// One block for a type of the same unit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Inherent {
    /// The module that defines the type.
    pub(crate) home: ModuleId,
    /// The type, without its module.
    pub(crate) name: String,
    /// The module of the block.
    pub(crate) module: ModuleId,
    /// In the file of `module`, from 1.
    pub(crate) line: usize,
    /// All functions, also those without `self`.
    pub(crate) methods: usize,
}

/// All blocks of a unit, without what only tests compile.
pub(crate) fn inherent_impls(unit: &Unit, scopes: &Scopes<'_>) -> Vec<Inherent> {
    let mut found = Vec::new();
    for (id, module) in unit.modules() {
        for item in &module.items {
            if let Item::Impl(block) = item
                && block.trait_.is_none()
                && !is_test_only(attributes(item))
                && let Type::Path(ty) = &*block.self_ty
            {
                let (home, name) = defined(unit, scopes, id, ty);
                let is_method =
                    |item: &&ImplItem| matches!(item, ImplItem::Fn(_)) && !is_test_only(attributes_in_impl(item));
                found.push(Inherent {
                    home,
                    name,
                    module: id,
                    line: block.impl_token.span.start().line,
                    methods: block.items.iter().filter(is_method).count(),
                });
            }
        }
    }
    found
}

/// The type behind aliases: its module and its name.
fn defined(unit: &Unit, scopes: &Scopes<'_>, from: ModuleId, ty: &TypePath) -> (ModuleId, String) {
    let path: Vec<_> = ty.path.segments.iter().map(|segment| plain(&segment.ident)).collect();
    let Some(Definition::Item { module, name }) = scopes.resolve(from, &path, Wanted::Type).into_iter().next() else {
        // rustc accepts such a block only for types of the same unit, so a macro of this module declares the type.
        return (from, path.last().cloned().unwrap_or_default());
    };
    let alias = unit.module(module).items.iter().find_map(|item| match item {
        Item::Type(alias) if alias.ident == name => Some(&*alias.ty),
        _ => None,
    });
    match alias {
        // rustc refuses cyclic aliases.
        Some(Type::Path(aliased)) => defined(unit, scopes, module, aliased),
        _ => (module, name),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::tidy::modules::read;

    #[test]
    fn the_blocks_of_a_type_are_found_wherever_they_are() {
        let text =
            "mod a { pub struct A<T>(T); impl<T> A<T> { fn b(&self) {} #[cfg(test)] fn c() {} const D: u8 = 0; } }
            mod b { use super::a::A as Other; impl Other<u8> { fn new() {} fn e() {} } impl Clone for Other<u8> {} }
            mod c { type Short = super::a::A<u8>; impl Short { fn f() {} } #[cfg(test)] impl Short { fn g() {} } }
            made!(struct Made); impl Made { fn h() {} }
            trait T {} impl dyn T { fn i() {} }";
        let tree = [("src/lib.rs".into(), text.to_owned())].into_iter().collect();
        let unit = read("x".to_owned(), Path::new("src/lib.rs"), &tree).unwrap();
        let found: Vec<_> = inherent_impls(&unit, &Scopes::new(&unit))
            .iter()
            .map(|found| {
                let (home, module) = (unit.path(found.home), unit.path(found.module));
                format!("{home}::{} in {module} line {}: {}", found.name, found.line, found.methods)
            })
            .collect();
        let expected = [
            "crate::Made in crate line 4: 1",
            "crate::a::A in crate::a line 1: 1",
            "crate::a::A in crate::b line 2: 2",
            "crate::a::A in crate::c line 3: 1",
        ];
        assert_eq!(found, expected);
    }
}
