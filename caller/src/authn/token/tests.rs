use tokio::time::advance;

use super::*;
use crate::testing::Fake;

fn jwt(claims: &str) -> String {
    format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims))
}

fn fake() -> Arc<Fake> {
    let eve = TokenUser { name: "eve".into(), ..TokenUser::default() };
    Arc::new(Fake { tokens: [("good", eve)].into(), ..Fake::default() })
}

#[test]
fn a_good_token_is_never_believed_past_its_end() {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1000);
    for (token, believed) in [
        ("opaque".to_owned(), Some(GOOD)),
        (jwt("{}"), Some(GOOD)),
        (jwt("not JSON"), Some(GOOD)),
        (jwt(r#"{"exp": 5000}"#), Some(GOOD)),
        (jwt(r#"{"exp": 1e300}"#), Some(GOOD)),
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
async fn answers_are_remembered_good_ones_longer() {
    let fake = fake();
    let tokens = Tokens::new(Arc::clone(&fake));
    for _ in 0..2 {
        assert_eq!(tokens.user(&"good".into()).await.unwrap().unwrap().1.name, "eve");
        assert_eq!(tokens.user(&"bad".into()).await.unwrap(), None);
    }
    assert_eq!(fake.asked(), 2);
    advance(BAD).await;
    tokens.user(&"good".into()).await.unwrap();
    tokens.user(&"bad".into()).await.unwrap();
    assert_eq!(fake.asked(), 3);
    advance(Duration::from_secs(9)).await;
    tokens.user(&"good".into()).await.unwrap();
    assert_eq!(fake.asked(), 4);
}

#[tokio::test]
async fn a_flood_of_bad_tokens_is_bounded_in_memory_and_at_the_host() {
    let fake = Arc::new(Fake { answers: Semaphore::new(0), ..Fake::default() });
    let tokens = Arc::new(Tokens::new(Arc::clone(&fake)));
    let mut asking = tokio::task::JoinSet::new();
    for number in 0..REMEMBERED + 500 {
        let tokens = Arc::clone(&tokens);
        asking.spawn(async move { tokens.user(&format!("bad {number}").into()).await });
    }
    tokio::task::yield_now().await;
    assert_eq!(fake.asked(), AT_A_TIME);
    fake.answers.add_permits(REMEMBERED + 500);
    while let Some(user) = asking.join_next().await {
        assert_eq!(user.unwrap().unwrap(), None);
    }
    let (known, asked) = tokens.known.len();
    assert!(known <= REMEMBERED && asked == 0);
}

#[tokio::test]
async fn tokens_are_not_kept() {
    let tokens = Tokens::new(fake());
    tokens.user(&"good".into()).await.unwrap();
    assert!(!format!("{:?}", tokens.known).contains("good"));
    assert!(!format!("{:?}", Key::of_token("good")).contains("good"));
}
