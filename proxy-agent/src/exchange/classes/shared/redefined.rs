//! A change of a definition waits until the agent has counted the objects that exist by then.
//!
//! A definition decides what the host shows of its objects, and the agent counts what the host shows. With two changes in quick
//! succession, a client could store objects that the agent never sees as a whole, and so exceed the shares of its virtual cluster.

use std::time::Duration;

use kube_wire::status::TryAgain;
use tokio::time::{Instant, sleep};

use crate::exchange::undecided::Undecided;
use crate::refusal::Refusal;
use virtual_cluster::shared::{HostObject, Revision};

/// The time that a request waits for the agent.
const WAIT: Duration = Duration::from_secs(10);
/// The interval of checks.
const CHECK: Duration = Duration::from_millis(100);
/// After this time, a change no longer waits: the host may never serve the objects of the definition.
const ABANDONED: Duration = Duration::from_secs(60);

/// Waits until the agent has counted the objects of this definition. It does not take long, so a client need not try again.
pub(super) async fn wait(call: &Undecided<'_>, name: &str) {
    let until = Instant::now() + WAIT;
    while Instant::now() < until {
        let storage = call.services.definitions.storage(name);
        if storage.is_none_or(|storage| is_counted(call, name, &storage.revision)) {
            return;
        }
        call.outside(sleep(CHECK)).await;
    }
}

/// Refuses a change of this definition if the agent has not counted its objects.
pub(super) fn check(call: &Undecided<'_>, definition: &HostObject) -> Result<(), Refusal> {
    if is_counted(call, definition.text("name"), &Revision::of(definition.metadata())) {
        return Ok(());
    }
    let message = "the agent still counts the objects of this definition after its last change: try again";
    Err(TryAgain::TooManyRequests(message).after(1).into())
}

fn is_counted(call: &Undecided<'_>, name: &str, revision: &Revision) -> bool {
    let storage = call.services.definitions.storage(name).filter(|storage| storage.revision == *revision);
    let is_abandoned = storage.is_some_and(|storage| storage.since.elapsed() > ABANDONED);
    is_abandoned || call.services.usage.is_counted(name, revision)
}
