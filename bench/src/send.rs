//! Sends one request. Benchmarks prepare clusters with it, so that they do not need kubectl.

use std::io::{Read as _, Write};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use http::{HeaderValue, Method, header};
use http_body_util::{BodyExt as _, Full, Limited};
use ops::drain::Tasks;
use tokio::time::timeout;

use crate::client::{self, Connection};
use crate::target::TargetArgs;

/// Send one request, with JSON from standard input as its body, and print the body of the response.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    target: TargetArgs,
    /// The method. With GET, the command does not read standard input.
    #[arg(long, default_value = "GET")]
    method: Method,
}

const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);
/// The maximum size of a response, in bytes.
const MAX_RESPONSE: usize = 64 << 20;

/// Fails unless the response is a success.
pub(crate) async fn run(args: Args, out: &mut impl Write) -> anyhow::Result<()> {
    let target = args.target.resolve()?;
    let mut body = Vec::new();
    if args.method != Method::GET {
        std::io::stdin().read_to_end(&mut body).context("cannot read standard input")?;
    }
    let tasks = Tasks::new();
    let exchange = async {
        let mut connection = Connection::open(&target, &tasks).await?;
        let mut request = client::request(&target, args.method, target.own_uri()?, Full::new(Bytes::from(body)));
        request.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let (head, body) = connection.send(request).await?.into_parts();
        let body = Limited::new(body, MAX_RESPONSE).collect().await.map_err(anyhow::Error::from_boxed)?;
        anyhow::Ok((head.status, body.to_bytes()))
    };
    let (status, body) = timeout(REQUEST_TIMEOUT, exchange).await.context("no response in time")??;
    ensure!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&body));
    out.write_all(&body)?;
    Ok(())
}
