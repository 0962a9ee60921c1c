//! No type has more than 25 methods.
//!
//! All functions in all `impl Type` blocks of the crate count, with and without `self`. Functions of traits do not,
//! because the trait defines their purpose. Neither do those that only tests compile.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::known::{Known, Violation};
use super::modules::{Scopes, Unit, inherent_impls};
use crate::finding::Finding;

/// The maximum number of methods.
const MOST: usize = 25;

/// A type with too many methods.
pub(crate) struct Crowded {
    unit: String,
    /// Its name, with the path of its module.
    ty: String,
    methods: usize,
    /// The number of files that contain them.
    files: usize,
    /// The first block.
    file: PathBuf,
    line: usize,
}

pub(crate) fn measure(unit: &Unit) -> Vec<Crowded> {
    let mut types: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for block in inherent_impls(unit, &Scopes::new(unit)) {
        types.entry((block.home, block.name.clone())).or_default().push(block);
    }
    let mut crowded = Vec::new();
    for ((home, name), mut blocks) in types {
        let methods = blocks.iter().map(|block| block.methods).sum();
        // The blocks in the type's own module first.
        blocks.sort_by_key(|block| (block.module != home, block.module, block.line));
        if methods > MOST {
            let mut files: Vec<_> = blocks.iter().map(|block| &unit.module(block.module).file).collect();
            let file = files[0].clone();
            files.sort();
            files.dedup();
            crowded.push(Crowded {
                unit: unit.name.clone(),
                ty: format!("{}::{name}", unit.path(home)),
                methods,
                files: files.len(),
                file,
                line: blocks[0].line,
            });
        }
    }
    crowded
}

// === impl Crowded ===

impl Crowded {
    pub(crate) fn violation(&self) -> Violation {
        Violation::Methods { unit: self.unit.clone(), ty: self.ty.clone(), count: self.methods }
    }

    pub(crate) fn finding(&self, known: &Known) -> Finding {
        let Self { ty, methods, files, .. } = self;
        let place = if *files == 1 { String::new() } else { format!(" in {files} files") };
        let allowance = known.allowance(&self.violation());
        let problem = format!("`{ty}` has {methods} methods{place}, and {MOST} is the most{allowance}");
        Finding::new(&self.file, self.line, problem, "find the second idea in it and give it a type")
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::tidy::modules::read;

    fn measured(text: &str) -> Vec<Crowded> {
        let tree = [("l.rs".into(), text.to_owned())].into_iter().collect();
        measure(&read("x".to_owned(), Path::new("l.rs"), &tree).unwrap())
    }

    fn functions(n: usize) -> String {
        "fn f() {}\n".repeat(n)
    }

    #[test]
    fn a_type_may_have_the_most_and_not_one_more() {
        let text = |n| format!("struct A; impl A {{ {} }}", functions(n));
        assert_eq!(measured(&text(MOST)).len(), 0);
        let crowded = measured(&text(MOST + 1));
        assert_eq!(crowded[0].violation().to_string(), "methods x crate::A 26");
        assert!(
            crowded[0]
                .finding(&Known::default())
                .to_string()
                .starts_with("l.rs:1: `crate::A` has 26 methods, and 25 is the most; ")
        );
    }

    #[test]
    fn what_is_known_is_said() {
        let crowded = measured(&format!("struct A; impl A {{ {} }}", functions(30)));
        let known = Known::parse("methods x crate::A 29\n").unwrap();
        let found = crowded[0].finding(&known).to_string();
        assert!(
            found.contains("is the most (xtask/known-violations.txt:1 allows `methods x crate::A 29`); "),
            "{found}"
        );
    }

    #[test]
    fn all_blocks_of_a_type_count_and_no_others() {
        let text = format!(
            "mod a {{ pub struct A<T>(T); mod b {{ use super::A as B;\n impl B<u8> {{ {} }} }}\n impl<T> A<T> {{ {} }} }}
            mod c {{ pub struct A; impl A {{ {} }} impl Iterator for A {{ {} }} #[cfg(test)] impl A {{ {} }} }}",
            functions(13),
            functions(13),
            functions(25),
            functions(9),
            functions(9),
        );
        let crowded = measured(&text);
        assert_eq!(crowded.len(), 1);
        assert_eq!(crowded[0].violation().to_string(), "methods x crate::a::A 26");
        // The line is that of the block beside the type.
        assert!(crowded[0].finding(&Known::default()).to_string().starts_with("l.rs:16: `crate::a::A` has 26 methods"));
    }
}
