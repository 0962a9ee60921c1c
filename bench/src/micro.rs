//! How fast the engine is, beside copying the same bytes and beside taking them apart with `serde_json` and printing
//! them again; and how much it allocates. All in one process, so that the ratios mean something on a busy machine.
//!
//! Reading order: `engine` (what the agent does with a body), `speed`, `report`.

mod engine;
mod report;
mod speed;

use std::hint::black_box;
use std::io::Write;

use bytes::Bytes;
use rewrite::sink::Coalesce;

use crate::allocations::count;
use crate::pods;
use engine::{Body, Count};
use report::{BodyReport, ListReport, Report, Row};
use speed::Speed;

/// Measure the engine: lists of responses, and request bodies.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The number of pods in a list. Can be given several times. The default is 500, 5000 and 20000.
    #[arg(long = "pods", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pods: Vec<u32>,
    /// The number of rounds, of which the fastest counts.
    #[arg(long, value_name = "N", default_value = "7", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    rounds: u32,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// The chunk sizes: one HTTP/2 frame, one read of a socket, the whole body.
const CHUNKS: [(&str, usize); 3] = [("16 KiB", 16 << 10), ("64 KiB", 64 << 10), ("one", usize::MAX)];
/// The chunk size for cases with one figure.
const USUAL: usize = 64 << 10;
/// The repetitions of a body, which is too short to measure once.
const BODIES_A_ROUND: u32 = 2_000;

pub(crate) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<()> {
    let usual = [500, 5_000, 20_000];
    let sizes = if args.pods.is_empty() { &usual[..] } else { &args.pods };
    let report = Report {
        lists: sizes.iter().map(|pods| list(*pods, args.rounds)).collect(),
        bodies: engine::bodies()?.iter().map(|one| body(one, args.rounds)).collect::<anyhow::Result<_>>()?,
    };
    if args.json {
        serde_json::to_writer(&mut *out, &report)?;
        writeln!(out)?;
    } else {
        write!(out, "{report}")?;
    }
    Ok(())
}

fn list(pods: u32, rounds: u32) -> ListReport {
    let list = Bytes::from(pods::list(pods as usize));
    let mut rows = vec![Row::new("memcpy", Speed::of(list.len(), rounds, || drop(black_box(list.to_vec()))))];
    let dom = Speed::of(list.len(), rounds, || drop(black_box(dom(&list))));
    rows.push(Row::new("serde_json, from_slice::<Value> and to_vec", dom));
    for (name, chunk) in CHUNKS {
        let speed = Speed::of(list.len(), rounds, || {
            black_box(engine::show(&list, chunk, Count::default()));
        });
        rows.push(Row::new(&format!("filter and map, chunks of {name}"), speed));
    }
    // What the agent does: short pieces are copied together before they become frames.
    let joined = Speed::of(list.len(), rounds, || {
        let mut joined = engine::show(&list, USUAL, Coalesce::new());
        joined.drain().for_each(|piece| drop(black_box(piece)));
    });
    rows.push(Row::new("filter and map, 64 KiB, pieces joined", joined));
    let mut pieces = Count::default();
    let allocations = count(|| pieces = engine::show(&list, USUAL, Count::default()));
    let in_one = engine::allocations(&list);
    let of_dom = count(|| drop(black_box(self::dom(&list))));
    ListReport {
        pods,
        bytes: list.len(),
        rows,
        pieces: pieces.pieces,
        shown: pieces.bytes,
        allocations,
        in_one,
        of_dom,
    }
}

fn body(body: &Body, rounds: u32) -> anyhow::Result<BodyReport> {
    body.check()?;
    let bytes = body.bytes.len() * BODIES_A_ROUND as usize;
    let many = |run: &dyn Fn()| Speed::of(bytes, rounds, || (0..BODIES_A_ROUND).for_each(|_| run()));
    let mut rows = vec![
        Row::new("memcpy", many(&|| drop(black_box(body.bytes.to_vec())))),
        Row::new("map", many(&|| drop(black_box(body.map())))),
    ];
    // The same object in JSON, whatever the body is in: bytes per second would compare different things.
    let of_dom = many(&|| drop(black_box(dom(&body.json))));
    rows.insert(1, Row::new("serde_json, the same object in JSON", of_dom));
    Ok(BodyReport {
        name: body.name.clone(),
        bytes: body.bytes.len(),
        rows,
        allocations: count(|| drop(black_box(body.map()))),
        of_dom: count(|| drop(black_box(dom(&body.json)))),
    })
}

/// A round trip.
fn dom(json: &[u8]) -> Vec<u8> {
    let value: serde_json::Value = serde_json::from_slice(json).expect("what is measured is JSON");
    serde_json::to_vec(&value).expect("a value is JSON")
}
