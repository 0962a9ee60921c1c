//! The service account `default` and the ConfigMap `kube-root-ca.crt` of each namespace, and the tokens in Secrets of the
//! type `kubernetes.io/service-account-token`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::auth::tokens::{ISSUER, Tokens};
use crate::kinds;
use crate::object;
use crate::store::State;
use crate::write::{Writer, create};

const CA: &str = "kube-root-ca.crt";
const ACCOUNT: &str = "kubernetes.io/service-account.name";
/// The lifetime of tokens in Secrets, which never expire in Kubernetes: a hundred years, in seconds.
const LIFETIME: u64 = 100 * 365 * 24 * 3600;

/// The source of certificates and tokens.
pub(super) struct Issuer<'a> {
    pub(super) serving_ca: &'a str,
    pub(super) tokens: &'a Tokens,
}

/// Creates the service account and the ConfigMap of a namespace.
pub(super) fn ensure(state: &mut State, namespace: &str, serving_ca: &str) {
    let accounts = kinds::of("", "serviceaccounts");
    if state.get(accounts, namespace, "default").is_none() {
        // This fails only if the namespace is terminating.
        let _ = create(state, accounts, namespace, json!({"metadata": {"name": "default"}}), Writer::CONTROLLER, false);
    }
    let config_maps = kinds::of("", "configmaps");
    let data = json!({"ca.crt": serving_ca});
    match state.get(config_maps, namespace, CA).cloned() {
        Some(found) if found["data"] == data => {}
        Some(found) => {
            let mut repaired = Value::clone(&found);
            repaired["data"] = data;
            state.put(config_maps, repaired);
        }
        None => {
            let description = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal \
                         endpoints such as the internal service IP or kubernetes.default.svc. No other usage is \
                         guaranteed across distributions of Kubernetes clusters.";
            let mut object = json!({"metadata": {"name": CA}, "data": data});
            object::metadata(&mut object)
                .insert("annotations".to_owned(), json!({"kubernetes.io/description": description}));
            let _ = create(state, config_maps, namespace, object, Writer::CONTROLLER, false);
        }
    }
}

/// Adds tokens to Secrets of the type `kubernetes.io/service-account-token`, and removes those without their account.
pub(super) fn issue_tokens(state: &mut State, namespace: &str, issuer: &Issuer<'_>) {
    let secrets = kinds::of("", "secrets");
    let is_token =
        |secret: &Value| secret["type"] == "kubernetes.io/service-account-token" && !object::is_deleted(secret);
    let found: Vec<_> = state.list(secrets, Some(namespace)).filter(|secret| is_token(secret)).cloned().collect();
    for secret in found {
        let name = secret["metadata"]["annotations"][ACCOUNT].as_str().unwrap_or_default();
        let Some(account) = state.get(kinds::of("", "serviceaccounts"), namespace, name).cloned() else {
            state.remove(secrets, namespace, object::name(&secret));
            continue;
        };
        if secret["data"]["token"].is_string() {
            continue;
        }
        let bound = Some((secrets, &*secret));
        let Ok(issued) = issuer.tokens.issue(&account, vec![ISSUER.to_owned()], LIFETIME, bound) else { continue };
        let mut filled = Value::clone(&secret);
        object::map(object::metadata_value(&mut filled), "annotations")
            .insert("kubernetes.io/service-account.uid".to_owned(), object::uid(&account).into());
        let data = object::map(&mut filled, "data");
        for (key, value) in [("ca.crt", issuer.serving_ca), ("namespace", namespace), ("token", &issued.token)] {
            data.insert(key.to_owned(), STANDARD.encode(value).into());
        }
        state.put(secrets, filled);
    }
}
