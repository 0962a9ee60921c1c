use http::Method;
use protocol::ClusterName;

use super::*;

fn clusters() -> Clusters {
    let cluster = |name: &str, mode, api_server: Option<&str>| {
        Arc::new(Cluster {
            name: name.parse().unwrap(),
            agents: vec!["a".parse().unwrap()],
            mode,
            client_ca: None,
            oidc: None,
            api_server: api_server.map(|address| address.parse().unwrap()),
            destinations: Vec::new(),
            audit: None,
        })
    };
    Clusters::new([
        cluster("ke-beijing", Mode::Virtual, None),
        cluster("branch-7", Mode::Physical, Some("10.2.0.1:6443")),
        cluster("k3s-1", Mode::Physical, Some("127.0.0.1:6443")),
        cluster("k3s-2", Mode::Physical, Some("127.0.0.1:6443")),
    ])
}

fn decide(target: &str, host: Option<&str>) -> Result<(bool, ClusterName), u16> {
    let mut request = Request::builder().method(Method::CONNECT).uri(target);
    if let Some(host) = host {
        request = request.header("host", host);
    }
    match route(&request.body(()).unwrap(), &clusters(), "atoll.internal") {
        Ok(Route::Virtual(cluster)) => Ok((true, cluster.name.clone())),
        Ok(Route::Physical(cluster)) => Ok((false, cluster.name.clone())),
        Ok(Route::Destination(address)) => panic!("{address} without a cluster"),
        Err(refusal) => Err(refusal.status().as_u16()),
    }
}

#[test]
fn the_authority_decides() {
    let beijing = Ok((true, "ke-beijing".parse().unwrap()));
    let branch = Ok((false, "branch-7".parse().unwrap()));
    assert_eq!(decide("ke-beijing.atoll.internal:443", None), beijing);
    assert_eq!(decide("KE-BEIJING.Atoll.Internal:443", Some("ke-beijing.atoll.internal:443")), beijing);
    assert_eq!(decide("ke-beijing.atoll.internal:443", Some("ke-beijing.atoll.internal")), beijing);
    assert_eq!(decide("10.2.0.1:6443", None), branch);
    assert_eq!(decide("branch-7.atoll.internal:6443", None), branch);
}

#[test]
fn clusters_with_the_same_address_have_names() {
    assert_eq!(decide("127.0.0.1:6443", None), Err(400));
    assert_eq!(decide("k3s-2.atoll.internal:6443", None), Ok((false, "k3s-2".parse().unwrap())));
}

#[test]
fn the_header_asks_for_a_destination() {
    let request = Request::connect("10.2.0.1:6443").header("atoll-cluster", "branch-7").body(()).unwrap();
    let route = route(&request, &clusters(), "atoll.internal").unwrap();
    assert!(matches!(&route, Route::Destination(address) if address.to_string() == "10.2.0.1:6443"), "{route:?}");
}

#[test]
fn what_is_refused_and_how() {
    assert_eq!(decide("nowhere.atoll.internal:443", None), Err(404));
    assert_eq!(decide("ke-beijing.atoll.internal:6443", None), Err(403));
    assert_eq!(decide("10.2.0.1:22", None), Err(403));
    assert_eq!(decide("kubernetes.default:443", None), Err(403));
    assert_eq!(decide("ke-beijing.atoll.internal:443", Some("ke-hangzhou.atoll.internal:443")), Err(400));
}
