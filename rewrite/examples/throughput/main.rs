//! How fast a list is shown, beside copying it and beside taking it apart with `serde_json`.
//!
//! `cargo run --release -p rewrite --example throughput`
//!
//! The list: 5,000 pods of two virtual clusters in turn, each about 3 KB and as an API server writes it, managed fields
//! included. All ways run over the same bytes in the same process; only the ratios mean anything on a busy machine.

#![expect(clippy::print_stdout, reason = "a program that prints a table")]
#![expect(clippy::disallowed_types, reason = "real time is what is measured")]
#![expect(clippy::cast_precision_loss, reason = "figures for reading")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use rewrite::sink::{Coalesce, Sink};
use rewrite::view::{Filter, ListStream, View};
use rewrite::{Guard, Index, Mapping, schema};

mod pods;

const PODS: usize = 5_000;
const ROUNDS: usize = 7;
/// What arrives in one HTTP/2 frame or read of a socket.
const CHUNKS: [usize; 3] = [16 << 10, 64 << 10, usize::MAX];

/// Counts what a list is cut into.
#[derive(Default)]
struct Count {
    pieces: usize,
    bytes: usize,
}

impl Sink for Count {
    fn emit(&mut self, piece: Bytes) {
        self.pieces += 1;
        self.bytes += black_box(piece).len();
    }
}

fn main() {
    let list = Bytes::from(pods::list(PODS));
    println!("{PODS} pods, {:.1} MB, best of {ROUNDS} rounds\n", list.len() as f64 / 1e6);
    println!("{:<44}{:>10}{:>16}", "", "MB/s", "x serde_json");

    let copy = best(list.len(), || drop(black_box(list.to_vec())));
    let serde = best(list.len(), || {
        let value: serde_json::Value = serde_json::from_slice(&list).expect("we wrote it");
        drop(black_box(serde_json::to_vec(&value).expect("a value is JSON")));
    });
    print("memcpy", copy, serde);
    print("serde_json, from_slice::<Value> and to_vec", serde, serde);

    for chunk in CHUNKS {
        let name = if chunk == usize::MAX { "one chunk".to_owned() } else { format!("{} KiB", chunk >> 10) };
        let speed = best(list.len(), || {
            black_box(show(&list, chunk, Count::default()));
        });
        print(&format!("filter and map, {name}"), speed, serde);
    }
    let speed = best(list.len(), || {
        let mut coalesced = show(&list, 64 << 10, Coalesce::new());
        for piece in coalesced.drain() {
            black_box(piece);
        }
    });
    print("filter and map, 64 KiB, short pieces joined", speed, serde);

    println!();
    for chunk in CHUNKS {
        let count = show(&list, chunk, Count::default());
        println!("chunks of {:>20}: {} pieces, {} bytes", chunk.min(list.len()), count.pieces, count.bytes);
    }
}

/// Shows the list to one of the two virtual clusters.
fn show<S: Sink>(list: &Bytes, chunk: usize, mut sink: S) -> S {
    let mut stream = ListStream::new(view(), schema::program_for("", "v1", "pods"), Filter::ByNamespace);
    let mut rest = list.clone();
    while !rest.is_empty() {
        stream.push(&rest.split_to(chunk.min(rest.len())), &mut sink).expect("we wrote it");
    }
    stream.finish().expect("it is whole");
    sink
}

fn view() -> View {
    let mut index = Index::new();
    for cluster in pods::CLUSTERS {
        for namespace in pods::NAMESPACES {
            let host = format!("{namespace}-{cluster}").parse().expect("a label");
            let cluster = cluster.parse().expect("a label");
            index.insert(host, cluster, namespace.parse().expect("a label")).expect("each is there once");
        }
    }
    let mapping = Mapping::new(pods::CLUSTERS[0].parse().expect("a label"), Arc::new(index));
    let guard = Guard::new([("location".to_owned(), "beijing".to_owned())], []);
    View::new(mapping).hiding(Arc::new(guard))
}

/// Megabytes per second of the fastest round.
fn best(bytes: usize, mut run: impl FnMut()) -> f64 {
    let seconds = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    });
    bytes as f64 / 1e6 / seconds.fold(f64::INFINITY, f64::min)
}

fn print(name: &str, speed: f64, serde: f64) {
    println!("{name:<44}{speed:>10.0}{:>16.1}", speed / serde);
}
