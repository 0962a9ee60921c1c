//! Paths that are not resources: discovery, OpenAPI, version, health.

use kube_wire::Status;
use kube_wire::request_info::NonResourceRequest;

use super::ApiRequest;
use super::plan::{After, As, Plan};
use crate::refusal::Refusal;
use crate::translate::ResponseTransform;
use host_client::empty;
use virtual_cluster::shared::Moved;

impl ApiRequest<'_> {
    /// These documents contain no names of namespaces. The agent requests them with its own identity, and forwards them
    /// unchanged, except for resources that only other virtual clusters have.
    pub(super) async fn non_resource(&self, request: &NonResourceRequest<'_>) -> Result<Plan, Refusal> {
        let target = Self::target(request.path(), self.info.query());
        let mut upstream = self.upstream(self.info.method().clone(), &target, As::Agent, empty())?;
        let advertised = self.advertised(request, upstream.headers_mut()).await?;
        Ok(Plan {
            request: upstream,
            transform: ResponseTransform::Verbatim,
            mapping: self.mapping.clone(),
            projected: None,
            otherwise: None,
            not_found: Status::path_not_found(),
            selecting: None,
            again: false,
            written: None,
            after: advertised.map_or(After::Nothing, After::Advertised),
            moved: Moved::default(),
        })
    }
}
