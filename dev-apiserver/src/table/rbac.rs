//! The columns of bindings.

use serde_json::Value;

use super::column::{AGE, Column, NAME, text, wide};
use crate::object;

pub(super) const BINDINGS: &[Column] = &[
    NAME,
    text("Role", |binding| {
        let role = &binding["roleRef"];
        format!("{}/{}", role["kind"].as_str().unwrap_or_default(), role["name"].as_str().unwrap_or_default()).into()
    }),
    AGE,
    wide("Users", |binding| subjects(binding, "User")),
    wide("Groups", |binding| subjects(binding, "Group")),
    wide("ServiceAccounts", |binding| subjects(binding, "ServiceAccount")),
];

fn subjects(binding: &Value, kind: &str) -> Value {
    let of_kind = object::items(&binding["subjects"]).iter().filter(|subject| subject["kind"] == kind);
    let names: Vec<_> = of_kind
        .map(|subject| match subject["namespace"].as_str() {
            Some(namespace) => format!("{namespace}/{}", subject["name"].as_str().unwrap_or_default()),
            None => subject["name"].as_str().unwrap_or_default().to_owned(),
        })
        .collect();
    names.join(", ").into()
}
