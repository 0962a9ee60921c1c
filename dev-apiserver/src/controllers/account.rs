//! Every namespace has a service account `default` and the certificate of the API server; Secrets that ask for a service
//! account's token get one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::access::tokens::{ISSUER, Tokens};
use crate::kinds;
use crate::object;
use crate::store::State;
use crate::write::{Writer, create};

const CA: &str = "kube-root-ca.crt";
const ACCOUNT: &str = "kubernetes.io/service-account.name";
/// A token in a Secret does not expire; this is longer than any toy lives.
const FOR_EVER: u64 = 100 * 365 * 24 * 3600;

/// What service accounts get.
pub(super) struct Issuer<'a> {
    pub(super) serving_ca: &'a str,
    pub(super) tokens: &'a Tokens,
}

pub(super) fn ensure(state: &mut State, namespace: &str, serving_ca: &str) {
    let accounts = kinds::of("", "serviceaccounts");
    if state.get(accounts, namespace, "default").is_none() {
        // It fails only if the namespace is ending.
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
            let about = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal \
                         endpoints such as the internal service IP or kubernetes.default.svc. No other usage is \
                         guaranteed across distributions of Kubernetes clusters.";
            let mut object = json!({"metadata": {"name": CA}, "data": data});
            object::metadata(&mut object).insert("annotations".to_owned(), json!({"kubernetes.io/description": about}));
            let _ = create(state, config_maps, namespace, object, Writer::CONTROLLER, false);
        }
    }
}

/// Fills Secrets of the type `kubernetes.io/service-account-token`; without their account they go.
pub(super) fn give_tokens(state: &mut State, namespace: &str, issuer: &Issuer<'_>) {
    let secrets = kinds::of("", "secrets");
    let asking =
        |secret: &Value| secret["type"] == "kubernetes.io/service-account-token" && !object::is_deleted(secret);
    let found: Vec<_> = state.list(secrets, Some(namespace)).filter(|secret| asking(secret)).cloned().collect();
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
        let Ok(minted) = issuer.tokens.issue(&account, vec![ISSUER.to_owned()], FOR_EVER, bound) else { continue };
        let mut filled = Value::clone(&secret);
        object::map(object::metadata_value(&mut filled), "annotations")
            .insert("kubernetes.io/service-account.uid".to_owned(), object::uid(&account).into());
        let data = object::map(&mut filled, "data");
        for (key, value) in [("ca.crt", issuer.serving_ca), ("namespace", namespace), ("token", &minted.token)] {
            data.insert(key.to_owned(), STANDARD.encode(value).into());
        }
        state.put(secrets, filled);
    }
}
