use std::cell::Cell;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use tokio::sync::Notify;
use tokio::time::advance;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

type Numbers = Memo<u32, u32, &'static str>;

/// Gets an answer. Returns whether it was not cached.
async fn asks(memo: &Numbers, key: u32, lifetime: Option<Duration>) -> bool {
    let sent = Cell::new(false);
    let ask = async || {
        sent.set(true);
        Ok(key)
    };
    assert_eq!(memo.get(key, ask, |_| lifetime).await, Ok(key));
    sent.get()
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_cached_until_it_expires() {
    let memo = Numbers::new(8);
    assert!(asks(&memo, 1, Some(SECOND)).await);
    advance(Duration::from_millis(999)).await;
    assert!(!asks(&memo, 1, Some(SECOND)).await);
    advance(Duration::from_millis(1)).await;
    assert!(asks(&memo, 1, None).await);
    assert!(asks(&memo, 1, None).await, "it was not to be remembered");
}

#[tokio::test(start_paused = true)]
async fn an_extended_answer_is_valid_while_its_condition_is_true() {
    let (memo, is_true) = (Numbers::new(8), Arc::new(AtomicBool::new(true)));
    let condition = || -> Condition {
        let is_true = Arc::clone(&is_true);
        Arc::new(move || is_true.load(Ordering::Relaxed))
    };
    memo.extend(1, |_| true, condition());
    assert!(asks(&memo, 1, Some(SECOND)).await, "what is not cached cannot be extended");
    assert!(asks(&memo, 2, Some(SECOND)).await);
    for key in [1, 2] {
        memo.extend(key, |answer| *answer == 1, condition());
    }
    advance(SECOND * 100).await;
    assert!(!asks(&memo, 1, None).await);
    assert!(asks(&memo, 2, None).await, "not eligible");
    memo.flush();
    assert!(asks(&memo, 1, Some(SECOND)).await);
    memo.extend(1, |_| true, condition());
    is_true.store(false, Ordering::Relaxed);
    assert!(!asks(&memo, 1, Some(SECOND)).await, "its lifetime is not over");
    advance(SECOND).await;
    assert!(asks(&memo, 1, None).await);
}

#[tokio::test(start_paused = true)]
async fn an_extended_answer_is_not_recent() {
    let memo = Numbers::new(8);
    assert!(asks(&memo, 1, Some(SECOND)).await);
    memo.extend(1, |_| true, Arc::new(|| true));
    let recent = async || {
        let sent = Cell::new(false);
        let ask = async || {
            sent.set(true);
            Ok(1)
        };
        memo.get_accepted(1, Accepted::Recent, ask, |_| None).await.unwrap();
        sent.get()
    };
    assert!(!recent().await);
    advance(SECOND).await;
    assert!(recent().await);
    assert!(!asks(&memo, 1, None).await, "it is still extended");
}

#[tokio::test(start_paused = true)]
async fn expiry_leaves_only_answers_whose_conditions_are_true() {
    let memo = Numbers::new(8);
    for key in 1..=3 {
        assert!(asks(&memo, key, Some(SECOND * 100)).await);
    }
    memo.extend(2, |_| true, Arc::new(|| true));
    memo.extend(3, |_| true, Arc::new(|| false));
    advance(SECOND * 60).await;
    memo.expire();
    assert_eq!(memo.len(), (1, 0), "the others keep nothing");
    assert!(!asks(&memo, 2, None).await);
    assert!(asks(&memo, 3, Some(SECOND * 100)).await);
    memo.expire();
    assert!(asks(&memo, 3, None).await, "not swept, but not valid");
    // An answer to a question from before is not cached.
    let slow = async || {
        memo.expire();
        Ok(4)
    };
    memo.get(4, slow, |_| Some(SECOND)).await.unwrap();
    assert!(asks(&memo, 4, None).await);
}

#[tokio::test(start_paused = true)]
async fn the_lifetime_begins_with_the_question() {
    let memo = Numbers::new(8);
    let slow = async || {
        advance(SECOND).await;
        Ok(1)
    };
    memo.get(1, slow, |_| Some(SECOND)).await.unwrap();
    assert!(asks(&memo, 1, None).await);
}

#[tokio::test]
async fn errors_are_not_cached() {
    let memo = Numbers::new(8);
    assert_eq!(memo.get(1, async || Err("no"), |_| Some(SECOND)).await, Err("no"));
    assert!(asks(&memo, 1, Some(SECOND)).await);
}

#[tokio::test]
async fn the_size_is_bounded_and_used_entries_are_kept() {
    let memo = Numbers::new(10);
    for key in 0..1000 {
        asks(&memo, key, Some(SECOND * 100)).await;
        assert!(memo.len().0 <= 10);
        assert!(!asks(&memo, 0, Some(SECOND * 100)).await, "0 is used all the time");
    }
    assert_eq!(memo.len().1, 0);
}

#[tokio::test]
async fn concurrent_questions_are_sent_once_and_share_errors() {
    for answer in [Ok(7), Err("no")] {
        let (memo, sent, go) = (Numbers::new(8), Cell::new(0), Notify::new());
        let ask = async || {
            sent.set(sent.get() + 1);
            go.notified().await;
            answer
        };
        let get = || memo.get(1, ask, |_| None);
        let (mut first, mut second, mut third) = (pin!(get()), pin!(get()), pin!(get()));
        for waiting in [&mut first, &mut second, &mut third] {
            assert!(poll_once(waiting.as_mut()).await.is_pending());
        }
        go.notify_one();
        assert_eq!(tokio::join!(first, second, third), (answer, answer, answer));
        assert_eq!(sent.get(), 1);
        assert_eq!(memo.len(), (0, 0));
    }
}

#[tokio::test]
async fn if_the_sender_is_dropped_the_next_task_sends() {
    let (memo, go) = (Numbers::new(8), Notify::new());
    let ask = async || {
        go.notified().await;
        Ok(7)
    };
    let mut first = Box::pin(memo.get(1, ask, |_| None));
    let mut second = Box::pin(memo.get(1, ask, |_| None));
    assert!(poll_once(first.as_mut()).await.is_pending());
    assert!(poll_once(second.as_mut()).await.is_pending());
    drop(first);
    assert!(poll_once(second.as_mut()).await.is_pending());
    go.notify_one();
    assert_eq!(second.await, Ok(7));

    let mut alone = Box::pin(memo.get(1, ask, |_| None));
    assert!(poll_once(alone.as_mut()).await.is_pending());
    assert_eq!(memo.len().1, 1);
    drop(alone);
    assert_eq!(memo.len().1, 0, "nothing is left of a question that nobody waits for");
}

#[tokio::test]
async fn answers_from_before_a_flush_are_not_cached() {
    let (memo, go) = (Numbers::new(8), Notify::new());
    let ask = async || {
        go.notified().await;
        Ok(7)
    };
    let mut before = pin!(memo.get(1, ask, |_| Some(SECOND)));
    assert!(poll_once(before.as_mut()).await.is_pending());
    memo.flush();
    assert!(asks(&memo, 1, None).await, "the answer to an older question is not waited for");
    go.notify_one();
    assert_eq!(before.await, Ok(7));
    assert_eq!(memo.len(), (0, 0));
}

async fn poll_once<F: Future>(mut future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    std::future::poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await
}
