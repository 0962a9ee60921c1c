//! The meaning of a name in a module.
//!
//! Names are looked up as in rustc: first the names that a module declares or imports, then its globs. Privacy is not
//! checked, because rustc does this. If a path leads into a module of ours that has no such name, a macro declares the
//! name there.

use std::collections::HashMap;

use syn::Item;

use super::condition::{attributes, is_test_only};
use super::imports::imports;
use super::unit::{ModuleId, Unit};

/// The names of all modules of a unit.
pub(crate) struct Scopes<'a> {
    unit: &'a Unit,
    scopes: Vec<Scope>,
}

/// What a path leads to, if it is in this unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Definition {
    Module(ModuleId),
    /// Variants and associated items count as the item that contains them.
    Item {
        module: ModuleId,
        name: String,
    },
}

/// The namespace of a name (The Rust Reference, "Namespaces").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Type,
    Value,
    Macro,
    /// As `use` does.
    Any,
}

#[derive(Default)]
struct Scope {
    names: HashMap<String, Vec<Name>>,
    globs: Vec<Vec<String>>,
}

enum Name {
    Module(ModuleId),
    Item(Wanted),
    /// An item that another module defines: a macro, at the root.
    Exported(ModuleId),
    Import(Vec<String>),
}

/// A lookup in progress.
type Step = (ModuleId, String, Wanted);

/// The result of a lookup.
enum Found {
    Ours(Vec<Definition>),
    /// The name is known, and means something in another crate.
    Foreign,
    Nothing,
}

// === impl Scopes ===

impl<'a> Scopes<'a> {
    pub(crate) fn new(unit: &'a Unit) -> Self {
        let mut scopes: Vec<Scope> = unit.modules().map(|_| Scope::default()).collect();
        for (id, module) in unit.modules() {
            if let Some(parent) = module.parent {
                scopes[parent.index()].declare(&module.name, Name::Module(id));
            }
            for item in module.items.iter().filter(|item| !is_test_only(attributes(item))) {
                if let Item::Macro(item) = item
                    && let Some(name) = &item.ident
                    && item.attrs.iter().any(|attribute| attribute.path().is_ident("macro_export"))
                {
                    scopes[Unit::ROOT.index()].declare(&name.to_string(), Name::Exported(id));
                } else {
                    scopes[id.index()].add(item);
                }
            }
        }
        Self { unit, scopes }
    }

    /// What a path in `from` leads to. Nothing if it leads to another crate or to what a function declares; several if
    /// the same name exists in several namespaces.
    pub(super) fn resolve(&self, from: ModuleId, path: &[String], wanted: Wanted) -> Vec<Definition> {
        self.walk(from, path, wanted, &mut Vec::new())
    }

    fn walk(&self, from: ModuleId, path: &[String], wanted: Wanted, open: &mut Vec<Step>) -> Vec<Definition> {
        let mut at = from;
        // Whether the segments before this one led to `at`.
        let mut is_led = false;
        for (index, segment) in path.iter().enumerate() {
            let keyword = match segment.as_str() {
                "crate" => Some(Unit::ROOT),
                "self" => Some(at),
                "super" => Some(self.unit.module(at).parent.unwrap_or(Unit::ROOT)),
                _ => None,
            };
            if let Some(module) = keyword {
                (at, is_led) = (module, true);
                continue;
            }
            let is_last = index + 1 == path.len();
            let definitions = match self.lookup(at, segment, if is_last { wanted } else { Wanted::Type }, open) {
                Found::Ours(definitions) => definitions,
                Found::Nothing if is_led => vec![Definition::Item { module: at, name: segment.clone() }],
                Found::Nothing | Found::Foreign => return Vec::new(),
            };
            if is_last {
                return definitions;
            }
            let module = definitions.iter().find_map(|definition| match definition {
                Definition::Module(module) => Some(*module),
                Definition::Item { .. } => None,
            });
            match module {
                Some(module) => (at, is_led) = (module, true),
                None => return definitions,
            }
        }
        if is_led { vec![Definition::Module(at)] } else { Vec::new() }
    }

    fn lookup(&self, module: ModuleId, name: &str, wanted: Wanted, open: &mut Vec<Step>) -> Found {
        let step = (module, name.to_owned(), wanted);
        // Cyclic imports, such as two modules with globs of each other, add nothing.
        if open.contains(&step) {
            return Found::Nothing;
        }
        open.push(step);
        let found = self.lookup_once(module, name, wanted, open);
        open.pop();
        found
    }

    fn lookup_once(&self, module: ModuleId, name: &str, wanted: Wanted, open: &mut Vec<Step>) -> Found {
        let scope = &self.scopes[module.index()];
        let mut is_known = false;
        let mut found = Vec::new();
        for entry in scope.names.get(name).into_iter().flatten() {
            let item = |module| Definition::Item { module, name: name.to_owned() };
            let definitions = match entry {
                Name::Module(id) if wanted.accepts(Wanted::Type) => vec![Definition::Module(*id)],
                Name::Item(kind) if wanted.accepts(*kind) => vec![item(module)],
                Name::Exported(id) if wanted.accepts(Wanted::Macro) => vec![item(*id)],
                Name::Import(path) => self.walk(module, path, wanted, open),
                _ => continue,
            };
            is_known = true;
            found.extend(definitions);
        }
        if !is_known {
            for path in &scope.globs {
                for definition in self.walk(module, path, Wanted::Type, open) {
                    if let Definition::Module(glob) = definition
                        && let Found::Ours(definitions) = self.lookup(glob, name, wanted, open)
                    {
                        found.extend(definitions);
                    }
                }
            }
        }
        match (found.is_empty(), is_known) {
            (false, _) => Found::Ours(found),
            (true, true) => Found::Foreign,
            (true, false) => Found::Nothing,
        }
    }
}

// === impl Scope ===

impl Scope {
    fn declare(&mut self, name: &str, meaning: Name) {
        self.names.entry(name.trim_start_matches("r#").to_owned()).or_default().push(meaning);
    }

    fn add(&mut self, item: &Item) {
        let (name, kind) = match item {
            Item::Const(item) => (&item.ident, Wanted::Value),
            Item::Enum(item) => (&item.ident, Wanted::Type),
            Item::Fn(item) => (&item.sig.ident, Wanted::Value),
            Item::Macro(item) => match &item.ident {
                Some(name) => (name, Wanted::Macro),
                None => return,
            },
            Item::Static(item) => (&item.ident, Wanted::Value),
            // Its constructor is a value.
            Item::Struct(item) => (&item.ident, Wanted::Any),
            Item::Trait(item) => (&item.ident, Wanted::Type),
            Item::TraitAlias(item) => (&item.ident, Wanted::Type),
            Item::Type(item) => (&item.ident, Wanted::Type),
            Item::Union(item) => (&item.ident, Wanted::Type),
            Item::Use(item) => {
                for import in imports(item) {
                    match import.name {
                        Some(name) => self.declare(&name, Name::Import(import.path)),
                        None => self.globs.push(import.path),
                    }
                }
                return;
            }
            _ => return,
        };
        self.declare(&name.to_string(), Name::Item(kind));
    }
}

// === impl Wanted ===

impl Wanted {
    fn accepts(self, kind: Self) -> bool {
        self == Self::Any || kind == Self::Any || self == kind
    }
}
