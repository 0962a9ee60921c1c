//! Many requests that are ordinary one by one: a noisy neighbour.

use serde_json::json;

use super::paths::JSON;
use super::streams::create_large;
use crate::attack::Attack;
use crate::site::AttackSite;
use crate::traffic::{CONFIG_MAPS, Credential, NUMBER, RequestTemplate, Traffic};

const MANY: &str = "/api/v1/namespaces/many/configmaps";
const MANY_IN_PROTOBUF: &str = "/api/v1/namespaces/many-in-protobuf/configmaps";
const LONG: &str = "/api/v1/namespaces/long-lists/configmaps";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

pub(super) static ATTACKS: &[Attack] = &[
    Attack::flood("flood-of-lists", "200 lists/s of 200 ConfigMaps", || {
        Traffic::Requests(200, vec![RequestTemplate::new(Credential::Admin, "GET", MANY)])
    })
    .after(many_objects),
    // The agent holds such a list in memory.
    Attack::flood("flood-of-protobuf-lists", "200 lists/s of 200 ConfigMaps in protobuf", || {
        let sent = RequestTemplate::new(Credential::Admin, "GET", MANY_IN_PROTOBUF);
        Traffic::Requests(200, vec![sent.accepting("application/vnd.kubernetes.protobuf")])
    })
    .after(many_objects_for_protobuf),
    Attack::flood("flood-of-creates", "200 ConfigMaps/s that are created", || {
        let object = json!({"metadata": {"name": format!("created-{NUMBER}")}, "data": {"a": "b"}}).to_string();
        Traffic::Requests(200, vec![RequestTemplate::new(Credential::Admin, "POST", CONFIG_MAPS).with(JSON, object)])
    }),
    Attack::flood("flood-of-watches", "200 watches/s that stay open", || Traffic::Held {
        rate: 200,
        window: 65_535,
        sent: RequestTemplate::new(Credential::Admin, "GET", &format!("{CONFIG_MAPS}?watch=1")),
    }),
    Attack::flood("flood-of-tokens", "200 invalid tokens/s, a new one each time", || {
        Traffic::Requests(200, vec![RequestTemplate::new(Credential::InvalidToken, "GET", CONFIG_MAPS)])
    }),
    Attack::flood("flood-of-reviews", "200 reviews/s, each of another right", || {
        let attributes = json!({"verb": "get", "resource": "pods", "namespace": "default", "name": NUMBER});
        let review = json!({"spec": {"resourceAttributes": attributes}}).to_string();
        Traffic::Requests(200, vec![RequestTemplate::new(Credential::Admin, "POST", REVIEWS).with(JSON, review)])
    }),
    Attack::flood("flood-of-unread-lists", "10 lists/s of 12 MB that nobody reads, 100 in total", || Traffic::Held {
        rate: 10,
        window: 65_535,
        sent: RequestTemplate::new(Credential::Admin, "GET", LONG),
    })
    .after(long_list),
];

fn many_objects(site: &AttackSite) -> anyhow::Result<()> {
    create_many(site, "many", MANY)
}

fn many_objects_for_protobuf(site: &AttackSite) -> anyhow::Result<()> {
    create_many(site, "many-in-protobuf", MANY_IN_PROTOBUF)
}

fn create_many(site: &AttackSite, namespace: &str, path: &str) -> anyhow::Result<()> {
    site.admin.ok(&["create", "namespace", namespace])?;
    site.create_all(path, 200, &json!({"metadata": {"name": "many"}, "data": {"text": "x".repeat(1_000)}}))
}

fn long_list(site: &AttackSite) -> anyhow::Result<()> {
    create_large(site, "long-lists", 13)
}
