//! HTTP/1.1 on a connection with one request: an upgrade.

use std::io;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response, StatusCode};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// The end of a head.
const END: &[u8] = b"\r\n\r\n";

/// Reads the head of a request. Requests that switch protocols have no body.
pub(crate) async fn read_head(io: &mut (impl AsyncRead + Unpin)) -> io::Result<Request<Bytes>> {
    let mut head = Vec::new();
    while !head.ends_with(END) {
        head.push(io.read_u8().await?);
    }
    let head = String::from_utf8(head).unwrap();
    let mut lines = head.lines();
    let mut words = lines.next().unwrap_or_default().split(' ');
    let mut request = Request::builder().method(words.next().unwrap()).uri(words.next().unwrap());
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        request = request.header(name, value);
    }
    Ok(request.body(Bytes::new()).unwrap())
}

/// Sends a response. After 101, it echoes what the client sends, until the client ends.
pub(crate) async fn respond<S>(mut io: S, head: &Response<()>, body: &[u8]) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut text = format!("HTTP/1.1 {}\r\n", head.status());
    let line = |name: &HeaderName, value: &HeaderValue| format!("{name}: {}\r\n", value.to_str().unwrap());
    text.extend(head.headers().iter().map(|(name, value)| line(name, value)));
    text.push_str("\r\n");
    io.write_all(text.as_bytes()).await?;
    io.write_all(body).await?;
    io.flush().await?;
    if head.status() == StatusCode::SWITCHING_PROTOCOLS {
        let (mut from, mut to) = tokio::io::split(io);
        tokio::io::copy(&mut from, &mut to).await?;
        to.shutdown().await?;
    }
    Ok(())
}
