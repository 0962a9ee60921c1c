//! Skipping a value, and entering each of its containers, accept the same texts and end at the same byte.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rewrite::json::{Cursor, Edits, Outcome, Malformed};

/// Containers below this level are skipped by both, so that the recursion ends.
const DEEPEST: usize = 100;

fuzz_target!(|data: &[u8]| {
    let mut skipped = Cursor::new(data, 0, 0);
    let mut entered = skipped.clone();
    let (skipped_to, entered_to) = (skipped.skip(), enter(&mut entered, 0));
    assert_eq!(skipped_to, entered_to);
    if skipped_to.is_ok() {
        assert_eq!(skipped.at(), entered.at());
    }
});

fn enter(cursor: &mut Cursor<'_>, level: usize) -> Result<(), Malformed> {
    let deeper = |cursor: &mut Cursor<'_>| enter(cursor, level + 1).map(|()| Outcome::Keep);
    match cursor.peek()? {
        b'{' if level < DEEPEST => cursor.object(&mut Edits::new(), |cursor, _, _| deeper(cursor)).map(drop),
        b'[' if level < DEEPEST => cursor.array(&mut Edits::new(), |cursor, _, _| deeper(cursor)).map(drop),
        _ => cursor.skip(),
    }
}
