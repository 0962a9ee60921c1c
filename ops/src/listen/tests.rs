use std::collections::VecDeque;
use std::future::pending;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Mutex;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::*;

const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 1);

/// `EMFILE`: "too many open files"; `std` has no kind for it.
const EMFILE: i32 = 24;

/// A socket that returns scripted results, then waits forever.
struct Script(Mutex<VecDeque<io::Result<u32>>>);

impl Accept for Script {
    type Stream = u32;

    async fn accept(&self) -> io::Result<(u32, SocketAddr)> {
        let next = self.0.lock().unwrap().pop_front();
        match next {
            Some(answer) => answer.map(|stream| (stream, NOWHERE)),
            None => pending().await,
        }
    }
}

fn listener(script: impl IntoIterator<Item = io::Result<u32>>, limit: usize) -> Listener<Script> {
    let script = Script(Mutex::new(script.into_iter().collect()));
    Listener::new(script, NOWHERE, NonZeroUsize::new(limit).unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_lack_of_file_descriptors_is_retried_with_back_off() {
    let emfile = || Err(io::Error::from_raw_os_error(EMFILE));
    let script = (0..20).map(|_| emfile()).chain([Ok(7), emfile(), Ok(8)]);
    let listener = listener(script, 10);
    let mut failures = Failures::default();
    let begun = Instant::now();
    assert_eq!(listener.accept(&mut failures).await.stream, 7);
    // 5 + 10 + ... + 640 ms, then twelve times one second.
    assert_eq!(begun.elapsed(), Duration::from_millis(1_275 + 12_000));
    assert_eq!(listener.accept(&mut failures).await.stream, 8);
    assert_eq!(begun.elapsed(), Duration::from_millis(1_275 + 12_000 + 5));
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_died_in_the_backlog_causes_no_pause() {
    let dead = || Err(io::ErrorKind::ConnectionAborted.into());
    let listener = listener([dead(), dead(), Ok(7)], 10);
    let begun = Instant::now();
    assert_eq!(listener.accept(&mut Failures::default()).await.stream, 7);
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn at_most_the_limit_of_connections_is_open() {
    let listener = listener((0..5).map(Ok), 2);
    let tasks = Tasks::new();
    let (opened, mut open) = mpsc::unbounded_channel();
    let running = tasks.clone();
    tasks.spawn("accept", async move {
        listener
            .run(running, "test", |connection| {
                opened.send(connection).unwrap();
                async {}
            })
            .await;
    });
    // With paused time, a timeout passes only when nothing else can go on.
    let mut next = async || tokio::time::timeout(Duration::from_secs(1), open.recv()).await;
    let first = next().await.unwrap().unwrap();
    let _second = next().await.unwrap().unwrap();
    assert!(next().await.is_err());
    drop(first.slot);
    assert_eq!(next().await.unwrap().unwrap().stream, 2);

    assert_eq!(tasks.drain(Duration::from_secs(1), pending::<()>()).await, crate::drain::Drained::Clean);
}

#[tokio::test]
async fn real_sockets_serve_until_cancelled_and_free_their_port() {
    let limit = NonZeroUsize::new(4).unwrap();
    let addr = "127.0.0.1:0".parse().unwrap();
    let listener = Listener::bind(&addr, limit).await.unwrap();
    let bound = listener.bound();
    assert_ne!(bound.port(), 0);
    let taken = Listener::bind(&bound.into(), limit).await.unwrap_err();
    assert_eq!(taken.to_string(), format!("cannot listen on {bound}"));

    let tasks = Tasks::new();
    let accepting = tasks.child();
    let serving = tasks.clone();
    // Connections belong to `tasks`, the socket to `accepting`.
    let socket = accepting.clone();
    accepting.spawn("accept", async move {
        let echo = |connection: Connection| async move {
            assert!(connection.stream.nodelay().unwrap());
            let mut stream = connection.stream;
            let mut byte = [0];
            while stream.read_exact(&mut byte).await.is_ok() {
                stream.write_all(&byte).await.unwrap();
            }
            drop(connection.slot);
        };
        tokio::select! {
            () = socket.cancelled() => {}
            () = listener.run(serving, "echo", echo) => {}
        }
    });

    let mut client = TcpStream::connect(bound).await.unwrap();
    client.write_all(b"a").await.unwrap();
    assert_eq!(client.read_u8().await.unwrap(), b'a');

    accepting.drain(Duration::from_secs(5), pending::<()>()).await;
    assert!(TcpStream::connect(bound).await.is_err());
    client.write_all(b"b").await.unwrap();
    assert_eq!(client.read_u8().await.unwrap(), b'b', "an open connection goes on");
    let again = Listener::bind(&bound.into(), limit).await;
    assert!(again.is_ok(), "the port is free although a connection of it is open");
}
