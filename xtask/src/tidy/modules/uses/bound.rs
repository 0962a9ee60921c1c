//! The names that a function or an item declares itself: type parameters and variables.

use std::collections::HashSet;

use syn::visit::{self, Visit};
use syn::{Item, PatIdent, TypeParam};

use crate::tidy::modules::imports::plain;

/// Collects them.
pub(super) struct Bound {
    is_within_function: bool,
    names: HashSet<String>,
}

// === impl Bound ===

impl Bound {
    /// The type parameters of an item, and of all that is inside it.
    pub(super) fn parameters(item: &Item) -> HashSet<String> {
        let mut bound = Self { is_within_function: false, names: HashSet::new() };
        bound.visit_item(item);
        bound.names
    }

    /// The type parameters and the variables of the function that `read` visits.
    pub(super) fn variables(read: impl FnOnce(&mut Self)) -> HashSet<String> {
        let mut bound = Self { is_within_function: true, names: HashSet::new() };
        read(&mut bound);
        bound.names
    }
}

impl Visit<'_> for Bound {
    fn visit_type_param(&mut self, parameter: &TypeParam) {
        self.names.insert(plain(&parameter.ident));
    }

    fn visit_pat_ident(&mut self, pattern: &PatIdent) {
        let name = plain(&pattern.ident);
        // A constant in a pattern looks like a variable, except for the capital letter.
        if self.is_within_function && !name.starts_with(char::is_uppercase) {
            self.names.insert(name);
        }
        visit::visit_pat_ident(self, pattern);
    }
}
