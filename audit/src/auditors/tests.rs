use std::fs;
use std::path::Path;

use http::{HeaderMap, Method, StatusCode, Uri};
use ops::metrics::Build;
use tempfile::TempDir;

use super::*;
use crate::{Audited, Received};

fn auditors() -> (Auditors, Registry) {
    let registry = Registry::new(Build { component: "test", version: "0" });
    (Auditors::new(&registry), registry)
}

fn settings(directory: &Path) -> Audit {
    let path = directory.join("{cluster}.log").into();
    let log = Log { path, max_size: std::num::NonZeroU32::MIN, max_backups: 1, max_age: 1 };
    Audit { log: Some(log.into()), ..Audit::default() }
}

fn record(auditor: &Arc<Auditor>) {
    let (method, uri, headers) = (&Method::GET, &Uri::from_static("/version"), &HeaderMap::new());
    let received = Received { method, uri, headers, info: None, remote: None };
    Audited::begin(Arc::clone(auditor), received).answered(StatusCode::OK);
}

#[tokio::test]
async fn each_cluster_has_its_file_and_all_is_written_at_the_end() {
    let directory = TempDir::new().unwrap();
    let ((auditors, registry), reloader) = (auditors(), Reloader::new(Reloader::DEFAULT_PERIOD));
    let (a, b): (ClusterName, ClusterName) = ("a".parse().unwrap(), "b".parse().unwrap());
    let of = |cluster: &ClusterName| settings(directory.path()).of(cluster.as_str());
    auditors.exchange(auditors.open([(&a, of(&a)), (&b, of(&b))], &reloader).unwrap());
    let (first, other) = (auditors.get(&a).unwrap(), auditors.get(&b).unwrap());
    record(&first);
    record(&other);
    // Another policy, the same file, one cluster less.
    let policy = directory.path().join("policy.yaml");
    fs::write(&policy, "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n").unwrap();
    let changed = Audit { policy_file: Some(policy.into()), ..of(&a) };
    auditors.exchange(auditors.open([(&a, changed.clone())], &reloader).unwrap());
    assert!(auditors.get(&b).is_none() && !registry.encode().contains("cluster=\"b\""));
    let second = auditors.get(&a).unwrap();
    assert!(!Arc::ptr_eq(&first, &second));
    record(&second);
    auditors.exchange(auditors.open([(&a, changed)], &reloader).unwrap());
    assert!(Arc::ptr_eq(&second, &auditors.get(&a).unwrap()), "nothing has changed");
    drop((first, other, second));
    auditors.drain(Duration::from_secs(5)).await;
    let count = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap().lines().count();
    // The default policy omits one stage.
    assert_eq!((count("a.log"), count("b.log")), (3, 1));
    assert!(registry.encode().contains("atoll_audit_events_total{cluster=\"a\"} 3"));
}

#[tokio::test]
async fn files_that_cannot_be_used_are_errors() {
    let directory = TempDir::new().unwrap();
    let ((auditors, ..), reloader) = (auditors(), Reloader::new(Reloader::DEFAULT_PERIOD));
    let cluster: ClusterName = "a".parse().unwrap();
    let open = |settings: Audit| auditors.open([(&cluster, settings)], &reloader).unwrap_err().to_string();
    let usual = settings(directory.path());
    let missing = directory.path().join("missing");
    assert_eq!(open(Audit { policy_file: Some(missing.clone().into()), ..usual.clone() }), "audit.policyFile");
    fs::write(directory.path().join("a"), "").unwrap();
    let below_a_file = settings(&directory.path().join("a"));
    assert!(open(below_a_file).starts_with("audit.log.path: cannot open"));
    let (initial_backoff, batch) = (ops::config::Duration::default(), crate::config::Batch::default());
    let webhook = Webhook { kubeconfig: missing.into(), initial_backoff, batch };
    assert_eq!(open(Audit { webhook: Some(webhook.into()), ..usual }), "audit.webhook.kubeconfig");
    assert!(auditors.open([(&cluster, Audit::default())], &reloader).unwrap().is_empty());
}
