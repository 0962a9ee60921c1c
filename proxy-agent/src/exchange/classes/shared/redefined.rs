//! A change of a definition waits until the agent has counted the objects that exist by then.
//!
//! A definition decides what the host shows of its objects, and the agent counts what the host shows. With two changes in quick
//! succession, a client could store objects that the agent never sees as a whole, and so exceed the shares of its virtual cluster.

use std::time::Duration;

use kube_wire::Verb;
use kube_wire::gvr::GroupResource;
use kube_wire::status::TryAgain;
use tokio::time::{Instant, sleep};

use crate::exchange::call::Call;
use crate::exchange::undecided::Undecided;
use crate::refusal::Refusal;
use virtual_cluster::shared::{HostObject, Kind, Revision};

/// The time that a request waits for the agent.
const WAIT: Duration = Duration::from_secs(10);
/// The interval of checks.
const CHECK: Duration = Duration::from_millis(100);
/// If discovery still lacks the resource this long after the change, the host does not serve it, and there is nothing to count.
const UNSERVED: Duration = Duration::from_secs(5);
/// After this time, a change no longer waits: the list keeps failing.
const ABANDONED: Duration = Duration::from_secs(600);

/// If the request can change a definition, waits until the agent has counted its objects. It normally takes few seconds, so a client
/// need not try again. The request must not hold anything that others wait for.
pub(crate) async fn wait_until_counted(call: &Call<'_>) {
    let Some(name) = changed_definition(call) else { return };
    let until = Instant::now() + WAIT;
    while Instant::now() < until {
        let storage = call.services.definitions.storage(name);
        if storage.is_none_or(|storage| is_counted(call, name, &storage.revision)) {
            return;
        }
        call.outside(sleep(CHECK)).await;
    }
}

/// The name of the definition that the request can change, if the virtual cluster has it.
fn changed_definition<'a>(call: &'a Call<'_>) -> Option<&'a str> {
    let request = call.api.info.resource()?;
    let changes = matches!(request.verb(), Verb::Update | Verb::Patch) && request.subresource().is_none();
    let is_definition = changes && Kind::of(request.group_resource()) == Some(Kind::CustomResourceDefinition);
    let name = request.name().filter(|_| is_definition)?;
    let (resource, group) = name.split_once('.')?;
    let hidden = call.services.definitions.hide(GroupResource { group, resource }, call.api.cluster.name.as_str());
    (!hidden).then_some(name)
}

/// Refuses a change of this definition if the agent has not counted its objects.
pub(super) fn check(call: &Undecided<'_>, definition: &HostObject) -> Result<(), Refusal> {
    if is_counted(call, definition.text("name"), &Revision::of(definition.metadata())) {
        return Ok(());
    }
    let message = "the agent is still counting the objects of this definition: try again";
    Err(TryAgain::TooManyRequests(message).after(1).into())
}

fn is_counted(call: &Call<'_>, name: &str, revision: &Revision) -> bool {
    if call.services.usage.is_counted(name, revision) {
        return true;
    }
    let storage = call.services.definitions.storage(name).filter(|storage| storage.revision == *revision);
    storage.is_some_and(|storage| {
        let age = storage.revised_at.elapsed();
        age > ABANDONED || (age > UNSERVED && !call.services.discovery.serves(name))
    })
}
