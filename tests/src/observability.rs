//! What operators observe with: the alert rules and dashboards of `configs/observability`, their runbooks, and the metrics that
//! `docs/metrics.md` lists.
//!
//! The tests of this module compare the files with each other. What is *not* here: evaluating queries
//! ([`crate::scraper`]).

pub mod promql;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::paths;

/// A dashboard.
#[derive(Clone, Debug)]
pub struct Dashboard {
    /// The name of its file.
    pub file: String,
    /// Its content.
    pub json: Value,
}

/// A query of a panel.
#[derive(Clone, Debug)]
pub struct Query {
    /// The dashboard and the panel.
    pub panel: String,
    /// The expression, with variables.
    pub expr: String,
}

/// An alert rule.
#[derive(Clone, Debug)]
pub struct Alert {
    /// The name.
    pub name: String,
    /// The expression.
    pub expr: String,
    /// The label `severity`.
    pub severity: String,
    /// The annotations.
    pub annotations: BTreeMap<String, String>,
}

/// A test of alerts for `promtool test rules`.
#[derive(Clone, Debug)]
pub struct RuleTest {
    /// The names of the alerts that it expects.
    pub alerts: Vec<String>,
    /// The series, in the notation of PromQL.
    pub series: Vec<String>,
}

/// The names of all labels of each metric, with those that Prometheus adds.
pub type Labels = BTreeMap<String, BTreeSet<String>>;

/// The labels that Prometheus and its operator add to each series.
const OF_TARGETS: [&str; 3] = ["instance", "job", "namespace"];

// === impl Dashboard ===

impl Dashboard {
    /// The panels, without rows.
    pub fn panels(&self) -> anyhow::Result<Vec<&Value>> {
        let panels = self.json["panels"].as_array().with_context(|| format!("{} has no panels", self.file))?;
        Ok(panels.iter().filter(|panel| panel["type"] != "row").collect())
    }

    /// The queries of all panels.
    pub fn queries(&self) -> anyhow::Result<Vec<Query>> {
        let mut queries = Vec::new();
        for panel in self.panels()? {
            let name = format!("{}: {}", self.file, panel["title"].as_str().context("a panel has no title")?);
            for target in panel["targets"].as_array().with_context(|| format!("{name} has no targets"))? {
                let expr = target["expr"].as_str().with_context(|| format!("{name} has no query"))?;
                queries.push(Query { panel: name.clone(), expr: expr.to_owned() });
            }
        }
        Ok(queries)
    }

    /// The metric and the label of the variable `cluster`.
    pub fn variable(&self) -> anyhow::Result<(&str, &str)> {
        let all = self.json["templating"]["list"].as_array().context("no variables")?;
        let cluster = all.iter().find(|variable| variable["name"] == "cluster").context("no variable `cluster`")?;
        let query = cluster["query"]["query"].as_str().context("no query")?;
        let inner = query.strip_prefix("label_values(").and_then(|rest| rest.strip_suffix(')'));
        inner.and_then(|inner| inner.split_once(", ")).with_context(|| query.to_owned())
    }
}

// === impl Query ===

impl Query {
    /// The expression as Grafana sends it if all clusters are selected, for steps of a second.
    pub fn with_all_clusters(&self) -> String {
        self.expr.replace("$__rate_interval", "15s").replace("$cluster", ".*")
    }
}

/// The directory of the files.
pub fn dir() -> PathBuf {
    paths::workspace().join("configs/observability")
}

/// All dashboards, by file name.
pub fn dashboards() -> anyhow::Result<Vec<Dashboard>> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir().join("dashboards"))? {
        let entry = entry?;
        let file = entry.file_name().into_string().ok().context("a file name is not UTF-8")?;
        let json = serde_json::from_slice(&std::fs::read(entry.path())?).with_context(|| file.clone())?;
        all.push(Dashboard { file, json });
    }
    all.sort_by(|one, other| one.file.cmp(&other.file));
    ensure!(!all.is_empty(), "there are no dashboards");
    Ok(all)
}

/// All alerts, in order.
pub fn alerts() -> anyhow::Result<Vec<Alert>> {
    let file = yaml("alerts.yaml")?;
    let groups = file["groups"].as_array().context("no groups")?;
    let rules = groups.iter().filter_map(|group| group["rules"].as_array()).flatten();
    let text = |rule: &Value, pointer: &str| {
        let value = rule.pointer(pointer).and_then(Value::as_str);
        value.map(str::to_owned).with_context(|| format!("{rule} has no {pointer}"))
    };
    let alert = |rule: &Value| {
        let annotations = rule["annotations"].as_object().with_context(|| format!("{rule} has no annotations"))?;
        let annotation = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
        Ok(Alert {
            name: text(rule, "/alert")?,
            expr: text(rule, "/expr")?,
            severity: text(rule, "/labels/severity")?,
            annotations: annotations.iter().filter_map(annotation).collect(),
        })
    };
    rules.map(alert).collect()
}

/// The files with tests of alerts.
pub fn rule_test_files() -> anyhow::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(dir())?.collect::<Result<Vec<_>, _>>()?;
    let is_test = |path: &PathBuf| path.to_string_lossy().ends_with("_test.yaml");
    Ok(entries.into_iter().map(|entry| entry.path()).filter(is_test).collect())
}

/// The tests of alerts.
pub fn rule_tests() -> anyhow::Result<Vec<RuleTest>> {
    let mut tests = Vec::new();
    for path in rule_test_files()? {
        let file: Value = serde_saphyr::from_str(&std::fs::read_to_string(path)?)?;
        for test in file["tests"].as_array().context("no tests")? {
            let empty = Vec::new();
            let list = |key: &str| test[key].as_array().unwrap_or(&empty).iter();
            let expected =
                list("alert_rule_test").filter(|case| case["exp_alerts"].as_array().is_some_and(|all| !all.is_empty()));
            let alerts = expected.filter_map(|case| case["alertname"].as_str()).map(str::to_owned);
            let series = list("input_series").filter_map(|series| series["series"].as_str()).map(str::to_owned);
            tests.push(RuleTest { alerts: alerts.collect(), series: series.collect() });
        }
    }
    Ok(tests)
}

/// The headings of `docs/runbooks.md` that are names of alerts.
pub fn runbooks() -> anyhow::Result<Vec<String>> {
    let page = std::fs::read_to_string(paths::workspace().join("docs/runbooks.md"))?;
    Ok(page.lines().filter_map(|line| line.strip_prefix("### ")).map(str::to_owned).collect())
}

/// The metrics that `docs/metrics.md` lists, and `up` of Prometheus. A histogram has three names.
pub fn metrics() -> anyhow::Result<Labels> {
    let page = std::fs::read_to_string(paths::workspace().join("docs/metrics.md"))?;
    let mut metrics = Labels::new();
    for row in page.lines().filter(|line| line.starts_with("| `atoll_") || line.starts_with("| `process_")) {
        let cells: Vec<_> = row.split('|').collect();
        let quoted = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
        let name = quoted(cells[1]).swap_remove(0);
        let labels = quoted(cells[3]).into_iter().chain(OF_TARGETS.map(str::to_owned));
        let labels: BTreeSet<_> = labels.collect();
        if cells[2].trim() == "histogram" {
            let of_buckets = labels.iter().cloned().chain(["le".to_owned()]).collect();
            metrics.entry(format!("{name}_bucket")).or_default().append(&mut { of_buckets });
            for part in ["sum", "count"] {
                metrics.entry(format!("{name}_{part}")).or_default().extend(labels.clone());
            }
        } else {
            metrics.entry(name).or_default().extend(labels);
        }
    }
    metrics.insert("up".to_owned(), OF_TARGETS.map(str::to_owned).into());
    Ok(metrics)
}

/// Fails if an expression names a metric that is not listed, or a label that the metric does not have.
pub fn check_names(expr: &str, metrics: &Labels) -> anyhow::Result<()> {
    let names = promql::names(expr);
    ensure!(!names.selectors.is_empty(), "`{expr}` names no metric");
    let mut all = BTreeSet::new();
    for (metric, labels) in &names.selectors {
        let known =
            metrics.get(metric).with_context(|| format!("docs/metrics.md does not list `{metric}` of `{expr}`"))?;
        let unknown = labels.iter().find(|label| !known.contains(*label));
        ensure!(unknown.is_none(), "`{metric}` has no label {unknown:?}: `{expr}`");
        all.extend(known.iter().cloned());
    }
    let unknown = names.grouped.iter().find(|label| !all.contains(*label));
    ensure!(unknown.is_none(), "no metric has the label {unknown:?}: `{expr}`");
    Ok(())
}

fn yaml(file: &str) -> anyhow::Result<Value> {
    let text = std::fs::read_to_string(dir().join(file)).with_context(|| file.to_owned())?;
    serde_saphyr::from_str(&text).with_context(|| file.to_owned())
}

#[cfg(test)]
mod tests;
