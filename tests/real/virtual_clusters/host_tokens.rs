//! Tokens of host users that are not service accounts.

use anyhow::{Context, ensure};
use atoll_tests::{Curl, HostCluster, Nodes, Route, VirtualSite};
use serde_json::{Value, json};

use super::{BEIJING, HANGZHOU};

/// Users with tokens of `tests/kube/up`. They are administrators of the host, or have names of system components.
const OPERATOR: &str = "operator";
const COMPONENT: &str = "system:component";

const NAMESPACES: &str = "/api/v1/namespaces";

/// curl with only this token.
fn holder(site: &VirtualSite, cluster: &str, user: &str) -> anyhow::Result<Curl> {
    let token = site.host().token_of(user)?;
    Ok(site.curl(cluster, Route::Proxy)?.anonymous().with_token(&token))
}

/// The result of a TokenReview by an administrator of the cluster.
fn reviewed(site: &VirtualSite, cluster: &str, user: &str) -> anyhow::Result<Value> {
    let token = site.host().token_of(user)?;
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}});
    let path = "/apis/authentication.k8s.io/v1/tokenreviews";
    let response = site.curl(cluster, Route::Proxy)?.send("POST", path, &review.to_string())?;
    ensure!(response.code == 201, "{response:?}");
    Ok(response.json()?["status"].take())
}

pub(super) fn are_refused(site: &VirtualSite) -> anyhow::Result<()> {
    for user in [OPERATOR, COMPONENT] {
        holder(site, BEIJING, user)?.get(NAMESPACES)?.refused(401, "Unauthorized", "Unauthorized")?;
        let status = reviewed(site, BEIJING, user)?;
        ensure!(status == json!({"user": {}, "error": "invalid bearer token"}), "{user}: {status}");
    }
    Ok(())
}

pub(super) fn are_told_apart_where_they_are_taken() -> anyhow::Result<()> {
    let hangzhou = Nodes::Location("hangzhou").entry(HANGZHOU);
    let hangzhou = hangzhou.strip_suffix('}').context("no entry")?;
    let hangzhou = format!("{hangzhou}, hostTokens: {{prefix: \"sso:\"}}}}");
    let host = HostCluster::up(1)?;
    let clusters = [(BEIJING, Nodes::Location("beijing").entry(BEIJING)), (HANGZHOU, hangzhou)];
    let site = VirtualSite::configured(host, &clusters, "")?;
    are_refused(&site)?;
    let operator = holder(&site, HANGZHOU, OPERATOR)?;
    let why = r#"User "sso:operator" cannot list resource "namespaces""#;
    operator.get(NAMESPACES)?.refused(403, "Forbidden", why)?;
    holder(&site, HANGZHOU, COMPONENT)?.get(NAMESPACES)?.refused(401, "Unauthorized", "Unauthorized")?;

    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}).to_string();
    let own = operator.send("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", &review)?.json()?;
    let groups = json!(["sso:operators", "system:authenticated"]);
    for user in [&own["status"]["userInfo"], &reviewed(&site, HANGZHOU, OPERATOR)?["user"]] {
        ensure!(user["username"] == "sso:operator" && user["groups"] == groups, "{user}");
    }

    // The user of a certificate with the same name is another user.
    let admin = site.administrator(HANGZHOU, Route::Proxy)?;
    let view = ["create", "clusterrolebinding", "operators", "--clusterrole=cluster-admin"];
    admin.ok(&[&view[..], &["--user=operator", "--group=operators"]].concat())?;
    ensure!(site.user(HANGZHOU, "operator")?.ok(&["get", "namespaces", "-o", "name"])?.contains("namespace/default"));
    operator.get(NAMESPACES)?.refused(403, "Forbidden", why)?;
    admin.ok(&["delete", "clusterrolebinding", "operators"])?;
    admin.ok(&[&view[..], &["--group=sso:operators"]].concat())?;
    let listed = operator.get(NAMESPACES)?;
    ensure!(listed.code == 200, "{listed:?}");
    Ok(())
}
