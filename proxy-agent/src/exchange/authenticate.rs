//! The phase `authenticate`: who makes the request.

use std::sync::Arc;

use http::HeaderMap;
use kube_wire::RequestInfo;
use protocol::audit::AUDIT;
use protocol::stream::{CLUSTER, METHOD};

use crate::exchange::api_request::ApiRequest;
use crate::exchange::audit::AuditFacts;
use crate::exchange::authorise::Authenticated;
use crate::exchange::call::Call;
use crate::exchange::services::Services;
use crate::refusal::Refusal;
use caller::identity::Kind;
use caller::impersonation::acting_as;
use virtual_cluster::clusters::VirtualCluster;

/// Authenticates the caller, and records who it is for an audit log. Afterwards, the headers have no credentials, and none of the tunnel's own headers.
pub(super) async fn authenticate<'a>(
    services: &'a Services,
    cluster: &'a Arc<VirtualCluster>,
    info: RequestInfo<'a>,
    mut headers: HeaderMap,
    audit: Option<&mut AuditFacts>,
) -> Result<Authenticated<'a>, Refusal> {
    let mapping = cluster.mapping();
    let (known, host_tokens) = (&cluster.lasting.callers, cluster.host_tokens.as_ref());
    let caller = services.authn.authenticate(&mapping, known, host_tokens, &mut headers).await?;
    let caller = match audit {
        Some(audit) => {
            audit.authenticated(&mapping, &caller);
            let caller = acting_as(&services.authz, &mapping, caller, &mut headers).await?;
            if caller.kind == Kind::Impersonated {
                audit.impersonating(&mapping, &caller);
            }
            caller
        }
        None => acting_as(&services.authz, &mapping, caller, &mut headers).await?,
    };
    for name in [CLUSTER, METHOD, AUDIT] {
        headers.remove(name);
    }
    let api = ApiRequest { cluster, mapping, caller, info, headers, custom: None };
    Ok(Authenticated::new(Box::new(Call::new(services, api))))
}
