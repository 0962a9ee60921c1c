//! Finds the end of a value that arrives in chunks.

use super::block;

/// Searches for the end of one value in a sequence of chunks. Scans each byte once.
///
/// It only counts brackets outside of strings, to determine how much to collect. The [`Cursor`](super::Cursor) that reads the
/// value then checks whether it is JSON.
#[derive(Clone, Debug, Default)]
pub struct Boundary {
    state: State,
    depth: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Before the value.
    #[default]
    Before,
    /// In a container, outside of strings.
    Between,
    String,
    /// After a backslash.
    Escape,
    /// In a number or literal.
    Scalar,
    Done,
}

// === impl Boundary ===

impl Boundary {
    /// Scans the next chunk. `Some(n)`: the value ends after the first `n` bytes, which can be zero, because the end of a number
    /// is known only from the next byte. `None`: the value continues after the chunk.
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

/// The number of bytes of a string to skip at once. At least one: the current byte does not end the string.
fn plain(bytes: &[u8]) -> usize {
    bytes.first_chunk().map_or(1, block::plain_prefix).max(1)
}
