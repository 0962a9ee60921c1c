//! Follows the `mod` declarations of a unit from its first file, as rustc does.

use std::path::Path;

use syn::{Item, ItemMod};

use super::condition::is_test_only;
use super::unit::{Module, ModuleId, Unit};
use crate::finding::Finding;
use crate::tree::Tree;

/// The name of modules with tests, even without `#[cfg(test)]`.
const TESTS: &str = "tests";

/// Reads the unit with the root file `root`. Fails at the first module that cannot be read, because rules would accept
/// what they do not see.
pub(crate) fn read(name: String, root: &Path, tree: &Tree) -> Result<Unit, Finding> {
    let mut unit = Unit::new(name);
    let items = parse(root, tree).unwrap_or_else(|| Err(missing(root, 1, "crate")))?;
    let place = Place { file: root, folder: root.parent().unwrap_or(Path::new("")) };
    add(&mut unit, "crate".to_owned(), None, place, items, tree)?;
    Ok(unit)
}

/// The place of a module, and of the files of its children.
#[derive(Clone, Copy)]
struct Place<'a> {
    file: &'a Path,
    folder: &'a Path,
}

/// Adds a module, and the modules that it declares.
fn add(
    unit: &mut Unit,
    name: String,
    parent: Option<ModuleId>,
    Place { file, folder }: Place<'_>,
    items: Vec<Item>,
    tree: &Tree,
) -> Result<(), Finding> {
    let (mut own, mut declared) = (Vec::new(), Vec::new());
    for item in items {
        match item {
            Item::Mod(module) => declared.push(module),
            item => own.push(item),
        }
    }
    let id = unit.add(Module { name, parent, file: file.to_owned(), items: own });
    for ItemMod { attrs, ident, content, .. } in declared {
        let name = ident.to_string().trim_start_matches("r#").to_owned();
        if is_test_only(&attrs) || name == TESTS {
            continue;
        }
        let child_folder = folder.join(&name);
        if let Some((_, items)) = content {
            add(unit, name, Some(id), Place { file, folder: &child_folder }, items, tree)?;
            continue;
        }
        let files = [folder.join(format!("{name}.rs")), child_folder.join("mod.rs")];
        let found = files.iter().find_map(|file| Some((file, parse(file, tree)?)));
        let (child, items) = found.ok_or_else(|| missing(file, ident.span().start().line, &name))?;
        add(unit, name, Some(id), Place { file: child, folder: &child_folder }, items?, tree)?;
    }
    Ok(())
}

/// The items of a file, if there is such a file.
fn parse(path: &Path, tree: &Tree) -> Option<Result<Vec<Item>, Finding>> {
    let parsed = syn::parse_file(tree.text(path)?).map_err(|error| {
        let line = error.span().start().line;
        Finding::new(path, line, format!("syn cannot read it: {error}"), "write it as rustc accepts it")
    });
    Some(parsed.map(|file| file.items))
}

fn missing(path: &Path, line: usize, name: &str) -> Finding {
    let problem = format!("the module `{name}` has no file where rustc looks first");
    Finding::new(path, line, problem, "put the file there, without #[path]")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(files: &[(&str, &str)]) -> Result<Vec<String>, Finding> {
        let tree = files.iter().map(|(path, text)| (path.into(), (*text).to_owned())).collect();
        let unit = read("a".to_owned(), Path::new(files[0].0), &tree)?;
        Ok(unit.modules().map(|(id, module)| format!("{} {}", unit.path(id), module.file.display())).collect())
    }

    #[test]
    fn modules_are_found_where_rustc_finds_them() {
        let files = [
            ("a/src/lib.rs", "mod b; mod c { mod d; mod e {} }"),
            ("a/src/b.rs", "mod f;"),
            ("a/src/b/f/mod.rs", "mod r#type;"),
            ("a/src/b/f/type.rs", ""),
            ("a/src/c/d.rs", ""),
        ];
        let expected = [
            "crate a/src/lib.rs",
            "crate::b a/src/b.rs",
            "crate::b::f a/src/b/f/mod.rs",
            "crate::b::f::type a/src/b/f/type.rs",
            "crate::c a/src/lib.rs",
            "crate::c::d a/src/c/d.rs",
            "crate::c::e a/src/lib.rs",
        ];
        assert_eq!(paths(&files).unwrap(), expected);
    }

    #[test]
    fn tests_are_no_modules() {
        let root = "#[cfg(test)] mod a; #[cfg(test)] mod b {} mod tests; #[cfg(all(test, unix))] mod c;";
        assert_eq!(paths(&[("a/src/lib.rs", root)]).unwrap(), ["crate a/src/lib.rs"]);
    }

    #[test]
    fn what_cannot_be_read_is_found() {
        let found = |text| paths(&[("a/src/lib.rs", text)]).unwrap_err().to_string();
        assert!(found("\nmod b;").starts_with("a/src/lib.rs:2: the module `b` has no file"));
        assert!(found("\nfn {").starts_with("a/src/lib.rs:2: syn cannot read it: "));
    }
}
