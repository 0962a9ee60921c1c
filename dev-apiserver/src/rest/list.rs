//! Lists, in pages if the client sets a limit.
//!
//! The store has no history. So each page shows the present objects, with the resource version of the first page. A watch
//! from that version sends what changed since then, so informers are consistent afterwards. Once a watch cannot start at
//! that version, the next page is 410, as in Kubernetes.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::Response;
use kube_wire::Status;
use kube_wire::gvr::GroupKind;
use kube_wire::query::ListOptions;
use kube_wire::status::{Cause, FieldError};
use serde_json::{Value, json};

use super::request::ApiRequest;
use super::selection::Selection;
use super::shape::{ListMeta, respond_list};
use crate::kinds::Kind;
use crate::response::Body;
use crate::store::{ObjectKey, State, TooOld};

/// The start of a page: the content of a continue token.
struct From {
    revision: u64,
    after: ObjectKey,
}

pub(super) fn list(request: &ApiRequest<'_>) -> Result<Response<Body>, Status> {
    let options = request.list_options()?;
    let kind = request.kind;
    let selection = Selection::parse(kind, &options)?;
    let limit = request.number("limit")?.unwrap_or(usize::MAX);
    let read = |state: &State| page(state, kind, request.namespace(), &options, limit, &selection);
    let (meta, items) = request.api.store.read(read)?;
    respond_list(request, &meta, &items)
}

fn page(
    state: &State,
    kind: &'static Kind,
    namespace: Option<&str>,
    options: &ListOptions<'_>,
    limit: usize,
    selection: &Selection,
) -> Result<(ListMeta, Vec<Arc<Value>>), Status> {
    let from = From::parse(&options.continue_token)?;
    check_version(state, options, from.as_ref())?;
    let revision = from.as_ref().map_or(state.revision(), |from| from.revision);
    let after = from.as_ref().map(|from| &from.after);
    let mut selected = state.list_after(kind, namespace, after).filter(|(_, object)| selection.selects(object));
    let mut items = Vec::new();
    let mut last = None;
    for (key, object) in selected.by_ref().take(limit) {
        items.push(Arc::clone(object));
        last = Some(key);
    }
    let remaining = selected.count();
    let next = last.filter(|_| remaining > 0).map(|after| From { revision, after: after.clone() }.token());
    // Kubernetes sets remainingItemCount only without selectors.
    let remaining = (next.is_some() && selection.is_empty()).then_some(remaining);
    Ok((ListMeta { resource_version: revision, next, remaining }, items))
}

fn check_version(state: &State, options: &ListOptions<'_>, from: Option<&From>) -> Result<(), Status> {
    if let Some(from) = from {
        if state.changes_after(from.revision).is_err() {
            return Err(Status::expired(
                "The provided continue parameter is too old to display a consistent list result.",
            ));
        }
        return Ok(());
    }
    if !options.resource_version_match.is_empty() && options.resource_version.is_empty() {
        return forbid("resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided");
    }
    let version = parse_version(&options.resource_version)?;
    if version > state.revision() {
        let message = format!("Too large resource version: {version}, current: {}", state.revision());
        let mut status = Status::timeout(&message, 1);
        status.details.get_or_insert_default().causes.push(Cause {
            cause_type: "ResourceVersionTooLarge".into(),
            message: "Too large resource version".to_owned(),
            field: String::new(),
        });
        return Err(status);
    }
    let is_exact = options.resource_version_match == "Exact";
    if is_exact && version != state.revision() {
        return Err(too_old(version, TooOld { oldest: state.revision() }));
    }
    Ok(())
}

/// Refuses a combination of options (`ValidateListOptions` in apimachinery).
pub(super) fn forbid(field: &str, why: &str) -> Result<(), Status> {
    let kind = GroupKind { group: "meta.k8s.io", kind: "ListOptions" };
    Err(Status::invalid(kind, "", &[FieldError::forbidden(field, why)]))
}

/// Parses a resource version. The empty string is 0.
pub(super) fn parse_version(text: &str) -> Result<u64, Status> {
    if text.is_empty() {
        return Ok(0);
    }
    text.parse().map_err(|_| Status::bad_request(format!("invalid resource version {text:?}")))
}

/// 410: a watch cannot start at this resource version any more.
pub(super) fn too_old(version: u64, TooOld { oldest }: TooOld) -> Status {
    Status::expired(format!("too old resource version: {version} ({oldest})"))
}

// === impl From ===

impl From {
    fn parse(token: &str) -> Result<Option<Self>, Status> {
        if token.is_empty() {
            return Ok(None);
        }
        let read = || {
            let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
            let value: Value = serde_json::from_slice(&bytes).ok()?;
            let after = ObjectKey::new(value["ns"].as_str()?, value["start"].as_str()?);
            Some(Self { revision: value["rv"].as_u64()?, after })
        };
        read().map(Some).ok_or_else(|| Status::bad_request("continue key is not valid"))
    }

    fn token(&self) -> String {
        let value = json!({"rv": self.revision, "ns": self.after.namespace, "start": self.after.name});
        URL_SAFE_NO_PAD.encode(value.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;
    use crate::object;
    use crate::store::Store;

    #[test]
    fn pages_have_all_items() {
        let store = Store::new();
        let kind = kinds::of("", "configmaps");
        store.write(|state| {
            for name in ["a", "b", "c", "d", "e"] {
                state.put(kind, json!({"metadata": {"namespace": "n", "name": name}}));
            }
        });
        let mut options = ListOptions::default();
        let selection = Selection::parse(kind, &options).unwrap();
        let (mut names, mut left) = (Vec::new(), Vec::new());
        loop {
            let (meta, items) = store.read(|state| page(state, kind, None, &options, 2, &selection)).unwrap();
            names.extend(items.iter().map(|item| object::name(item).to_owned()));
            left.push(meta.remaining);
            let Some(next) = meta.next else { break };
            options.continue_token = next.into();
        }
        assert_eq!((names.concat().as_str(), left), ("abcde", vec![Some(3), Some(1), None]));
    }

    #[test]
    fn an_invalid_token_is_refused() {
        assert_eq!(From::parse("x").err().map(|status| status.code), Some(400));
    }
}
