//! Selectors: what parses prints as something that means the same.
#![no_main]

use kube_wire::selector::{FieldSelector, LabelSelector};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &str| {
    if let Ok(selector) = data.parse::<LabelSelector>() {
        let again: LabelSelector = selector.to_string().parse().expect("what was printed parses");
        assert_eq!(again.to_string(), selector.to_string());
    }
    if let Ok(selector) = data.parse::<FieldSelector>() {
        let again: FieldSelector = selector.to_string().parse().expect("what was printed parses");
        let sorted = |selector: &FieldSelector| {
            let mut terms: Vec<String> = selector.terms().iter().map(ToString::to_string).collect();
            terms.sort_unstable();
            terms
        };
        assert_eq!(sorted(&again), sorted(&selector));
    }
});
