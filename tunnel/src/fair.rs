//! Fair shares for clusters of a common resource: bytes of bodies that are held as a whole, or streams of a tunnel.
//!
//! Most bodies stream. Some cannot: a request body must be mapped before its first byte may go upstream, and protobuf
//! lists are length-prefixed. The bytes of such bodies are charged to the share of one cluster and to the total. If a
//! reservation fails, the caller must refuse the request (429 with `Retry-After`). Only bytes that are freed without the help
//! of a client may be [waited](Share::wait) for.
//!
//! After a reservation, a cluster never holds more than what is still free. So one greedy cluster leaves half of the total
//! to the others, and two leave a third. A cluster that holds nothing can always reserve something.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;

/// A number of units, and the limit of each share. Clones are the same budget.
#[derive(Clone)]
pub struct FairBudget(Arc<Pool>);

/// The share of one cluster in a [`FairBudget`]. Clones are the same share.
#[derive(Clone)]
pub struct Share {
    pool: Arc<Pool>,
    own: Arc<Own>,
}

/// What belongs to one share.
#[derive(Default)]
struct Own {
    /// Units that this share holds. It changes only under the pool's lock.
    held: AtomicUsize,
    /// Whoever waits for room holds it. Others queue for it in order.
    turn: tokio::sync::Mutex<()>,
}

/// Units that are charged to a share until this is dropped.
pub struct Reservation {
    share: Share,
    units: usize,
}

struct Pool {
    limit: usize,
    share_limit: usize,
    /// Units that all shares hold.
    held: Mutex<usize>,
    /// Notified whenever units are given back.
    freed: Notify,
}

/// Bytes with their reservation.
struct Charged {
    bytes: Bytes,
    _reservation: Reservation,
}

// === impl FairBudget ===

impl FairBudget {
    /// A budget of `limit` units in all, and of `share_limit` units for each share.
    pub fn new(limit: usize, share_limit: usize) -> Self {
        Self(Arc::new(Pool { limit, share_limit, held: Mutex::default(), freed: Notify::new() }))
    }

    /// A share for one more cluster.
    pub fn share(&self) -> Share {
        Share { pool: Arc::clone(&self.0), own: Arc::default() }
    }

    /// Units held by all shares.
    pub fn held(&self) -> usize {
        self.0.held()
    }
}

impl fmt::Debug for FairBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FairBudget").field("limit", &self.0.limit).field("held", &self.held()).finish()
    }
}

// === impl Share ===

impl Share {
    /// Charges units; `None` if the share or the whole budget has no room for them.
    pub fn reserve(&self, units: usize) -> Option<Reservation> {
        self.charge(units).then(|| Reservation { share: self.clone(), units })
    }

    /// Charges units as soon as there is room. Callers that wait get it in the order in which they asked. Charges no more than an
    /// idle budget has room for, so it does not wait for ever.
    pub async fn wait(&self, units: usize) -> Reservation {
        let units = units.min(self.pool.share_limit).min(self.pool.limit / 2);
        let _turn = self.own.turn.lock().await;
        loop {
            // Before the attempt, so that it misses nothing that is given back after it.
            let freed = self.pool.freed.notified();
            if let Some(reservation) = self.reserve(units) {
                return reservation;
            }
            freed.await;
        }
    }

    /// The same, if nobody waits and there is room now.
    pub fn reserve_in_turn(&self, units: usize) -> Option<Reservation> {
        let _turn = self.own.turn.try_lock().ok()?;
        self.reserve(units)
    }

    /// An empty reservation, which can grow.
    pub fn nothing(&self) -> Reservation {
        Reservation { share: self.clone(), units: 0 }
    }

    /// Units that this share holds.
    pub fn held(&self) -> usize {
        self.own.held.load(Ordering::Relaxed)
    }

    /// Units that this share can hold now, given what the others hold.
    pub fn limit(&self) -> usize {
        let total = self.pool.held.lock().unwrap_or_else(PoisonError::into_inner);
        let others = total.saturating_sub(self.held());
        // It never holds more than what is still free.
        self.pool.share_limit.min(self.pool.limit.saturating_sub(others) / 2)
    }

    fn charge(&self, units: usize) -> bool {
        let Pool { limit, share_limit, held: total, .. } = &*self.pool;
        let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
        let (Some(own), Some(all)) = (self.held().checked_add(units), total.checked_add(units)) else { return false };
        // Zero units always fit.
        let fits = units == 0 || (own <= *share_limit && all <= *limit && own <= *limit - all);
        if fits {
            *total = all;
            self.own.held.store(own, Ordering::Relaxed);
        }
        fits
    }

    fn release(&self, units: usize) {
        if units == 0 {
            return;
        }
        let mut total = self.pool.held.lock().unwrap_or_else(PoisonError::into_inner);
        *total -= units;
        self.own.held.fetch_sub(units, Ordering::Relaxed);
        drop(total);
        self.pool.freed.notify_waiters();
    }
}

impl fmt::Debug for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Share").field("held", &self.held()).finish_non_exhaustive()
    }
}

// === impl Reservation ===

impl Reservation {
    /// Charges more units. If there is no room, returns `false` and leaves the charge unchanged.
    #[must_use]
    pub fn grow(&mut self, units: usize) -> bool {
        let grown = self.share.charge(units);
        if grown {
            self.units += units;
        }
        grown
    }

    /// Splits units off into a reservation of their own, or all units if there are fewer.
    #[must_use]
    pub fn split(&mut self, units: usize) -> Self {
        let units = units.min(self.units);
        self.units -= units;
        Self { share: self.share.clone(), units }
    }

    /// Units charged.
    pub fn units(&self) -> usize {
        self.units
    }

    /// Ties the charge to bytes: it ends when the last clone or slice of them is dropped.
    #[must_use]
    pub fn attach(self, bytes: Bytes) -> Bytes {
        if self.units == 0 { bytes } else { Bytes::from_owner(Charged { bytes, _reservation: self }) }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.share.release(self.units);
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reservation").field(&self.units).finish()
    }
}

// === impl Pool ===

impl Pool {
    fn held(&self) -> usize {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Charged ===

impl AsRef<[u8]> for Charged {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn a_share_is_bounded_and_gives_back() {
        let budget = FairBudget::new(100, 30);
        let share = budget.share();
        let mut first = share.reserve(20).unwrap();
        assert!(share.reserve(11).is_none());
        assert!(!first.grow(11) && first.grow(10));
        assert_eq!((share.held(), budget.held(), first.units()), (30, 30, 30));
        let part = first.split(25);
        assert_eq!((share.held(), part.units(), first.units()), (30, 25, 5));
        drop(part);
        assert_eq!(share.held(), 5);
        drop(first);
        assert_eq!((share.held(), budget.held()), (0, 0));
        assert!(share.reserve(usize::MAX).is_none());
    }

    #[test]
    fn the_limit_of_a_share_depends_on_the_others() {
        let budget = FairBudget::new(100, 40);
        let (first, second) = (budget.share(), budget.share());
        assert_eq!((first.limit(), second.limit()), (40, 40));
        let held = first.reserve(30).unwrap();
        assert_eq!((first.limit(), second.limit()), (40, 35));
        assert!(second.reserve(36).is_none() && second.reserve(35).is_some());
        drop(held);
        assert_eq!(second.limit(), 40);
    }

    #[test]
    fn however_many_are_greedy_the_next_one_finds_room() {
        let budget = FairBudget::new(1_000, 1_000);
        let mut held = Vec::new();
        for greedy in 1..=9 {
            // All take all that they can get, in turns.
            let shares: Vec<Share> = (0..greedy).map(|_| budget.share()).collect();
            loop {
                let before = held.len();
                held.extend(shares.iter().filter_map(|share| share.reserve(1)));
                if held.len() == before {
                    break;
                }
            }
            let free = 1_000 - budget.held();
            assert!(free >= 1_000 / (greedy + 1), "{greedy} leave {free}");
            assert!(budget.share().reserve(free / 2).is_some());
            held.clear();
        }
    }

    #[test]
    fn those_who_wait_for_room_get_it_in_order() {
        let mut cx = Context::from_waker(Waker::noop());
        let budget = FairBudget::new(100, 50);
        let share = budget.share();
        let held = share.reserve(50).unwrap();
        let mut first = Box::pin(share.wait(30));
        let mut second = Box::pin(share.wait(1));
        assert!(first.as_mut().poll(&mut cx).is_pending() && second.as_mut().poll(&mut cx).is_pending());
        drop(held);
        assert!(share.reserve_in_turn(1).is_none() && second.as_mut().poll(&mut cx).is_pending());
        let Poll::Ready(first) = first.as_mut().poll(&mut cx) else { panic!("there is room") };
        let Poll::Ready(second) = second.as_mut().poll(&mut cx) else { panic!("there is room") };
        assert_eq!((first.units(), second.units(), budget.held()), (30, 1, 31));
        assert!(share.reserve_in_turn(1).is_some());
    }

    #[test]
    fn whoever_waits_and_leaves_holds_up_nobody() {
        let mut cx = Context::from_waker(Waker::noop());
        let budget = FairBudget::new(100, 50);
        let share = budget.share();
        let held = share.reserve(50).unwrap();
        let mut leaves = Box::pin(share.wait(30));
        let mut stays = Box::pin(share.wait(30));
        assert!(leaves.as_mut().poll(&mut cx).is_pending() && stays.as_mut().poll(&mut cx).is_pending());
        drop(leaves);
        assert!(stays.as_mut().poll(&mut cx).is_pending());
        // Another share has room all the time.
        assert!(budget.share().reserve_in_turn(25).is_some());
        drop(held);
        assert!(stays.as_mut().poll(&mut cx).is_ready());
    }

    #[test]
    fn more_than_an_idle_budget_has_is_not_waited_for() {
        let mut cx = Context::from_waker(Waker::noop());
        let share = FairBudget::new(100, 80).share();
        let Poll::Ready(reservation) = Box::pin(share.wait(1_000)).as_mut().poll(&mut cx) else { panic!("idle") };
        assert_eq!(reservation.units(), 50);
    }

    #[test]
    fn a_charge_lasts_as_long_as_its_bytes() {
        let budget = FairBudget::new(100, 50);
        let share = budget.share();
        let reservation = share.reserve(6).unwrap();
        let bytes = reservation.attach(Bytes::from_static(b"object"));
        let slice = bytes.slice(2..4);
        drop(bytes);
        assert_eq!((&slice[..], share.held()), (&b"je"[..], 6));
        drop(slice);
        assert_eq!(share.held(), 0);
        assert_eq!(share.nothing().attach(Bytes::new()), "");
    }
}
