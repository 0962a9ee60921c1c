use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use protocol::identity::Identity;
use rewrite::mapping::identity::Seen;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::*;
use crate::identity::{Account, HostUser, Kind};
use crate::reviews::TokenUser;
use crate::testing::{FakeHost, ke};

fn user(name: &str, groups: &[&str]) -> TokenUser {
    let groups = groups.iter().map(ToString::to_string).collect();
    TokenUser { name: name.into(), groups, ..TokenUser::default() }
}

fn certificate(user: &str, groups: &[&str]) -> HeaderMap {
    let groups = groups.iter().map(ToString::to_string).collect();
    let mut headers = HeaderMap::new();
    Identity { user: user.into(), groups, uid: None, credential: None }.write(&mut headers);
    headers
}

fn bearer(token: &str) -> HeaderMap {
    HeaderMap::from_iter([(http::header::AUTHORIZATION, format!("Bearer {token}").parse().unwrap())])
}

fn authenticator() -> Authenticator<Arc<FakeHost>> {
    let account = TokenUser {
        uid: "u1".into(),
        extra: BTreeMap::from([("authentication.kubernetes.io/node-name".into(), vec!["beijing-1".into()])]),
        ..user(
            "system:serviceaccount:edge-ke:bob",
            &["system:serviceaccounts", "system:serviceaccounts:edge-ke", "system:authenticated"],
        )
    };
    let tokens = [
        ("account", account),
        ("others", user("system:serviceaccount:edge-hz:bob", &[])),
        ("hosts", user("system:serviceaccount:kube-system:bob", &["system:serviceaccounts:kube-system"])),
        ("root", user("system:serviceaccount:atoll-root-ke:bob", &[])),
        ("admin", user("admin", &["system:masters", "operators", "system:authenticated"])),
        ("component", user("system:kube-scheduler", &["system:authenticated"])),
        ("odd", user("eve ", &[])),
        ("strange", user("system:serviceaccount:edge-ke:bob", &["system:masters", "system:serviceaccounts:edge-hz"])),
    ];
    Authenticator::new(Arc::new(FakeHost { tokens: tokens.into(), ..FakeHost::default() }))
}

fn known(mapping: &Mapping) -> KnownCallers {
    KnownCallers::new(mapping.cluster().clone())
}

#[tokio::test]
async fn a_certificate_identifies_a_user_of_the_virtual_cluster_only() {
    let caller = authenticator()
        .authenticate(&ke(), &known(&ke()), None, &mut certificate("eve", &["system:masters"]))
        .await
        .unwrap();
    assert_eq!((caller.kind, caller.virtual_name()), (Kind::Certificate, "eve"));
    assert_eq!(caller.host.name(), "vc:ke:eve");
    assert_eq!(caller.host.groups(), ["vc:ke:system:masters", "vc:ke:system:authenticated", "system:authenticated"]);
}

#[tokio::test]
async fn a_recent_caller_is_known_by_all_that_its_certificate_says() {
    let (authenticator, known) = (authenticator(), known(&ke()));
    for (user, group) in [("eve", "a"), ("eve", "a"), ("eve", "b"), ("joe", "b"), ("eve", "a")] {
        let caller = authenticator.authenticate(&ke(), &known, None, &mut certificate(user, &[group])).await.unwrap();
        assert_eq!((caller.virtual_name(), &*caller.host.groups()[0]), (user, &*format!("vc:ke:{group}")));
    }
}

#[tokio::test]
async fn names_in_the_form_of_the_host_get_the_prefix_too() {
    for name in
        ["vc:hz:eve", "vc:ke:eve", "system:serviceaccount:edge-ke:bob", "system:serviceaccount:edge:bob", "host:x"]
    {
        let caller =
            authenticator().authenticate(&ke(), &known(&ke()), None, &mut certificate(name, &[name])).await.unwrap();
        assert_eq!(caller.host.name(), format!("vc:ke:{name}"));
        assert_eq!(caller.host.groups()[0], format!("vc:ke:{name}"));
    }
}

#[tokio::test]
async fn a_service_account_of_the_cluster_is_mapped() {
    let caller = authenticator().authenticate(&ke(), &known(&ke()), None, &mut bearer("account")).await.unwrap();
    assert_eq!((caller.kind, caller.virtual_name()), (Kind::ServiceAccount, "system:serviceaccount:edge:bob"));
    assert_eq!(caller.host.name(), "system:serviceaccount:edge-ke:bob");
    assert_eq!(
        caller.host.groups(),
        [
            "vc:ke:system:serviceaccounts",
            "system:serviceaccounts",
            "system:serviceaccounts:edge-ke",
            "vc:ke:system:authenticated",
            "system:authenticated",
        ]
    );
    assert_eq!(caller.host.uid(), Some("u1"));
    assert_eq!(
        caller.host.extra(),
        [("authentication.kubernetes.io/node-name".to_owned(), vec!["beijing-1".to_owned()])]
    );
}

#[tokio::test]
async fn a_service_account_has_no_other_groups() {
    let caller = authenticator().authenticate(&ke(), &known(&ke()), None, &mut bearer("strange")).await.unwrap();
    let own = ["vc:ke:system:serviceaccounts", "vc:ke:system:authenticated", "system:authenticated"];
    assert_eq!(caller.host.groups(), own);
}

#[tokio::test]
async fn tokens_of_others_are_unauthorized() {
    let taken = HostTokens::new("").unwrap();
    for (token, host_tokens) in [
        ("others", Some(&taken)),
        ("hosts", Some(&taken)),
        ("root", Some(&taken)),
        ("unknown", Some(&taken)),
        ("odd", Some(&taken)),
        ("component", Some(&taken)),
        ("admin", None),
        ("component", None),
    ] {
        let error =
            authenticator().authenticate(&ke(), &known(&ke()), host_tokens, &mut bearer(token)).await.unwrap_err();
        let status = Status::from(&error);
        assert_eq!((status.code, &*status.message), (401, "Unauthorized"), "{token}");
    }
}

#[tokio::test]
async fn users_of_other_tokens_get_a_prefix() {
    for (prefix, name, group) in
        [("sso:", "vc:ke:sso:admin", "vc:ke:sso:operators"), ("", "vc:ke:admin", "vc:ke:operators")]
    {
        let taken = HostTokens::new(prefix).unwrap();
        let caller =
            authenticator().authenticate(&ke(), &known(&ke()), Some(&taken), &mut bearer("admin")).await.unwrap();
        assert_eq!((caller.kind, caller.host.name()), (Kind::Token, name));
        assert_eq!(caller.virtual_name(), format!("{prefix}admin"));
        // Administrators of the host have no rights in a virtual cluster.
        assert_eq!(caller.host.groups(), [group, "vc:ke:system:authenticated", "system:authenticated"]);
        let shown = shown(&ke(), Some(&taken), user("admin", &["system:masters", "operators"])).unwrap();
        let groups = [format!("{prefix}operators"), "system:authenticated".to_owned()];
        assert_eq!((shown.name, &*shown.groups), (format!("{prefix}admin"), &groups[..]));
    }
    assert!(shown(&ke(), None, user("admin", &[])).is_none());
}

#[tokio::test]
async fn certificates_precede_tokens_and_valid_tokens_precede_invalid_ones() {
    let mut both = certificate("eve", &[]);
    both.extend(bearer("unknown"));
    assert_eq!(
        authenticator().authenticate(&ke(), &known(&ke()), None, &mut both).await.unwrap().virtual_name(),
        "eve"
    );
    assert!(both.is_empty());

    let mut two = bearer("unknown");
    // `account`.
    two.insert("sec-websocket-protocol", "x,base64url.bearer.authorization.k8s.io.YWNjb3VudA".parse().unwrap());
    assert_eq!(
        authenticator().authenticate(&ke(), &known(&ke()), None, &mut two).await.unwrap().kind,
        Kind::ServiceAccount
    );
}

#[tokio::test]
async fn a_request_without_credentials_is_anonymous() {
    for mut headers in [HeaderMap::new(), certificate("", &["system:masters"])] {
        let caller = authenticator().authenticate(&ke(), &known(&ke()), None, &mut headers).await.unwrap();
        assert_eq!((caller.kind, caller.virtual_name()), (Kind::Anonymous, "system:anonymous"));
        assert_eq!(caller.host.groups(), ["vc:ke:system:unauthenticated", "system:unauthenticated"]);
        assert!(!caller.is_authenticated());
    }
}

#[tokio::test]
async fn a_missing_answer_is_not_an_invalid_token() {
    let authenticator = Authenticator::new(Arc::new(FakeHost { fails: true, ..FakeHost::default() }));
    let error = authenticator.authenticate(&ke(), &known(&ke()), None, &mut bearer("account")).await.unwrap_err();
    let status = Status::from(&error);
    assert_eq!((status.code, status.retry_after()), (503, Some(1)));
}

/// Invalid tokens wait for each other, and a token that was valid does not wait for them.
#[tokio::test(start_paused = true)]
async fn a_flood_of_invalid_tokens_does_not_delay_a_valid_one() {
    let account = user("system:serviceaccount:edge-ke:app", &["system:serviceaccounts:edge-ke"]);
    // The host answers the first review, and then no more.
    let answers = Semaphore::new(1);
    let fake = Arc::new(FakeHost { tokens: [("valid", account)].into(), answers, ..FakeHost::default() });
    let authn = Arc::new(Authenticator::new(Arc::clone(&fake)));
    let callers = Arc::new(known(&ke()));
    let mut requests = JoinSet::new();
    let mut request = |token: String| {
        let (authn, callers) = (Arc::clone(&authn), Arc::clone(&callers));
        requests.spawn(async move { authn.authenticate(&ke(), &callers, None, &mut bearer(&token)).await.is_ok() });
    };
    request("valid".to_owned());
    // Its answer is no longer cached afterwards.
    sleep(Duration::from_secs(10)).await;
    assert_eq!(fake.questions(), 1);
    (0..1000).for_each(|number| request(format!("invalid {number}")));
    sleep(Duration::from_millis(1)).await;
    assert_eq!(fake.questions(), 2);
    request("valid".to_owned());
    sleep(Duration::from_millis(1)).await;
    assert_eq!(fake.questions(), 3);
}

/// Groups of the host are dropped, except those that all users have, and those of members.
fn is_contained(host: &HostUser) -> bool {
    let is_own = |name: &str| name.starts_with("vc:ke:");
    let is_member = Account::parse(host.name()).is_some_and(|account| account.namespace == "edge-ke");
    let is_harmless = |group: &String| match &**group {
        "system:authenticated" | "system:unauthenticated" => true,
        "system:serviceaccounts" | "system:serviceaccounts:edge-ke" => is_member,
        group => is_own(group),
    };
    (is_own(host.name()) || is_member) && host.groups().iter().all(is_harmless)
}

fn identity() -> impl Strategy<Value = String> {
    prop_oneof![
        "(vc:(ke|hz):|host:|system:)?(masters|serviceaccounts?:)?(edge|edge-ke|edge-hz|kube-system|[a-z]{0,4})?(:[a-z]{0,4})?",
        ".{0,20}",
    ]
}

proptest! {
    #[test]
    fn identities_stay_in_the_virtual_cluster(
        name in identity(),
        groups in proptest::collection::vec(identity(), 0..4),
        prefix in prop_oneof!["", "sso:"],
    ) {
        let mapping = ke();
        let by_certificate = Identity { user: name.clone(), groups: groups.clone(), uid: None, credential: None };
        if let Ok(caller) = proof::of_certificate(&mapping, by_certificate) {
            prop_assert!(caller.host.name().starts_with("vc:ke:"), "{:?}", caller);
            prop_assert!(caller.host.groups().iter().all(|group| group == "system:authenticated" || group.starts_with("vc:ke:")));
            prop_assert_eq!(mapping.seen(caller.host.name()), Seen::Own(name.clone()));
        }
        let token = TokenUser { name: name.clone(), groups: groups.clone(), ..TokenUser::default() };
        let taken = HostTokens::new(prefix).unwrap();
        if let Some(caller) = proof::of_token(&mapping, Some(&taken), &token) {
            let masters = "vc:ke:system:masters".to_owned();
            prop_assert!(!caller.host.groups().contains(&masters), "{:?}", caller);
            prop_assert!(is_contained(&caller.host), "{:?}", caller);
            prop_assert_eq!(mapping.seen(caller.host.name()), Seen::Own(caller.virtual_name().to_owned()));
        }
        if let Ok(host) = HostUser::impersonated(&mapping, &name, &groups, None, Vec::new()) {
            // A group of the cluster's own service accounts belongs to the cluster, for any member.
            let groups = host.groups().iter().filter(|group| *group != "system:serviceaccounts:edge-ke");
            let is_member = Account::parse(host.name()).is_some();
            let others: Vec<_> = groups.filter(|group| !group.starts_with("vc:ke:")).cloned().collect();
            prop_assert!(is_member || host.name().starts_with("vc:ke:"));
            prop_assert!(others.iter().all(|group| matches!(&**group, "system:authenticated" | "system:unauthenticated")
                || is_member && group == "system:serviceaccounts"), "{:?}", host);
            prop_assert_eq!(mapping.seen(host.name()), Seen::Own(name));
        }
    }
}

/// Cached callers depend on the namespace of the service account, and on the host's latest answer.
#[tokio::test(start_paused = true)]
async fn known_callers_follow_their_namespaces() {
    let account = user("system:serviceaccount:edge-ke:app", &["system:serviceaccounts:edge-ke"]);
    let fake = FakeHost { tokens: [("t", account)].into(), ..FakeHost::default() };
    let authn = Authenticator::new(Arc::new(fake));
    let (member, gone) = (ke(), Mapping::new("ke".parse().unwrap(), Arc::default()));
    let callers = known(&member);
    let first = authn.authenticate(&member, &callers, None, &mut bearer("t")).await.unwrap();
    assert_eq!(first.virtual_name(), "system:serviceaccount:edge:app");
    assert_eq!(authn.authenticate(&member, &callers, None, &mut bearer("t")).await.unwrap(), first);
    assert!(matches!(authn.authenticate(&gone, &callers, None, &mut bearer("t")).await, Err(Unauthenticated::Invalid)));
    assert_eq!(authn.authenticate(&member, &callers, None, &mut bearer("t")).await.unwrap(), first);
}

/// Callers of different virtual clusters, and of different certificates, are never confused.
#[tokio::test]
async fn known_callers_are_of_one_cluster_and_one_certificate() {
    let authn = Authenticator::new(Arc::new(FakeHost::default()));
    let hz = Mapping::new("hz".parse().unwrap(), Arc::default());
    // Also if a request brings the callers of another cluster.
    let (of_ke, of_hz) = (known(&ke()), known(&hz));
    for (of_ke, of_hz) in [(&of_ke, &of_hz), (&of_ke, &of_hz), (&of_hz, &of_ke)] {
        for (mapping, name, groups, prefix) in
            [(&ke(), "jane", &["dev"][..], "vc:ke:"), (&hz, "jane", &["dev"], "vc:hz:"), (&ke(), "jane", &[], "vc:ke:")]
        {
            let callers = if mapping.cluster() == hz.cluster() { of_hz } else { of_ke };
            let caller = authn.authenticate(mapping, callers, None, &mut certificate(name, groups)).await.unwrap();
            assert_eq!(caller.host.name(), format!("{prefix}jane"));
            assert_eq!(caller.host.groups().contains(&format!("{prefix}dev")), !groups.is_empty());
            let mut headers = HeaderMap::new();
            caller.host.write(&mut headers);
            assert_eq!(headers["impersonate-user"], format!("{prefix}jane"));
            assert_eq!(headers.get_all("impersonate-group").iter().count(), caller.host.groups().len());
        }
    }
}
