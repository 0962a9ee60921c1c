//! Seats of the host's API Priority and Fairness (KEP-1040) for responses that stream.
//!
//! A list occupies seats until the API server has sent it, which takes as long as the client needs to read it. A watch
//! occupies seats until its initial events are sent (`WatchInitialized` in apiserver's `pkg/util/flowcontrol`). All
//! virtual clusters share the seats of a priority level. So the responses of one cluster may occupy only some of the
//! seats at a time, and further requests wait, as they do in the host's own queues.
//!
//! Seats do not limit CPU time: by default, an API server has 600 seats, regardless of its cores, and it encodes a whole list
//! without a pause. So three lists of one virtual cluster can delay the requests of all others. While other virtual clusters are
//! active, the agent therefore limits the lists of each virtual cluster (`one_list`).

use std::future::pending;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Buf;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep, timeout};

use super::activity::Others;
use super::one_list::{Begun, CACHE_WAIT, OneList};
use host_client::{QUEUE_WAIT, REQUEST_TIMEOUT};

/// The number of seats that the responses of one virtual cluster may occupy. By default, an API server has 600 seats:
/// 49 for all users that no FlowSchema selects, and 245 for all service accounts.
pub const SEATS: usize = 30;

/// The interval at which the agent checks whether the client reads a response that occupies seats. If the client has
/// read nothing since the last check, the response ends.
const STALLED: Duration = Duration::from_secs(10);

/// A new watch counts as initialised when the host has sent nothing for this time while the client was reading. During
/// initialisation, the host sends the next event within milliseconds.
const SILENCE_OF_NEW_WATCH: Duration = Duration::from_millis(100);

/// The same for a resumed watch. It has few initial events, and informers resume many watches at once after an
/// interruption.
const SILENCE_OF_RESUMED_WATCH: Duration = Duration::from_millis(10);

/// If the client reads nothing for this time, the next list of its cluster begins: the host waits for the client, and needs no
/// CPU time for the list. A client on a fast link seldom pauses for so long, and ten times this time would hold up the other
/// lists.
const PAUSE: Duration = Duration::from_millis(100);

/// The seats of one virtual cluster.
#[derive(Debug)]
pub struct Seats {
    free: Arc<Semaphore>,
    /// The lists of the cluster, while other clusters are active.
    one_list: Arc<OneList>,
}

/// The kind of a response. It determines how many seats the response occupies, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Occupies seats until the client has read all of it. While other clusters are active, only one list of a cluster is at the
    /// host at a time.
    List,
    /// The same, for a list that the host answers without waiting for its watch cache: one with a `resourceVersion` or
    /// a `continue` token.
    ListAtOnce,
    /// A long response that is no list of objects, or that the host does not make. Occupies seats until the client has read all
    /// of it.
    Long,
    /// A watch that sends all objects first. Occupies seats until the client has read them.
    NewWatch,
    /// A watch from a resource version on. Occupies a seat until the client has read the events since that version.
    ResumedWatch,
}

/// The seats that one response occupies. Dropping this frees them.
#[derive(Debug)]
pub struct Occupied {
    _permit: OwnedSemaphorePermit,
    /// Until it ends, the next list of the cluster does not begin.
    one_list: Mutex<Option<Begun>>,
    load: Load,
    /// How often the body has been polled.
    polled: AtomicUsize,
    /// Whether the client has read everything that the host has sent.
    is_waiting: AtomicBool,
}

/// A body that occupies its seats while the host sends it.
pub struct Seated<B> {
    body: B,
    occupied: Option<Arc<Occupied>>,
    /// The time that the client has to read a body in memory.
    patience: Option<Duration>,
    silence: Option<Pin<Box<Sleep>>>,
}

// === impl Seats ===

impl Default for Seats {
    fn default() -> Self {
        Self { free: Arc::new(Semaphore::new(SEATS)), one_list: Arc::default() }
    }
}

impl Seats {
    /// Waits for the seats that this load occupies. If other clusters are active, a list also waits for the cluster's other
    /// lists. `None` if the wait takes longer than [`QUEUE_WAIT`].
    pub async fn take(&self, load: Load, others: Others) -> Option<Occupied> {
        let taken = async {
            let one_list = match (load, others) {
                (Load::List, Others::Active) => Some(self.one_list.begin(CACHE_WAIT).await),
                (Load::ListAtOnce, Others::Active) => Some(self.one_list.begin(Duration::ZERO).await),
                _ => None,
            };
            Some((one_list, Arc::clone(&self.free).acquire_many_owned(load.seats()).await.ok()?))
        };
        let (one_list, permit) = timeout(QUEUE_WAIT, taken).await.ok()??;
        let (polled, is_waiting) = (AtomicUsize::new(0), AtomicBool::new(false));
        Some(Occupied { _permit: permit, one_list: Mutex::new(one_list), load, polled, is_waiting })
    }

    /// The number of seats that are occupied, of [`SEATS`].
    pub fn occupied(&self) -> usize {
        SEATS.saturating_sub(self.free.available_permits())
    }
}

// === impl Occupied ===

impl Occupied {
    fn one_list(&self) -> MutexGuard<'_, Option<Begun>> {
        self.one_list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The host has responded. A response that the agent holds in memory never becomes a [`Seated`] body with seats, so the request
    /// path calls this.
    pub fn responded(&self) {
        if let Some(begun) = &*self.one_list() {
            begun.responded();
        }
    }

    /// The client has read everything so far.
    fn polls(&self) {
        if let Some(begun) = &*self.one_list() {
            begun.polled();
        }
    }

    /// The result of a poll of the body.
    fn polled<D: Buf, E>(&self, polled: &Poll<Option<Result<Frame<D>, E>>>) {
        self.polled.fetch_add(1, Ordering::Relaxed);
        self.is_waiting.store(polled.is_pending(), Ordering::Relaxed);
        if let Poll::Ready(Some(Ok(frame))) = polled
            && let Some(begun) = &*self.one_list()
        {
            begun.sent(frame.data_ref().map_or(0, Buf::remaining));
        }
    }

    /// Whether the client has read nothing since the time when the body had been polled `polled_before` times.
    fn is_stalled(&self, polled_before: usize) -> bool {
        self.polled.load(Ordering::Relaxed) == polled_before && !self.is_waiting.load(Ordering::Relaxed)
    }
}

// === impl Load ===

impl Load {
    /// Before Kubernetes 1.34, kube-apiserver counted at most ten seats for a list (`listWorkEstimator` in apiserver's
    /// `pkg/util/flowcontrol/request`). Since then, a list of large objects may count more, but at most 15% of the
    /// seats of its priority level (`priorityLevelMaxSeatsPercent`). So the three lists of a virtual cluster occupy
    /// less than half.
    fn seats(self) -> u32 {
        match self {
            Self::List | Self::ListAtOnce | Self::Long | Self::NewWatch => 10,
            Self::ResumedWatch => 1,
        }
    }

    /// How long a body must be silent before its seats are freed. `None`: they are freed at its end.
    fn silence(self) -> Option<Duration> {
        match self {
            Self::List | Self::ListAtOnce | Self::Long => None,
            Self::NewWatch => Some(SILENCE_OF_NEW_WATCH),
            Self::ResumedWatch => Some(SILENCE_OF_RESUMED_WATCH),
        }
    }
}

// === impl Seated ===

impl<B> Seated<B> {
    /// A body that streams from the host, with the seats that it occupies, if any.
    pub fn new(body: B, occupied: Option<Occupied>) -> Self {
        Self { body, occupied: occupied.map(Arc::new), patience: None, silence: None }
    }

    /// A body in memory, which the client must read within this time.
    pub fn in_memory(body: B, patience: Duration) -> Self {
        Self { body, occupied: None, patience: Some(patience), silence: None }
    }

    /// Completes if the body is in memory or occupies seats, and the client does not read it in time.
    pub fn overdue(&self) -> impl Future<Output = ()> + use<B> {
        let (occupied, patience) = (self.occupied.as_ref().map(Arc::downgrade), self.patience);
        async move {
            if let Some(patience) = patience {
                return sleep(patience).await;
            }
            let Some(occupied) = occupied else { return pending().await };
            tokio::select! {
                () = stalled(&occupied) => {}
                () = let_the_next_list_begin(&occupied) => {}
            }
        }
    }

    /// Frees the seats after enough silence. The caller polls only after it has sent all earlier frames.
    fn listen(&mut self, cx: &mut Context<'_>) {
        let Some(time) = self.occupied.as_ref().and_then(|occupied| occupied.load.silence()) else { return };
        let silence = self.silence.get_or_insert_with(|| Box::pin(sleep(time)));
        if silence.as_mut().poll(cx).is_ready() {
            (self.occupied, self.silence) = (None, None);
        }
    }
}

/// Completes if the client does not read in time.
async fn stalled(occupied: &Weak<Occupied>) {
    let (start, mut before) = (Instant::now(), 0);
    while start.elapsed() < REQUEST_TIMEOUT {
        sleep(STALLED).await;
        let Some(occupied) = occupied.upgrade() else { return pending().await };
        if occupied.is_stalled(before) {
            return;
        }
        before = occupied.polled.load(Ordering::Relaxed);
    }
}

/// Lets the next list begin when the client pauses. Never completes.
async fn let_the_next_list_begin(occupied: &Weak<Occupied>) {
    let mut polled_before = 0;
    while let Some(occupied) = occupied.upgrade().filter(|occupied| occupied.one_list().is_some()) {
        // A body that has not been polled is about to be.
        if polled_before > 0 && occupied.is_stalled(polled_before) {
            if let Some(begun) = &*occupied.one_list() {
                begun.release();
            }
            break;
        }
        polled_before = occupied.polled.load(Ordering::Relaxed);
        drop(occupied);
        sleep(PAUSE).await;
    }
    pending::<()>().await;
}

impl<B: Body + Unpin> Body for Seated<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = self.get_mut();
        if let Some(occupied) = &this.occupied {
            occupied.polls();
        }
        let polled = Pin::new(&mut this.body).poll_frame(cx);
        if let Some(occupied) = &this.occupied {
            occupied.polled(&polled);
        }
        match &polled {
            // Silence counts only while the body is polled: until then, a slow client may still be reading this frame.
            Poll::Ready(Some(Ok(_))) if !this.body.is_end_stream() => this.silence = None,
            Poll::Ready(_) => this.occupied = None,
            Poll::Pending => this.listen(cx),
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;

    use std::convert::Infallible;

    use bytes::Bytes;
    use http_body_util::BodyExt;
    use tokio::sync::mpsc;

    use super::*;

    /// A body of the chunks that a test sends.
    struct Sent(mpsc::UnboundedReceiver<Bytes>);

    impl Body for Sent {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            self.0.poll_recv(cx).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
        }
    }

    async fn seated(seats: &Seats, load: Load) -> (mpsc::UnboundedSender<Bytes>, Seated<Sent>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (sender, Seated::new(Sent(receiver), seats.take(load, Others::Idle).await))
    }

    async fn read(body: &mut Seated<Sent>) -> bool {
        poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await.is_some()
    }

    /// Polls a silent body, as its sender does.
    async fn listen(body: &mut Seated<Sent>, time: Duration) {
        assert!(timeout(time, body.frame()).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_keeps_its_seats_to_its_end() {
        let seats = Seats::default();
        let (source, mut list) = seated(&seats, Load::List).await;
        source.send(Bytes::from("some")).unwrap();
        assert!(read(&mut list).await);
        listen(&mut list, REQUEST_TIMEOUT).await;
        assert_eq!(seats.occupied(), 10);
        drop(source);
        assert!(!read(&mut list).await);
        assert_eq!(seats.occupied(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_keeps_its_seats_until_it_is_silent() {
        for (load, silence) in [(Load::NewWatch, SILENCE_OF_NEW_WATCH), (Load::ResumedWatch, SILENCE_OF_RESUMED_WATCH)]
        {
            let seats = Seats::default();
            let (source, mut watch) = seated(&seats, load).await;
            listen(&mut watch, silence / 2).await;
            source.send(Bytes::from("initial")).unwrap();
            assert!(read(&mut watch).await);
            listen(&mut watch, silence / 2).await;
            assert!(seats.free.available_permits() < SEATS);
            let overdue = watch.overdue();
            listen(&mut watch, silence).await;
            assert_eq!(seats.free.available_permits(), SEATS);
            assert!(timeout(2 * REQUEST_TIMEOUT, overdue).await.is_err(), "a watch goes on");
        }
    }

    /// A body that is not polled keeps its seats until its time is over.
    #[tokio::test(start_paused = true)]
    async fn a_response_that_is_not_read_is_overdue() {
        let seats = Seats::default();
        let (source, mut watch) = seated(&seats, Load::NewWatch).await;
        listen(&mut watch, SILENCE_OF_NEW_WATCH / 2).await;
        source.send(Bytes::from("initial")).unwrap();
        assert!(read(&mut watch).await);
        let overdue = watch.overdue();
        let start = Instant::now();
        overdue.await;
        assert_eq!(start.elapsed(), 2 * STALLED);
        assert!(seats.free.available_permits() < SEATS);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_host_does_not_end_the_response() {
        let seats = Seats::default();
        let (_source, mut list) = seated(&seats, Load::List).await;
        listen(&mut list, STALLED / 2).await;
        assert!(timeout(3 * STALLED, list.overdue()).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_that_is_read_slowly_is_overdue() {
        let seats = Seats::default();
        let (_source, mut list) = seated(&seats, Load::List).await;
        let start = Instant::now();
        tokio::select! {
            () = list.overdue() => {}
            () = async { loop { listen(&mut list, STALLED / 2).await } } => {}
        }
        assert_eq!(start.elapsed(), REQUEST_TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn only_some_have_seats() {
        let seats = Seats::default();
        let mut taken = Vec::new();
        while seats.free.available_permits() > 0 {
            taken.push(seats.take(Load::List, Others::Idle).await);
        }
        let start = Instant::now();
        assert!(seats.take(Load::List, Others::Idle).await.is_none());
        assert_eq!(start.elapsed(), QUEUE_WAIT);
        taken.pop();
        assert!(seats.take(Load::List, Others::Idle).await.is_some());
    }

    /// The cluster's other lists wait until the host has sent this one, or until its client pauses.
    #[tokio::test(start_paused = true)]
    async fn the_host_makes_one_list_while_others_are_active() {
        let seats = Seats::default();
        let (source, receiver) = mpsc::unbounded_channel();
        let occupied = seats.take(Load::List, Others::Active).await.unwrap();
        occupied.responded();
        let mut list = Seated::new(Sent(receiver), Some(occupied));
        let mut next = pin!(seats.take(Load::List, Others::Active));
        assert!(seats.take(Load::List, Others::Idle).await.is_some());
        for load in [Load::Long, Load::NewWatch, Load::ResumedWatch] {
            assert!(seats.take(load, Others::Active).await.is_some(), "{load:?}");
        }
        let mut overdue = pin!(list.overdue());
        // The host is slow.
        tokio::select! {
            () = &mut overdue => panic!("the client reads"),
            () = listen(&mut list, 2 * PAUSE) => {}
        }
        assert!(timeout(Duration::ZERO, &mut next).await.is_err());
        source.send(Bytes::from("some")).unwrap();
        assert!(read(&mut list).await);
        // The client is slow.
        let begun = Instant::now();
        let second = tokio::select! {
            () = &mut overdue => panic!("the client has more time"),
            second = next => second,
        };
        assert!(begun.elapsed() <= 2 * PAUSE, "{:?}", begun.elapsed());
        let mut second = Seated::new(Sent(mpsc::unbounded_channel().1), second);
        let mut third = pin!(seats.take(Load::List, Others::Active));
        assert!(timeout(Duration::ZERO, &mut third).await.is_err());
        assert!(!read(&mut second).await);
        assert!(timeout(Duration::ZERO, third).await.unwrap().is_some(), "the second one has ended");
    }
}
