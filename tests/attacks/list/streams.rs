//! Connections and streams that are never finished, or never read.

use serde_json::json;

use super::{Attack, CONFIG_MAPS, JSON, Sent, Traffic, Who, texts};
use crate::stage::Stage;

const LONG: &str = "/api/v1/namespaces/long/configmaps";

/// What a stream may receive before anything is read.
const WINDOW: u32 = 65_535;

pub(super) static ATTACKS: &[Attack] = &[
    Attack::new("heads-of-strangers", "1,000 POSTs/s without credentials, whose bodies never come", || {
        held(1000, WINDOW, post(Who::Nobody, ""))
    }),
    Attack::new("heads-of-admin", "250 POSTs/s of an administrator, whose bodies never come", || {
        held(250, WINDOW, post(Who::Admin, ""))
    }),
    Attack::new("uploads-of-strangers", "10 bodies/s of 3 MB with tokens that are none", || {
        held(10, WINDOW, post(Who::Token, &" ".repeat(3_000_000)))
    }),
    Attack::new("uploads-of-admin", "10 bodies/s of 3 MB of an administrator that never end", || {
        held(10, WINDOW, post(Who::Admin, &" ".repeat(3_000_000)))
    }),
    Attack::new("tokens", "100 tokens/s that are none, another one each time", || {
        Traffic::Requests(100, vec![Sent::new(Who::Token, "GET", CONFIG_MAPS)])
    }),
    Attack::new("silent-connections", "100 connections/s on which nothing is asked", || Traffic::Connections {
        rate: 100,
        kept: true,
    }),
    Attack::new("brief-connections", "50 connections/s that end at once", || Traffic::Connections {
        rate: 50,
        kept: false,
    }),
    Attack::new("resets", "1,000 requests/s that are reset at once", || Traffic::Resets(1000)),
    Attack::new("unread-protobuf", "2 lists/s of 27 MB in protobuf that nobody reads", || {
        held(2, 0, Sent::new(Who::Admin, "GET", LONG).accepting("application/vnd.kubernetes.protobuf"))
    })
    .after(long_list),
    Attack::new("unread-json", "20 lists/s of 27 MB in JSON that nobody reads", || {
        held(20, 0, Sent::new(Who::Admin, "GET", LONG))
    })
    .after(long_list),
    Attack::new("unread-watches", "20 watches/s of 27 MB that nobody reads", || {
        held(20, 0, Sent::new(Who::Admin, "GET", &format!("{LONG}?watch=1")))
    })
    .after(long_list),
];

fn held(rate: u32, window: u32, sent: Sent) -> Traffic {
    Traffic::Held { rate, window, sent }
}

fn post(who: Who, body: &str) -> Sent {
    Sent::new(who, "POST", CONFIG_MAPS).with(JSON, body.to_owned())
}

/// Together not much less than the longest list that is sent in protobuf.
fn long_list(stage: &Stage) -> anyhow::Result<()> {
    stage.admin.ok(&["create", "namespace", "long"])?;
    let text = "x".repeat(950_000);
    texts("long-", 28)
        .iter()
        .try_for_each(|name| stage.create(LONG, &json!({"metadata": {"name": name}, "data": {"text": text}})))
}
