//! Namespace objects.

use std::ops::Range;

use kube_wire::proto::Writer;

use super::super::names::virtual_name;
use super::super::refusal::{Reason, Refusal};
use super::super::required_entries::RequiredEntries;
use super::entry::Entry;
use super::fields::Fields;
use crate::json::{Fault as _, Step};
use crate::name::METADATA_NAME_LABEL;
use crate::parked::parked_annotation;
use crate::protobuf::Message;

/// The metadata of the current Namespace.
#[derive(Default)]
pub(super) struct NamespaceMeta {
    labels: RequiredEntries,
    annotations: RequiredEntries,
    /// Whether the request makes its name.
    is_made: bool,
    is_name_labelled: bool,
    /// The host's keys of the parked labels and annotations.
    parked: Vec<String>,
}

// === impl NamespaceMeta ===

impl NamespaceMeta {
    /// Reads the name in the metadata at `range`.
    pub(super) fn begin(fields: &Fields<'_, '_>, message: &Message, range: &Range<usize>) -> Result<Self, Refusal> {
        let settings = fields.settings;
        let name = fields.look_up(range, message.number("name")).map_err(within("name"))?;
        let generated = fields.look_up(range, message.number("generateName")).map_err(within("generateName"))?;
        let is_made = name.is_empty() && settings.made.is_some();
        let name = match name {
            b"" if is_made => settings.made.clone(),
            b"" if !generated.is_empty() => {
                return Err(Refusal::from(Reason::GeneratedName).within(Step::Key("generateName")));
            }
            b"" => None,
            name => Some(virtual_name(name).map_err(within("name"))?),
        };
        Ok(Self {
            labels: RequiredEntries::new(settings.required_labels(name.as_ref())),
            annotations: RequiredEntries::new(settings.rules.annotations.clone()),
            is_made,
            ..Self::default()
        })
    }

    /// Adds what is missing to the metadata at `range`.
    pub(super) fn finish(
        self,
        fields: &mut Fields<'_, '_>,
        message: &Message,
        range: &Range<usize>,
    ) -> Result<(), Refusal> {
        let settings = fields.settings;
        let mut missing = Writer::new();
        if let Some(made) = settings.made.as_ref().filter(|_| self.is_made) {
            let host = settings.names.namespace(made.as_ref())?.to_bytes();
            let number = message.number("name").expect("ObjectMeta has it, as a test shows");
            match fields.find(range.clone(), number)? {
                Some(empty) => fields.splice.replace(&empty, host),
                None => missing.bytes(number, &host),
            }
        }
        let enforced: Vec<_> = settings.rules.enforced_labels(self.labels.requested_level()).collect();
        for (key, required, enforced) in
            [("labels", self.labels, enforced), ("annotations", self.annotations, Vec::new())]
        {
            let number = message.number(key).expect("ObjectMeta has it, as a test shows");
            for (key, value) in required.missing().map_err(within(key))?.into_iter().chain(enforced) {
                Entry::write(&mut missing, number, &key, &value);
            }
        }
        fields.splice.append(range, missing);
        Ok(())
    }

    /// A label.
    pub(super) fn label(&mut self, fields: &mut Fields<'_, '_>, entry: &Entry<'_>) -> Result<(), Refusal> {
        if entry.key == METADATA_NAME_LABEL {
            if std::mem::replace(&mut self.is_name_labelled, true) {
                return Err(Reason::Duplicate.into());
            }
            return entry.value.as_ref().map_or(Ok(()), |value| fields.namespace(value));
        }
        if let Some(parked) = fields.settings.rules.requested_key(&entry.key) {
            self.labels.note_level(&entry.key, &String::from_utf8_lossy(entry.text));
            return self.park(fields, entry, parked);
        }
        if fields.settings.rules.protects(&entry.key) {
            self.labels.note(&entry.key, |wanted| entry.text == wanted.as_bytes());
        }
        Ok(())
    }

    /// An annotation.
    pub(super) fn annotation(&mut self, fields: &mut Fields<'_, '_>, entry: &Entry<'_>) -> Result<(), Refusal> {
        if let Some(parked) = parked_annotation(&entry.key) {
            return self.park(fields, entry, parked);
        }
        if fields.settings.rules.protects(&entry.key) {
            self.annotations.note(&entry.key, |wanted| entry.text == wanted.as_bytes());
        }
        Ok(())
    }

    fn park(&mut self, fields: &mut Fields<'_, '_>, entry: &Entry<'_>, parked: String) -> Result<(), Refusal> {
        if self.parked.contains(&parked) {
            return Err(Reason::Duplicate.into());
        }
        entry.rename_key(parked.clone(), &mut fields.splice);
        self.parked.push(parked);
        Ok(())
    }
}

/// Adds the key of a field of the metadata.
fn within(key: &'static str) -> impl Fn(Refusal) -> Refusal {
    move |refusal| refusal.within(Step::Key(key))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use kube_wire::envelope::Envelope;

    use std::sync::Arc;

    use super::*;
    use crate::mapping::Identity;
    use crate::parked::{AUTO_UPDATE, NODE_SELECTOR, parked};
    use crate::pod_security::Level;
    use crate::protobuf::{ObjectMetadata, ObjectName};
    use crate::request::{NamespaceRules, Request};
    use crate::schema::{program_for, proto_program_for};
    use crate::view::Filter;
    use crate::view::tests::{mapping, view};
    use crate::{ClusterName, Index, Mapping, View};

    #[test]
    fn levels_of_pod_security_are_enforced() {
        const ENFORCE: &str = "pod-security.kubernetes.io/enforce";
        let mut metadata = Writer::new();
        metadata.bytes(1, b"new");
        Entry::write(&mut metadata, 11, ENFORCE, "privileged");
        let mut object = Writer::new();
        object.bytes(1, &metadata.into_bytes());
        let envelope =
            Envelope { api_version: "v1", kind: "Namespace", raw: &object.into_bytes(), ..Envelope::default() };
        let body = Bytes::from(envelope.encode());
        let rules = NamespaceRules::default().enforcing(Some(Level::Baseline));
        let mut host: Vec<Bytes> = Vec::new();
        let request = Request::new(mapping()).with_namespace_rules(Arc::new(rules));
        request.map_protobuf(proto_program_for("", "v1", "namespaces").unwrap(), &body, &mut host).unwrap();
        let host = Bytes::from(host.concat());
        let labels = |body: &[u8]| ObjectMetadata::of(body).unwrap().labels;
        let on_host = labels(&host);
        assert_eq!(on_host[ENFORCE], "baseline");
        assert_eq!(on_host["pod-security.kubernetes.io.parked.atoll.dev/enforce"], "privileged");
        assert_eq!(on_host["atoll.dev/pod-security"], "baseline");

        let mut shown: Vec<Bytes> = Vec::new();
        let program = program_for("", "v1", "namespaces");
        let view = view().enforcing_pod_security();
        view.protobuf(&program, Filter::Everything, &host, &mut shown).unwrap();
        let shown = labels(&shown.concat());
        assert_eq!(shown.iter().collect::<Vec<_>>(), [(&ENFORCE.to_owned(), &"privileged".to_owned())]);
    }

    #[test]
    fn a_node_selector_is_parked() {
        const SELECTOR: &str = "scheduler.alpha.kubernetes.io/node-selector";
        const PARKED: &str = "scheduler.alpha.kubernetes.io.parked.atoll.dev/node-selector";
        let body = |name: &str, annotations: &[(&str, &str)]| {
            let mut metadata = Writer::new();
            metadata.bytes(1, name.as_bytes());
            for (key, value) in annotations {
                Entry::write(&mut metadata, 12, key, value);
            }
            let mut object = Writer::new();
            object.bytes(1, &metadata.into_bytes());
            let raw = &object.into_bytes();
            Bytes::from(Envelope { api_version: "v1", kind: "Namespace", raw, ..Envelope::default() }.encode())
        };
        let program = proto_program_for("", "v1", "namespaces").unwrap();
        let map = |annotations: &[(&str, &str)]| {
            let mut out: Vec<Bytes> = Vec::new();
            Request::new(mapping()).map_protobuf(program, &body("edge", annotations), &mut out)?;
            Ok::<_, Refusal>(Bytes::from(out.concat()))
        };
        let mapped = map(&[(SELECTOR, "a=b"), ("c", "d")]).unwrap();
        let mapped = String::from_utf8_lossy(&mapped);
        assert!(mapped.contains(PARKED) && !mapped.contains(SELECTOR), "{mapped}");
        for refused in [&[(SELECTOR, ""), (SELECTOR, "a=b")][..], &[(PARKED, "a=b")]] {
            assert!(map(refused).is_err(), "{refused:?}");
        }

        let host = body("edge-ke", &[(SELECTOR, "e=f"), (PARKED, "a=b"), ("c", "d")]);
        let mut shown: Vec<Bytes> = Vec::new();
        view().protobuf(&program_for("", "v1", "namespaces"), Filter::Everything, &host, &mut shown).unwrap();
        assert_eq!(Bytes::from(shown.concat()), body("edge", &[(SELECTOR, "a=b"), ("c", "d")]));
    }

    #[test]
    fn owned_keys_are_parked() {
        let (autoupdate, selector) = (AUTO_UPDATE, NODE_SELECTOR);
        let owned = |labels: &str, annotations: &str| {
            let text = format!(
                r#"{{"f:metadata":{{"f:annotations":{{"f:{annotations}":{{}}}},"f:labels":{{"f:{labels}":{{}}}}}}}}"#
            );
            let message = |content: Vec<u8>, number: &u32| {
                let mut message = Writer::new();
                message.bytes(*number, &content);
                message.into_bytes()
            };
            // FieldsV1, ManagedFieldsEntry, ObjectMeta and the object.
            let object = [1, 7, 17, 1].iter().fold(text.into_bytes(), message);
            Bytes::from(Envelope { raw: &object, ..Envelope::default() }.encode())
        };
        for (group, kind, [label, annotation], host) in [
            ("", "namespaces", ["app", selector], ["app".to_owned(), parked(selector)]),
            ("rbac.authorization.k8s.io", "clusterroles", ["app", autoupdate], [parked("app"), parked(autoupdate)]),
        ] {
            let mut out: Vec<Bytes> = Vec::new();
            let program = proto_program_for(group, "v1", kind).unwrap();
            Request::new(mapping()).map_protobuf(program, &owned(label, annotation), &mut out).unwrap();
            let mapped = out.concat();
            let mapped = String::from_utf8_lossy(&mapped);
            for (was, is) in [label, annotation].into_iter().zip(host) {
                assert!(mapped.contains(&format!("\"f:{is}\"")), "{kind} {was}: {mapped}");
                assert!(is == was || !mapped.contains(&format!("\"f:{was}\"")), "{kind} {was}: {mapped}");
            }
        }
    }

    #[test]
    fn a_restored_cluster_keeps_its_identity() {
        let (old, new) = ("11111111-2222-3333-4444-555555555555", "66666666-7777-8888-9999-000000000000");
        let mut index = Index::new();
        let cluster = ClusterName::new("ke").unwrap();
        index.insert("kube-system-ke".parse().unwrap(), cluster.clone(), "kube-system".parse().unwrap()).unwrap();
        let identity = Identity { host: new.into(), shown: old.into() };
        index.identify(&cluster, Some(identity));
        let mapping = Mapping::new(cluster, Arc::new(index));
        let json = |uid: &str, name: &str| Bytes::from(format!(r#"{{"metadata":{{"name":"{name}","uid":"{uid}"}}}}"#));
        let proto = |uid: &str, name: &str| {
            let mut metadata = Writer::new();
            metadata.bytes(1, name.as_bytes());
            metadata.bytes(5, uid.as_bytes());
            let mut object = Writer::new();
            object.bytes(1, &metadata.into_bytes());
            let raw = &object.into_bytes();
            Bytes::from(Envelope { api_version: "v1", kind: "Namespace", raw, ..Envelope::default() }.encode())
        };
        let program = program_for("", "v1", "namespaces");
        let view = View::new(mapping.clone());
        for (host, shown) in [(new, old), ("other", "other")] {
            let mut out: Vec<Bytes> = Vec::new();
            let body = json(host, "kube-system-ke");
            view.object(&program, Filter::Everything, &body, &mut out).unwrap();
            assert_eq!(out.concat(), json(shown, "kube-system"));
            let mut out: Vec<Bytes> = Vec::new();
            view.protobuf(&program, Filter::Everything, &proto(host, "kube-system-ke"), &mut out).unwrap();
            assert_eq!(out.concat(), proto(shown, "kube-system"));

            let request = Request::new(mapping.clone()).partial();
            let mut out: Vec<Bytes> = Vec::new();
            request.map(&program, &json(shown, "kube-system"), &mut out).unwrap();
            assert_eq!(out.concat(), json(host, "kube-system-ke"));
            let mut out: Vec<Bytes> = Vec::new();
            let message = proto_program_for("", "v1", "namespaces").unwrap();
            Request::new(mapping.clone()).map_protobuf(message, &proto(shown, "kube-system"), &mut out).unwrap();
            let mapped = ObjectMetadata::of(&out.concat());
            assert!(mapped.is_ok() && out.concat().windows(host.len()).any(|part| part == host.as_bytes()));
        }
    }

    #[test]
    fn a_missing_name_is_added() {
        for name in [None, Some("")] {
            let mut metadata = Writer::new();
            if let Some(name) = name {
                metadata.bytes(1, name.as_bytes());
            }
            metadata.bytes(2, b"a-");
            let mut object = Writer::new();
            object.bytes(1, &metadata.into_bytes());
            let body = Bytes::from(Envelope { raw: &object.into_bytes(), ..Envelope::default() }.encode());
            let map = |request: Request| {
                let mut out: Vec<Bytes> = Vec::new();
                let program = proto_program_for("", "v1", "namespaces").unwrap();
                request.map_protobuf(program, &body, &mut out).map(|_| out.concat())
            };
            let mapped = map(Request::new(mapping()).with_generated_name("a-x1".parse().unwrap())).unwrap();
            let own = ObjectName { name: "a-x1-ke".to_owned(), generate_name: "a-".to_owned() };
            assert_eq!(ObjectName::of(&mapped), Ok(own), "{name:?}");
            assert!(map(Request::new(mapping())).is_err());
        }
    }
}
