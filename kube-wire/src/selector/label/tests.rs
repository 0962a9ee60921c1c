use proptest::prelude::*;
use serde::Deserialize;

use super::*;

/// The results of `labels.Parse` of Kubernetes 1.36.3; see testdata/README.md.
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
    let cases: Vec<Recorded> = serde_json::from_str(include_str!("../../../testdata/label_selectors.json")).unwrap();
    for case in cases {
        match (case.input.parse::<LabelSelector>(), case.canonical) {
            (Ok(parsed), Some(canonical)) => {
                // The two cases in which our canonical form differs.
                let canonical = canonical.replace("==", "=").replace(">007", ">7");
                assert_eq!(parsed.to_string(), canonical, "{:?}", case.input);
            }
            (Err(error), None) => assert_eq!(error.to_string(), case.error, "{:?}", case.input),
            (ours, theirs) => panic!("{:?}: we say {ours:?}, Kubernetes says {theirs:?} {}", case.input, case.error),
        }
    }
}

#[test]
fn a_nul_does_not_hide_the_text_after_it() {
    for bad in ["a=b\0,c=d", "\0a=b", "a\0=b"] {
        assert!(bad.parse::<LabelSelector>().is_err(), "{bad:?}");
    }
}

#[test]
fn duplicate_requirements_select_the_same_objects() {
    let parse = |text: &str| text.parse::<LabelSelector>().unwrap();
    let selector = parse("b,a=1,a in (2,1),a==1,!c,b,a in (1,2,2),a!=1");
    assert_eq!(selector.distinct(), parse("a=1,a!=1,a in (1,2),b,!c"));
    assert_eq!(parse(&vec!["a=b"; 21_000].join(",")).distinct(), parse("a=b"));
    assert_eq!(LabelSelector::everything().distinct(), LabelSelector::everything());
}

#[test]
fn a_set_has_its_values() {
    let values: Vec<_> = (0..100).map(|number| format!("v{number}")).collect();
    let (inside, outside) = (Test::In(values.clone()), Test::NotIn(values.clone()));
    let holds = |of_key: Test, value: Option<&str>| Requirement::new("a", of_key).unwrap().test().holds(value);
    for value in &values {
        assert!(holds(inside.clone(), Some(value)) && !holds(outside.clone(), Some(value)));
    }
    for value in [Some("v100"), Some(""), None] {
        assert!(!holds(inside.clone(), value) && holds(outside.clone(), value));
    }
}

#[test]
fn selectors_are_joined() {
    let theirs: LabelSelector = "z,app in (web)".parse().unwrap();
    let ours = LabelSelector::from_labels([("location", "beijing")]).unwrap();
    let both = theirs.and(ours);
    assert_eq!(both.to_string(), "app in (web),location=beijing,z");
    assert_eq!(both.exact("location"), Some("beijing"));
    assert_eq!(both.exact("app"), Some("web"));
    assert_eq!(both.exact("z"), None);
    assert!(LabelSelector::from_labels([("bad key", "x")]).is_err());
}

#[test]
fn values_of_one_key_are_mapped() {
    let key = "kubernetes.io/metadata.name";
    let text = "app=a,kubernetes.io/metadata.name in (a,b),kubernetes.io/metadata.name!=c,kubernetes.io/metadata.name";
    let selector: LabelSelector = text.parse().unwrap();
    let mapped = selector.clone().map_values(key, |name| Ok::<_, LabelSelectorError>(format!("{name}-vc")));
    assert_eq!(
        mapped.unwrap().to_string(),
        "app=a,kubernetes.io/metadata.name in (a-vc,b-vc),kubernetes.io/metadata.name!=c-vc,kubernetes.io/metadata.name"
    );
    assert!(selector.map_values(key, |_| Ok::<_, LabelSelectorError>("no label".to_owned())).is_err());
}

#[test]
fn matches_as_documented() {
    let labels = |key: &str| match key {
        "a" => Some("5"),
        "b" => Some("x"),
        _ => None,
    };
    for (text, expected) in [
        ("", true),
        ("a", true),
        ("!a", false),
        ("c", false),
        ("!c", true),
        ("a=5,b in (x,y)", true),
        ("b notin (x)", false),
        ("c notin (x)", true),
        ("c!=x", true),
        ("a>4,a<6", true),
        ("a>5", false),
        ("b>1", false),
        ("c<1", false),
    ] {
        assert_eq!(text.parse::<LabelSelector>().unwrap().matches(labels), expected, "{text}");
    }
}

fn label_text() -> impl Strategy<Value = String> {
    "[A-Za-z0-9]([-A-Za-z0-9_.]{0,8}[A-Za-z0-9])?"
}

fn any_test() -> impl Strategy<Value = Test> {
    let value = || prop_oneof![Just(String::new()), label_text()];
    prop_oneof![
        Just(Test::Exists),
        Just(Test::DoesNotExist),
        value().prop_map(Test::Equals),
        value().prop_map(Test::NotEquals),
        prop::collection::vec(value(), 0..4).prop_map(Test::In),
        prop::collection::vec(value(), 0..4).prop_map(Test::NotIn),
        (0..i64::MAX).prop_map(Test::GreaterThan),
        (0..i64::MAX).prop_map(Test::LessThan),
    ]
}

proptest! {
    #[test]
    fn printing_has_an_inverse(
        requirements in prop::collection::vec((label_text(), any_test()), 0..5),
        prefix in prop::option::of("[a-z]{1,5}\\.io/"),
    ) {
        let prefix = prefix.unwrap_or_default();
        let requirements: Vec<_> =
            requirements.into_iter().map(|(key, test)| Requirement::new(&format!("{prefix}{key}"), test).unwrap()).collect();
        let selector = LabelSelector::of(requirements);
        prop_assert_eq!(selector.to_string().parse::<LabelSelector>().unwrap(), selector);
    }

    #[test]
    fn parsed_selectors_print_and_parse_again(text in "[a-c!=<>(), innotin\t0-9-]{0,30}") {
        if let Ok(selector) = text.parse::<LabelSelector>() {
            prop_assert_eq!(selector.to_string().parse::<LabelSelector>().unwrap(), selector);
        }
    }

    #[test]
    fn no_text_panics(text in any::<String>()) {
        let _ = text.parse::<LabelSelector>();
    }
}
