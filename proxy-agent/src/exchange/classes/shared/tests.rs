//! Properties of a request that no client sees. `crate::tests` has what clients and the host see.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, Response, header};
use kube_wire::RequestInfo;
use ops::drain::Tasks;
use ops::files::Watched;
use protocol::identity::Identity;
use rewrite::view::Certificate;
use test_host::{Script, standing};

use crate::config::ProxyAgentConfiguration;
use crate::exchange::authenticate::authenticate;
use crate::exchange::body::Body;
use crate::exchange::call::Call;
use crate::exchange::carry_out::carry_out;
use crate::exchange::commitment::Commitment;
use crate::exchange::decide::decide;
use crate::exchange::findings::Findings;
use crate::exchange::services::Services;
use virtual_cluster::clusters::VirtualCluster;

const CONFIG: &str = "\
apiVersion: atoll.dev/v1alpha1
kind: ProxyAgentConfiguration
servers: [proxy:8091]
identity: {certificate: a.crt, key: a.key, serverCA: s.crt}
host: {kubeconfig: h}
virtualClusters:
- {name: hz, nodeSelector: {location: hangzhou}}
";

const CLASSES: &str = "/apis/scheduling.k8s.io/v1/priorityclasses";

struct World {
    services: Services,
    cluster: Arc<VirtualCluster>,
    _host: Script,
}

// === impl World ===

impl World {
    fn new() -> Self {
        let config: ProxyAgentConfiguration = ops::config::parse(CONFIG, Path::new("c.yaml")).unwrap();
        let host = Script::new();
        host.always(standing::reviews(|_| true)).always(standing::discovery(&[]));
        let services =
            Services::new(&config, host.host(), Watched::fixed(Certificate::new("")), &Tasks::new()).unwrap();
        let cluster = services.clusters.get(&"hz".parse().unwrap()).unwrap();
        Self { services, cluster, _host: host }
    }

    /// A read of an administrator, after the phase `authorise`.
    async fn authorised(&self) -> Box<Call<'_>> {
        let mut headers = HeaderMap::new();
        let groups = vec!["system:masters".to_owned()];
        Identity { user: "admin".into(), groups, uid: None, credential: None }.write(&mut headers);
        let info = RequestInfo::parse(&Method::GET, CLASSES, None).unwrap();
        let authenticated = authenticate(&self.services, &self.cluster, info, headers, None).await.unwrap();
        authenticated.authorise().await.unwrap()
    }
}

/// The state of a request is moved when its task starts. The rare parts of the path are boxed, so that they do not count.
#[tokio::test]
async fn the_state_of_a_request_is_small() {
    let world = World::new();
    let mut call = world.authorised().await;
    let body = Body::Whole(Bytes::new());
    assert!(size_of_val(&*decide(&call, &body)) < 4096);
    assert!(size_of_val(&carry_out(&mut call, &body, &Commitment::default(), &mut Findings::default())) < 6144);
}

/// A warning of the host has names of the host.
#[tokio::test]
async fn warnings_are_in_virtual_names_and_said_once() {
    let world = World::new();
    let call = world.authorised().await;
    let of_host = Response::builder().header(header::WARNING, "299 - \"role vc:hz:a is unused\"").body(()).unwrap();
    let mut findings = Findings::default();
    findings.warn_like(&of_host);
    findings.warn_like(&of_host);
    assert_eq!(call.shown_warnings(&findings), ["299 - \"role a is unused\""]);
}
