//! Where a value ends that arrives in pieces.

use super::block;

/// Looks for the end of one value in a sequence of chunks, each byte once.
///
/// It only counts brackets outside of strings: it says how much to collect. Whether that is JSON is found out by the
/// [`Cursor`](super::Cursor) that then reads it.
#[derive(Clone, Debug, Default)]
pub struct Boundary {
    state: State,
    depth: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Nothing of the value seen.
    #[default]
    Before,
    /// In a container, outside of strings.
    Between,
    String,
    /// Behind a backslash.
    Escape,
    /// In a number or literal.
    Scalar,
    Done,
}

// === impl Boundary ===

impl Boundary {
    /// Looks at the next chunk. `Some(n)`: the value ends with its first `n` bytes, which may be none, since a number
    /// is known to have ended only when something else follows. `None`: it goes on behind the chunk.
    pub fn find(&mut self, chunk: &[u8]) -> Option<usize> {
        let mut at = 0;
        while self.state != State::Done {
            let &byte = chunk.get(at)?;
            self.state = match (self.state, byte) {
                (State::Before, b' ' | b'\t' | b'\r' | b'\n') => State::Before,
                (State::Before | State::Between, b'"') | (State::Escape, _) => State::String,
                (State::Before | State::Between, b'{' | b'[') => {
                    self.depth += 1;
                    State::Between
                }
                (State::Between, b'}' | b']') => {
                    self.depth -= 1;
                    if self.depth == 0 { State::Done } else { State::Between }
                }
                (State::String, b'"') if self.depth == 0 => State::Done,
                (State::Between, _) | (State::String, b'"') => State::Between,
                (State::String, b'\\') => State::Escape,
                (State::String, _) => {
                    at += plain(&chunk[at..]);
                    continue;
                }
                (State::Scalar, b',' | b']' | b'}' | b' ' | b'\t' | b'\r' | b'\n') => {
                    self.state = State::Done;
                    return Some(at);
                }
                (State::Before | State::Scalar, _) => State::Scalar,
                (State::Done, _) => State::Done,
            };
            at += 1;
        }
        Some(at)
    }
}

/// How many bytes of a string to pass at once; at least one, the byte that is known to end nothing.
fn plain(bytes: &[u8]) -> usize {
    bytes.first_chunk().map_or(1, block::plain_prefix).max(1)
}
