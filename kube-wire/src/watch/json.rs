//! Frames of a JSON watch.

use memchr::memchr2;

use super::{Buffer, FrameError};

/// Splits a stream of JSON objects. Accepts pretty-printed frames, and any white space between frames.
///
/// It only counts brackets outside of strings. Each frame has balanced brackets, but the reader of the frame must check
/// whether it is valid JSON.
#[derive(Debug)]
pub struct JsonFrames {
    buffer: Buffer,
    limit: usize,
    /// The number of scanned bytes of the pending frame.
    scanned: usize,
    state: State,
}

/// ```text
/// Between --{--> Inside(1) --{[--> Inside(n+1) --}]--> Inside(n-1) ... --last }--> Between
/// Inside --"--> Text --\--> Escape --any--> Text --"--> Inside
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No frame has begun.
    Between,
    /// Inside of this number of brackets.
    Inside(usize),
    /// In a string, inside of this number of brackets.
    Text(usize),
    /// After a backslash in a string, inside of this number of brackets.
    Escape(usize),
}

// === impl JsonFrames ===

impl JsonFrames {
    /// Frames of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { buffer: Buffer::default(), limit, scanned: 0, state: State::Between }
    }

    /// Adds a chunk. All frames of the previous chunk must have been consumed.
    pub fn push(&mut self, chunk: &[u8]) -> Result<(), FrameError> {
        self.buffer.push(chunk, self.limit)
    }

    /// The next whole frame, from its `{` to its `}`. `None` if it is incomplete.
    pub fn next_frame(&mut self) -> Result<Option<&[u8]>, FrameError> {
        if self.state == State::Between && !self.begin()? {
            return Ok(None);
        }
        let (complete, limit) = (self.scan(), self.limit);
        if self.scanned > limit {
            return Err(FrameError::TooLarge { limit });
        }
        if !complete {
            return Ok(None);
        }
        self.state = State::Between;
        let length = std::mem::take(&mut self.scanned);
        Ok(Some(self.buffer.take(length)))
    }

    /// Checks that the stream ended between frames.
    pub fn finish(&self) -> Result<(), FrameError> {
        let blank = self.buffer.pending().iter().all(u8::is_ascii_whitespace);
        if self.state == State::Between && blank { Ok(()) } else { Err(FrameError::Truncated) }
    }

    /// Skips white space and enters a frame, if one begins.
    fn begin(&mut self) -> Result<bool, FrameError> {
        let pending = self.buffer.pending();
        let blank = pending.iter().position(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n'));
        let first = blank.map(|position| pending[position]);
        self.buffer.skip(blank.unwrap_or(pending.len()));
        match first {
            None => Ok(false),
            Some(b'{') => {
                (self.scanned, self.state) = (1, State::Inside(1));
                Ok(true)
            }
            Some(byte) => Err(FrameError::NotAnObject { byte }),
        }
    }

    /// Scans the remaining bytes. `true` at the end of the frame.
    fn scan(&mut self) -> bool {
        let pending = self.buffer.pending();
        while let Some(rest) = pending.get(self.scanned..).filter(|rest| !rest.is_empty()) {
            let (read, state) = match self.state {
                State::Between => return true,
                State::Escape(depth) => (1, State::Text(depth)),
                State::Text(depth) => match find_end_of_text(rest) {
                    None => (rest.len(), State::Text(depth)),
                    Some(position) if rest[position] == b'"' => (position + 1, State::Inside(depth)),
                    Some(position) => (position + 1, State::Escape(depth)),
                },
                State::Inside(depth) => match rest.iter().position(|byte| is_structural(*byte)) {
                    None => (rest.len(), State::Inside(depth)),
                    Some(position) => (position + 1, Self::after(rest[position], depth)),
                },
            };
            self.scanned += read;
            self.state = state;
        }
        self.state == State::Between
    }

    fn after(byte: u8, depth: usize) -> State {
        match byte {
            b'"' => State::Text(depth),
            b'{' | b'[' => State::Inside(depth + 1),
            _ if depth == 1 => State::Between,
            _ => State::Inside(depth - 1),
        }
    }
}

/// The position of the first quote or backslash. Most strings of an object have about a dozen bytes, for which the
/// start of a vector search takes too long. So only long strings use one.
fn find_end_of_text(text: &[u8]) -> Option<usize> {
    const SHORT: usize = 24;
    let (head, tail) = text.split_at(text.len().min(SHORT));
    if let Some(position) = head.iter().position(|byte| matches!(byte, b'"' | b'\\')) {
        return Some(position);
    }
    memchr2(b'"', b'\\', tail).map(|position| SHORT + position)
}

fn is_structural(byte: u8) -> bool {
    matches!(byte, b'"' | b'{' | b'}' | b'[' | b']')
}
