//! Deletions: a cluster removes its overlay from an object. The last one deletes the object, unless it belongs to the
//! operator.

mod instances;

use http::Method;
use kube_wire::status::{Details, Outcome};
use kube_wire::{ResourceRequest, Status};

use super::{ApiRequest, Written};
use crate::exchange::body::Body;
use crate::exchange::cluster_scoped::forbidden;
use crate::exchange::deletion::Deletion;
use crate::exchange::plan::{After, Plan};
use crate::refusal::Refusal;
use virtual_cluster::shared::{HostObject, Kind};

/// The refusal to delete an object of the operator.
const OPERATORS: &str = "the operator of the host cluster created it for all virtual clusters";

impl ApiRequest<'_> {
    pub(super) async fn leave_shared(
        &self,
        request: &ResourceRequest<'_>,
        written: Written,
        body: &Body,
    ) -> Result<Plan, Refusal> {
        let name = request.path_name().unwrap_or_default();
        self.leave(request, written, name, &request.path().build(), body).await
    }

    /// Removes the cluster's overlay from the object of this name at `path`, or deletes the object.
    pub(super) async fn leave(
        &self,
        request: &ResourceRequest<'_>,
        written: Written,
        name: &str,
        path: &str,
        body: &Body,
    ) -> Result<Plan, Refusal> {
        let cluster = self.cluster.name.as_str();
        let missing = || Refusal::from(Status::not_found(request.group_resource(), name));
        let mut live = self.live(request, path).await?.filter(|live| live.is_seen_by(cluster)).ok_or_else(missing)?;
        let deletion = self.deletion(&body.bytes())?;
        if let Some(why) = deletion.unmet(live.metadata()) {
            return Err(Status::conflict(request.group_resource(), name, &why).into());
        }
        if live.overlay(cluster).is_none() {
            return Err(forbidden(request, OPERATORS));
        }
        let is_definition = written == Written::Kind(Kind::CustomResourceDefinition);
        let is_last = !live.has_others(cluster);
        if !live.is_of_clusters() || (is_last && is_definition && self.is_used_outside(&live).await?) {
            return self.leave_to_operator(request, path, live, &deletion);
        }
        if is_last {
            return self.delete_shared(request, path, &live, &deletion);
        }
        if is_definition && !deletion.is_dry_run() {
            self.delete_instances(request, &live).await?;
        }
        let gone = gone(request, live.text("name"), live.text("uid"));
        live.leave(cluster);
        self.leave_to_others(request, path, &live, &gone, &deletion)
    }

    /// The operator created the object or uses it, so only the cluster's overlay is removed. The client still sees the
    /// object, but does not wait for its deletion: kubectl waits by uid.
    fn leave_to_operator(
        &self,
        request: &ResourceRequest<'_>,
        path: &str,
        mut live: HostObject,
        deletion: &Deletion,
    ) -> Result<Plan, Refusal> {
        live.hand_over();
        live.leave(self.cluster.name.as_str());
        let gone = gone(request, live.text("name"), "");
        self.leave_to_others(request, path, &live, &gone, deletion)
    }

    /// Deletes an object that no other cluster has. If another one joins in the meantime, the preconditions fail.
    fn delete_shared(
        &self,
        request: &ResourceRequest<'_>,
        path: &str,
        live: &HostObject,
        deletion: &Deletion,
    ) -> Result<Plan, Refusal> {
        let mut query = self.info.query().borrowed();
        for key in ["propagationPolicy", "gracePeriodSeconds", "orphanDependents", "dryRun"] {
            query.remove(key);
        }
        let options = deletion.of(live.text("uid"), live.text("resourceVersion"));
        let mut upstream = self.put_upstream(Method::DELETE, path, &query, &options)?;
        self.readable(&mut upstream)?;
        let mut plan = self.planned(request, upstream, self.shared_transform(request));
        plan.again = true;
        Ok(plan)
    }

    fn leave_to_others(
        &self,
        request: &ResourceRequest<'_>,
        path: &str,
        live: &HostObject,
        gone: &Status,
        deletion: &Deletion,
    ) -> Result<Plan, Refusal> {
        let mut query = self.write_query()?;
        for key in ["propagationPolicy", "gracePeriodSeconds", "orphanDependents", "dryRun"] {
            query.remove(key);
        }
        if deletion.is_dry_run() {
            query.append("dryRun", "All");
        }
        let mut upstream = self.put_upstream(Method::PUT, path, &query, live.value())?;
        upstream.headers_mut().insert(http::header::ACCEPT, http::HeaderValue::from_static("application/json"));
        let mut plan = self.planned(request, upstream, self.shared_transform(request));
        plan.again = true;
        if !deletion.is_dry_run() {
            plan.moved.from = live.stored().map(|stored| stored.id.clone());
        }
        plan.after = After::Gone(gone.to_json().into());
        Ok(plan)
    }
}

/// The response of an API server if the object is deleted at once (`handlers/delete.go` in apiserver).
fn gone(request: &ResourceRequest<'_>, name: &str, uid: &str) -> Status {
    let details = Details {
        name: name.to_owned(),
        group: request.group().to_owned(),
        kind: request.resource().to_owned(),
        uid: uid.to_owned(),
        ..Details::default()
    };
    Status { outcome: Outcome::Success, details: Some(details), ..Status::default() }
}
