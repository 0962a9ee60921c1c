//! Rules of roles: the names of namespaces and of cluster roles in them.

use bytes::Bytes;

use super::object::{Writer, quotes_of};
use super::{Reason, Refusal, Request};
use crate::json::{Cursor, Edits, Fate, quoted};
use crate::name::is_label;
use crate::program::Names;

// === impl Request ===

impl Request {
    /// The name that stands in a rule on the host; `None` if it stays.
    pub(super) fn rule_name(&self, names: Names, given: &[u8]) -> Result<Option<Bytes>, Refusal> {
        match names {
            // Another name no namespace can have.
            Names::OfNamespaces if is_label(given) => Ok(Some(self.host(given)?.to_bytes())),
            Names::OfRoles if !given.is_empty() => Ok(Some(self.role(&String::from_utf8_lossy(given))?.into())),
            Names::Mixed => Err(Reason::MixedNames.into()),
            _ => Ok(None),
        }
    }
}

// === impl Writer ===

impl Writer<'_> {
    pub(super) fn rule(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Refusal> {
        let names = Names::of(&cursor.strings_at("apiGroups")?, &cursor.strings_at("resources")?);
        self.members(&["apiGroups", "resources", "resourceNames"], cursor, edits, |writer, key, cursor, edits| {
            if key != "resourceNames" || names == Names::OfOthers || cursor.peek()? != b'[' {
                return Ok(cursor.skip()?);
            }
            cursor.array(edits, |cursor, edits, _| {
                if cursor.peek()? == b'"' {
                    let text = cursor.string()?;
                    if let Some(host) = writer.request.rule_name(names, &text.bytes())? {
                        edits.replace(quotes_of(&text), quoted(&String::from_utf8_lossy(&host)).into());
                    }
                } else {
                    cursor.skip()?;
                }
                Ok::<_, Refusal>(Fate::Keep)
            })?;
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use kube_wire::envelope::Envelope;
    use kube_wire::proto::Writer as Proto;
    use serde_json::{Value, json};

    use super::*;
    use crate::View;
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
    fn names_of_namespaces_are_mapped_and_come_back() {
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
    fn what_could_mean_another_namespace_is_refused() {
        let mixed = map(&role(&["namespaces", "pods"], &["edge"])).unwrap_err();
        assert!(mixed.starts_with("rules[0].resourceNames[0]: ") && mixed.contains("a rule of their own"), "{mixed}");
        assert!(map(&role(&["namespaces"], &["atoll-root"])).is_err());
    }

    #[test]
    fn protobuf_says_the_same() {
        let role = |resource: &str, names: &[&str]| {
            let mut rule = Proto::new();
            for (number, text) in [(1, "get"), (2, ""), (3, resource)] {
                rule.bytes(number, text.as_bytes());
            }
            for name in names {
                rule.bytes(4, name.as_bytes());
            }
            let mut role = Proto::new();
            role.bytes(2, &rule.into_bytes());
            Bytes::from(Envelope { raw: &role.into_bytes(), ..Envelope::default() }.encode())
        };
        let map = |body: &Bytes| {
            let mut out: Vec<Bytes> = Vec::new();
            let program = proto_program_for(GROUP, "v1", "Role").unwrap();
            let request = Request::new(mapping()).in_namespace("edge".parse().unwrap());
            request.map_protobuf(program, body, &mut out).map(|_| Bytes::from(out.concat()))
        };
        assert_eq!(map(&role("namespaces", &["edge", "*"])), Ok(role("namespaces", &["edge-ke", "*"])));
        assert_eq!(map(&role("pods", &["edge"])), Ok(role("pods", &["edge"])));
        assert!(map(&role("namespaces", &["atoll-root"])).is_err());
    }
}
