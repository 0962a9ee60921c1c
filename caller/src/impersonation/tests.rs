use std::collections::BTreeMap;
use std::sync::Arc;

use http::header::{HeaderMap, HeaderName};
use kube_wire::Status;
use proptest::prelude::*;
use protocol::identity::Identity;

use super::*;
use crate::authn::{Authenticator, KnownCallers};
use crate::authz::Authorizer;
use crate::identity::{Caller, HostUser};
use crate::testing::{FakeHost, ke};

fn headers(lines: &[(&str, &str)]) -> HeaderMap {
    lines.iter().map(|(name, value)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap())).collect()
}

async fn admin() -> Caller {
    let mut headers = HeaderMap::new();
    Identity { user: "admin".into(), groups: Vec::new(), uid: None, credential: None }.write(&mut headers);
    Authenticator::new(Arc::new(FakeHost::default()))
        .authenticate(&ke(), &KnownCallers::new(ke().cluster().clone()), None, &mut headers)
        .await
        .unwrap()
}

async fn acting(allowed: &[&str], lines: &[(&str, &str)]) -> Result<Caller, Status> {
    let allowed: Vec<String> = allowed.iter().map(|what| format!("vc:ke:admin: impersonate {what}")).collect();
    let allowed: Vec<&str> = allowed.iter().map(String::as_str).collect();
    let mut headers = headers(lines);
    let acting = acting_as(&Authorizer::new(FakeHost::allowing(&allowed)), &ke(), admin().await, &mut headers).await;
    assert!(!headers.keys().any(|name| name.as_str().starts_with("impersonate-")));
    acting.map_err(Status::from)
}

#[tokio::test]
async fn without_headers_the_caller_is_unchanged() {
    assert_eq!(acting(&[], &[("accept", "*/*"), ("impersonate-user", "")]).await.unwrap(), admin().await);
}

#[tokio::test]
async fn system_masters_is_a_group_of_the_virtual_cluster() {
    let caller = acting(
        &["users./ system:admin in atoll-root-ke", "groups./ system:masters in atoll-root-ke"],
        &[("Impersonate-User", "system:admin"), ("Impersonate-Group", "system:masters")],
    );
    let caller = caller.await.unwrap();
    assert_eq!(caller.virtual_name(), "system:admin");
    assert_eq!(caller.host.name(), "vc:ke:system:admin");
    assert_eq!(caller.host.groups(), ["vc:ke:system:masters", "vc:ke:system:authenticated", "system:authenticated"]);
    assert!(caller.is_authenticated());
}

#[tokio::test]
async fn every_part_must_be_allowed() {
    let all = [
        ("users./ eve in atoll-root-ke", ("impersonate-user", "eve")),
        ("uids.authentication.k8s.io/ u1 in atoll-root-ke", ("impersonate-uid", "u1")),
        ("groups./ a in atoll-root-ke", ("impersonate-group", "a")),
        ("groups./ b in atoll-root-ke", ("impersonate-group", "b")),
        ("userextras.authentication.k8s.io/scopes/x v in atoll-root-ke", ("impersonate-extra-scopes%2fx", "v")),
    ];
    let (questions, lines): (Vec<_>, Vec<_>) = all.into_iter().unzip();
    let caller = acting(&questions, &lines).await.unwrap();
    assert_eq!(caller.host.uid(), Some("u1"));
    assert_eq!(caller.host.extra(), [("scopes/x".to_owned(), vec!["v".to_owned()])]);
    for missing in 0..questions.len() {
        let mut some = questions.clone();
        some.remove(missing);
        assert_eq!(acting(&some, &lines).await.unwrap_err().code, 403, "{}", questions[missing]);
    }
}

#[tokio::test]
async fn a_denial_names_the_missing_right() {
    let status = acting(&[], &[("impersonate-user", "eve")]).await.unwrap_err();
    let sentence = r#"users "eve" is forbidden: User "admin" cannot impersonate resource "users" in API group """#;
    assert_eq!(status.message, format!("{sentence} at the cluster scope"));
    let status = acting(&[], &[("impersonate-user", "system:serviceaccount:edge:bob")]).await.unwrap_err();
    let sentence =
        r#"User "admin" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "edge""#;
    assert_eq!(status.message, format!(r#"serviceaccounts "bob" is forbidden: {sentence}"#));
}

#[tokio::test]
async fn a_service_account_is_checked_in_its_namespace_and_has_its_groups() {
    let allowed = ["serviceaccounts./ bob in edge-ke"];
    let caller = acting(&allowed, &[("impersonate-user", "system:serviceaccount:edge:bob")]).await.unwrap();
    assert_eq!(caller.virtual_name(), "system:serviceaccount:edge:bob");
    assert_eq!(caller.host.name(), "system:serviceaccount:edge-ke:bob");
    assert_eq!(
        caller.host.groups(),
        [
            "vc:ke:system:serviceaccounts",
            "system:serviceaccounts:edge-ke",
            "vc:ke:system:authenticated",
            "system:authenticated",
            "system:serviceaccounts",
        ]
    );
}

#[tokio::test]
async fn a_service_account_of_another_cluster_is_refused() {
    for namespace in ["edge-ke", "kube-system", "elsewhere", "atoll-root", "edge-hz"] {
        let name = format!("system:serviceaccount:{namespace}:bob");
        let allowed: Vec<_> = ["atoll-root-ke", "edge-ke", "edge-hz", "kube-system"]
            .map(|place| format!("serviceaccounts./ bob in {place}"))
            .into();
        let allowed: Vec<_> = allowed.iter().map(String::as_str).collect();
        let status = acting(&allowed, &[("impersonate-user", &name)]).await.unwrap_err();
        assert_eq!(status.code, 403, "{namespace}");
    }
}

#[tokio::test]
async fn implied_groups_are_those_of_an_api_server() {
    let users = ["users./ eve in atoll-root-ke", "users./ system:anonymous in atoll-root-ke"];
    let groups = ["groups./ system:unauthenticated in atoll-root-ke", "groups./ system:authenticated in atoll-root-ke"];
    let allowed = [users, groups].concat();
    for (user, group, expected) in [
        ("eve", None, "system:authenticated"),
        ("eve", Some("system:authenticated"), "system:authenticated"),
        ("eve", Some("system:unauthenticated"), "system:unauthenticated"),
        ("system:anonymous", None, "system:unauthenticated"),
    ] {
        let mut lines = vec![("impersonate-user", user)];
        lines.extend(group.map(|group| ("impersonate-group", group)));
        let caller = acting(&allowed, &lines).await.unwrap();
        assert_eq!(caller.host.groups(), [format!("vc:ke:{expected}"), expected.to_owned()], "{user} {group:?}");
    }
}

#[test]
fn parts_without_a_user_are_a_bad_request() {
    for lines in [
        &[("impersonate-group", "a")][..],
        &[("impersonate-uid", "a")],
        &[("impersonate-extra-a", "b")],
        &[("impersonate-user", ""), ("impersonate-group", "")],
    ] {
        assert_eq!(Requested::parse(&headers(lines)), Err(BadRequest::NoUser), "{lines:?}");
    }
    assert_eq!(Requested::parse(&HeaderMap::new()), Ok(None));
    let mut many = vec![("impersonate-group", "a"); 257];
    many.push(("impersonate-user", "eve"));
    assert_eq!(Requested::parse(&headers(&many)), Err(BadRequest::TooMany));
}

#[test]
fn invalid_encoding_in_keys_is_kept() {
    let lines = [("impersonate-user", "eve"), ("impersonate-extra-a%", "1"), ("impersonate-extra-a%zz", "2")];
    let requested = Requested::parse(&headers(&lines)).unwrap().unwrap();
    let keys: Vec<_> = requested.extra.keys().map(String::as_str).collect();
    assert_eq!(keys, ["a%", "a%zz"]);
}

#[tokio::test]
async fn identity_headers_of_clients_are_removed() {
    let mut headers = headers(&[
        ("Impersonate-User", "system:admin"),
        ("Impersonate-Extra-X", "y"),
        ("Impersonate-Whatever-Comes", "y"),
        ("X-Remote-User", "system:admin"),
        ("X-Remote-Extra-A", "b"),
        ("Connection", "Impersonate-User, x-secret, Upgrade"),
        ("Upgrade", "websocket"),
        ("x-secret", "1"),
        ("accept", "*/*"),
    ]);
    admin().await.host.write(&mut headers);
    let mut left: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
    left.sort_unstable();
    assert_eq!(left, ["accept", "impersonate-group", "impersonate-user", "upgrade"]);
    assert_eq!(headers["impersonate-user"], "vc:ke:admin");
}

proptest! {
    #[test]
    fn written_headers_are_parsed_back(
        name in "[!-~é]{1,20}",
        groups in proptest::collection::vec("[!-~é]([ -~é]{0,10}[!-~é])?", 0..4),
        uid in proptest::option::of("[!-~]{1,20}"),
        extra in proptest::collection::btree_map(
            ".{0,12}",
            proptest::collection::vec("([!-~é]([ -~é]{0,10}[!-~é])?)?", 1..3),
            0..4,
        ),
    ) {
        let as_list: Vec<(String, Vec<String>)> = extra.clone().into_iter().collect();
        let user = HostUser::impersonated(&ke(), &name, &groups, uid.clone(), as_list).unwrap();
        let mut headers = HeaderMap::new();
        user.write(&mut headers);
        let read = Requested::parse(&headers).unwrap().unwrap();
        prop_assert_eq!(read.user, user.name());
        prop_assert_eq!(read.groups, user.groups());
        prop_assert_eq!(read.uid, uid);
        prop_assert_eq!(read.extra, extra);
    }

    #[test]
    fn names_that_headers_cannot_contain_are_refused(name in "[ -~]{0,5}[ \t\n\u{0}]", key in "[a-z]{0,4}") {
        let mapping = ke();
        let made = |name: &str, groups: &[String], uid: Option<String>, extra| {
            HostUser::impersonated(&mapping, name, groups, uid, extra)
        };
        prop_assert!(made(&name, &[], None, Vec::new()).is_err());
        prop_assert!(made("eve", std::slice::from_ref(&name), None, Vec::new()).is_err());
        prop_assert!(made("eve", &[], Some(name.clone()), Vec::new()).is_err());
        prop_assert!(made("eve", &[], None, vec![(key, vec![name])]).is_err());
    }

    #[test]
    fn no_headers_of_a_client_make_the_parser_panic(
        lines in proptest::collection::vec(("impersonate-(user|group|uid|extra-[a-z%0-9]{0,8})", "[ -~]{0,10}"), 0..6),
    ) {
        let mut headers = HeaderMap::new();
        for (name, value) in &lines {
            headers.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        if let Ok(Some(Requested { user, extra, .. })) = Requested::parse(&headers) {
            prop_assert!(!user.is_empty());
            prop_assert!(BTreeMap::len(&extra) <= lines.len());
        }
    }
}
