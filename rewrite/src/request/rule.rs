//! Rules of roles: the names of namespaces and ClusterRoles in them, and the number of permissions that they grant.

use super::fields::Fields;
use super::permissions::{Permissions, RuleLengths};
use super::refusal::{Reason, Refusal};
use super::strings::quotes_of;
use crate::json::{Cursor, Edits, Outcome, quoted};
use crate::program::Names;

/// Maps a rule, and counts its permissions.
pub(super) fn rule(
    fields: &mut Fields<'_>,
    permissions: &mut Permissions,
    cursor: &mut Cursor<'_>,
    edits: &mut Edits,
) -> Result<(), Refusal> {
    let (groups, resources) = (cursor.strings_at("apiGroups")?, cursor.strings_at("resources")?);
    let lengths = RuleLengths {
        verbs: cursor.elements_at("verbs")?,
        groups: groups.len(),
        resources: resources.len(),
        names: cursor.elements_at("resourceNames")?,
        paths: cursor.elements_at("nonResourceURLs")?,
    };
    permissions.add(lengths).map_err(|sum| Reason::TooManyPermissions { sum })?;
    let names = Names::of(&groups, &resources);
    let once = &["verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs"];
    fields.members(once, cursor, edits, |fields, key, cursor, edits| {
        if key != b"resourceNames" || names == Names::OfOthers || cursor.peek()? != b'[' {
            return Ok(cursor.skip()?);
        }
        cursor.array(edits, |cursor, edits, _| {
            if cursor.peek()? == b'"' {
                let text = cursor.string()?;
                if let Some(host) = fields.settings.names.in_rule(names, &text.bytes())? {
                    edits.replace(quotes_of(&text), quoted(&String::from_utf8_lossy(&host)).into());
                }
            } else {
                cursor.skip()?;
            }
            Ok::<_, Refusal>(Outcome::Keep)
        })?;
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use kube_wire::envelope::Envelope;
    use kube_wire::proto::Writer as Proto;
    use serde_json::{Value, json};

    use super::*;
    use crate::View;
    use crate::request::Request;
    use crate::schema::{program_for, proto_program_for};
    use crate::view::Filter;
    use crate::view::tests::mapping;

    const GROUP: &str = "rbac.authorization.k8s.io";

    fn role(resources: &[&str], names: &[&str]) -> Value {
        json!({"rules": [{"verbs": ["get"], "apiGroups": [""], "resources": resources, "resourceNames": names}]})
    }

    fn map(body: &Value) -> Result<Value, String> {
        let mut out: Vec<Bytes> = Vec::new();
        let request = Request::new(mapping()).in_namespace("edge".parse().unwrap());
        let mapped = request.map(&program_for(GROUP, "v1", "roles"), &body.to_string().into(), &mut out);
        mapped.map(|_| serde_json::from_slice(&out.concat()).unwrap()).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn names_of_namespaces_are_mapped_in_both_directions() {
        for (resources, given, host) in [
            (&["namespaces"][..], &["edge", "new", "*"][..], &["edge-ke", "new-ke", "*"][..]),
            (&["namespaces/status"], &["edge"], &["edge-ke"]),
            (&["pods"], &["edge"], &["edge"]),
            (&["*"], &["edge"], &["edge"]),
            (&["namespaces", "pods"], &[], &[]),
        ] {
            let mapped = map(&role(resources, given)).unwrap();
            assert_eq!(mapped, role(resources, host));
            let mut out: Vec<Bytes> = Vec::new();
            let program = program_for(GROUP, "v1", "roles");
            let body = Bytes::from(mapped.to_string());
            View::new(mapping()).object(&program, Filter::Everything, &body, &mut out).unwrap();
            assert_eq!(serde_json::from_slice::<Value>(&out.concat()).unwrap(), role(resources, given));
        }
    }

    #[test]
    fn ambiguous_names_are_refused() {
        let mixed = map(&role(&["namespaces", "pods"], &["edge"])).unwrap_err();
        assert!(mixed.starts_with("rules[0].resourceNames[0]: ") && mixed.contains("a rule of their own"), "{mixed}");
        assert!(map(&role(&["namespaces"], &["atoll-root"])).is_err());
    }

    /// The fields of a rule in protobuf: `verbs`, `apiGroups`, `resources`, `resourceNames`, `nonResourceURLs`.
    fn proto_role(rules: &[Vec<(u32, &str)>]) -> Bytes {
        let mut role = Proto::new();
        for fields in rules {
            let mut rule = Proto::new();
            for (number, text) in fields {
                rule.bytes(*number, text.as_bytes());
            }
            role.bytes(2, &rule.into_bytes());
        }
        Bytes::from(Envelope { raw: &role.into_bytes(), ..Envelope::default() }.encode())
    }

    fn map_proto(kind: &str, body: &Bytes) -> Result<Bytes, Refusal> {
        let mut out: Vec<Bytes> = Vec::new();
        let program = proto_program_for(GROUP, "v1", kind).unwrap();
        let request = Request::new(mapping()).in_namespace("edge".parse().unwrap());
        request.map_protobuf(program, body, &mut out).map(|_| Bytes::from(out.concat()))
    }

    #[test]
    fn protobuf_is_mapped_like_json() {
        let role = |resource, names: &[&'static str]| {
            let names = names.iter().map(|name| (4, *name));
            proto_role(&[[(1, "get"), (2, ""), (3, resource)].into_iter().chain(names).collect()])
        };
        let map = |body: &Bytes| map_proto("Role", body);
        assert_eq!(map(&role("namespaces", &["edge", "*"])), Ok(role("namespaces", &["edge-ke", "*"])));
        assert_eq!(map(&role("pods", &["edge"])), Ok(role("pods", &["edge"])));
        assert!(map(&role("namespaces", &["atoll-root"])).is_err());
    }

    #[test]
    fn the_permissions_of_a_role_are_limited() {
        let of = |verbs, groups, resources, names, paths| RuleLengths { verbs, groups, resources, names, paths };
        for (rules, expected) in [
            (&[of(100, 10, 10, 0, 0)][..], None),
            (&[of(10, 10, 10, 10, 0)], None),
            (&[of(100, 0, 0, 0, 100)], None),
            // kube-apiserver accepts these up to the check that a rule cannot have both.
            (&[of(100, 1, 50, 0, 51)], Some((0, 10_100))),
            (&[of(500, 500, 500, 0, 0)], Some((0, 125_000_000))),
            (&[of(10, 10, 10, 11, 0)], Some((0, 11_000))),
            (&[of(5000, 0, 0, 0, 5000)], Some((0, 25_000_000))),
            (&[of(100, 1, 50, 0, 0), of(100, 1, 50, 0, 0)], None),
            (&[of(100, 1, 50, 0, 0), of(100, 1, 50, 0, 0), of(1, 1, 1, 0, 0)], Some((2, 10_001))),
            (&*vec![of(1, 1, 1, 0, 0); 10_000], None),
            (&*vec![of(0, 0, 0, 0, 0); 10_001], Some((10_000, 10_001))),
        ] {
            let lists = |rule: &RuleLengths| {
                let RuleLengths { verbs, groups, resources, names, paths } = *rule;
                [
                    ("verbs", 1, verbs),
                    ("apiGroups", 2, groups),
                    ("resources", 3, resources),
                    ("resourceNames", 4, names),
                ]
                .into_iter()
                .chain([("nonResourceURLs", 5, paths)])
            };
            let json: Vec<_> = rules
                .iter()
                .map(|rule| lists(rule).map(|(key, _, length)| (key.to_owned(), json!(vec!["a"; length]))).collect())
                .map(Value::Object)
                .collect();
            let proto: Vec<Vec<(u32, &str)>> = rules
                .iter()
                .map(|rule| lists(rule).flat_map(|(_, number, length)| vec![(number, "a"); length]).collect())
                .collect();
            let expected = expected.map(|(rule, sum)| {
                let reason = Reason::TooManyPermissions { sum };
                format!("rules[{rule}]: {reason}")
            });
            for (resource, kind) in [("roles", "Role"), ("clusterroles", "ClusterRole")] {
                let request = Request::new(mapping());
                for request in [request.clone().in_namespace("edge".parse().unwrap()), request.partial()] {
                    let body = json!({"rules": json}).to_string();
                    let mapped =
                        request.map(&program_for(GROUP, "v1", resource), &body.into(), &mut Vec::<Bytes>::new());
                    assert_eq!(mapped.err().map(|refusal| refusal.to_string()), expected, "{resource}");
                }
                let mapped = map_proto(kind, &proto_role(&proto));
                assert_eq!(mapped.err().map(|refusal| refusal.to_string()), expected, "{kind}");
            }
        }
    }

    #[test]
    fn duplicate_lists_of_a_rule_are_refused() {
        let body = r#"{"rules":[{"verbs":[],"verbs":["get"]}]}"#;
        let mapped =
            Request::new(mapping()).map(&program_for(GROUP, "v1", "roles"), &body.into(), &mut Vec::<Bytes>::new());
        assert_eq!(mapped.unwrap_err().reason, Reason::Duplicate);
    }
}
