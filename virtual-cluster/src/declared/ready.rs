//! Whether a declared virtual cluster is ready, and why not.

use super::accept::Verdict;
use super::facts::{Facts, Reach};
use super::spec::DeletionPolicy;
use crate::provisioner::ProvisionState;

/// The largest message of a condition, in characters. Reasons can contain messages of the host, which can be long.
pub const MAX_MESSAGE: usize = 1024;

/// Whether clients can use a virtual cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Whether they can.
    pub is_ready: bool,
    /// For programs.
    pub reason: &'static str,
    /// For people.
    pub message: String,
    /// Whether another replica of the agent can see more. Then this does not replace what that replica has written.
    pub is_preliminary: bool,
}

// === impl Ready ===

impl Ready {
    fn not(reason: &'static str, message: impl Into<String>) -> Self {
        let message = message.into().chars().take(MAX_MESSAGE).collect();
        Self { is_ready: false, reason, message, is_preliminary: false }
    }

    fn preliminary(self) -> Self {
        Self { is_preliminary: true, ..self }
    }
}

/// Whether the cluster of an object is ready. `facts` is `None` if it is not served.
pub fn ready(verdict: &Verdict, facts: Option<&Facts>) -> Ready {
    match (verdict, facts) {
        (Verdict::Invalid { reason, is_served: true }, _) => Ready::not(
            "Invalid",
            format!(
                "{reason}. Until it is valid again, or the agent restarts, the previous specification stays in force"
            ),
        ),
        (Verdict::Invalid { reason, .. }, _) => Ready::not("Invalid", reason.to_string()),
        (Verdict::Conflict(reason), _) => Ready::not("NameConflict", reason.to_string()),
        (Verdict::Ending(DeletionPolicy::Delete), _) => {
            Ready::not("Deleting", "its namespaces on the host are being deleted")
        }
        (Verdict::Ending(DeletionPolicy::Orphan) | Verdict::Yielding, _) => {
            Ready::not("Deleting", "its namespaces stay on the host")
        }
        (Verdict::Unclaimed, _) => Ready::not("Pending", "no agent serves it yet").preliminary(),
        (Verdict::Served, None) => Ready::not("Pending", "the agent begins to serve it").preliminary(),
        (Verdict::Served, Some(facts)) => served(facts),
    }
}

/// The same for one that is served.
fn served(facts: &Facts) -> Ready {
    match &facts.provisioned {
        ProvisionState::Pending => {
            return Ready::not("Pending", "its namespaces on the host have not been checked yet").preliminary();
        }
        ProvisionState::Failed(reason) => return Ready::not("ProvisioningFailed", reason.to_string()),
        ProvisionState::Provisioned => {}
    }
    if let Some(reason) = &facts.not_admitted {
        return Ready::not("PoliciesNotInForce", reason.clone());
    }
    let refused = match &facts.reach {
        Reach::Nowhere(reason) => {
            let message = format!("the agent has no tunnel to a proxy-server: {reason}");
            return Ready::not("NoTunnel", message).preliminary();
        }
        Reach::Refused(reason) => {
            return Ready::not("RefusedByProxyServer", format!("the proxy-server refuses it: {reason}"));
        }
        Reach::Served { refused } => refused,
    };
    let mut message = vec!["clients can use it".to_owned()];
    match &facts.node_label_failure {
        // A node that matches may lack the label.
        Some(failure) => message.push(failure.to_string()),
        None if facts.nodes == 0 => {
            message.push(format!("no node of the host matches {}, so its pods stay Pending", facts.node_selector));
        }
        None => {}
    }
    message.extend(refused.iter().map(|reason| format!("one of the proxy-servers refuses it: {reason}")));
    message.extend(facts.weakness.clone());
    let message = message.join("; ").chars().take(MAX_MESSAGE).collect();
    Ready { is_ready: true, reason: "Serving", message, is_preliminary: false }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// A change, and the reason, a part of the message, and whether it is preliminary.
    type Case = (fn(&mut Facts), &'static str, &'static str, bool);

    fn facts() -> Facts {
        Facts {
            provisioned: ProvisionState::Provisioned,
            not_admitted: None,
            weakness: None,
            reach: Reach::Served { refused: None },
            endpoint: None,
            node_selector: "location=beijing".to_owned(),
            node_label_failure: None,
            nodes: 2,
            namespaces: 4,
            shared_with: BTreeMap::new(),
            last_error: None,
            kubeconfig: None,
        }
    }

    #[test]
    fn the_first_obstacle_is_the_reason() {
        let ready = ready(&Verdict::Served, Some(&facts()));
        assert_eq!((ready.is_ready, ready.reason, ready.message.as_str()), (true, "Serving", "clients can use it"));
        let cases: [Case; 5] = [
            (|facts| facts.reach = Reach::Refused("not granted".into()), "RefusedByProxyServer", "not granted", false),
            (
                |facts| facts.reach = Reach::Nowhere("refused".into()),
                "NoTunnel",
                "no tunnel to a proxy-server: refused",
                true,
            ),
            (|facts| facts.not_admitted = Some("not yet".into()), "PoliciesNotInForce", "not yet", false),
            (|facts| facts.provisioned = ProvisionState::Failed("taken".into()), "ProvisioningFailed", "taken", false),
            (|facts| facts.provisioned = ProvisionState::Pending, "Pending", "not been checked", true),
        ];
        let mut changed = facts();
        for (change, reason, message, is_preliminary) in cases {
            change(&mut changed);
            let ready = served(&changed);
            assert_eq!((ready.is_ready, ready.reason, ready.is_preliminary), (false, reason, is_preliminary));
            assert!(ready.message.contains(message), "{ready:?}");
        }
    }

    #[test]
    fn a_ready_cluster_can_have_weaknesses() {
        let reach = Reach::Served { refused: Some("no".into()) };
        let ready = served(&Facts { nodes: 0, weakness: Some("unsafe".into()), reach, ..facts() });
        assert!(ready.is_ready);
        for expect in ["no node of the host matches location=beijing", "proxy-servers refuses it: no", "unsafe"] {
            assert!(ready.message.contains(expect), "{ready:?}");
        }
        // Nodes that match may lack the label.
        let ready = served(&Facts { nodes: 0, node_label_failure: Some("cannot label node a".into()), ..facts() });
        assert_eq!(ready.message, "clients can use it; cannot label node a");
    }

    #[test]
    fn messages_are_short() {
        let ready = ready(&Verdict::Invalid { reason: "ä".repeat(5000).into(), is_served: false }, None);
        assert_eq!(ready.message.chars().count(), MAX_MESSAGE);
    }
}
