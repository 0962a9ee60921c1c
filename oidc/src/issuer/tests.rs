use serde_json::json;

use super::*;

fn keys(id: &str) -> Arc<KeySet> {
    let key = json!({"kty": "RSA", "kid": id, "n": "AQAB", "e": "AQAB"});
    Arc::new(KeySet::parse(json!({"keys": [key]})).unwrap())
}

/// An issuer whose fetches the test makes.
fn issuer(state: State) -> (Issuer, watch::Sender<State>, mpsc::Receiver<()>) {
    let (demand, demanded) = mpsc::channel(1);
    let (sender, state) = watch::channel(state);
    (Issuer { state, demand, fetches: Arc::default() }, sender, demanded)
}

#[tokio::test(start_paused = true)]
async fn one_fetch_serves_all_that_wait() {
    let (issuer, sender, mut demanded) =
        issuer(State { keys: Some(keys("old")), last: Some((Instant::now(), true)), ..State::default() });
    tokio::time::advance(MIN_INTERVAL).await;
    let fetch = async {
        demanded.recv().await.unwrap();
        assert!(demanded.try_recv().is_err(), "there is a second demand");
        sender.send_replace(State { keys: Some(keys("new")), last: Some((Instant::now(), true)), ..State::default() });
    };
    let (first, second, ()) =
        tokio::join!(issuer.fetched_keys_with(Some("new")), issuer.fetched_keys_with(Some("new")), fetch);
    assert!(Arc::ptr_eq(&first.unwrap(), &second.unwrap()));
    // The keys are new, so nobody can cause another fetch.
    assert_eq!(issuer.fetched_keys_with(Some("forged")).await.unwrap_err(), Refused::UnknownKey);
    assert!(demanded.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn an_issuer_that_is_silent_delays_only_for_some_time() {
    let (issuer, sender, _demanded) = issuer(State::default());
    let begun = Instant::now();
    assert_eq!(issuer.fetched_keys_with(None).await.unwrap_err(), Refused::NoKeys);
    assert_eq!(begun.elapsed(), MAX_WAIT);
    // It has failed, so the next request does not wait.
    sender.send_replace(State { keys: None, last: Some((Instant::now(), false)), ..State::default() });
    let begun = Instant::now();
    assert_eq!(issuer.fetched_keys_with(None).await.unwrap_err(), Refused::NoKeys);
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn keys_that_cannot_be_fetched_again_expire() {
    let (mut state, begun) = (State::default(), Instant::now());
    state.succeeded(keys("old"), begun);
    state.failed(begun + MAX_AGE);
    assert!(state.keys_with(Some("old")).is_some());
    state.failed(begun + MAX_AGE + MIN_INTERVAL);
    assert!(state.keys_with(Some("old")).is_none());
    assert_eq!(state.missing(), Refused::NoKeys, "the client may try again");
}
