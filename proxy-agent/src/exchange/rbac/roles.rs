//! ClusterRoles: the client's own, which have another name on the host, and those of Kubernetes, which can only be
//! read.

use http::Method;
use kube_wire::name::SegmentName;
use kube_wire::query::ListOptions;
use kube_wire::selector::LabelSelector;
use kube_wire::{ResourceRequest, Status, Verb};
use rewrite::parked::parked;
use rewrite::request::AGGREGATION_ANNOTATION;
use rewrite::view::Filter;
use serde_json::Value;

use super::{Written, attempt};
use crate::exchange::ApiRequest;
use crate::exchange::body::Body;
use crate::exchange::cluster_scoped::forbidden;
use crate::exchange::plan::{As, Plan, group_kind, program};
use crate::refusal::Refusal;
use crate::translate::ResponseTransform;
use host_client::{empty, full};
use virtual_cluster::roles::Role;

/// The maximum size of a ClusterRole: its rules, labels and annotations, in bytes of JSON. The agent keeps all
/// ClusterRoles of a virtual cluster in memory, to aggregate them. Kubernetes' own roles have up to about ten thousand
/// bytes.
const MAX_BYTES: usize = 512 << 10;

/// The refusal of a write to one of Kubernetes' own roles.
const SHARED: &str =
    "all virtual clusters of the host share this role of Kubernetes; create a ClusterRole with another name";

impl ApiRequest<'_> {
    /// Handles a request for ClusterRoles.
    pub(in crate::exchange) async fn cluster_roles(
        &self,
        request: &ResourceRequest<'_>,
        body: &Body,
    ) -> Result<Plan, Refusal> {
        if request.subresource().is_some() {
            return Err(Status::path_not_found().into());
        }
        match (request.verb(), request.path_name()) {
            (Verb::List | Verb::Watch | Verb::DeleteCollection, None) => self.role_collection(request, body),
            (Verb::Get | Verb::List | Verb::Watch, Some(name)) => self.read_role(request, name),
            (Verb::Create, None) => {
                let own = self.new_name(request, &body.bytes())?;
                if self.mapping.is_shared_role(&own.name) {
                    return Err(Status::already_exists(request.group_resource(), &own.name).into());
                }
                self.write_role(request, &own.name, &request.path().build(), body).await
            }
            (Verb::Update | Verb::Patch | Verb::Delete, Some(name)) if self.mapping.is_shared_role(name) => {
                Err(forbidden(request, SHARED))
            }
            (Verb::Update | Verb::Patch, Some(name)) => {
                let path = self.role_path(request, name)?;
                self.write_role(request, name, &path, body).await
            }
            (Verb::Delete, Some(name)) => {
                let path = Self::target(&self.role_path(request, name)?, self.info.query());
                let mut upstream = self.upstream(Method::DELETE, &path, As::Agent, full(body.bytes()))?;
                self.readable(&mut upstream)?;
                let transform =
                    ResponseTransform::Object { program: program(request), filter: Filter::Everything, only: None };
                let mut plan = self.planned(request, upstream, transform);
                plan.written = (!self.is_dry_run(&body.bytes())?).then_some(Written::Role);
                Ok(plan)
            }
            _ => Err(Status::method_not_allowed_here().into()),
        }
    }

    /// The host's name for a ClusterRole. A name that no client can have created is returned unchanged, and no object
    /// on the host has it.
    pub(in crate::exchange) fn host_role(&self, name: &str) -> String {
        self.mapping.role(name).unwrap_or_else(|_| name.to_owned())
    }

    /// The path of a ClusterRole on the host.
    fn role_path(&self, request: &ResourceRequest<'_>, name: &str) -> Result<String, Refusal> {
        let missing = || Refusal::from(Status::not_found(request.group_resource(), name));
        if name.starts_with(super::RESERVED) {
            let is_write = matches!(request.verb(), Verb::Update | Verb::Patch);
            return Err(if is_write { super::reserved(group_kind(request), name) } else { missing() });
        }
        let host = self.mapping.role(name).map_err(|_| missing())?;
        let segment = SegmentName::new(host).map_err(|_| missing())?;
        Ok(request.path_with(None, Some(&segment)))
    }

    fn read_role(&self, request: &ResourceRequest<'_>, name: &str) -> Result<Plan, Refusal> {
        let path = self.role_path(request, name)?;
        let listed = request.verb() != Verb::Get;
        let query = if listed { self.list_query(request, None)? } else { self.info.query().borrowed().into_owned() };
        let mut upstream = self.upstream(Method::GET, &Self::target(&path, &query), As::Agent, empty())?;
        self.readable(&mut upstream)?;
        let transform = if listed {
            self.list_transform(request, program(request), Filter::ByRole)?
        } else {
            ResponseTransform::Object { program: program(request), filter: Filter::ByRole, only: None }
        };
        Ok(self.planned(request, upstream, transform))
    }

    /// A list or watch of the cluster's own and shared roles, or a deletion of its own. The agent applies the label
    /// selector to lists and watches: on the host, own roles have other labels than shared ones, and no selector
    /// matches exactly both.
    fn role_collection(&self, request: &ResourceRequest<'_>, body: &Body) -> Result<Plan, Refusal> {
        let mut query = self.list_query(request, None)?;
        let bad = |error: String| Refusal::from(Status::bad_request(error));
        let options = ListOptions::parse(self.info.query())?;
        let selector: LabelSelector = options.label_selector.parse().map_err(|error| bad(format!("{error}")))?;
        let (mut selecting, mut sent) = (None, empty());
        if request.verb() == Verb::DeleteCollection {
            sent = full(body.bytes());
            let own = selector.map_keys(parked).map_err(|error| bad(error.to_string()))?.and(self.own_label());
            query.set("labelSelector", &own.to_string());
        } else {
            query.remove("labelSelector");
            selecting = Some(selector).filter(|selector| !selector.is_empty());
        }
        let target = Self::target(&request.path().build(), &query);
        let mut upstream = self.upstream(self.info.method().clone(), &target, As::Agent, sent)?;
        self.readable(&mut upstream)?;
        let mut plan = self.planned(request, upstream, self.list_transform(request, program(request), Filter::ByRole)?);
        plan.selecting = selecting;
        plan.written =
            (request.verb() == Verb::DeleteCollection && !self.is_dry_run(&body.bytes())?).then_some(Written::Role);
        Ok(plan)
    }

    async fn write_role(
        &self,
        request: &ResourceRequest<'_>,
        name: &str,
        path: &str,
        body: &Body,
    ) -> Result<Plan, Refusal> {
        let mut tried = self.tried(request, path, &body.bytes()).await?;
        let size = size(&tried.result);
        if size > MAX_BYTES {
            let message =
                format!("this ClusterRole has {size} bytes, and the limit is {MAX_BYTES}; split it into several");
            return Err(Status::request_entity_too_large(&message).into());
        }
        let (roles, cluster) = (self.cluster.roles(), &self.cluster.name);
        let room = roles.has_room(cluster, name, Role::of(&tried.result).weight);
        room.map_err(|full| forbidden(request, &full.to_string()))?;
        let host = self.host_role(name);
        let aggregates = !tried.result["metadata"]["annotations"][AGGREGATION_ANNOTATION].is_null()
            || roles.aggregates(cluster, name);
        attempt::may_grant(self, request, (&host, name), &tried.result["rules"], aggregates).await?;
        self.may_make(request, &host, tried.is_new).await?;
        self.readable(&mut tried.request)?;
        let transform = ResponseTransform::Object { program: program(request), filter: Filter::ByRole, only: None };
        let mut plan = self.planned(request, tried.request, transform);
        plan.again = tried.again;
        plan.written = (!self.is_dry_run(&body.bytes())?).then_some(Written::Role);
        Ok(plan)
    }
}

/// The size of a ClusterRole, without fields that the host adds.
fn size(role: &Value) -> usize {
    let metadata = &role["metadata"];
    [&role["rules"], &metadata["labels"], &metadata["annotations"]].map(|part| part.to_string().len()).iter().sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_size_of_a_role_is_that_of_what_clients_write() {
        let text = "x".repeat(1000);
        let sized = |rules: Value, metadata: Value| size(&json!({"rules": rules, "metadata": metadata}));
        let bare = sized(json!([]), json!({"labels": {}, "annotations": {}, "managedFields": [text]}));
        assert_eq!(bare, "[]{}{}".len());
        for (rules, metadata) in [
            (json!([text]), json!({"labels": {}, "annotations": {}})),
            (json!([]), json!({"labels": {"a": text}, "annotations": {}})),
            (json!([]), json!({"labels": {}, "annotations": {"a": text}})),
        ] {
            assert!((1000..1020).contains(&sized(rules, metadata)));
        }
    }
}
