//! The device authorization grant (RFC 8628): the user logs in on another device, and this command polls.

use std::io::Write;
use std::time::Duration;

use anyhow::{Context as _, bail};
use oidc::https::HttpError;
use serde::Deserialize;
use tokio::time::{Instant, sleep};

use super::provider::{Provider, TokenError, printable};
use super::session::Session;

const GRANT_TYPE: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// The pause between two polls, if the issuer names none (section 3.2), and what `slow_down` adds (section 3.5).
const INTERVAL: u64 = 5;

/// The maximum of these pauses.
const MAX_INTERVAL: Duration = Duration::from_secs(60);

/// The response of the issuer (section 3.2).
#[derive(Clone, Debug, Deserialize)]
struct Authorization {
    device_code: String,
    user_code: String,
    /// Google's name is from a draft.
    #[serde(alias = "verification_url")]
    verification_uri: String,
    #[serde(default)]
    verification_uri_complete: Option<String>,
    expires_in: u64,
    #[serde(default)]
    interval: Option<u64>,
}

/// Logs the user in.
pub(super) async fn log_in(provider: &Provider, prompt: &mut dyn Write) -> anyhow::Result<Session> {
    let endpoint = provider.device_endpoint()?;
    let response = provider.post(&endpoint, &[("scope", &provider.scopes)]).await.context("cannot get a code")?;
    let authorization: Authorization =
        serde_json::from_slice(response.body()).context("the response of the issuer is malformed")?;
    show(&authorization, prompt)?;
    poll(&authorization, async || {
        provider.tokens(&[("grant_type", GRANT_TYPE), ("device_code", &authorization.device_code)]).await
    })
    .await
}

fn show(authorization: &Authorization, prompt: &mut dyn Write) -> anyhow::Result<()> {
    let (page, code) = (printable(&authorization.verification_uri), printable(&authorization.user_code));
    writeln!(prompt, "To log in, open {page} on any device, and enter the code {code}")?;
    if let Some(page) = &authorization.verification_uri_complete {
        writeln!(prompt, "or open {}", printable(page))?;
    }
    prompt.flush()?;
    Ok(())
}

/// Asks until the user has decided, or the code has expired.
async fn poll(
    authorization: &Authorization,
    ask: impl AsyncFn() -> Result<Session, TokenError>,
) -> anyhow::Result<Session> {
    let end = Instant::now() + Duration::from_secs(authorization.expires_in.min(24 * 3600));
    let mut interval = Duration::from_secs(authorization.interval.unwrap_or(INTERVAL).max(1)).min(MAX_INTERVAL);
    loop {
        if Instant::now() + interval > end {
            bail!("the code has expired; run the command again");
        }
        sleep(interval).await;
        match ask().await {
            Ok(session) => return Ok(session),
            Err(TokenError::Refused(refusal)) => match refusal.error.as_str() {
                "authorization_pending" => {}
                "slow_down" => interval = (interval + Duration::from_secs(INTERVAL)).min(MAX_INTERVAL),
                "expired_token" => bail!("the code has expired; run the command again"),
                "access_denied" => bail!("the login was denied"),
                _ => return Err(TokenError::Refused(refusal).into()),
            },
            // The user may already be logging in, so one lost connection must not end this (section 3.5).
            Err(TokenError::Http(HttpError::Timeout | HttpError::Connect { .. } | HttpError::Broken(_))) => {
                interval = (interval * 2).min(MAX_INTERVAL);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::super::provider::Refusal;
    use super::*;

    fn authorization(interval: Option<u64>) -> Authorization {
        Authorization {
            device_code: "secret".to_owned(),
            user_code: "WDJB-MJHT".to_owned(),
            verification_uri: "https://login.example.com/device".to_owned(),
            verification_uri_complete: None,
            expires_in: 120,
            interval,
        }
    }

    fn refused(error: &str) -> TokenError {
        TokenError::Refused(serde_json::from_value::<Refusal>(serde_json::json!({ "error": error })).unwrap())
    }

    /// The times of the polls in seconds, and how they end. After these errors, the user has denied.
    async fn polls(interval: Option<u64>, errors: Vec<TokenError>) -> (Vec<u64>, String) {
        let (begun, times, errors) = (Instant::now(), RefCell::new(Vec::new()), RefCell::new(errors.into_iter()));
        let ended = poll(&authorization(interval), async || {
            times.borrow_mut().push(begun.elapsed().as_secs());
            Err(errors.borrow_mut().next().unwrap_or_else(|| refused("access_denied")))
        })
        .await;
        (times.take(), ended.unwrap_err().to_string())
    }

    #[tokio::test(start_paused = true)]
    async fn the_issuer_sets_the_pace() {
        let pending = || refused("authorization_pending");
        assert_eq!(polls(None, vec![pending(), pending()]).await.0, [5, 10, 15]);
        assert_eq!(polls(Some(2), vec![refused("slow_down"), pending()]).await.0, [2, 9, 16]);
        let (times, end) = polls(Some(0), vec![TokenError::Http(HttpError::Timeout)]).await;
        assert_eq!((times, end.as_str()), (vec![1, 3], "the login was denied"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_code_expires() {
        let pending: Vec<_> = std::iter::repeat_with(|| refused("authorization_pending")).take(100).collect();
        let (times, end) = polls(Some(30), pending).await;
        assert_eq!((times.last(), end.as_str()), (Some(&120), "the code has expired; run the command again"));
        let (_, end) = polls(None, vec![refused("expired_token")]).await;
        assert!(end.contains("expired"), "{end}");
        let (_, end) = polls(None, vec![refused("invalid_client")]).await;
        assert_eq!(end, "the issuer refuses: invalid_client");
    }

    #[test]
    fn the_user_sees_where_to_go() {
        let mut out = Vec::new();
        show(&authorization(None), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("https://login.example.com/device") && text.contains("WDJB-MJHT"), "{text}");
        assert!(!text.contains("secret"));
    }
}
