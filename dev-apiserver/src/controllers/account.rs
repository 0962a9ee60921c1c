//! Every namespace has a service account `default` and the certificate of the API server.

use serde_json::{Value, json};

use crate::kinds::Kind;
use crate::object;
use crate::rest::create;
use crate::store::State;

const CA: &str = "kube-root-ca.crt";

pub(super) fn ensure(state: &mut State, namespace: &str, serving_ca: &str) {
    let accounts = Kind::of("", "serviceaccounts");
    if state.get(accounts, namespace, "default").is_none() {
        // It fails only if the namespace is ending.
        let _ = create(state, accounts, namespace, json!({"metadata": {"name": "default"}}), None, false);
    }
    let config_maps = Kind::of("", "configmaps");
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
            let _ = create(state, config_maps, namespace, object, None, false);
        }
    }
}
