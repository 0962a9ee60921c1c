use proptest::prelude::*;
use serde::Deserialize;

use super::*;

/// The results of `fields.ParseSelector` of Kubernetes 1.36.3; see testdata/README.md.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Recorded {
    input: String,
    canonical: Option<String>,
    #[serde(default)]
    error: String,
}

#[test]
fn parses_and_prints_as_kubernetes_does() {
    let cases: Vec<Recorded> = serde_json::from_str(include_str!("../../../testdata/field_selectors.json")).unwrap();
    for case in cases {
        match (case.input.parse::<FieldSelector>(), case.canonical) {
            (Ok(parsed), Some(canonical)) => {
                assert_eq!(parsed.to_string(), canonical, "{:?}", case.input);
            }
            (Err(error), None) => assert_eq!(error.to_string(), case.error, "{:?}", case.input),
            (ours, theirs) => panic!("{:?}: we say {ours:?}, Kubernetes says {theirs:?} {}", case.input, case.error),
        }
    }
}

#[test]
fn terms_are_found_mapped_and_removed() {
    let selector: FieldSelector = "metadata.namespace=a,metadata.name=x,metadata.namespace!=b".parse().unwrap();
    assert_eq!(selector.exact("metadata.name"), Some("x"));
    assert_eq!(selector.exact("spec.nodeName"), None);
    let mapped = selector.clone().map_values("metadata.namespace", |name| Ok::<_, ()>(format!("{name}-vc"))).unwrap();
    assert_eq!(mapped.to_string(), "metadata.name=x,metadata.namespace!=b-vc,metadata.namespace=a-vc");
    assert_eq!(selector.without("metadata.namespace").to_string(), "metadata.name=x");
}

/// The terms in one order. Parsing sorts the raw text, in which `a==` is after `a=!`, so printing and parsing can swap
/// two terms, as in Kubernetes.
fn in_order(mut selector: FieldSelector) -> FieldSelector {
    selector.terms.sort_by_key(FieldTerm::to_string);
    selector
}

proptest! {
    #[test]
    fn printing_has_an_inverse(terms in prop::collection::vec(("[a-z.]{1,8}", any::<bool>(), any::<String>()), 0..4)) {
        let terms = terms.into_iter().map(|(field, negated, value)| FieldTerm { field, value, negated });
        let built = FieldSelector { terms: terms.collect() };
        let parsed = built.to_string().parse::<FieldSelector>().unwrap();
        prop_assert_eq!(in_order(parsed), in_order(built));
    }

    #[test]
    fn parsed_selectors_print_and_parse_again(text in "[ab=!,\\\\é]{0,20}") {
        if let Ok(selector) = text.parse::<FieldSelector>() {
            let again = selector.to_string().parse::<FieldSelector>().unwrap();
            prop_assert_eq!(in_order(again), in_order(selector));
        }
    }

    #[test]
    fn no_text_panics(text in any::<String>()) {
        let _ = text.parse::<FieldSelector>();
    }
}
