//! Random ends of names, and hashes of pod templates.

use super::run;

/// The letters and digits of Kubernetes' random strings (apimachinery `util/rand`): nothing that could make a word.
const ALPHABET: &str = "bcdfghjklmnpqrstvwxz2456789";

/// The length of the end that `generateName` gives.
const GENERATED: usize = 5;

/// The lengths of hashes: 32 bits in decimal, a letter for each digit.
const HASH: std::ops::RangeInclusive<usize> = 6..=10;

/// Puts `RANDOM` and `HASH` in their places. A hash of a template covers its node selector, which a virtual cluster adds
/// to; so even the hash of the same template is another one there.
pub(super) fn mask(text: &str) -> String {
    run::replace(
        text,
        |char| char.is_ascii_alphanumeric(),
        |before, run, _| {
            if !run.chars().all(|char| ALPHABET.contains(char)) {
                return None;
            }
            let label = before.trim_end_matches(|char: char| !char.is_ascii_alphanumeric());
            if label.len() < before.len() && (label.ends_with("template-hash") || label.ends_with("revision-hash")) {
                return Some("HASH".to_owned());
            }
            let ends_a_name =
                before.strip_suffix('-').is_some_and(|name| name.ends_with(|char: char| char.is_alphanumeric()));
            match run.len() {
                GENERATED if ends_a_name => Some("RANDOM".to_owned()),
                length if ends_a_name && HASH.contains(&length) => Some("HASH".to_owned()),
                _ => None,
            }
        },
    )
}
