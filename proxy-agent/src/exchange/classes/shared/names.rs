//! Clashes of a definition's names with those of a definition that the virtual cluster does not see.
//!
//! In each API group, the host serves a name once (`pkg/controller/status/naming_controller.go` in
//! apiextensions-apiserver). If two definitions have the same kind, the second one gets the condition `NamesAccepted:
//! False` and is not served. If the first one belongs to other virtual clusters only, the client cannot see the reason,
//! so the request is refused with it.

use std::collections::BTreeSet;

use kube_wire::{ResourceRequest, Status};
use serde_json::Value;

use crate::exchange::undecided::Undecided;
use crate::refusal::Refusal;
use host_client::api::ApiError;

/// The names that a definition takes. A resource name does not clash with a kind.
#[derive(Debug, Default, PartialEq, Eq)]
struct Names {
    resources: BTreeSet<String>,
    kinds: BTreeSet<String>,
}

/// Refuses a definition that the host could not serve because of one that the virtual cluster does not see.
pub(crate) async fn free_names(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    definition: &Value,
) -> Result<(), Refusal> {
    let spec = &definition["spec"];
    let (group, wanted) = (spec["group"].as_str().unwrap_or_default(), Names::of(&spec["names"]));
    let taken = call.outside(Box::pin(hidden_names(call, group))).await.map_err(|error| {
        let message = format!("cannot read which names of the API group are taken on the host: {error}");
        Refusal::from(Status::service_unavailable(message).with_retry_after(1))
    })?;
    let Some(name) = wanted.clash(&taken) else { return Ok(()) };
    let why = format!(
        "spec.names: {name:?} is taken in API group {group:?} by a definition on the host that this virtual cluster cannot \
         see: choose another name, or ask the operator of the host cluster"
    );
    let own = definition["metadata"]["name"].as_str().unwrap_or_default();
    Err(Status::conflict(request.group_resource(), own, &why).into())
}

/// The names in a group that the host serves for definitions of other virtual clusters only.
async fn hidden_names(call: &Undecided<'_>, group: &str) -> Result<Names, ApiError> {
    let mut names = Names::default();
    let hidden = call.services.definitions.hidden_in(group, call.api.cluster.name.as_str());
    if hidden.is_empty() {
        return Ok(names);
    }
    let api = call.host_api();
    let root = format!("/apis/{group}");
    let versions = match api.get(&root).await {
        Ok(found) => found["versions"].as_array().cloned().unwrap_or_default(),
        Err(error) if error.is_not_found() => return Ok(names),
        Err(error) => return Err(error),
    };
    for version in versions.iter().filter_map(|version| version["version"].as_str()) {
        let found = match api.get(&format!("{root}/{version}")).await {
            Ok(found) => found,
            Err(error) if error.is_not_found() => continue,
            Err(error) => return Err(error),
        };
        let resources = found["resources"].as_array().into_iter().flatten();
        for resource in resources.filter(|resource| resource["name"].as_str().is_some_and(|name| hidden.contains(name)))
        {
            names.take(resource);
        }
    }
    Ok(names)
}

// === impl Names ===

impl Names {
    /// The names in `spec.names` of a definition, with the host's defaults.
    fn of(names: &Value) -> Self {
        let texts = |keys: [&'static str; 2]| keys.into_iter().filter_map(|key| names[key].as_str().map(str::to_owned));
        let short = names["shortNames"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
        Self {
            resources: texts(["plural", "singular"]).chain(short).collect(),
            kinds: texts(["kind", "listKind"]).collect(),
        }
    }

    /// Adds the names of an `APIResource` (meta/v1). It does not contain the kind of lists, so the default is assumed.
    fn take(&mut self, resource: &Value) {
        let texts = ["name", "singularName"].into_iter().filter_map(|key| resource[key].as_str());
        let short = resource["shortNames"].as_array().into_iter().flatten().filter_map(Value::as_str);
        self.resources.extend(texts.chain(short).filter(|name| !name.is_empty()).map(str::to_owned));
        if let Some(kind) = resource["kind"].as_str() {
            self.kinds.extend([kind.to_owned(), format!("{kind}List")]);
        }
    }

    /// A name that both sets contain.
    fn clash<'n>(&'n self, other: &'n Self) -> Option<&'n str> {
        let resource = self.resources.intersection(&other.resources).next();
        resource.or_else(|| self.kinds.intersection(&other.kinds).next()).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_clash_within_their_sort() {
        let mut taken = Names::default();
        taken.take(&json!({"name": "gears", "singularName": "gear", "shortNames": ["gr"], "kind": "Gear"}));
        taken.take(&json!({"name": "cogs", "singularName": "", "kind": "Cog"}));
        let clash = |plural: &str, singular: &str, kind: &str| {
            let names =
                json!({"plural": plural, "singular": singular, "kind": kind, "listKind": format!("{kind}List")});
            Names::of(&names).clash(&taken).map(str::to_owned)
        };
        assert_eq!(clash("wheels", "wheel", "Wheel"), None);
        // A resource and a kind may have the same name.
        assert_eq!(clash("Gear", "wheel", "cogs"), None);
        assert_eq!(clash("wheels", "gr", "Wheel").as_deref(), Some("gr"));
        assert_eq!(clash("wheels", "wheel", "Gear").as_deref(), Some("Gear"));
        assert_eq!(clash("wheels", "wheel", "GearList").as_deref(), Some("GearList"));
        let short = json!({"plural": "x", "shortNames": ["y", "cogs"]});
        assert_eq!(Names::of(&short).clash(&taken), Some("cogs"));
    }
}
