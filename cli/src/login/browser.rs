//! The authorization code grant in the browser of this machine (RFC 8252), with a proof key (RFC 7636).

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use oidc::https::encode_form;
use ops::secret::random_text;
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::provider::{Provider, printable};
use super::session::Session;

/// How long the user may take.
const TIMEOUT: Duration = Duration::from_secs(300);

/// The time limit for one request of the browser, and the maximum size of its head, in bytes.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_HEAD: usize = 16 * 1024;

/// What the user sees at the end.
const DONE: &str = "You are logged in. You can close this window.";

/// What the issuer sends to the loopback address.
#[derive(Debug, PartialEq, Eq)]
enum Callback {
    Code(String),
    Error(String),
}

/// Whether this machine can show a page to the user: not in a session over SSH, and not without a display.
pub(super) fn is_there() -> bool {
    let has = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !has("SSH_CONNECTION") && (cfg!(target_os = "macos") || has("DISPLAY") || has("WAYLAND_DISPLAY"))
}

/// Logs the user in.
pub(super) async fn log_in(provider: &Provider, prompt: &mut dyn Write) -> anyhow::Result<Session> {
    let page = provider.login_page()?;
    let listener = TcpListener::bind("127.0.0.1:0").await.context("cannot listen on 127.0.0.1")?;
    let redirect = format!("http://{}/callback", listener.local_addr()?);
    let [state, verifier] = [(); 2].map(|()| random_text(52)).map(|text| text.context("no randomness"));
    let (state, verifier) = (state?, verifier?);
    let query = encode_form(&[
        ("response_type", "code"),
        ("client_id", &provider.client_id),
        ("redirect_uri", &redirect),
        ("scope", &provider.scopes),
        ("state", &state),
        ("code_challenge", &challenge(&verifier)),
        ("code_challenge_method", "S256"),
    ]);
    let separator = if page.as_str().contains('?') { '&' } else { '?' };
    let url = format!("{page}{separator}{query}");
    writeln!(prompt, "To log in, open this page in the browser of this machine: {url}")?;
    prompt.flush()?;
    open(&url);
    let callback = timeout(TIMEOUT, callback(&listener, &state)).await;
    let code = match callback.context("nobody has logged in; run the command again")?? {
        Callback::Code(code) => code,
        Callback::Error(error) => bail!("the issuer refuses: {}", printable(&error)),
    };
    let form = [
        ("grant_type", "authorization_code"),
        ("code", &code),
        ("redirect_uri", &redirect),
        ("code_verifier", &verifier),
    ];
    Ok(provider.tokens(&form).await?)
}

/// RFC 7636 section 4.2.
fn challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()))
}

/// Opens a page. If that fails, the user can do it.
fn open(url: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let _ = Command::new(program).arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
}

/// Waits for the browser. Other programs may connect, too, so a request that is not the expected one ends nothing.
async fn callback(listener: &TcpListener, state: &str) -> anyhow::Result<Callback> {
    loop {
        let (mut stream, _) = listener.accept().await?;
        let Ok(Some(target)) = timeout(REQUEST_TIMEOUT, target(&mut stream)).await else { continue };
        let (status, text, found) = match parse(&target, state) {
            Some(callback @ Callback::Code(_)) => ("200 OK", DONE, Some(callback)),
            Some(callback) => ("200 OK", "The login has failed. The terminal shows why.", Some(callback)),
            None => ("404 Not Found", "There is no such page.", None),
        };
        let response = format!(
            "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\n\
             cache-control: no-store\r\nreferrer-policy: no-referrer\r\nconnection: close\r\n\r\n{text}",
            text.len()
        );
        let _ = timeout(REQUEST_TIMEOUT, stream.write_all(response.as_bytes())).await;
        if let Some(found) = found {
            return Ok(found);
        }
    }
}

/// The target of a GET request.
async fn target(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let read = stream.read_buf(&mut head).await.ok()?;
        if read == 0 || head.len() > MAX_HEAD {
            return None;
        }
    }
    let line = std::str::from_utf8(&head).ok()?.lines().next()?;
    Some(line.strip_prefix("GET ")?.split(' ').next()?.to_owned())
}

/// `None` unless it is the callback of this login.
fn parse(target: &str, state: &str) -> Option<Callback> {
    let query = target.strip_prefix("/callback?")?;
    let parameter = |name: &str| {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.filter(|(key, _)| *key == name).map(|(_, value)| decode(value)).next().flatten()
    };
    if parameter("state")? != state {
        return None;
    }
    match parameter("error") {
        Some(error) => Some(Callback::Error(error)),
        None => parameter("code").map(Callback::Code),
    }
}

fn decode(value: &str) -> Option<String> {
    let (mut decoded, mut rest) = (Vec::new(), value.as_bytes());
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        decoded.push(match first {
            b'+' => b' ',
            b'%' => {
                let (hex, tail) = rest.split_at_checked(2)?;
                rest = tail;
                u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()?
            }
            other => *other,
        });
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_challenge_is_that_of_the_standard() {
        // RFC 7636, appendix B.
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert_eq!(challenge(verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn only_the_callback_of_this_login_counts() {
        let parse = |target| parse(target, "st");
        assert_eq!(parse("/callback?code=a%2Bb+c&state=st"), Some(Callback::Code("a+b c".to_owned())));
        assert_eq!(parse("/callback?state=st&error=access_denied"), Some(Callback::Error("access_denied".to_owned())));
        for other in [
            "/callback?code=a&state=other",
            "/callback?code=a",
            "/favicon.ico",
            "/callback?state=st",
            "/callback?code=%zz&state=st",
        ] {
            assert_eq!(parse(other), None, "{other}");
        }
    }

    #[tokio::test]
    async fn other_requests_do_not_end_the_login() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let ask = async |text: &str| {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(format!("{text}\r\n\r\n").as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        };
        let browser = async {
            assert!(ask("GET /favicon.ico HTTP/1.1").await.starts_with("HTTP/1.1 404"));
            assert!(ask("POST /callback?code=x&state=st HTTP/1.1").await.is_empty());
            assert!(ask("GET /callback?code=x&state=st HTTP/1.1\r\nhost: a").await.contains(DONE));
        };
        let (found, ()) = tokio::join!(callback(&listener, "st"), browser);
        assert_eq!(found.unwrap(), Callback::Code("x".to_owned()));
    }
}
