//! A rate limit for requests that clients abandon before the response.
//!
//! After a reset, a client may send the next request at once, but the agent and the host have already begun to work on
//! the first one (CVE-2023-44487). So a limit for concurrent requests does not limit abandoned ones. Each client may
//! abandon some requests at once, and then a few per second, like a program with its own timeouts. An administrator of a
//! virtual cluster can create any number of users, and anybody can invent any number of credentials. So there are also
//! limits for all users of a cluster, and for all unproven credentials of a network. When one of these is reached, only
//! parties that have abandoned a request in the last minute are refused.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use protocol::ClusterName;
use tokio::time::Instant;

use super::{Network, User};

/// The cost of an abandoned request, as time. It allows ten per second on average.
const COST: Duration = Duration::from_millis(100);

/// The same for an account that many parties share. It allows a hundred per second.
const COST_OF_MANY: Duration = Duration::from_millis(10);

/// The debt above which requests are refused. A hundred abandoned requests cost as much, or a thousand on an account
/// that many parties share.
const BURST: Duration = Duration::from_secs(10);

/// The maximum debt. If a connection breaks, all of its requests count as abandoned, which may not be the fault of the
/// client.
const MAX_DEBT: Duration = Duration::from_secs(60);

/// For this time after its last abandoned request, a party is refused if its peers have too much debt. It must not
/// be shorter than [`MAX_DEBT`], because older debts are removed.
const RECENT: Duration = Duration::from_secs(60);

/// The minimum number of debts before old ones are removed.
const SWEEP: usize = 1024;

/// Who has sent a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Party {
    /// A proven user, with the digest of the user that it impersonates, because all users of a cluster proxy share one
    /// credential.
    User(User, Option<u64>),
    /// A client without a credential, by network.
    Anonymous(Network),
    /// A client with a credential that no agent has accepted yet, by network and by a part of its digest. So the
    /// credentials that somebody else in this network invents delay only a few others.
    Unproven(Network, u8),
}

/// What an abandoned request is charged to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Account {
    Party(Party),
    /// All users that one user impersonates. The proxy-server does not check whether the user may impersonate them.
    Impersonator(User),
    /// All users of a cluster.
    Users,
    /// All credentials of a network that no agent has accepted yet.
    Unproven(Network),
}

#[derive(Clone, Copy, Debug)]
struct Debt {
    /// When all abandoned requests are paid for.
    paid: Instant,
    /// The last abandoned request.
    last: Instant,
}

/// The abandoned requests of all clients.
#[derive(Debug, Default)]
pub struct Abandoned {
    debts: Mutex<Debts>,
}

#[derive(Debug, Default)]
struct Debts {
    of: HashMap<(ClusterName, Account), Debt>,
    /// The number of debts at which old ones are removed: twice as many as remained last time, so removals are rare.
    sweep: usize,
}

/// Counts a request as abandoned when it is dropped, unless it is [disarmed](Self::disarm) before.
#[derive(Debug)]
pub struct AbandonGuard {
    abandoned: Arc<Abandoned>,
    party: Option<(ClusterName, Party)>,
}

// === impl Abandoned ===

impl Abandoned {
    /// Whether to refuse the party, because of its own abandoned requests or those of an account that it shares.
    pub fn is_exceeded(&self, cluster: &ClusterName, party: &Party) -> bool {
        let debts = self.debts.lock().unwrap_or_else(PoisonError::into_inner);
        if debts.of.is_empty() {
            return false;
        }
        let now = Instant::now();
        let debt = |account| debts.of.get(&(cluster.clone(), account)).copied();
        let is_exceeded = |account| debt(account).is_some_and(|debt| debt.paid > now + BURST);
        let own = debt(Account::Party(party.clone()));
        own.is_some_and(|own| own.paid > now + BURST)
            || party.impersonator().is_some_and(is_exceeded)
            || (own.is_some_and(|own| own.last + RECENT > now) && party.peers().is_some_and(is_exceeded))
    }

    /// A guard for a request of the party.
    pub fn guard(self: &Arc<Self>, cluster: &ClusterName, party: Party) -> AbandonGuard {
        AbandonGuard { abandoned: Arc::clone(self), party: Some((cluster.clone(), party)) }
    }

    fn charge(&self, cluster: &ClusterName, party: &Party) {
        let now = Instant::now();
        let mut debts = self.debts.lock().unwrap_or_else(PoisonError::into_inner);
        let Debts { of, sweep } = &mut *debts;
        if of.len() >= (*sweep).max(SWEEP) {
            of.retain(|_, debt| debt.last + RECENT > now);
            *sweep = 2 * of.len();
        }
        let many = [party.impersonator(), party.peers()].into_iter().flatten().map(|account| (account, COST_OF_MANY));
        for (account, cost) in many.chain([(Account::Party(party.clone()), COST)]) {
            let debt = of.entry((cluster.clone(), account)).or_insert(Debt { paid: now, last: now });
            debt.paid = (debt.paid.max(now) + cost).min(now + MAX_DEBT);
            debt.last = now;
        }
    }
}

// === impl Party ===

impl Party {
    /// The account of the user that impersonates this one.
    fn impersonator(&self) -> Option<Account> {
        match self {
            Self::User(user, Some(_)) => Some(Account::Impersonator(Arc::clone(user))),
            _ => None,
        }
    }

    /// The account that the party shares with its peers. One client can act as any number of peers.
    fn peers(&self) -> Option<Account> {
        match self {
            Self::User(..) => Some(Account::Users),
            Self::Unproven(network, _) => Some(Account::Unproven(*network)),
            Self::Anonymous(_) => None,
        }
    }
}

// === impl AbandonGuard ===

impl AbandonGuard {
    /// The request has a response.
    pub fn disarm(mut self) {
        self.party = None;
    }
}

impl Drop for AbandonGuard {
    fn drop(&mut self) {
        if let Some((cluster, party)) = self.party.take() {
            self.abandoned.charge(&cluster, &party);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    fn user(name: &str) -> Party {
        Party::User(name.into(), None)
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_abandons_too_many_requests_is_refused() {
        let abandoned = Arc::new(Abandoned::default());
        let cluster: ClusterName = "ke-beijing".parse().unwrap();
        let [jane, joe] = ["jane", "joe"].map(user);
        for _ in 0..200 {
            abandoned.guard(&cluster, joe.clone()).disarm();
        }
        let mut count = 0;
        while !abandoned.is_exceeded(&cluster, &jane) {
            drop(abandoned.guard(&cluster, jane.clone()));
            count += 1;
        }
        assert_eq!(count, 101);
        assert!(!abandoned.is_exceeded(&cluster, &joe));
        // Requests that were admitted together all count.
        for _ in 0..200 {
            drop(abandoned.guard(&cluster, jane.clone()));
        }
        advance(200 * COST).await;
        assert!(abandoned.is_exceeded(&cluster, &jane));
        advance(COST).await;
        assert!(!abandoned.is_exceeded(&cluster, &jane));
        drop(abandoned.guard(&cluster, jane.clone()));
        assert!(abandoned.is_exceeded(&cluster, &jane));
        for _ in 0..10_000 {
            drop(abandoned.guard(&cluster, jane.clone()));
        }
        advance(MAX_DEBT).await;
        assert!(!abandoned.is_exceeded(&cluster, &jane));
        for name in 0..2 * SWEEP {
            drop(abandoned.guard(&cluster, user(&name.to_string())));
        }
        let account = (cluster, Account::Party(jane));
        assert!(!abandoned.debts.lock().unwrap().of.contains_key(&account));
    }

    #[tokio::test(start_paused = true)]
    async fn all_users_that_one_user_impersonates_share_a_limit() {
        let abandoned = Arc::new(Abandoned::default());
        let cluster: ClusterName = "ke-beijing".parse().unwrap();
        let acting_as = |digest| Party::User("jane".into(), Some(digest));
        let mut count = 0;
        while !abandoned.is_exceeded(&cluster, &acting_as(count)) {
            drop(abandoned.guard(&cluster, acting_as(count)));
            count += 1;
        }
        assert_eq!(count, 1001);
        assert!(!abandoned.is_exceeded(&cluster, &user("jane")));
    }

    #[tokio::test(start_paused = true)]
    async fn all_users_of_a_cluster_share_a_limit() {
        let abandoned = Arc::new(Abandoned::default());
        let [beijing, hangzhou]: [ClusterName; 2] = ["ke-beijing", "ke-hangzhou"].map(|name| name.parse().unwrap());
        let mut count = 0;
        while !abandoned.is_exceeded(&beijing, &user("0")) {
            drop(abandoned.guard(&beijing, user(&(count % 50).to_string())));
            count += 1;
        }
        assert_eq!(count, 1001);
        // Users who have not abandoned any request are not refused, nor is another cluster.
        assert!(!abandoned.is_exceeded(&beijing, &user("jane")));
        drop(abandoned.guard(&hangzhou, user("0")));
        assert!(!abandoned.is_exceeded(&hangzhou, &user("0")));
    }
}
