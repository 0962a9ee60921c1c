//! Random suffixes of names, and hashes of pod templates.

use super::run;

/// The letters and digits of Kubernetes' random strings (apimachinery `util/rand`). They form no words.
const ALPHABET: &str = "bcdfghjklmnpqrstvwxz2456789";

/// The length of the suffix of `generateName`.
const GENERATED: usize = 5;

/// The lengths of hashes. A hash has 32 bits, in decimal, with one letter for each digit.
const HASH: std::ops::RangeInclusive<usize> = 6..=10;

/// Replaces random suffixes by `RANDOM`, and hashes by `HASH`. The hash of a template includes its node selector, so it
/// differs in a virtual cluster.
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
