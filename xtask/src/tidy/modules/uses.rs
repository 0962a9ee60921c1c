//! Where a module names another module.

mod bound;

use std::collections::HashSet;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{
    Arm, Attribute, ExprPath, Field, ImplItem, ImplItemFn, Item, ItemFn, ItemUse, Lit, Local, Macro, Meta, PatIdent,
    Path, TraitItem, TraitItemFn, TypePath, Variant, Visibility,
};

use super::condition::{attributes, attributes_in_impl, attributes_in_trait, is_test_only};
use super::imports::{imports, plain};
use super::scope::{Definition, Scopes, Wanted};
use super::tokens;
use super::unit::{ModuleId, Unit};
use bound::Bound;

/// One place where a module names another module, or an item that another module defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Use {
    pub(crate) from: ModuleId,
    pub(crate) to: ModuleId,
    /// In the file of `from`, from 1.
    pub(crate) line: usize,
}

/// All uses in a unit.
///
/// If an item is named through a re-export, the use is of the module that defines the item. So a module that re-exports
/// an item of its own child uses nothing: it only gives the item another name. If a descendant of a module names it in
/// a path, this is not a use of that module, but of the module of the item at the end of the path.
pub(crate) fn uses(unit: &Unit, scopes: &Scopes<'_>) -> Vec<Use> {
    let mut found = Vec::new();
    for (from, module) in unit.modules() {
        let mut reader = Reader { unit, scopes, from, bound: HashSet::new(), found: &mut found };
        for item in &module.items {
            reader.visit_item(item);
        }
    }
    found.sort();
    found.dedup();
    found
}

/// Reads the code of one module.
struct Reader<'a> {
    unit: &'a Unit,
    scopes: &'a Scopes<'a>,
    from: ModuleId,
    /// What the current function or item declares itself. If it uses a name for a variable anywhere, the name means the
    /// variable everywhere in it.
    bound: HashSet<String>,
    found: &'a mut Vec<Use>,
}

// === impl Reader ===

impl Reader<'_> {
    fn add(&mut self, to: ModuleId, line: usize) {
        if to != self.from {
            self.found.push(Use { from: self.from, to, line });
        }
    }

    fn path(&mut self, path: &[String], wanted: Wanted, line: usize) {
        if let [name] = path
            && self.bound.contains(name)
        {
            return;
        }
        for definition in self.scopes.resolve(self.from, path, wanted) {
            if let Definition::Item { module, .. } = definition {
                self.add(module, line);
            }
        }
    }

    fn syntax_path(&mut self, path: &Path, wanted: Wanted) {
        let start = path.leading_colon.as_ref().map(|_| String::new());
        let names: Vec<_> =
            start.into_iter().chain(path.segments.iter().map(|segment| plain(&segment.ident))).collect();
        if let Some(first) = path.segments.first() {
            self.path(&names, wanted, first.ident.span().start().line);
        }
        // Generic arguments are paths too.
        for segment in &path.segments {
            self.visit_path_arguments(&segment.arguments);
        }
    }

    fn tokens(&mut self, tokens: TokenStream) {
        for found in tokens::paths(tokens) {
            let wanted = if found.is_call { Wanted::Value } else { Wanted::Any };
            self.path(&found.path, wanted, found.line);
        }
    }

    /// Reads something that declares its own names.
    fn within(&mut self, names: HashSet<String>, read: impl FnOnce(&mut Self)) {
        let added: Vec<_> = names.into_iter().filter(|name| self.bound.insert(name.clone())).collect();
        read(self);
        for name in &added {
            self.bound.remove(name);
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if is_test_only(attributes(item)) {
            return;
        }
        self.within(Bound::parameters(item), |reader| visit::visit_item(reader, item));
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        self.within(Bound::variables(|bound| bound.visit_item_fn(item)), |reader| visit::visit_item_fn(reader, item));
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.within(Bound::variables(|bound| bound.visit_impl_item_fn(item)), |reader| {
            visit::visit_impl_item_fn(reader, item);
        });
    }

    fn visit_trait_item_fn(&mut self, item: &'ast TraitItemFn) {
        self.within(Bound::variables(|bound| bound.visit_trait_item_fn(item)), |reader| {
            visit::visit_trait_item_fn(reader, item);
        });
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let is_reexport = !matches!(item.vis, Visibility::Inherited);
        for import in imports(item) {
            let wanted = if import.name.is_some() { Wanted::Any } else { Wanted::Type };
            for definition in self.scopes.resolve(self.from, &import.path, wanted) {
                let is_silent = match definition {
                    Definition::Module(to) if import.name.is_some() => self.unit.is_within(self.from, to),
                    Definition::Module(_) | Definition::Item { .. } => false,
                };
                let (Definition::Module(to) | Definition::Item { module: to, .. }) = definition;
                let is_renaming = is_reexport && self.unit.is_within(to, self.from);
                if !is_silent && !is_renaming {
                    self.add(to, import.line);
                }
            }
        }
    }

    fn visit_path(&mut self, path: &'ast Path) {
        self.syntax_path(path, Wanted::Any);
    }

    fn visit_expr_path(&mut self, expression: &'ast ExprPath) {
        if let Some(qself) = &expression.qself {
            self.visit_qself(qself);
        }
        self.syntax_path(&expression.path, Wanted::Value);
    }

    fn visit_type_path(&mut self, ty: &'ast TypePath) {
        if let Some(qself) = &ty.qself {
            self.visit_qself(qself);
        }
        self.syntax_path(&ty.path, Wanted::Type);
    }

    /// A constant in a pattern looks like a variable.
    fn visit_pat_ident(&mut self, pattern: &'ast PatIdent) {
        self.path(&[plain(&pattern.ident)], Wanted::Value, pattern.ident.span().start().line);
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_macro(&mut self, item: &'ast Macro) {
        self.syntax_path(&item.path, Wanted::Macro);
        self.tokens(item.tokens.clone());
    }

    /// Paths in attributes of derive macros; serde's are in strings. Links in documentation are not uses.
    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        let Meta::List(list) = &attribute.meta else {
            return;
        };
        if list.path.is_ident("serde") {
            for token in list.tokens.clone() {
                if let TokenTree::Literal(literal) = token
                    && let Lit::Str(text) = Lit::new(literal)
                    && let Ok(path) = text.parse::<Path>()
                {
                    self.syntax_path(&path, Wanted::Any);
                }
            }
        } else {
            self.tokens(list.tokens.clone());
        }
    }

    /// `pub(in crate::a)` restricts who may use an item, and uses nothing.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        if !is_test_only(attributes_in_impl(item)) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_trait_item(&mut self, item: &'ast TraitItem) {
        if !is_test_only(attributes_in_trait(item)) {
            visit::visit_trait_item(self, item);
        }
    }

    fn visit_field(&mut self, field: &'ast Field) {
        if !is_test_only(&field.attrs) {
            visit::visit_field(self, field);
        }
    }

    fn visit_variant(&mut self, variant: &'ast Variant) {
        if !is_test_only(&variant.attrs) {
            visit::visit_variant(self, variant);
        }
    }

    fn visit_arm(&mut self, arm: &'ast Arm) {
        if !is_test_only(&arm.attrs) {
            visit::visit_arm(self, arm);
        }
    }

    fn visit_local(&mut self, local: &'ast Local) {
        if !is_test_only(&local.attrs) {
            visit::visit_local(self, local);
        }
    }
}

#[cfg(test)]
mod tests;
