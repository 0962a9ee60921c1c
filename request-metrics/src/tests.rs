use ops::metrics::Build;

use super::*;

fn requests() -> (Registry, RequestMetrics) {
    let metrics = Registry::new(Build { component: "test", version: "0" });
    let requests = RequestMetrics::new(&metrics, Names::SERVER);
    (metrics, requests)
}

fn name(text: &str) -> ClusterName {
    text.parse().unwrap()
}

fn lines(metrics: &Registry) -> Vec<String> {
    let ours =
        |line: &&str| line.starts_with("atoll_requests") || line.starts_with("atoll_request_duration_seconds_count");
    metrics.encode().lines().filter(ours).map(str::to_owned).collect()
}

fn send(requests: &RequestMetrics, cluster: &str, verb: VerbClass, code: u16) {
    let mut measured = requests.measure(&name(cluster), verb, Instant::now()).unwrap();
    measured.answered(StatusCode::from_u16(code).unwrap());
}

#[test]
fn requests_are_counted_by_cluster_verb_and_code() {
    let (metrics, requests) = requests();
    requests.exchange([name("a"), name("b")].iter());
    for code in [200, 200, 404, 599] {
        send(&requests, "a", VerbClass::Get, code);
    }
    send(&requests, "b", VerbClass::Watch, 200);
    assert_eq!(
        lines(&metrics),
        [
            r#"atoll_request_duration_seconds_count{cluster="a",verb="get"} 4"#,
            r#"atoll_requests_total{cluster="a",code="200",verb="get"} 2"#,
            r#"atoll_requests_total{cluster="a",code="404",verb="get"} 1"#,
            r#"atoll_requests_total{cluster="a",code="other",verb="get"} 1"#,
            r#"atoll_requests_total{cluster="b",code="200",verb="watch"} 1"#,
        ]
    );
}

#[test]
fn only_clusters_of_the_configuration_have_series() {
    let (metrics, requests) = requests();
    requests.exchange([name("a"), name("b")].iter());
    assert!(requests.measure(&name("c"), VerbClass::Get, Instant::now()).is_none());
    send(&requests, "a", VerbClass::Get, 200);
    let mut running = requests.measure(&name("a"), VerbClass::List, Instant::now()).unwrap();
    send(&requests, "b", VerbClass::Write, 201);
    requests.exchange([name("b")].iter());
    // A request ends after its cluster was removed.
    running.answered(StatusCode::OK);
    drop(running);
    let of_b = |value: u32| {
        [
            r#"atoll_request_duration_seconds_count{cluster="b",verb="write"} "#.to_owned() + &value.to_string(),
            r#"atoll_requests_total{cluster="b",code="201",verb="write"} "#.to_owned() + &value.to_string(),
        ]
    };
    assert_eq!(lines(&metrics), of_b(1));
    // The counters of the other cluster are kept.
    send(&requests, "b", VerbClass::Write, 201);
    assert_eq!(lines(&metrics), of_b(2));
    requests.exchange([name("a"), name("b")].iter());
    send(&requests, "a", VerbClass::Get, 200);
    assert!(lines(&metrics).contains(&r#"atoll_requests_total{cluster="a",code="200",verb="get"} 1"#.to_owned()));
}

/// Requests that end while their cluster is removed do not add its series again. Requests that end later do not change
/// the series of a new cluster with the same name.
#[test]
fn a_removed_cluster_stays_removed() {
    let (metrics, requests) = requests();
    for _ in 0..20 {
        requests.exchange([name("a")].iter());
        let running = [200, 201, 404, 409, 500].map(|code| {
            let mut measured = requests.measure(&name("a"), VerbClass::Get, Instant::now()).unwrap();
            measured.answered(StatusCode::from_u16(code).unwrap());
            measured
        });
        let late = requests.measure(&name("a"), VerbClass::Get, Instant::now());
        std::thread::scope(|scope| {
            scope.spawn(|| drop(running));
            requests.exchange([].iter());
        });
        assert_eq!(lines(&metrics), [""; 0]);
        requests.exchange([name("a")].iter());
        send(&requests, "a", VerbClass::Get, 200);
        let mut late = late.unwrap();
        late.answered(StatusCode::OK);
        drop(late);
        assert_eq!(lines(&metrics)[1], r#"atoll_requests_total{cluster="a",code="200",verb="get"} 1"#);
        requests.exchange([].iter());
    }
}

/// A removal waits until a series is made, and removes it. After a removal, none is made.
#[test]
fn no_series_is_made_during_a_removal() {
    let (_, requests) = requests();
    requests.exchange([name("a")].iter());
    let cluster = Arc::clone(&requests.clusters.load()[&name("a")]);
    let made = cluster.known(&OnceLock::new(), || cluster.is_gone.try_lock().is_err()).copied();
    assert_eq!(made, Some(true), "the series is made under the lock that the removal takes");
    requests.exchange([].iter());
    assert!(cluster.known(&OnceLock::new(), || ()).is_none());
}

#[test]
fn a_request_without_a_response_is_not_counted() {
    let (metrics, requests) = requests();
    requests.exchange([name("a")].iter());
    drop(requests.measure(&name("a"), VerbClass::Get, Instant::now()));
    assert!(lines(&metrics).is_empty());
}

#[test]
fn only_clusters_of_the_configuration_have_errors() {
    let (_, requests) = requests();
    requests.exchange([name("a"), name("b")].iter());
    let failure = Failure { code: 503, fault: protocol::Fault::Tunnel, reason: "", message: "no agent" };
    let running = requests.measure(&name("a"), VerbClass::Get, Instant::now()).unwrap();
    running.failed(&failure);
    requests.failed(&name("b"), &failure);
    requests.failed(&name("c"), &failure);
    let count = |cluster| requests.last_errors(&name(cluster)).len();
    assert_eq!([count("a"), count("b"), count("c")], [1, 1, 0]);
    // A cluster that is removed loses its errors.
    requests.exchange([name("b"), name("c")].iter());
    requests.exchange([name("a"), name("b")].iter());
    running.failed(&failure);
    assert_eq!([count("a"), count("b")], [0, 1]);
}
