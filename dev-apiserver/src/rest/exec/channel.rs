//! The channels of a stream: the first byte of each message (KEP-4006).

pub(super) const STDIN: u8 = 0;
pub(super) const STDOUT: u8 = 1;
pub(super) const STDERR: u8 = 2;
pub(super) const ERROR: u8 = 3;
pub(super) const CLOSE: u8 = 255;
