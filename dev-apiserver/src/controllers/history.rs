//! ControllerRevisions of StatefulSets and DaemonSets, for `kubectl rollout history` and `undo`.

use serde_json::{Value, json};

use super::pods::{owned, owner_reference};
use crate::kinds;
use crate::object;
use crate::store::State;
use crate::write::{Writer, create};

const HASH: &str = "controller-revision-hash";

/// Makes the present template the latest revision, and removes revisions beyond `revisionHistoryLimit`.
pub(super) fn sync(state: &mut State, owner: &Value, hash: &str) {
    let kind = kinds::of("apps", "controllerrevisions");
    let mut all = owned(state, kind, owner);
    all.sort_by_key(|revision| number(revision));
    let latest = all.last().map_or(0, |revision| number(revision));
    match all.iter().find(|revision| revision["metadata"]["labels"][HASH] == hash) {
        Some(found) if number(found) == latest => {}
        Some(found) => {
            // The present template was rolled back to an old one.
            let mut found = Value::clone(found);
            found["revision"] = (latest + 1).into();
            state.put(kind, found);
        }
        None => create_revision(state, owner, hash, latest + 1),
    }
    let limit = usize::try_from(owner["spec"]["revisionHistoryLimit"].as_u64().unwrap_or(10)).unwrap_or(usize::MAX);
    let old = all.iter().filter(|revision| revision["metadata"]["labels"][HASH] != hash);
    let surplus = old.clone().count().saturating_sub(limit);
    for revision in old.take(surplus) {
        state.remove(kind, object::namespace(revision), object::name(revision));
    }
}

fn number(revision: &Value) -> u64 {
    revision["revision"].as_u64().unwrap_or(0)
}

fn create_revision(state: &mut State, owner: &Value, hash: &str, number: u64) {
    let mut template = owner["spec"]["template"].clone();
    object::map_of(&mut template).insert("$patch".to_owned(), "replace".into());
    let mut labels = owner["spec"]["template"]["metadata"]["labels"].clone();
    object::map_of(&mut labels).insert(HASH.to_owned(), hash.into());
    let name = object::name(owner);
    let revision = json!({
        "metadata": {
            "name": format!("{name}-{}", hash.rsplit('-').next().unwrap_or_default()),
            "labels": labels,
            "annotations": owner["metadata"]["annotations"],
            "ownerReferences": [owner_reference(owner)],
        },
        "data": {"spec": {"template": template}},
        "revision": number,
    });
    // This fails only if the namespace is terminating.
    let kind = kinds::of("apps", "controllerrevisions");
    let _ = create(state, kind, object::namespace(owner), revision, Writer::CONTROLLER, false);
}
