//! Reads single metrics of kube-apiserver, in the text format of Prometheus.

use std::collections::BTreeMap;

use http::Method;

use crate::site::Host;

/// The sums of a gauge or a counter, by the values of some of its labels.
pub(super) type Sums = BTreeMap<Vec<String>, f64>;

/// The metric of requests that are watches, logs or sessions.
const LONG_RUNNING: &str = "apiserver_longrunning_requests";

/// The number of open watches of each resource at the host.
pub(super) async fn watches_at(host: &Host) -> anyhow::Result<BTreeMap<String, u64>> {
    let body = host.admin.succeed(Method::GET, "/metrics", String::new()).await?;
    Ok(watches(&String::from_utf8_lossy(&body)))
}

/// The number of open watches of each resource (`RESOURCE.GROUP`, or `RESOURCE` of the core group).
fn watches(text: &str) -> BTreeMap<String, u64> {
    let mut watches = BTreeMap::new();
    for (labels, count) in sums(text, LONG_RUNNING, &["verb", "resource", "group"]) {
        if labels[0] != "WATCH" || count < 1.0 {
            continue;
        }
        let resource = if labels[2].is_empty() { labels[1].clone() } else { format!("{}.{}", labels[1], labels[2]) };
        *watches.entry(resource).or_default() += whole(count);
    }
    watches
}

/// Adds all samples of `metric` that have the same values of these labels. A label that a sample does not have counts as
/// empty.
fn sums(text: &str, metric: &str, labels: &[&str]) -> Sums {
    let mut sums = Sums::new();
    for line in text.lines() {
        let Some((found, value)) = sample(line, metric) else { continue };
        let values = labels.iter().map(|label| found.get(*label).cloned().unwrap_or_default());
        *sums.entry(values.collect()).or_default() += value;
    }
    sums
}

/// The labels and the value of a line, if it is a sample of this metric.
fn sample(line: &str, metric: &str) -> Option<(BTreeMap<String, String>, f64)> {
    let rest = line.strip_prefix(metric)?;
    let (labels, value) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest)?,
        None => (BTreeMap::new(), rest.strip_prefix(' ')?),
    };
    // A timestamp can follow the value.
    Some((labels, value.split_ascii_whitespace().next()?.parse().ok()?))
}

/// The labels up to the closing brace, and the text after it.
fn labels(mut rest: &str) -> Option<(BTreeMap<String, String>, &str)> {
    let mut labels = BTreeMap::new();
    loop {
        rest = rest.trim_start_matches([',', ' ']);
        if let Some(rest) = rest.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (name, after) = rest.split_once("=\"")?;
        let (value, after) = quoted(after)?;
        labels.insert(name.to_owned(), value);
        rest = after;
    }
}

/// The text up to the closing quote without its escapes, and the text after the quote.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    loop {
        match characters.next()? {
            (end, '"') => return Some((value, &text[end + 1..])),
            (_, '\\') => match characters.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            (_, other) => value.push(other),
        }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of open requests")]
fn whole(count: f64) -> u64 {
    count.max(0.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"# HELP apiserver_longrunning_requests [STABLE] Gauge of all active long-running requests.
# TYPE apiserver_longrunning_requests gauge
apiserver_longrunning_requests{component="apiserver",group="",resource="configmaps",scope="cluster",subresource="",verb="WATCH",version="v1"} 3
apiserver_longrunning_requests{component="apiserver",group="",resource="configmaps",scope="namespace",subresource="",verb="WATCH",version="v1"} 2
apiserver_longrunning_requests{component="apiserver",group="apps",resource="deployments",scope="cluster",subresource="",verb="WATCH",version="v1"} 1e+00
apiserver_longrunning_requests{component="apiserver",group="",resource="pods",scope="resource",subresource="exec",verb="CONNECT",version="v1"} 7
apiserver_longrunning_requests{component="apiserver",group="",resource="secrets",scope="cluster",subresource="",verb="WATCH",version="v1"} 0
apiserver_longrunning_requests_total{verb="WATCH",resource="configmaps"} 9
"#;

    #[test]
    fn watches_are_added_by_resource() {
        let expected = [("configmaps".to_owned(), 5), ("deployments.apps".to_owned(), 1)];
        assert_eq!(watches(TEXT), BTreeMap::from(expected));
    }

    #[test]
    fn labels_can_contain_escapes_and_braces() {
        let (labels, value) = sample(r#"m{a="x\"}\\\n",b="",} 2.5 1700000000000"#, "m").unwrap();
        assert_eq!(labels["a"], "x\"}\\\n");
        assert_eq!((labels["b"].as_str(), value), ("", 2.5));
        assert_eq!(sample("m 4", "m").unwrap(), (BTreeMap::new(), 4.0));
    }

    #[test]
    fn other_lines_are_not_samples() {
        for line in ["", "# TYPE m gauge", "mm 1", "m{a=\"x", "m{a=\"x\"}", "m x", "m{a} 1"] {
            assert_eq!(sample(line, "m"), None, "{line}");
        }
    }
}
