//! The phase `authenticate`: who makes the request.

use std::sync::Arc;

use http::HeaderMap;
use kube_wire::RequestInfo;
use protocol::stream::{CLUSTER, METHOD};

use crate::exchange::api_request::ApiRequest;
use crate::exchange::authorise::Authenticated;
use crate::exchange::call::Call;
use crate::exchange::services::Services;
use crate::refusal::Refusal;
use caller::impersonation::acting_as;
use virtual_cluster::clusters::VirtualCluster;

/// Authenticates the caller. Afterwards, the headers have no credentials, and none of the tunnel's own headers.
pub(super) async fn authenticate<'a>(
    services: &'a Services,
    cluster: &'a Arc<VirtualCluster>,
    info: RequestInfo<'a>,
    mut headers: HeaderMap,
) -> Result<Authenticated<'a>, Refusal> {
    let mapping = cluster.mapping();
    let (known, host_tokens) = (&cluster.lasting.callers, cluster.host_tokens.as_ref());
    let caller = services.authn.authenticate(&mapping, known, host_tokens, &mut headers).await?;
    let caller = acting_as(&services.authz, &mapping, caller, &mut headers).await?;
    for name in [CLUSTER, METHOD] {
        headers.remove(name);
    }
    let api = ApiRequest { cluster, mapping, caller, info, headers, custom: None };
    Ok(Authenticated::new(Box::new(Call::new(services, api))))
}
