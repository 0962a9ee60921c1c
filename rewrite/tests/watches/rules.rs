//! The rules of a watch of Events in all namespaces, over whole trees.

use std::collections::HashSet;

use serde_json::Value;

/// What a watch reports.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Bookmark(String, bool),
    /// An event waits for these namespaces.
    Wait(Vec<String>),
}

/// Reads events in their order.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    pub(crate) found: Vec<Found>,
    pub(crate) shown: Vec<Value>,
    /// Namespaces that have become known.
    new: HashSet<String>,
    unresolved: HashSet<String>,
    /// The columns of hidden tables.
    undelivered: Value,
}

/// Whether the index will have the namespace once an event waits for it.
pub(crate) fn becomes_known(name: &str) -> bool {
    name.starts_with("new-")
}

/// The name of the namespace in the virtual cluster. Nobody can tell it from a shortened name.
pub(crate) fn virtual_name(name: &str) -> &str {
    name.strip_suffix("-ke").unwrap_or("long")
}

/// Whether the name ends with a digest, so that it may be the shortened name of any virtual cluster.
fn is_shortened(name: &str) -> bool {
    let digest = name.rsplit_once('-').map_or("", |(_, digest)| digest);
    digest.len() == 20 && digest.chars().all(|digit| matches!(digit, 'a'..='z' | '2'..='7'))
}

// === impl Reading ===

impl Reading {
    pub(crate) fn event(&mut self, mut event: Value) {
        loop {
            let names = self.unknown(&event);
            if names.is_empty() {
                break;
            }
            self.new.extend(names.iter().filter(|name| becomes_known(name)).cloned());
            let gives_up = !names.iter().all(|name| becomes_known(name));
            if gives_up {
                self.unresolved.extend(names.iter().cloned());
            }
            self.found.push(Found::Wait(names));
            if gives_up {
                break;
            }
        }
        let is_shown = match event["type"].as_str() {
            Some("BOOKMARK") => {
                let metadata = &event["object"]["metadata"];
                let version = metadata["resourceVersion"].as_str().unwrap_or_default().to_owned();
                let ends = metadata["annotations"].get("k8s.io/initial-events-end").is_some();
                self.found.push(Found::Bookmark(version, ends));
                true
            }
            Some("ERROR") => {
                self.rename(&mut event["object"]["details"]["name"]);
                true
            }
            _ => self.change(&mut event),
        };
        if is_shown {
            self.shown.push(event);
        }
    }

    fn change(&mut self, event: &mut Value) -> bool {
        let is_shown = self.is_member(namespace(event));
        if event["object"]["kind"] == "Table" {
            self.columns(&mut event["object"]["columnDefinitions"], is_shown);
        }
        if is_shown {
            self.rename(event.pointer_mut(own(event)).unwrap());
            if let Some(about) = event.pointer_mut(ABOUT) {
                self.rename(about);
            }
        }
        is_shown
    }

    /// The first table that the client receives gets the columns that it has not received, unless the table has
    /// columns.
    fn columns(&mut self, columns: &mut Value, is_shown: bool) {
        let is_empty = columns.as_array().is_none_or(Vec::is_empty);
        match (is_shown, is_empty) {
            (false, true) => {}
            (false, false) => self.undelivered = columns.clone(),
            (true, false) => self.undelivered = Value::Null,
            (true, true) if self.undelivered.is_null() => {}
            (true, true) => *columns = self.undelivered.take(),
        }
    }

    /// The name for which an event waits: the one that decides whether it is visible, if it can be the virtual cluster's. Or
    /// else the one to which the event refers, if it is shown in another way once it is known.
    fn unknown(&self, event: &Value) -> Vec<String> {
        if ["BOOKMARK", "ERROR"].map(Some).contains(&event["type"].as_str()) {
            return Vec::new();
        }
        let own = Some(namespace(event)).filter(|own| own.ends_with("-ke") || is_shortened(own));
        let about = event.pointer(ABOUT).and_then(Value::as_str).filter(|_| self.is_member(namespace(event)));
        let names = [own, about.filter(|about| is_shortened(about))].into_iter().flatten().map(str::to_owned);
        names.filter(|name| self.is_unknown(name) && !self.unresolved.contains(name)).collect()
    }

    fn is_unknown(&self, name: &str) -> bool {
        let is_name = !name.contains('_');
        is_name && !self.is_member(name) && !["edge-hz", "kube-system"].contains(&name)
    }

    fn is_member(&self, name: &str) -> bool {
        name == "edge-ke" || self.new.contains(name)
    }

    /// Names that do not exist are shown as the virtual cluster would write them.
    fn rename(&self, name: &mut Value) {
        let host = name.as_str().unwrap();
        *name = match host {
            _ if self.is_member(host) || host.ends_with("-ke") => virtual_name(host).into(),
            _ if host.contains('_') => host.into(),
            _ => format!("host:{host}").into(),
        };
    }
}

/// The namespace of the object to which an Event refers.
const ABOUT: &str = "/object/involvedObject/namespace";

/// The member with the namespace of the object.
fn own(event: &Value) -> &'static str {
    match event["object"]["kind"].as_str() {
        Some("Table") => "/object/rows/0/object/metadata/namespace",
        _ => "/object/metadata/namespace",
    }
}

fn namespace(event: &Value) -> &str {
    event.pointer(own(event)).and_then(Value::as_str).unwrap_or_default()
}
