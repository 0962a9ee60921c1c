//! ResourceQuotas: the number of objects. The requests of pods are not added up, and no quota is enforced.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::pods::is_active;
use super::status::put_status;
use crate::kinds;
use crate::object;
use crate::store::State;

/// Sets the status of a ResourceQuota.
pub(super) fn sync(state: &mut State, quota: &Arc<Value>) {
    let namespace = object::namespace(quota);
    let mut used = Map::new();
    for resource in object::texts(&quota["spec"]["hard"]).into_keys() {
        let name = resource.strip_prefix("count/").unwrap_or(resource);
        let (name, group) = name.split_once('.').unwrap_or((name, ""));
        let Some(kind) =
            kinds::all().iter().find(|kind| kind.namespaced && (kind.group, kind.resource) == (group, name))
        else {
            continue;
        };
        let objects = state.list(kind, Some(namespace));
        let count = objects.filter(|object| !kind.is_pod() || is_active(object)).count();
        used.insert(resource.to_owned(), count.to_string().into());
    }
    let status = json!({"hard": quota["spec"]["hard"], "used": used});
    put_status(state, kinds::of("", "resourcequotas"), quota, status);
}
