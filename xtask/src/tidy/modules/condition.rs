//! Which code only tests compile (The Rust Reference, "Conditional compilation").

use syn::punctuated::Punctuated;
use syn::{Attribute, ImplItem, Item, Meta, Token, TraitItem};

/// Whether only tests compile an item with these attributes.
pub(super) fn is_test_only(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let path = attribute.path();
        let is_test = path.segments.last().is_some_and(|last| last.ident == "test");
        let is_off = || attribute.parse_args::<Meta>().is_ok_and(|predicate| holds(&predicate) == Some(false));
        is_test || (path.is_ident("cfg") && is_off())
    })
}

pub(super) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

pub(super) fn attributes_in_impl(item: &ImplItem) -> &[Attribute] {
    match item {
        ImplItem::Const(item) => &item.attrs,
        ImplItem::Fn(item) => &item.attrs,
        ImplItem::Type(item) => &item.attrs,
        ImplItem::Macro(item) => &item.attrs,
        _ => &[],
    }
}

pub(super) fn attributes_in_trait(item: &TraitItem) -> &[Attribute] {
    match item {
        TraitItem::Const(item) => &item.attrs,
        TraitItem::Fn(item) => &item.attrs,
        TraitItem::Type(item) => &item.attrs,
        TraitItem::Macro(item) => &item.attrs,
        _ => &[],
    }
}

/// Whether a predicate is true in a build that is not a test; `None` if this depends on something else.
fn holds(predicate: &Meta) -> Option<bool> {
    let Meta::List(list) = predicate else {
        return predicate.path().is_ident("test").then_some(false);
    };
    let parts = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated).ok()?;
    let parts: Vec<_> = parts.iter().map(holds).collect();
    // One `decisive` part decides. Otherwise, all parts must be known.
    let combined = |decisive: bool| {
        if parts.contains(&Some(decisive)) {
            return Some(decisive);
        }
        (!parts.contains(&None)).then_some(!decisive)
    };
    match list.path.get_ident()?.to_string().as_str() {
        "not" => parts[..].first()?.map(|holds| !holds),
        "all" => combined(false),
        "any" => combined(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(attribute: &str, expected: bool) {
        let item: syn::ItemFn = syn::parse_str(&format!("{attribute} fn a() {{}}")).unwrap();
        assert_eq!(is_test_only(&item.attrs), expected, "{attribute}");
    }

    #[test]
    fn what_a_build_without_tests_leaves_out_is_test_only() {
        for attribute in [
            "#[cfg(test)]",
            "#[test]",
            "#[tokio::test(start_paused = true)]",
            "#[cfg(all(test, unix))]",
            "#[cfg(all(unix, any(test)))]",
            "#[cfg(not(not(test)))]",
            "#[inline] #[cfg(test)]",
        ] {
            check(attribute, true);
        }
    }

    #[test]
    fn what_some_build_needs_is_not() {
        for attribute in [
            "",
            "#[inline]",
            "#[cfg(unix)]",
            "#[cfg(not(test))]",
            "#[cfg(any(test, fuzzing))]",
            "#[cfg(any(test, feature = \"test\"))]",
            "#[cfg(all(unix, not(test)))]",
            "#[cfg_attr(test, derive(Debug))]",
            "#[cfg(true)]",
        ] {
            check(attribute, false);
        }
    }
}
