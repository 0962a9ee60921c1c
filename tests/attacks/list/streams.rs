//! Requests that never end, and responses that nobody reads.

use serde_json::{Value, json};

use super::paths::JSON;
use super::repeat::texts;
use crate::attack::Attack;
use crate::site::AttackSite;
use crate::traffic::{CONFIG_MAPS, Credential, RequestTemplate, Traffic, VERSION};

const WATCHED: &str = "/api/v1/namespaces/watched/configmaps";
const LONG: &str = "/api/v1/namespaces/long/configmaps";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";

/// The number of bytes that a stream may receive before the client reads.
const WINDOW: u32 = 65_535;

pub(super) static ATTACKS: &[Attack] = &[
    Attack::new("heads-of-strangers", "1,000 POSTs/s without credentials, whose bodies never come", || {
        held(1000, WINDOW, post(Credential::None, ""))
    }),
    Attack::new("heads-of-admin", "250 POSTs/s of an administrator, whose bodies never come", || {
        held(250, WINDOW, post(Credential::Admin, ""))
    }),
    Attack::new("uploads-of-strangers", "10 bodies/s of 3 MB with invalid tokens", || {
        held(10, WINDOW, post(Credential::InvalidToken, &" ".repeat(3_000_000)))
    }),
    Attack::new("uploads-of-admin", "10 bodies/s of 3 MB of an administrator, which never end", || {
        held(10, WINDOW, post(Credential::Admin, &" ".repeat(3_000_000)))
    }),
    Attack::new("silent-connections", "100 connections/s without a request", || Traffic::Connections {
        rate: 100,
        keep_open: true,
    }),
    Attack::new("brief-connections", "50 connections/s that end at once", || Traffic::Connections {
        rate: 50,
        keep_open: false,
    }),
    Attack::new("handshakes", "400 connections/s that end at once, half of them after a TLS handshake", || {
        Traffic::Connections { rate: 400, keep_open: false }
    }),
    Attack::new("selectors", "50 lists/s of ClusterRoles by selectors of 1,000 and of 8,000 requirements", || {
        let list = |count| format!("{ROLES}?labelSelector={}", texts("!k", count).join(","));
        Traffic::Requests(
            50,
            [1000, 8000].map(|count| RequestTemplate::new(Credential::Admin, "GET", &list(count))).into(),
        )
    }),
    Attack::new("reads-of-large-objects", "50 reads/s of an object of 1.2 MB", || {
        Traffic::Requests(50, vec![RequestTemplate::new(Credential::Admin, "GET", &format!("{CONFIG_MAPS}/large"))])
    })
    .after(large),
    Attack::new("resets", "1,000 requests/s that the client resets at once", || Traffic::Resets(1000)),
    Attack::new("unread-protobuf", "2 lists/s of 27 MB in protobuf that nobody reads", || {
        held(
            2,
            0,
            RequestTemplate::new(Credential::Admin, "GET", LONG).accepting("application/vnd.kubernetes.protobuf"),
        )
    })
    .after(long_list),
    Attack::new("unread-json", "20 lists/s of 27 MB in JSON that nobody reads", || {
        held(20, 0, RequestTemplate::new(Credential::Admin, "GET", LONG))
    })
    .after(long_list),
    Attack::new("unread-watches", "20 watches/s of 27 MB that nobody reads", || {
        held(20, 0, RequestTemplate::new(Credential::Admin, "GET", &format!("{LONG}?watch=1")))
    })
    .after(long_list),
    Attack::new("long-heads", "200 lists/s of 27 MB that nobody reads, with selectors of 20 KB", || {
        let selector = vec!["a!=b"; 4_000].join(",");
        held(200, 0, RequestTemplate::new(Credential::Admin, "GET", &format!("{LONG}?labelSelector={selector}")))
    })
    .after(long_list),
    Attack::new(
        "watches-of-large-objects",
        "200 watches/s from the latest version that nobody reads, up to 1,000, and 2 changes/s of 1 MB that they see",
        || {
            let watch =
                RequestTemplate::new(Credential::User, "GET", &format!("{WATCHED}?watch=1&resourceVersion={VERSION}"));
            // An update with the same content would be no change.
            let changes = ["x", "y"].map(|text| {
                let object = watched_object(&text.repeat(1_000_000)).to_string();
                RequestTemplate::new(Credential::Admin, "PUT", &format!("{WATCHED}/watched")).with(JSON, object)
            });
            Traffic::Watched { rate: 200, max_watches: 1000, watch, changes: (2, changes.into()) }
        },
    )
    .after(watched),
];

fn held(rate: u32, window: u32, sent: RequestTemplate) -> Traffic {
    Traffic::Held { rate, window, sent }
}

fn post(credential: Credential, body: &str) -> RequestTemplate {
    RequestTemplate::new(credential, "POST", CONFIG_MAPS).with(JSON, body.to_owned())
}

/// Creates objects whose list is almost as long as the longest list that the agent sends in protobuf.
fn long_list(site: &AttackSite) -> anyhow::Result<()> {
    create_large(site, "long", 28)
}

/// Creates a namespace with ConfigMaps of 0.95 MB.
pub(super) fn create_large(site: &AttackSite, namespace: &str, count: usize) -> anyhow::Result<()> {
    site.admin.ok(&["create", "namespace", namespace])?;
    let path = format!("/api/v1/namespaces/{namespace}/configmaps");
    let text = "x".repeat(950_000);
    site.create_all(&path, count, &json!({"metadata": {"name": "long"}, "data": {"text": text}}))
}

/// Creates a ConfigMap of almost the maximum size: 1 MiB of data, and 256 KiB of annotations.
fn large(site: &AttackSite) -> anyhow::Result<()> {
    let metadata = json!({"name": "large", "annotations": {"text": "x".repeat(200_000)}});
    site.create(CONFIG_MAPS, &json!({"metadata": metadata, "data": {"text": "x".repeat(1_000_000)}}))
}

/// Creates the object that the user watches.
fn watched(site: &AttackSite) -> anyhow::Result<()> {
    site.admin.ok(&["create", "namespace", "watched"])?;
    site.create(WATCHED, &watched_object(""))?;
    site.bind_user("view")
}

fn watched_object(text: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "watched"}, "data": {"text": text}})
}
