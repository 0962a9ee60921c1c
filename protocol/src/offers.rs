//! The clusters that an agent serves may change while its tunnel is up, without effects on other streams.
//!
//! The registration opens the connection and cannot be repeated. So if the agent has the [`CAPABILITY`], the proxy-server
//! opens a stream for changes right after the registration ([`crate::stream::OFFERS`]). The agent writes an [`Offers`] to it at
//! once, and another one after each change of its configuration. The proxy-server responds to each with a [`Verdict`]. Each of
//! them is a line of JSON. The stream lasts as long as the tunnel. If it does not exist or ends, the offers of the
//! registration, or the last ones, stay in force.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::registration::MAX_REGISTRATION;
use crate::{Offer, Refusal};

/// An agent that supports the stream announces this capability in its registration.
pub const CAPABILITY: &str = "offers";

/// All clusters that an agent serves now. It no longer serves others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offers {
    /// As in the registration.
    pub clusters: Vec<Offer>,
}

/// The proxy-server's response to an [`Offers`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Why the previous offers stay in force. `None` if the new offers are in force. After a change of its own
    /// configuration, the proxy-server may accept offers that it has refused, and sends another verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Refusal>,
}

/// Assembles lines from the chunks of a stream.
#[derive(Debug, Default)]
pub struct Lines {
    begun: Vec<u8>,
}

/// The peer has sent an invalid line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadLine {
    /// Longer than any valid line.
    #[error("a line is longer than {MAX_REGISTRATION} bytes")]
    TooLong,
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

// === impl Lines ===

impl Lines {
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
        if self.begun.len() + part.len() > MAX_REGISTRATION {
            return Err(BadLine::TooLong);
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
        let clusters = names.iter().map(|name| Offer { name: name.parse().unwrap(), mode: Mode::Virtual });
        Offers { clusters: clusters.collect() }
    }

    #[test]
    fn a_line_that_never_ends_is_refused() {
        let mut lines = Lines::default();
        assert!(lines.take::<Offers>(&vec![b' '; MAX_REGISTRATION]).unwrap().is_empty());
        assert!(matches!(lines.take::<Offers>(b" "), Err(BadLine::TooLong)));
    }

    #[test]
    fn a_verdict_without_a_reason_accepts() {
        assert_eq!(line(&Verdict { refusal: None }), b"{}\n");
        let no = Verdict { refusal: Some(Refusal::new(RefusalReason::NotGranted, "no")) };
        assert_eq!(Lines::default().take::<Verdict>(&line(&no)).unwrap(), [no]);
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
