//! What rustc compiles at once: a library or a program, as a tree of modules.

use std::path::PathBuf;

use syn::Item;

/// A library or a program.
pub(crate) struct Unit {
    /// The package, and the program if the package has several units.
    pub(crate) name: String,
    modules: Vec<Module>,
}

/// A module of one [`Unit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ModuleId(usize);

pub(crate) struct Module {
    pub(crate) name: String,
    /// None for the root.
    pub(crate) parent: Option<ModuleId>,
    /// Relative to the root of the workspace.
    pub(crate) file: PathBuf,
    /// Without modules, and without code that only tests compile.
    pub(crate) items: Vec<Item>,
}

// === impl Unit ===

impl Unit {
    pub(super) const ROOT: ModuleId = ModuleId(0);

    pub(super) fn new(name: String) -> Self {
        Self { name, modules: Vec::new() }
    }

    /// The first one is the root.
    pub(super) fn add(&mut self, module: Module) -> ModuleId {
        self.modules.push(module);
        ModuleId(self.modules.len() - 1)
    }

    pub(crate) fn module(&self, id: ModuleId) -> &Module {
        &self.modules[id.0]
    }

    pub(crate) fn modules(&self) -> impl Iterator<Item = (ModuleId, &Module)> {
        self.modules.iter().enumerate().map(|(index, module)| (ModuleId(index), module))
    }

    /// From the root to the module itself.
    pub(crate) fn lineage(&self, id: ModuleId) -> Vec<ModuleId> {
        let mut line: Vec<_> = std::iter::successors(Some(id), |&id| self.module(id).parent).collect();
        line.reverse();
        line
    }

    /// Whether `ancestor` contains `id` or is it.
    pub(crate) fn is_within(&self, id: ModuleId, ancestor: ModuleId) -> bool {
        self.lineage(id).contains(&ancestor)
    }

    /// `crate::a::b`.
    pub(crate) fn path(&self, id: ModuleId) -> String {
        let line = self.lineage(id);
        line.iter().map(|&id| self.module(id).name.as_str()).collect::<Vec<_>>().join("::")
    }
}

// === impl ModuleId ===

impl ModuleId {
    /// From 0, in the order of [`Unit::modules`].
    pub(super) fn index(self) -> usize {
        self.0
    }
}
