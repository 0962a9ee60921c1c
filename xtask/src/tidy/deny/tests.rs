use super::*;

use crate::tidy::graph::tests::workspace;

const POLICY: &str = r#"
[graph]
targets = ["x86_64-unknown-linux-gnu"]

[bans]
multiple-versions = "deny"
wildcards = "deny"
allow-wildcard-paths = true
deny = [{ crate = "openssl", reason = "two TLS libraries" }]
skip = [
    { crate = "syn:2", reason = "the old one" },
]

[licenses]
allow = [
    "Apache-2.0",
    "MIT",
]

[sources]
unknown-registry = "deny"
unknown-git = "deny"
allow-registry = ["https://github.com/rust-lang/crates.io-index"]
"#;

/// A workspace that the policy has nothing against: all that it allows is used.
const CRATES: &[(&str, &str)] = &[("a", "syn@2.0.1, syn@3.0.0, b@1.0.0")];

fn lines(policy: &str, crates: &[(&str, &str)]) -> Vec<String> {
    let crates = [CRATES, crates].concat();
    let manifest = ("z/Cargo.toml".into(), "[dependencies]\ntls = \"1\"\n".to_owned());
    let tree = std::iter::once(manifest).collect();
    let findings = check(&Policy::parse(policy).unwrap(), &workspace(&crates), &tree);
    findings.iter().map(ToString::to_string).collect()
}

#[track_caller]
fn check_lines(policy: &str, crates: &[(&str, &str)], expected: &[&str]) {
    let found = lines(policy, crates);
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.starts_with(expected), "{found} does not begin with {expected}");
    }
}

#[test]
fn what_the_policy_allows_is_fine() {
    check_lines(POLICY, &[], &[]);
}

#[test]
fn a_banned_crate_is_found_with_its_way_in() {
    check_lines(
        POLICY,
        &[("z", "tls@1.0.0"), ("tls@1.0.0", "openssl@0.10.1")],
        &["z/Cargo.toml:2: a banned crate: z -> tls -> openssl (two TLS libraries); turn off"],
    );
}

#[test]
fn two_versions_are_found_unless_one_is_skipped() {
    let expected = "deny.toml:10: `b` is built in several versions: 1.0.0 by a -> b, 2.0.0 by z -> b; agree";
    check_lines(POLICY, &[("z", "b@2.0.0")], &[expected]);
    check_lines(&POLICY.replace("syn:2", "syn@2.0.1"), &[], &[]);
}

#[test]
fn a_skip_that_skips_nothing_is_found() {
    for spec in ["syn:1", "syn@2.0.0"] {
        let expected =
            ["deny.toml:10: `syn` is built in several versions: 2.0.1 by a -> syn, 3.0.0 by", "deny.toml:11: `syn:"];
        check_lines(&POLICY.replace("syn:2", spec), &[], &expected);
    }
}

#[test]
fn licences_are_allowed_by_name() {
    let policy = POLICY.replace("\"MIT\"", "\"ISC\"");
    check_lines(
        &policy,
        &[],
        &[
            "a/Cargo.toml:1: `a -> b` is under MIT, which is not allowed",
            "a/Cargo.toml:1: `a -> syn` is under MIT",
            "a/Cargo.toml:1: `a -> syn` is under MIT",
            "deny.toml:17: nothing is under ISC; remove it",
        ],
    );
}

#[test]
fn a_stranger_registry_is_found() {
    let policy = POLICY.replace("rust-lang/crates.io-index", "example/index");
    let found = lines(&policy, &[]);
    assert_eq!(found.len(), 3);
    assert!(found[0].contains("`a -> b` comes from registry+https://github.com/rust-lang"));
}

#[test]
fn a_rule_that_nobody_would_check_is_refused() {
    for (from, to) in [
        ("targets", "exclude = []\ntargets"),
        ("wildcards = \"deny\"", "wildcards = \"warn\""),
        ("[sources]", "[source]"),
        ("syn:2", "syn:two"),
    ] {
        assert!(Policy::parse(&POLICY.replace(from, to)).is_err(), "{to}");
    }
    assert!(Policy::parse(&format!("{POLICY}\n[advisories]\nyanked = \"deny\"\n")).is_ok());
}
