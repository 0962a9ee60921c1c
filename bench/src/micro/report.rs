//! The report about the engine, as text and as JSON.

use std::fmt;

use serde::Serialize;

use super::speed::Speed;
use crate::allocations::Allocations;

/// The report.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) lists: Vec<ListReport>,
    pub(super) bodies: Vec<BodyReport>,
}

/// The figures for a list of one length.
#[derive(Debug, Serialize)]
pub(super) struct ListReport {
    pub(super) pods: u32,
    pub(super) bytes: usize,
    #[serde(serialize_with = "rows")]
    pub(super) rows: Vec<Row>,
    /// The number of pieces of the rewritten list, with chunks of 64 KiB.
    pub(super) pieces: usize,
    pub(super) shown: usize,
    /// Of the engine, with chunks of 64 KiB. A buffer assembles tokens that end in the next chunk.
    pub(super) allocations: Allocations,
    /// Of the engine, with one chunk. Only allocations for each item could grow with the list.
    pub(super) in_one: Allocations,
    /// Of `serde_json`.
    pub(super) of_dom: Allocations,
}

/// The figures for the body of a request.
#[derive(Debug, Serialize)]
pub(super) struct BodyReport {
    pub(super) name: String,
    pub(super) bytes: usize,
    #[serde(serialize_with = "rows")]
    pub(super) rows: Vec<Row>,
    pub(super) allocations: Allocations,
    pub(super) of_dom: Allocations,
}

/// A measurement. The first row is `memcpy`, and the second one `serde_json`.
#[derive(Debug)]
pub(super) struct Row {
    name: String,
    speed: Speed,
}

/// A row with its ratios, as it is printed.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Figures<'a> {
    name: &'a str,
    megabytes_per_second: f64,
    times_serde_json: f64,
    of_memcpy: f64,
}

// === impl Row ===

impl Row {
    pub(super) fn new(name: &str, speed: Speed) -> Self {
        Self { name: name.to_owned(), speed }
    }
}

fn figures(rows: &[Row]) -> impl Iterator<Item = Figures<'_>> {
    rows.iter().map(|Row { name, speed }| Figures {
        name,
        megabytes_per_second: speed.megabytes_per_second(),
        times_serde_json: speed.ratio_to(rows[1].speed),
        of_memcpy: speed.ratio_to(rows[0].speed),
    })
}

fn rows<S: serde::Serializer>(rows: &[Row], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(figures(rows))
}

fn table(f: &mut fmt::Formatter<'_>, rows: &[Row], allocations: &[(&str, Allocations)]) -> fmt::Result {
    writeln!(f, "  {:<44}{:>10}{:>14}{:>12}", "", "MB/s", "x serde_json", "of memcpy")?;
    for Figures { name, megabytes_per_second, times_serde_json, of_memcpy } in figures(rows) {
        writeln!(f, "  {name:<44}{megabytes_per_second:>10.0}{times_serde_json:>14.1}{of_memcpy:>12.2}")?;
    }
    for (name, Allocations { count, bytes }) in allocations {
        writeln!(f, "  allocations, {name}: {count}, {bytes} bytes")?;
    }
    Ok(())
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ListReport { pods, bytes, rows, pieces, shown, allocations, in_one, of_dom } in &self.lists {
            writeln!(f, "list of {pods} pods, {bytes} bytes; shown {shown} in {pieces} pieces")?;
            let (chunks, one, dom) = ("engine, chunks of 64 KiB", "engine, one chunk", "serde_json");
            table(f, rows, &[(chunks, *allocations), (one, *in_one), (dom, *of_dom)])?;
        }
        for BodyReport { name, bytes, rows, allocations, of_dom } in &self.bodies {
            writeln!(f, "{name}, {bytes} bytes")?;
            table(f, rows, &[("engine", *allocations), ("serde_json", *of_dom)])?;
        }
        Ok(())
    }
}
