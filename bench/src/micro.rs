//! Measures the throughput and the allocations of the rewriting engine. It compares the throughput with copying the
//! same bytes, and with parsing and serializing them with `serde_json`. All measurements run in one process, so that
//! their ratios are comparable.
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

/// Measure the rewriting engine with lists of pods and with request bodies.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The number of pods in a list. Can be given several times. The default is 500, 5000 and 20000.
    #[arg(long = "pods", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pods: Vec<u32>,
    /// The number of rounds. The fastest one counts.
    #[arg(long, value_name = "N", default_value = "7", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    rounds: u32,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// The length of an HTTP/2 frame.
const FRAME: usize = 16 << 10;
/// The chunk size in cases with one figure: a read from a socket.
const DEFAULT_CHUNK: usize = 64 << 10;
/// The repetitions in one round. One body is too short to measure.
const REPETITIONS: u32 = 2_000;

pub(crate) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<()> {
    let default = [500, 5_000, 20_000];
    let sizes = if args.pods.is_empty() { &default[..] } else { &args.pods };
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
    let mapped = |chunk| {
        black_box(engine::rewrite_list(&list, chunk, Count::default()));
    };
    // The agent also copies short pieces together before it sends them.
    let joined = || {
        let mut joined = engine::rewrite_list(&list, DEFAULT_CHUNK, Coalesce::new());
        joined.drain().for_each(|piece| drop(black_box(piece)));
    };
    let rows = [
        "memcpy",
        "serde_json, from_slice::<Value> and to_vec",
        "filter and map, chunks of 16 KiB",
        "filter and map, chunks of 64 KiB",
        "filter and map, chunks of one",
        "filter and map, 64 KiB, pieces joined",
    ];
    let speeds = Speed::of_each(
        list.len(),
        rounds,
        [
            &|| drop(black_box(list.to_vec())),
            &|| drop(black_box(dom(&list))),
            &|| mapped(FRAME),
            &|| mapped(DEFAULT_CHUNK),
            &|| mapped(usize::MAX),
            &joined,
        ],
    );
    let rows = rows.iter().zip(speeds).map(|(name, speed)| Row::new(name, speed)).collect();
    let mut pieces = Count::default();
    let allocations = count(|| pieces = engine::rewrite_list(&list, DEFAULT_CHUNK, Count::default()));
    let in_one = engine::allocations(&list);
    let of_dom = count(|| drop(black_box(dom(&list))));
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
    let bytes = body.bytes.len() * REPETITIONS as usize;
    let many = |run: &dyn Fn()| (0..REPETITIONS).for_each(|_| run());
    let [copied, of_dom, mapped] = Speed::of_each(
        bytes,
        rounds,
        [
            &|| many(&|| drop(black_box(body.bytes.to_vec()))),
            // The time for the same object in JSON, also if the body is protobuf. A comparison by bytes would be wrong.
            &|| many(&|| drop(black_box(dom(&body.json)))),
            &|| many(&|| drop(black_box(body.map()))),
        ],
    );
    let rows = vec![
        Row::new("memcpy", copied),
        Row::new("serde_json, the same object in JSON", of_dom),
        Row::new("map", mapped),
    ];
    Ok(BodyReport {
        name: body.name.clone(),
        bytes: body.bytes.len(),
        rows,
        allocations: count(|| drop(black_box(body.map()))),
        of_dom: count(|| drop(black_box(dom(&body.json)))),
    })
}

/// Parses and serializes JSON.
fn dom(json: &[u8]) -> Vec<u8> {
    let value: serde_json::Value = serde_json::from_slice(json).expect("the body is JSON");
    serde_json::to_vec(&value).expect("a Value can be serialized")
}
