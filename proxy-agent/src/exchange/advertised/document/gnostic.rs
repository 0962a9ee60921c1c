//! OpenAPI v2 in protobuf, which kubectl up to 1.26 and Helm request (`openapiv2/OpenAPIv2.proto` of gnostic).

use std::collections::BTreeSet;

use kube_wire::proto::{Reader, WireError, Writer};

use crate::exchange::advertised::document::Redaction;

/// `paths` of a `Document`, and `path` of those.
const PATHS: (u32, u32) = (8, 2);
/// `definitions` of a `Document`, and `additional_properties` of those.
const DEFINITIONS: (u32, u32) = (9, 1);
/// `name` of a `NamedPathItem` and of a `NamedSchema`.
const NAME: u32 = 1;

/// The document without what is hidden. The kind of a resource is not determined: if a resource of a group is
/// hidden, all schemas of that group are removed. Clients then treat the group like one without schemas.
pub(crate) fn without_hidden(hidden: &Redaction, document: &[u8]) -> Result<Vec<u8>, WireError> {
    let prefixes: BTreeSet<String> = hidden.0.resources.iter().filter_map(|name| prefix(name)).collect();
    let is_schema_hidden = |name: &str| {
        // The name begins with the group in reverse order, followed by the version and the kind
        // (`ToRESTFriendlyName` in kube-openapi's `pkg/util`).
        let group = name.rmatch_indices('.').nth(1).map(|(at, _)| &name[..=at]);
        group.is_some_and(|group| prefixes.contains(group))
    };
    let mut out = Writer::new();
    let mut reader = Reader::new(document);
    while let Some(field) = reader.next_field()? {
        if field.number == PATHS.0 {
            out.bytes(PATHS.0, &without(field.bytes()?, PATHS.1, |path| hidden.is_path_hidden(path))?);
        } else if field.number == DEFINITIONS.0 {
            out.bytes(DEFINITIONS.0, &without(field.bytes()?, DEFINITIONS.1, is_schema_hidden)?);
        } else {
            out.raw(&document[field.span]);
        }
    }
    Ok(out.into_bytes())
}

/// The prefix before version and kind in the name of a schema of `resource.group`.
fn prefix(resource: &str) -> Option<String> {
    let (_, group) = resource.split_once('.')?;
    let mut labels: Vec<&str> = group.split('.').collect();
    labels.reverse();
    Some(labels.join(".") + ".")
}

/// A message without the named elements of a field that are hidden.
fn without(message: &[u8], number: u32, is_hidden: impl Fn(&str) -> bool) -> Result<Vec<u8>, WireError> {
    let mut out = Writer::new();
    let mut reader = Reader::new(message);
    while let Some(field) = reader.next_field()? {
        if field.number == number && name(field.bytes()?)?.is_some_and(&is_hidden) {
            continue;
        }
        out.raw(&message[field.span]);
    }
    Ok(out.into_bytes())
}

fn name(element: &[u8]) -> Result<Option<&str>, WireError> {
    let mut reader = Reader::new(element);
    while let Some(field) = reader.next_field()? {
        if field.number == NAME {
            return field.text().map(Some);
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use virtual_cluster::shared::Hidden;

    use super::*;

    fn named(outer: (u32, u32), names: &[&str]) -> Vec<u8> {
        let mut list = Writer::new();
        for name in names {
            let mut element = Writer::new();
            element.bytes(NAME, name.as_bytes());
            element.bytes(2, b"\x0a\x01x");
            list.bytes(outer.1, &element.into_bytes());
        }
        let mut document = Writer::new();
        document.bytes(outer.0, &list.into_bytes());
        document.into_bytes()
    }

    fn document(paths: &[&str], schemas: &[&str]) -> Vec<u8> {
        let mut swagger = Writer::new();
        swagger.bytes(1, b"2.0");
        [swagger.into_bytes(), named(PATHS, paths), named(DEFINITIONS, schemas)].concat()
    }

    #[test]
    fn paths_and_schemas_of_others_are_left_out() {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let hidden = Redaction(Hidden { resources: set(&["gears.a.example.com"]), groups: set(&["a.example.com"]) });
        let whole = document(
            &["/api/v1/pods", "/apis/a.example.com/", "/apis/a.example.com/v1/gears", "/apis/b.example.com/v1/gears"],
            &["com.example.a.v1.Gear", "com.example.a.v1.GearList", "com.example.v1.Gear", "com.example.a.b.v1.Gear"],
        );
        let rest = document(
            &["/api/v1/pods", "/apis/b.example.com/v1/gears"],
            &["com.example.v1.Gear", "com.example.a.b.v1.Gear"],
        );
        assert_eq!(without_hidden(&hidden, &whole), Ok(rest));
        assert_eq!(without_hidden(&Redaction::default(), &whole), Ok(whole));
        assert!(without_hidden(&hidden, b"\x42\x05x").is_err());
    }
}
