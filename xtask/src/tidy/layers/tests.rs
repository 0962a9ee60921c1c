use super::*;

use crate::tidy::graph::tests::workspace;

#[track_caller]
fn check_graph(crates: &[(&str, &str)], expected: &[&str]) {
    let manifest = "[dependencies]\nrewrite = \"1\"\n";
    let file = |name: &str| (format!("{name}/Cargo.toml").into(), manifest.to_owned());
    let tree = crates.iter().map(|(name, _)| file(name)).collect();
    let found: Vec<String> = check(&workspace(crates), &tree).iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.contains(expected), "{found} lacks {expected}");
    }
}

#[track_caller]
fn check_text(path: &str, text: &str, expected: &[&str]) {
    let found: Vec<String> =
        check_source(&Source::new(Path::new(path), text)).iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.starts_with(expected), "{found} does not begin with {expected}");
    }
}

#[test]
fn arrows_that_point_down_are_fine() {
    check_graph(
        &[
            ("atoll", "proxy-agent, proxy-server"),
            ("proxy-agent", "rewrite, tunnel, dev:dev-apiserver"),
            ("proxy-server", "tunnel, kube-wire"),
            ("dev-apiserver", "kube-wire"),
            ("tunnel", "protocol, tokio@1.0.0"),
            ("rewrite", "kube-wire, dev:tokio@1.0.0"),
        ],
        &[],
    );
}

#[test]
fn arrows_up_and_sideways_are_found_at_the_manifest() {
    check_graph(
        &[("proxy-server", "rewrite")],
        &["proxy-server/Cargo.toml:2: `proxy-server` must not depend on `rewrite`; arrows"],
    );
    check_graph(&[("ops", "proxy-server")], &["`ops` must not depend on `proxy-server`"]);
    check_graph(&[("ops", "dev:atoll-tests")], &["`ops` must not depend on `atoll-tests`"]);
    check_graph(&[("dev-apiserver", "dev:rewrite")], &["`dev-apiserver` must not depend on `rewrite`"]);
    check_graph(&[("proxy-agent", "dev-apiserver")], &["`proxy-agent` must not depend on `dev-apiserver`"]);
}

#[test]
fn a_crate_without_a_place_is_found() {
    check_graph(&[("newcomer", "")], &["newcomer/Cargo.toml:1: nothing says what `newcomer` may depend on"]);
}

#[test]
fn io_in_a_lower_crate_is_found_with_its_way_in() {
    check_graph(
        &[("rewrite", "kube-wire, a@1.0.0"), ("a@1.0.0", "build:hyper@1.0.0, tokio@1.0.0")],
        &["rewrite/Cargo.toml:1: a sans-I/O crate does I/O: rewrite -> a -> tokio; leave"],
    );
}

#[test]
fn the_standard_library_has_io_too() {
    check_text("rewrite/src/a.rs", "//! A.\nuse std::time::SystemTime;\n", &["rewrite/src/a.rs:2: `SystemTime` in a"]);
    check_text("rewrite/src/a.rs", "#[cfg(test)]\nmod tests { use std::fs; }\n", &[]);
    check_text("tunnel/src/a.rs", "use std::net::SocketAddr;\n", &[]);
}

#[test]
fn one_module_names_the_metrics_library() {
    for text in
        ["use prometheus::Registry;", "use prometheus;", "let a: ::prometheus::Counter;", "x(prometheus::gather())"]
    {
        check_text("proxy-agent/src/a.rs", text, &["proxy-agent/src/a.rs:1: `prometheus` outside"]);
        check_text("ops/src/metrics.rs", text, &[]);
        check_text("ops/src/metrics/family.rs", text, &[]);
    }
    check_text("ops/src/metrics_text.rs", "use prometheus::A;", &["ops/src/metrics_text.rs:1"]);
    check_text("proxy-agent/src/a.rs", "let prometheus = f(); my_prometheus::a(); \"prometheus::\"", &[]);
    check_graph(
        &[("proxy-agent", "prometheus@0.14.0"), ("ops", "prometheus@0.14.0")],
        &["`proxy-agent` depends on prometheus"],
    );
}
