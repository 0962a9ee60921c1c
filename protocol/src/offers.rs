//! The clusters that an agent serves may change while its tunnel is up, without effects on other streams.
//!
//! The registration opens the connection and cannot be repeated. So if the agent has the [`CAPABILITY`], the proxy-server
//! opens a stream for changes right after the registration ([`crate::stream::OFFERS`]). The agent writes an [`Offers`] to it at
//! once, and another one after each change of its configuration. The proxy-server responds to each with a [`Verdict`], and
//! sends another one when the verdict changes. Each of them is a line of JSON. If the stream does not exist or fails, the offers of
//! the registration, or the last ones, stay in force.
//!
//! The agent ends the stream shortly before the tunnel stops accepting requests. The proxy-server then sends new requests through
//! other tunnels. Open streams continue. Earlier agents send GOAWAY at the same time, and earlier proxy-servers ignore the end of an
//! agent's stream.
//!
//! The proxy-server decides about each cluster separately: a cluster that it refuses does not affect the others. It
//! refuses a whole registration only if it refuses all of its clusters. A proxy-server of protocol 1.0 accepted either all
//! clusters or none, and [`Verdict::refused`] is empty in its verdicts.

use std::fmt;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{ClusterName, Offer, Refusal};

/// The size limit of the offers of an agent, in bytes: a thousand clusters with many labels for Karmada. Proxy-servers of earlier
/// versions accept 64 KiB.
const MAX_LINE: usize = 1024 * 1024;

/// The size limit of the offers of another proxy-server, in bytes: more than a hundred thousand clusters.
const MAX_LINE_OF_PEER: usize = 16 * 1024 * 1024;

/// The time from an [`Offers`] to the next read of the stream by the proxy-server. A check of offers holds a lock, and an agent may
/// send offers at any rate.
pub const MIN_INTERVAL: Duration = Duration::from_millis(200);

/// The time from the end of the stream to GOAWAY.
///
/// The proxy-server stops choosing the tunnel when it reads the end. The requests that it has queued by then must be written before it
/// answers the PING of the graceful shutdown: `h2` writes the PONG before queued requests, and the agent ignores requests that arrive
/// after the PONG. The round trip does not matter, because both signals travel in order.
pub const GOAWAY_DELAY: Duration = Duration::from_millis(500);

const _: () = assert!(GOAWAY_DELAY.as_millis() > MIN_INTERVAL.as_millis(), "the end is read before GOAWAY");

/// The maximum number of names in the text of [`RefusedClusters`].
const MAX_NAMES: usize = 3;

/// An agent that supports the stream announces this capability in its registration.
pub const CAPABILITY: &str = "offers";

/// All clusters that an agent serves now. It no longer serves others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offers {
    /// As in the registration.
    pub clusters: Vec<Offer>,
}

/// The proxy-server's response to an [`Offers`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Why not all of the offers are in force: the summary of `refused`. A proxy-server of protocol 1.0 sends it alone, and
    /// then the previous offers stay in force as a whole. `None` if all offers are in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Refusal>,
    /// The offers that are not in force. All others are. The proxy-server checks them again by itself, and sends another
    /// verdict when the result changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedClusters>,
    /// The proxy-server is stopping. Agents dial again, and keep this tunnel until it ends.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub draining: bool,
}

/// Clusters that are refused for the same reason. There are few reasons, so a verdict about a thousand clusters is not
/// longer than their offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedClusters {
    /// Their names, as in the offers.
    pub clusters: Vec<ClusterName>,
    /// The reason. The message does not name the clusters.
    pub refusal: Refusal,
}

/// Assembles lines from the chunks of a stream.
#[derive(Debug)]
pub struct Lines {
    begun: Vec<u8>,
    max: usize,
}

/// The peer has sent an invalid line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadLine {
    /// Longer than any valid line.
    #[error("a line is longer than {0} bytes")]
    TooLong(usize),
    /// Not JSON of this shape.
    #[error("a line that cannot be parsed")]
    Json(#[from] serde_json::Error),
}

/// One line, with its newline.
pub fn line(value: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(value).expect("strings and enums always serialise");
    line.push(b'\n');
    line
}

// === impl Verdict ===

impl Verdict {
    /// The verdict that refuses these clusters and accepts the others.
    pub fn new(refused: Vec<RefusedClusters>) -> Self {
        Self { refusal: RefusedClusters::summary(&refused), refused, draining: false }
    }
}

// === impl RefusedClusters ===

impl RefusedClusters {
    /// One refusal for all of them: the reason of the first, and all messages. `None` if nothing is refused.
    pub fn summary(all: &[Self]) -> Option<Refusal> {
        let first = all.first()?;
        let messages: Vec<_> = all.iter().map(Self::to_string).collect();
        Some(Refusal { message: messages.join("; "), ..first.refusal.clone() })
    }
}

/// The first names, and the message.
impl fmt::Display for RefusedClusters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.clusters.len() == 1 { "cluster " } else { "clusters " })?;
        for (number, name) in self.clusters.iter().take(MAX_NAMES).enumerate() {
            write!(f, "{}{name}", if number == 0 { "" } else { ", " })?;
        }
        match self.clusters.len().saturating_sub(MAX_NAMES) {
            0 => {}
            more => write!(f, " and {more} more")?,
        }
        write!(f, ": {}", self.refusal)
    }
}

// === impl Lines ===

impl Default for Lines {
    /// The lines of an agent.
    fn default() -> Self {
        Self { begun: Vec::new(), max: MAX_LINE }
    }
}

impl Lines {
    /// The lines of another proxy-server.
    pub fn of_peer() -> Self {
        Self { begun: Vec::new(), max: MAX_LINE_OF_PEER }
    }

    /// Adds a chunk. Returns the values of the lines that it completes, in order.
    pub fn take<T: DeserializeOwned>(&mut self, chunk: &[u8]) -> Result<Vec<T>, BadLine> {
        let mut values = Vec::new();
        let mut rest = chunk;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.extend(&rest[..end])?;
            rest = &rest[end + 1..];
            values.push(serde_json::from_slice(&std::mem::take(&mut self.begun))?);
        }
        self.extend(rest)?;
        Ok(values)
    }

    fn extend(&mut self, part: &[u8]) -> Result<(), BadLine> {
        if self.begun.len() + part.len() > self.max {
            return Err(BadLine::TooLong(self.max));
        }
        self.begun.extend_from_slice(part);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::RefusalReason;
    use crate::registration::Mode;

    fn offers(names: &[&str]) -> Offers {
        let clusters = names.iter().map(|name| Offer::new(name.parse().unwrap(), Mode::Virtual));
        Offers { clusters: clusters.collect() }
    }

    #[test]
    fn a_line_that_never_ends_is_refused() {
        let mut lines = Lines::default();
        assert!(lines.take::<Offers>(&vec![b' '; MAX_LINE]).unwrap().is_empty());
        assert!(matches!(lines.take::<Offers>(b" "), Err(BadLine::TooLong(_))));
    }

    fn not_granted(names: &[&str]) -> RefusedClusters {
        let clusters = names.iter().map(|name| name.parse().unwrap()).collect();
        RefusedClusters { clusters, refusal: Refusal::new(RefusalReason::NotGranted, "not granted") }
    }

    #[test]
    fn a_verdict_without_a_reason_accepts() {
        assert_eq!(line(&Verdict::new(Vec::new())), b"{}\n");
        let no = Verdict::new(vec![not_granted(&["a", "b"])]);
        assert_eq!(Lines::default().take::<Verdict>(&line(&no)).unwrap(), [no]);
    }

    #[test]
    fn a_summary_has_the_first_names_and_all_reasons() {
        assert_eq!(RefusedClusters::summary(&[]), None);
        let refusal = Refusal::new(RefusalReason::Conflict, "taken");
        let taken = RefusedClusters { clusters: vec!["f".parse().unwrap()], refusal };
        let all = [not_granted(&["a", "b", "c", "d", "e"]), taken];
        let summary = RefusedClusters::summary(&all).unwrap();
        assert_eq!(summary.reason, RefusalReason::NotGranted);
        assert_eq!(summary.message, "clusters a, b, c and 2 more: not granted; cluster f: taken");
    }

    /// What an agent of protocol 1.0 reads, recorded from its source.
    #[derive(Debug, PartialEq, Eq, Deserialize)]
    struct Verdict10 {
        #[serde(default)]
        refusal: Option<Refusal>,
    }

    #[test]
    fn an_agent_of_1_0_reads_the_summary_of_a_verdict() {
        let verdict = Verdict::new(vec![not_granted(&["ke-beijing"])]);
        let read = Lines::default().take::<Verdict10>(&line(&verdict)).unwrap().swap_remove(0);
        let refusal = Refusal::new(RefusalReason::NotGranted, "cluster ke-beijing: not granted");
        assert_eq!(read, Verdict10 { refusal: Some(refusal) });
        let accepted = Lines::default().take::<Verdict10>(&line(&Verdict::default())).unwrap();
        assert_eq!(accepted, [Verdict10 { refusal: None }]);
    }

    #[test]
    fn the_verdict_of_a_server_of_1_0_names_no_clusters() {
        let recorded = b"{\"refusal\":{\"reason\":\"NotGranted\",\"message\":\"no\"}}\n{}\n";
        let refusal = Some(Refusal::new(RefusalReason::NotGranted, "no"));
        let read = Lines::default().take::<Verdict>(recorded).unwrap();
        assert_eq!(read, [Verdict { refusal, ..Verdict::default() }, Verdict::default()]);
    }

    #[test]
    fn a_verdict_that_refuses_everything_is_not_longer_than_the_offers() {
        let names: Vec<_> = (0..1000).map(|number| format!("c{number:03}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let longest = line(&offers(&names)).len();
        let verdict = line(&Verdict::new(vec![not_granted(&names)])).len();
        assert!(verdict < longest && longest < MAX_LINE, "{verdict} {longest}");
    }

    proptest! {
        #[test]
        fn lines_have_an_inverse(cuts in proptest::collection::vec(0_usize..200, 0..6)) {
            let sent = [offers(&["a"]), offers(&[]), offers(&["ke-beijing", "ke-hangzhou"])];
            let bytes: Vec<u8> = sent.iter().flat_map(line).collect();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let mut lines = Lines::default();
            let mut got = Vec::new();
            for cut in cuts.windows(2) {
                got.extend(lines.take::<Offers>(&bytes[cut[0]..cut[1]]).unwrap());
            }
            prop_assert_eq!(got, sent);
        }

        #[test]
        fn hostile_bytes_are_refused_not_fatal(chunk in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Lines::default().take::<Offers>(&chunk);
            let _ = Lines::default().take::<Verdict>(&chunk);
        }
    }
}
