//! The Secret with a kubeconfig.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ops::date::Moment;
use protocol::user_certificate::User;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::issuer::Issued;
use super::{DATA_KEY, LABEL};
use crate::declared::follow::Named;
use crate::declared::object::{Declared, Metadata};
use crate::declared::{API_VERSION, KIND};

/// The annotation with the user, in JSON.
const USER: &str = "atoll.dev/kubeconfig-user";
/// The annotation with the time of enrolment of the agent that requested the certificate.
const ENROLLED: &str = "atoll.dev/kubeconfig-agent-enrolled";
/// The annotation with the time from which on the certificate is renewed.
const RENEWAL: &str = "atoll.dev/kubeconfig-renewal";
/// The annotation with the time at which the certificate expires.
const EXPIRY: &str = "atoll.dev/kubeconfig-expiry";

/// What a Secret should be for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted<'a> {
    pub(super) user: &'a User,
    pub(super) enrolled: Moment,
}

/// What the agent reads of a Secret. It keeps no credentials in memory.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct KubeconfigSecret {
    pub(super) metadata: Metadata,
    data: Data,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Data {
    value: Option<IgnoredAny>,
}

impl Named for KubeconfigSecret {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

/// The name of the Secret of a virtual cluster, as in Cluster API.
pub(super) fn name(cluster: &str) -> String {
    format!("{cluster}-kubeconfig")
}

/// The path of all Secrets in a namespace.
pub fn path(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/secrets")
}

/// The Secret of an object.
pub(super) fn secret(object: &Declared, namespace: &str, wanted: &Wanted<'_>, issued: &Issued) -> Value {
    let Metadata { name: cluster, uid, .. } = &object.metadata;
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": name(cluster),
            "namespace": namespace,
            "labels": {LABEL: cluster, "app.kubernetes.io/managed-by": "atoll"},
            "annotations": {
                USER: annotation(wanted.user),
                ENROLLED: wanted.enrolled.to_string(),
                RENEWAL: issued.renewal.to_string(),
                EXPIRY: issued.expiry.to_string(),
            },
            "ownerReferences": [{"apiVersion": API_VERSION, "kind": KIND, "name": cluster, "uid": uid}],
        },
        "type": "Opaque",
        "data": {DATA_KEY: STANDARD.encode(issued.kubeconfig.expose())},
    })
}

fn annotation(user: &User) -> String {
    serde_json::to_string(user).expect("strings always serialise")
}

// === impl KubeconfigSecret ===

impl KubeconfigSecret {
    /// Whether it belongs to this object.
    pub(super) fn is_of(&self, object: &Declared) -> bool {
        self.metadata.owner_references.iter().any(|owner| owner.uid == object.metadata.uid)
    }

    /// Whether the agent follows it.
    pub(super) fn is_labelled(&self) -> bool {
        self.metadata.labels.contains_key(LABEL)
    }

    /// Whether it has a kubeconfig for this user that no earlier enrolment has requested. Another replica may have enrolled later.
    pub(super) fn is_for(&self, wanted: &Wanted<'_>) -> bool {
        let user = self.metadata.annotations.get(USER);
        let is_new = self.moment(ENROLLED).is_some_and(|enrolled| enrolled >= wanted.enrolled);
        self.data.value.is_some() && is_new && user.is_some_and(|user| *user == annotation(wanted.user))
    }

    /// When the certificate must be renewed. `None` if nobody knows.
    pub(super) fn renewal(&self) -> Option<Moment> {
        self.moment(RENEWAL)
    }

    /// When the certificate expires. `None` if nobody knows.
    pub(super) fn expiry(&self) -> Option<Moment> {
        self.moment(EXPIRY)
    }

    fn moment(&self, key: &str) -> Option<Moment> {
        let text = self.metadata.annotations.get(key)?;
        Moment::deserialize(Value::String(text.clone())).ok()
    }
}
