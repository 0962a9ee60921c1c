//! Removes the resources whose definition only other virtual clusters have from discovery and OpenAPI documents.
//!
//! A document of the host is parsed and written again only if it has something to remove.

pub(crate) mod gnostic;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use virtual_cluster::shared::Hidden;

/// The kind of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Document {
    /// `/apis`, in either form.
    Groups,
    /// `/apis/GROUP`
    Group(String),
    /// `/apis/GROUP/VERSION`
    Resources(String),
    /// `/openapi/v3`
    Index,
    /// `/openapi/v2`, and `/openapi/v3/apis/GROUP/VERSION` of a group.
    Schemas(Option<String>),
}

/// Removes what is hidden from one virtual cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Redaction(pub(crate) Hidden);

/// The OpenAPI extension with the kind of an operation or schema.
const KIND: &str = "x-kubernetes-group-version-kind";

// === impl Document ===

impl Document {
    /// Determines the kind of the document by its path.
    pub(crate) fn of(path: &str) -> Option<Self> {
        let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        Some(match segments[..] {
            ["apis"] => Self::Groups,
            ["apis", group] => Self::Group(group.to_owned()),
            ["apis", group, _] => Self::Resources(group.to_owned()),
            ["openapi", "v2"] => Self::Schemas(None),
            ["openapi", "v3"] => Self::Index,
            ["openapi", "v3", "apis", group, ..] => Self::Schemas(Some(group.to_owned())),
            _ => return None,
        })
    }

    /// The group of the document, if it has one group.
    fn group(&self) -> Option<&str> {
        match self {
            Self::Group(group) | Self::Resources(group) | Self::Schemas(Some(group)) => Some(group),
            Self::Groups | Self::Index | Self::Schemas(None) => None,
        }
    }
}

// === impl Redaction ===

impl Redaction {
    /// Whether this document may have something to remove.
    pub(crate) fn concerns(&self, document: &Document) -> bool {
        !self.0.resources.is_empty()
            && document.group().is_none_or(|group| {
                self.0.resources.iter().any(|name| name.split_once('.').is_some_and(|(_, of)| of == group))
            })
    }

    /// Whether the virtual cluster has no such document.
    pub(crate) fn is_all_of(&self, document: &Document) -> bool {
        document.group().is_some_and(|group| self.0.groups.contains(group))
    }

    /// Removes what is hidden.
    pub(crate) fn leave_out(&self, document: &Document, found: &mut Value) {
        match document {
            Document::Groups | Document::Group(_) => self.of_groups(found),
            Document::Resources(group) => {
                if let Some(resources) = array(found, "resources") {
                    resources.retain(|resource| !self.is_hidden(text(&resource["name"]), group));
                }
            }
            Document::Index => {
                if let Some(paths) = found.get_mut("paths").and_then(Value::as_object_mut) {
                    paths.retain(|path, _| {
                        path.strip_prefix("apis/").is_none_or(|rest| !self.0.groups.contains(first(rest)))
                    });
                }
            }
            Document::Schemas(_) => self.of_schemas(found),
        }
    }

    fn of_groups(&self, found: &mut Value) {
        if let Some(groups) = array(found, "groups") {
            groups.retain(|group| !self.0.groups.contains(text(&group["name"])));
        }
        for group in array(found, "items").into_iter().flatten() {
            let name = text(&group["metadata"]["name"]).to_owned();
            for version in array(group, "versions").into_iter().flatten() {
                if let Some(resources) = array(version, "resources") {
                    resources.retain(|resource| !self.is_hidden(text(&resource["resource"]), &name));
                }
            }
        }
        if let Some(groups) = array(found, "items") {
            groups.retain(|group| !self.0.groups.contains(text(&group["metadata"]["name"])));
        }
    }

    /// Removes the paths of hidden resources, and the schemas of their kinds.
    fn of_schemas(&self, found: &mut Value) {
        let mut kinds = BTreeSet::new();
        if let Some(paths) = found.get_mut("paths").and_then(Value::as_object_mut) {
            paths.retain(|path, methods| {
                let is_hidden = self.is_path_hidden(path);
                if is_hidden {
                    kinds_in(methods, &mut kinds);
                }
                !is_hidden
            });
        }
        let is_hidden = |schema: &Value| {
            schema[KIND].as_array().into_iter().flatten().any(|kind| {
                let (group, kind) = (text(&kind["group"]), text(&kind["kind"]));
                let plain = kind.strip_suffix("List").unwrap_or(kind);
                [kind, plain].into_iter().any(|kind| kinds.contains(&(group.to_owned(), kind.to_owned())))
            })
        };
        let retain = |schemas: Option<&mut Map<String, Value>>| {
            if let Some(schemas) = schemas {
                schemas.retain(|_, schema| !is_hidden(schema));
            }
        };
        retain(found.get_mut("definitions").and_then(Value::as_object_mut));
        retain(found.pointer_mut("/components/schemas").and_then(Value::as_object_mut));
    }

    /// `/apis/GROUP/...` or `/apis/GROUP/VERSION/[namespaces/{namespace}/]RESOURCE...`, perhaps with `watch`.
    fn is_path_hidden(&self, path: &str) -> bool {
        let Some(rest) = path.strip_prefix("/apis/") else { return false };
        let mut segments = rest.split('/');
        let group = segments.next().unwrap_or_default();
        if self.0.groups.contains(group) {
            return true;
        }
        let mut rest =
            segments.skip(1).skip_while(|segment| matches!(*segment, "watch" | "namespaces" | "{namespace}"));
        rest.next().is_some_and(|resource| self.is_hidden(resource, group))
    }

    /// Whether this is the path of a resource or a subresource.
    fn is_hidden(&self, resource: &str, group: &str) -> bool {
        self.0.resources.contains(&format!("{}.{group}", first(resource)))
    }
}

/// The kinds of operations.
fn kinds_in(methods: &Value, kinds: &mut BTreeSet<(String, String)>) {
    for operation in methods.as_object().into_iter().flatten().map(|(_, operation)| operation) {
        let about = &operation[KIND];
        if let Some(kind) = about["kind"].as_str() {
            kinds.insert((text(&about["group"]).to_owned(), kind.to_owned()));
        }
    }
}

/// The array at a key. It is not created if it does not exist.
fn array<'v>(found: &'v mut Value, key: &str) -> Option<&'v mut Vec<Value>> {
    found.get_mut(key)?.as_array_mut()
}

fn first(path: &str) -> &str {
    path.split('/').next().unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// `gears.a.com` are hidden, but their group has other resources. The group `b.com` is hidden with all its
    /// resources.
    fn hidden() -> Redaction {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Redaction(Hidden { resources: set(&["gears.a.com", "cogs.b.com"]), groups: set(&["b.com"]) })
    }

    #[track_caller]
    fn check(path: &str, mut found: Value, expected: &Value) {
        let document = Document::of(path).unwrap();
        assert!(hidden().concerns(&document));
        hidden().leave_out(&document, &mut found);
        assert_eq!(&found, expected, "{path}");
    }

    #[test]
    fn documents_are_known_by_their_paths() {
        for (path, concerned, gone) in [
            ("/apis", true, false),
            ("/apis/a.com", true, false),
            ("/apis/a.com/v1", true, false),
            ("/apis/b.com/v1", true, true),
            ("/apis/apps/v1", false, false),
            ("/openapi/v2", true, false),
            ("/openapi/v3/", true, false),
            ("/openapi/v3/apis/b.com/v1", true, true),
            ("/openapi/v3/apis/apps/v1", false, false),
        ] {
            let document = Document::of(path).unwrap();
            assert_eq!((hidden().concerns(&document), hidden().is_all_of(&document)), (concerned, gone), "{path}");
            assert!(!Redaction::default().concerns(&document));
        }
        for other in ["/api", "/api/v1", "/version", "/openapi/v3/api/v1", "/openid/v1/jwks"] {
            assert_eq!(Document::of(other), None, "{other}");
        }
    }

    #[test]
    fn discovery_tells_of_the_rest() {
        check(
            "/apis",
            json!({"groups": [{"name": "a.com"}, {"name": "b.com"}]}),
            &json!({"groups": [{"name": "a.com"}]}),
        );
        let group = |name: &str, resources: &[&str]| {
            let resources: Vec<_> = resources.iter().map(|name| json!({"resource": name})).collect();
            json!({"metadata": {"name": name}, "versions": [{"version": "v1", "resources": resources}]})
        };
        let all = json!({"items": [group("a.com", &["gears", "wheels"]), group("b.com", &["cogs"]), group("c.com", &["gears"])]});
        check("/apis", all, &json!({"items": [group("a.com", &["wheels"]), group("c.com", &["gears"])]}));
        let resources =
            |names: &[&str]| json!({"resources": names.iter().map(|name| json!({"name": name})).collect::<Vec<_>>()});
        check("/apis/a.com/v1", resources(&["gears", "gears/status", "wheels"]), &resources(&["wheels"]));
    }

    #[test]
    fn openapi_tells_of_the_rest() {
        let index = json!({"paths": {"apis/a.com/v1": 1, "apis/b.com": 1, "apis/b.com/v1": 1, "api/v1": 1}});
        check("/openapi/v3", index, &json!({"paths": {"apis/a.com/v1": 1, "api/v1": 1}}));
        let about = |kind: &str| json!({"group": "a.com", "version": "v1", "kind": kind});
        let schemas = json!({
            "a.Gear": {KIND: [about("Gear")]}, "a.GearList": {KIND: [about("GearList")]}, "a.Wheel": {KIND: [about("Wheel")]},
            "meta": {"type": "object"},
        });
        let paths = json!({
            "/apis/a.com/v1/namespaces/{namespace}/gears/{name}": {"get": {KIND: about("Gear")}, "parameters": []},
            "/apis/a.com/v1/watch/gears": {},
            "/apis/a.com/v1/wheels": {"get": {KIND: about("Wheel")}},
            "/apis/b.com/v1/": {},
            "/api/v1/namespaces/{namespace}/gears": {},
        });
        let left = json!({
            "/apis/a.com/v1/wheels": {"get": {KIND: about("Wheel")}}, "/api/v1/namespaces/{namespace}/gears": {},
        });
        let kept = json!({"a.Wheel": {KIND: [about("Wheel")]}, "meta": {"type": "object"}});
        check(
            "/openapi/v2",
            json!({"paths": paths, "definitions": schemas}),
            &json!({"paths": left, "definitions": kept}),
        );
        let (third, expected) = (
            json!({"paths": paths, "components": {"schemas": schemas}}),
            json!({"paths": left, "components": {"schemas": kept}}),
        );
        check("/openapi/v3/apis/a.com/v1", third, &expected);
    }
}
