use tokio::time::advance;

use super::*;
use crate::testing::FakeHost;

fn jwt(claims: &str) -> String {
    format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims))
}

fn fake() -> Arc<FakeHost> {
    let eve = TokenUser { name: "eve".into(), ..TokenUser::default() };
    Arc::new(FakeHost { tokens: [("good", eve)].into(), ..FakeHost::default() })
}

#[test]
fn a_token_is_not_cached_after_its_expiry() {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1000);
    for (token, believed) in [
        ("opaque".to_owned(), Some(VALID_TTL)),
        (jwt("{}"), Some(VALID_TTL)),
        (jwt("not JSON"), Some(VALID_TTL)),
        (jwt(r#"{"exp": 5000}"#), Some(VALID_TTL)),
        (jwt(r#"{"exp": 1e300}"#), Some(VALID_TTL)),
        (jwt(r#"{"exp": 1003}"#), Some(Duration::from_secs(3))),
        (jwt(r#"{"exp": 1000.5}"#), Some(Duration::from_millis(500))),
        (jwt(r#"{"exp": 1000}"#), None),
        (jwt(r#"{"exp": 999}"#), None),
        (jwt(r#"{"exp": -1}"#), None),
    ] {
        assert_eq!(lifetime(&token, now), believed, "{token}");
    }
}

#[tokio::test(start_paused = true)]
async fn answers_are_cached_and_valid_tokens_longer() {
    let fake = fake();
    let (tokens, turns) = (Tokens::new(Arc::clone(&fake)), ReviewTurns::new());
    for _ in 0..2 {
        assert_eq!(tokens.user(&"good".into(), &turns).await.unwrap().unwrap().1.name, "eve");
        assert_eq!(tokens.user(&"bad".into(), &turns).await.unwrap(), None);
    }
    assert_eq!(fake.questions(), 2);
    advance(INVALID_TTL).await;
    tokens.user(&"good".into(), &turns).await.unwrap();
    tokens.user(&"bad".into(), &turns).await.unwrap();
    assert_eq!(fake.questions(), 3);
    advance(Duration::from_secs(9)).await;
    tokens.user(&"good".into(), &turns).await.unwrap();
    assert_eq!(fake.questions(), 4);
}

#[tokio::test]
async fn invalid_tokens_use_bounded_memory_and_reviews() {
    let fake = Arc::new(FakeHost { answers: Semaphore::new(0), ..FakeHost::default() });
    let tokens = Arc::new(Tokens::new(Arc::clone(&fake)));
    let mut asking = tokio::task::JoinSet::new();
    for number in 0..MAX_CACHED + 500 {
        let tokens = Arc::clone(&tokens);
        asking.spawn(async move { tokens.user(&format!("bad {number}").into(), &ReviewTurns::new()).await });
    }
    tokio::task::yield_now().await;
    assert_eq!(fake.questions(), MAX_REVIEWS);
    fake.answers.add_permits(MAX_CACHED + 500);
    while let Some(user) = asking.join_next().await {
        assert_eq!(user.unwrap().unwrap(), None);
    }
    let (known, questions) = tokens.known.len();
    assert!(known <= MAX_CACHED && questions == 0);
}

#[tokio::test]
async fn tokens_are_not_kept() {
    let (tokens, turns) = (Tokens::new(fake()), ReviewTurns::new());
    tokens.user(&"good".into(), &turns).await.unwrap();
    assert!(!format!("{:?}", tokens.known).contains("good"));
    assert!(!format!("{:?}", Key::of_token("good")).contains("good"));
}
