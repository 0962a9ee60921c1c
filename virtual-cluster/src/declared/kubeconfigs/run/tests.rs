use std::sync::Mutex;
use std::time::SystemTime;

use ops::secret::Secret;
use protocol::ClusterName;
use rewrite::name::{CLUSTER_LABEL, ROOT_LABEL};
use serde_json::json;
use tokio::time::{interval, timeout};

use super::super::issuer::Issued;
use super::super::{LABEL, path};
use super::*;
use crate::declared::follow;
use crate::provisioner::testing::FakeHost;

/// Longer than all waits.
const TEST_TIMEOUT: Duration = Duration::from_secs(3600);

const DAY: Duration = Duration::from_secs(24 * 3600);

const SECRET: &str = "/api/v1/namespaces/atoll-system/secrets/a-kubeconfig";

/// Issues numbered kubeconfigs.
#[derive(Clone, Default)]
struct Numbers(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    issued: u32,
    refuses: bool,
    /// How long they are valid. Real time, because it is in the Secret.
    life: Duration,
}

impl Issuer for Numbers {
    fn enrolled(&self) -> Moment {
        SystemTime::UNIX_EPOCH.into()
    }

    async fn issue(&self, cluster: &ClusterName, user: &User) -> Result<Issued, IssueError> {
        let mut state = self.0.lock().unwrap();
        if state.refuses {
            return Err(IssueError::new(Reason::RefusedByProxyServer, "not granted"));
        }
        state.issued += 1;
        let kubeconfig = Secret::from(format!("{cluster} {} {}", user.name, state.issued));
        let now = SystemTime::now();
        // No two certificates expire at the same time.
        let expiry = now + state.life + Duration::from_secs(state.issued.into());
        Ok(Issued { kubeconfig, renewal: (now + state.life).into(), expiry: expiry.into() })
    }
}

struct World {
    host: FakeHost,
    issuer: Numbers,
    states: KubeconfigStates,
    judged: watch::Sender<Option<Judged>>,
}

impl World {
    fn new() -> Self {
        let (host, issuer, states) = (FakeHost::new(), Numbers::default(), KubeconfigStates::default());
        issuer.0.lock().unwrap().life = DAY;
        host.put("/api/v1/namespaces/atoll-system", json!({"metadata": {"name": "atoll-system"}}));
        Self { host, issuer, states, judged: watch::Sender::new(None) }
    }

    /// The object of cluster `a`, as the agent follows it.
    fn put(&self, user: Option<&str>, is_ready: bool) {
        self.put_as("uid-of-a", user, is_ready);
    }

    fn put_as(&self, uid: &str, user: Option<&str>, is_ready: bool) {
        self.put_generation(uid, 1, user, is_ready);
    }

    fn put_generation(&self, uid: &str, generation: i64, user: Option<&str>, is_ready: bool) {
        let mut spec = json!({"nodeSelector": {"location": "beijing"}});
        if let Some(user) = user {
            spec["kubeconfig"] = json!({"user": user});
        }
        let ready = json!({
            "type": "Ready", "status": if is_ready { "True" } else { "False" }, "reason": "x", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        let metadata = json!({"name": "a", "uid": uid, "generation": generation});
        let object = json!({"metadata": metadata, "spec": spec, "status": {"conditions": [ready]}});
        let object: Declared = serde_json::from_value(object).unwrap();
        let objects = Arc::new([("a".to_owned(), Arc::new(object))].into());
        self.judged.send_replace(Some(Judged { objects, verdicts: [("a".to_owned(), Verdict::Served)].into() }));
    }

    /// Runs the loop until the test ends.
    async fn with(&self, namespace: Option<&str>, test: impl Future<Output = ()>) {
        let secrets = watch::Sender::new(None);
        let found = secrets.subscribe();
        let kept =
            Kubeconfigs::new(self.host.clone(), self.issuer.clone(), namespace.map(Into::into), self.states.clone());
        let following = self.host.follow::<KubeconfigSecret>(&path("atoll-system"), LABEL);
        tokio::select! {
            () = follow(following, &secrets), if namespace.is_some() => {}
            () = kept.run(self.judged.subscribe(), found) => {}
            tested = timeout(TEST_TIMEOUT, test) => tested.expect("what was waited for has not come"),
        }
    }

    /// Waits for a Secret with this kubeconfig.
    async fn stored(&self, kubeconfig: &str) {
        use base64::Engine as _;
        let encoded = base64::engine::general_purpose::STANDARD.encode(kubeconfig);
        self.host.until(|state| state.objects.get(SECRET).is_some_and(|it| it["data"]["value"] == encoded)).await;
    }

    /// Waits for a state.
    async fn until(&self, is_so: impl Fn(Option<KubeconfigState>) -> bool) {
        let mut looks = interval(Duration::from_millis(100));
        while !is_so(self.states.get("a").map(|seen| seen.state)) {
            looks.tick().await;
        }
    }

    fn failure(state: Option<KubeconfigState>) -> &'static str {
        match state {
            Some(KubeconfigState::Failed(error)) => error.reason.as_str(),
            _ => "",
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_secret_follows_what_the_object_asks_for() {
    let world = World::new();
    world.put(Some("jane"), false);
    world
        .with(Some("atoll-system"), async {
            sleep(DAY / 100).await;
            assert_eq!(world.states.get("a"), None, "the proxy-server does not serve it yet");
            world.put(Some("jane"), true);
            world.stored("a jane 1").await;
            world.until(|state| matches!(state, Some(KubeconfigState::Issued { .. }))).await;
            let owner = |state: &crate::provisioner::testing::State| {
                state.objects[SECRET]["metadata"]["ownerReferences"][0]["uid"].clone()
            };
            assert_eq!(owner(&world.host.lock()), "uid-of-a");
            sleep(DAY / 100).await;
            assert_eq!(world.issuer.0.lock().unwrap().issued, 1, "nothing changes");

            world.host.remove(SECRET);
            world.stored("a jane 2").await;
            world.put(Some("john"), true);
            world.stored("a john 3").await;
            world.put(None, true);
            world.host.until(|state| !state.objects.contains_key(SECRET)).await;
            world.until(|state| state.is_none()).await;
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_certificate_is_renewed_in_time() {
    let world = World::new();
    // Due at once.
    world.issuer.0.lock().unwrap().life = Duration::ZERO;
    world.put(Some("jane"), true);
    world
        .with(Some("atoll-system"), async {
            world.stored("a jane 1").await;
            world.stored("a jane 2").await;
            world.issuer.0.lock().unwrap().life = DAY;
            world.stored("a jane 3").await;
            sleep(DAY / 100).await;
            assert_eq!(world.issuer.0.lock().unwrap().issued, 3);
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn the_secrets_of_others_stay() {
    let world = World::new();
    let foreign = json!({"metadata": {"name": "a-kubeconfig"}, "data": {"value": "eA=="}});
    world.host.put(SECRET, foreign);
    world.put(Some("jane"), true);
    world
        .with(Some("atoll-system"), async {
            // The loop follows only its own Secrets, so it learns of this one from the host's refusal.
            world.until(|state| World::failure(state) == "NameConflict").await;
            assert_eq!(world.host.lock().objects[SECRET]["data"]["value"], "eA==");
            world.host.remove(SECRET);
            world.until(|state| matches!(state, Some(KubeconfigState::Issued { .. }))).await;
            // The VirtualCluster is deleted and created again, and Kubernetes has not deleted the Secret yet.
            world.put_as("new", Some("jane"), true);
            world.until(|state| World::failure(state) == "NameConflict").await;
            world.host.remove(SECRET);
            world.until(|state| matches!(state, Some(KubeconfigState::Issued { .. }))).await;
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn another_replica_may_be_faster() {
    let world = World::new();
    world.put(Some("jane"), true);
    let (other, states) = (World::new(), KubeconfigStates::default());
    other.put(Some("jane"), true);
    // It does not see the Secret of the first one, as if its watch was late.
    let kept = Kubeconfigs::new(world.host.clone(), other.issuer.clone(), Some("atoll-system".into()), states.clone());
    let blind = watch::Sender::new(Some(Arc::default()));
    world
        .with(Some("atoll-system"), async {
            world.stored("a jane 1").await;
            let late = kept.run(other.judged.subscribe(), blind.subscribe());
            let seen = async {
                while !matches!(states.get("a").map(|seen| seen.state), Some(KubeconfigState::Issued { .. })) {
                    sleep(Duration::from_millis(100)).await;
                }
            };
            tokio::select! { () = late => {}, () = seen => {} }
            world.stored("a jane 1").await;
        })
        .await;
}

/// The watch does not find it, so the agent must not issue certificates again and again.
#[tokio::test(start_paused = true)]
async fn a_secret_without_its_label_gets_it_back() {
    let world = World::new();
    world.put(Some("jane"), true);
    world
        .with(Some("atoll-system"), async {
            world.stored("a jane 1").await;
            world.host.edit(SECRET, |secret| secret["metadata"]["labels"] = json!({}));
            world.stored("a jane 2").await;
            assert_eq!(world.host.lock().objects[SECRET]["metadata"]["labels"][LABEL], "a");
            sleep(DAY / 100).await;
            assert_eq!(world.issuer.0.lock().unwrap().issued, 2);
        })
        .await;
}

/// While the specification is invalid, the last valid one is in force.
#[tokio::test(start_paused = true)]
async fn an_invalid_specification_stops_no_renewal() {
    let world = World::new();
    // Due at once.
    world.issuer.0.lock().unwrap().life = Duration::ZERO;
    world.put(Some("jane"), true);
    world
        .with(Some("atoll-system"), async {
            world.stored("a jane 1").await;
            world.judged.send_modify(|judged| {
                let judged = judged.as_mut().unwrap();
                let invalid = Verdict::Invalid { reason: "x".into(), is_served: true };
                judged.verdicts.insert("a".to_owned(), invalid);
                let ready = json!({"type": "Ready", "status": "False", "reason": "Invalid", "lastTransitionTime": "2026-01-01T00:00:00Z"});
                let object = json!({
                    "metadata": {"name": "a", "uid": "uid-of-a"}, "spec": {}, "status": {"conditions": [ready]},
                });
                let object: Declared = serde_json::from_value(object).unwrap();
                judged.objects = Arc::new([("a".to_owned(), Arc::new(object))].into());
            });
            world.stored("a jane 3").await;
        })
        .await;
}

/// What the object has asked for is not known.
#[tokio::test(start_paused = true)]
async fn an_object_that_was_never_valid_loses_no_secret() {
    let world = World::new();
    world.put(Some("jane"), true);
    world.with(Some("atoll-system"), world.stored("a jane 1")).await;
    world.put(None, true);
    world.judged.send_modify(|judged| {
        let judged = judged.as_mut().unwrap();
        judged.verdicts.insert("a".to_owned(), Verdict::Invalid { reason: "x".into(), is_served: true });
        let object = json!({"metadata": {"name": "a", "uid": "uid-of-a"}, "spec": {}});
        judged.objects = Arc::new([("a".to_owned(), Arc::new(serde_json::from_value(object).unwrap()))].into());
    });
    world
        .with(Some("atoll-system"), async {
            sleep(DAY / 100).await;
            assert!(world.host.lock().objects.contains_key(SECRET));
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn failures_are_told_and_repeated() {
    let world = World::new();
    world.issuer.0.lock().unwrap().refuses = true;
    world.put(Some("jane"), true);
    world
        .with(Some("atoll-system"), async {
            world.until(|state| World::failure(state) == "RefusedByProxyServer").await;
            world.issuer.0.lock().unwrap().refuses = false;
            world.stored("a jane 1").await;
            world.issuer.0.lock().unwrap().refuses = true;
            world.put_generation("uid-of-a", 2, Some("john"), true);
            world.until(|state| World::failure(state) == "RefusedByProxyServer").await;
            // After some failures, the pauses are long. A change of the object ends them.
            sleep(Duration::from_secs(600)).await;
            world.issuer.0.lock().unwrap().refuses = false;
            let begun = Instant::now();
            world.put_generation("uid-of-a", 3, Some("joe"), true);
            world.stored("a joe 2").await;
            assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
        })
        .await;
    let nowhere = World::new();
    nowhere.put(Some("jane"), true);
    nowhere.with(None, nowhere.until(|state| World::failure(state) == "NoNamespace")).await;
    assert_eq!(nowhere.issuer.0.lock().unwrap().issued, 0);
}

/// Clients of the virtual cluster could read the Secret.
#[tokio::test(start_paused = true)]
async fn a_namespace_of_a_virtual_cluster_gets_no_secrets() {
    for label in [CLUSTER_LABEL, ROOT_LABEL] {
        let world = World::new();
        let namespace = json!({"metadata": {"name": "atoll-system", "labels": {label: "ke"}}});
        world.host.put("/api/v1/namespaces/atoll-system", namespace);
        world.put(Some("jane"), true);
        let told = world.until(|state| World::failure(state) == "NamespaceOfCluster");
        world.with(Some("atoll-system"), told).await;
        assert_eq!(world.issuer.0.lock().unwrap().issued, 0);
    }
}
