//! The paths of a `use`.

use syn::{Ident, ItemUse, UseTree};

/// One path of a `use`.
#[derive(Debug)]
pub(super) struct Import {
    /// Without the `*` of a glob. The first one is empty if the path begins with `::`.
    pub(super) path: Vec<String>,
    /// Its name here; `None` for a glob.
    pub(super) name: Option<String>,
    pub(super) line: usize,
}

pub(super) fn imports(item: &ItemUse) -> Vec<Import> {
    let mut imports = Vec::new();
    let mut prefix = Vec::new();
    prefix.extend(item.leading_colon.as_ref().map(|_| String::new()));
    flatten(&item.tree, &mut prefix, &mut imports);
    imports
}

/// The name in a path, without the prefix of a raw identifier.
pub(super) fn plain(name: &Ident) -> String {
    name.to_string().trim_start_matches("r#").to_owned()
}

fn flatten(tree: &UseTree, prefix: &mut Vec<String>, imports: &mut Vec<Import>) {
    let mut import = |last: &Ident, name: &Ident| {
        let mut path = prefix.clone();
        // `a::{self}` imports `a`.
        if last != "self" || path.is_empty() {
            path.push(plain(last));
        }
        let name = if name == "self" { path.last().cloned() } else { Some(plain(name)) };
        imports.push(Import { path, name, line: last.span().start().line });
    };
    match tree {
        UseTree::Name(tree) => import(&tree.ident, &tree.ident),
        UseTree::Rename(tree) => import(&tree.ident, &tree.rename),
        UseTree::Glob(tree) => {
            let line = tree.star_token.spans[0].start().line;
            imports.push(Import { path: prefix.clone(), name: None, line });
        }
        UseTree::Path(tree) => {
            prefix.push(plain(&tree.ident));
            flatten(&tree.tree, prefix, imports);
            prefix.pop();
        }
        UseTree::Group(tree) => {
            for tree in &tree.items {
                flatten(tree, prefix, imports);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let found: Vec<_> = imports(&syn::parse_str(text).unwrap())
            .iter()
            .map(|import| format!("{} as {}", import.path.join("::"), import.name.as_deref().unwrap_or("*")))
            .collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn every_form_of_use_is_flattened() {
        check("use a;", &["a as a"]);
        check("use a::b as c;", &["a::b as c"]);
        check("use a::b as _;", &["a::b as _"]);
        check("use ::a::b;", &["::a::b as b"]);
        check("use super::*;", &["super as *"]);
        check("use crate::r#type::X;", &["crate::type::X as X"]);
        check(
            "use crate::{self, a::{self as b, C}, d::{e::{f, *}}};",
            &["crate as crate", "crate::a as b", "crate::a::C as C", "crate::d::e::f as f", "crate::d::e as *"],
        );
        check("use {self::a, super::super::b};", &["self::a as a", "super::super::b as b"]);
    }

    #[test]
    fn each_path_has_its_own_line() {
        let lines: Vec<_> =
            imports(&syn::parse_str("use a::{\n    b,\n    c::*,\n};").unwrap()).iter().map(|i| i.line).collect();
        assert_eq!(lines, [2, 3]);
    }
}
