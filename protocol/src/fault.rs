//! What the agent says about a stream that failed: whose fault it is, and why it has not connected a CONNECT stream.
//!
//! Both are words in headers of its response, for the access log and for the response to the client. The proxy-server ignores
//! words that it does not know.

use http::{HeaderMap, HeaderValue};

use crate::stream::{FAULT, REASON};

/// Whose fault it is that a request fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The client's.
    Client,
    /// That of the connection between proxy-server and agent.
    Tunnel,
    /// That of the proxy-server or the agent.
    Atoll,
    /// That of the host's API server, or of what is behind it.
    Host,
}

/// Why the agent has not connected a CONNECT stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotConnected {
    /// Its configuration does not have the cluster.
    NotServed,
    /// Its configuration does not have the destination.
    NotAllowed,
    /// The destination has refused the connection.
    Refused,
    /// The destination has not responded.
    TimedOut,
    /// There is no route to the destination.
    NoRoute,
    /// Another error, such as a name that cannot be resolved.
    Failed,
}

// === impl Fault ===

impl Fault {
    const ALL: [Self; 4] = [Self::Client, Self::Tunnel, Self::Atoll, Self::Host];

    /// The word for it, in headers and in logs.
    pub fn word(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Tunnel => "tunnel",
            Self::Atoll => "atoll",
            Self::Host => "host",
        }
    }

    /// Adds the header [`FAULT`].
    pub fn write(self, headers: &mut HeaderMap) {
        headers.insert(FAULT, HeaderValue::from_static(self.word()));
    }

    /// Reads the header [`FAULT`].
    pub fn read(headers: &HeaderMap) -> Option<Self> {
        let word = headers.get(FAULT)?;
        Self::ALL.into_iter().find(|known| known.word().as_bytes() == word.as_bytes())
    }
}

// === impl NotConnected ===

impl NotConnected {
    const ALL: [Self; 6] =
        [Self::NotServed, Self::NotAllowed, Self::Refused, Self::TimedOut, Self::NoRoute, Self::Failed];

    /// The text for the client.
    pub fn text(self) -> &'static str {
        match self {
            Self::NotServed => "this agent does not serve that cluster",
            Self::NotAllowed => "not among this agent's destinations",
            // kubectl replaces every text with "connection refused" by one that blames the proxy (`StandardErrorMessage`
            // in kubectl's `pkg/cmd/util/helpers.go`).
            Self::Refused => "the connection was refused",
            Self::TimedOut => "timed out",
            Self::NoRoute => "no route",
            Self::Failed => "cannot connect",
        }
    }

    /// Whose fault it is.
    pub fn fault(self) -> Fault {
        match self {
            Self::NotServed => Fault::Atoll,
            Self::NotAllowed => Fault::Client,
            Self::Refused | Self::TimedOut | Self::NoRoute | Self::Failed => Fault::Host,
        }
    }

    /// Adds the headers [`REASON`] and [`FAULT`].
    pub fn write(self, headers: &mut HeaderMap) {
        headers.insert(REASON, HeaderValue::from_static(self.text()));
        self.fault().write(headers);
    }

    /// Reads the header [`REASON`].
    pub fn read(headers: &HeaderMap) -> Option<Self> {
        let text = headers.get(REASON)?;
        Self::ALL.into_iter().find(|known| known.text().as_bytes() == text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read() {
        let mut headers = HeaderMap::new();
        assert_eq!((Fault::read(&headers), NotConnected::read(&headers)), (None, None));
        for fault in Fault::ALL {
            fault.write(&mut headers);
            assert_eq!(Fault::read(&headers), Some(fault));
        }
        for reason in NotConnected::ALL {
            reason.write(&mut headers);
            assert_eq!((NotConnected::read(&headers), Fault::read(&headers)), (Some(reason), Some(reason.fault())));
        }
    }

    #[test]
    fn other_words_are_ignored() {
        let mut headers = HeaderMap::new();
        headers.insert(FAULT, HeaderValue::from_static("the connection was refused"));
        headers.insert(REASON, HeaderValue::from_static("an agent of a later version says this"));
        assert_eq!((Fault::read(&headers), NotConnected::read(&headers)), (None, None));
    }
}
