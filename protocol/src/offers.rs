//! What an agent serves may change while its tunnel is up, and no stream may suffer from that.
//!
//! The registration opened the connection and cannot be repeated, so the proxy-server opens one stream for it, right
//! after the registration ([`crate::stream::OFFERS`]), if the agent has the [`CAPABILITY`]. On it the agent writes an
//! [`Offers`] at once, and another after each change of its configuration; the proxy-server answers each with a
//! [`Verdict`]. Each is a line of JSON. The stream lives as long as the tunnel; where it is missing or ends, the offers of
//! the registration, or the last ones, stay.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::registration::MAX_REGISTRATION;
use crate::{Offer, Refusal};

/// An agent that answers the stream says so in its registration.
pub const CAPABILITY: &str = "offers";

/// All that an agent serves now: what is not in it is served no more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offers {
    /// As in the registration.
    pub clusters: Vec<Offer>,
}

/// What the proxy-server says to an [`Offers`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Why what was served before stays as it was; nothing if the new offers are in force. After a change of its own
    /// configuration, the proxy-server may accept what it has refused, and says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Refusal>,
}

/// Puts lines together out of the chunks in which a stream brings them.
#[derive(Debug, Default)]
pub struct Lines {
    begun: Vec<u8>,
}

/// What came is no line that we understand.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadLine {
    /// Longer than any line of ours.
    #[error("a line of more than {MAX_REGISTRATION} bytes")]
    TooLong,
    /// Not JSON of this shape.
    #[error("a line that is not understood")]
    Json(#[from] serde_json::Error),
}

/// One line, with its end.
pub fn line(value: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(value).expect("strings and enums always serialise");
    line.push(b'\n');
    line
}

// === impl Lines ===

impl Lines {
    /// Takes a chunk in; returns the values of the lines that it completes, in their order.
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
    fn a_verdict_is_yes_unless_it_says_why_not() {
        assert_eq!(line(&Verdict { refusal: None }), b"{}\n");
        let no = Verdict { refusal: Some(Refusal::new(RefusalReason::NotGranted, "no")) };
        assert_eq!(Lines::default().take::<Verdict>(&line(&no)).unwrap(), [no]);
    }

    proptest! {
        #[test]
        fn lines_come_out_as_they_went_in(cuts in proptest::collection::vec(0_usize..200, 0..6)) {
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
