//! Prometheus, as Debian packages it, with the committed alert rules.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Duration, SystemTime};

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::process::Process;
use crate::{Curl, eventually, observability, paths, pause};

/// The time between two scrapes, and between two evaluations of the rules.
pub const INTERVAL: Duration = Duration::from_millis(500);

/// The time limit for a start.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// A running Prometheus. It evaluates the alert rules of `configs/observability`.
#[derive(Debug)]
pub struct Prometheus {
    _process: Process,
    curl: Curl,
    targets: Vec<(String, &'static str)>,
    started: SystemTime,
    dir: TempDir,
}

// === impl Prometheus ===

impl Prometheus {
    /// Starts it without targets.
    pub fn start() -> anyhow::Result<Self> {
        let dir = tempfile::Builder::new().prefix("atoll-prometheus-").tempdir()?;
        let rules = observability::dir().join("alerts.yaml");
        let interval = format!("{}ms", INTERVAL.as_millis());
        let config = json!({
            "global": {"scrape_interval": interval, "scrape_timeout": interval, "evaluation_interval": interval},
            "rule_files": [rules],
            "scrape_configs": [{
                "job_name": "atoll",
                "file_sd_configs": [{"files": [dir.path().join("targets.json")], "refresh_interval": "1s"}],
            }],
        });
        std::fs::write(dir.path().join("targets.json"), "[]")?;
        let file = dir.path().join("prometheus.yml");
        std::fs::write(&file, config.to_string())?;
        let address = format!("127.0.0.1:{}", paths::free_port());
        let argument = |name: &str, value: &str| format!("--{name}={value}");
        let text = |file: &str| dir.path().join(file).display().to_string();
        let arguments = [
            argument("config.file", &file.display().to_string()),
            argument("storage.tsdb.path", &text("data")),
            argument("web.listen-address", &address),
        ];
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let log = dir.path().join("prometheus.log");
        let process = Process::start("prometheus", "prometheus".as_ref(), &arguments, log)
            .context("it is in Debian's package `prometheus`")?;
        let curl = Curl::plain(&address);
        eventually(START_TIMEOUT, || {
            let ready = curl.get("/-/ready").with_context(|| process.log())?;
            ensure!(ready.code == 200, "{}", ready.body);
            Ok(())
        })?;
        Ok(Self { _process: process, curl, targets: Vec::new(), started: SystemTime::now(), dir })
    }

    /// Also scrapes this address. Its job is called like the program.
    pub fn scrape(&mut self, program: &'static str, address: String) -> anyhow::Result<()> {
        self.targets.push((address, program));
        let entry = |(address, job): &(String, &str)| json!({"targets": [address], "labels": {"job": job}});
        let targets: Value = self.targets.iter().map(entry).collect();
        // Renamed, because it may read the file at any time.
        let new = self.dir.path().join("new.json");
        std::fs::write(&new, targets.to_string())?;
        Ok(std::fs::rename(new, self.dir.path().join("targets.json"))?)
    }

    /// Waits until all targets have been scraped. What was before does not count: without targets, nothing is up.
    pub fn reaches_all_targets(&mut self, limit: Duration) -> anyhow::Result<()> {
        eventually(limit, || {
            let up = self.query("up == 1")?;
            ensure!(up.len() == self.targets.len(), "not all targets are up: {up:?}");
            Ok(())
        })?;
        // Until the rules have been evaluated with these targets.
        pause(2 * INTERVAL);
        self.started = SystemTime::now();
        Ok(())
    }

    /// The current result of an expression: its series.
    pub fn query(&self, expr: &str) -> anyhow::Result<Vec<Value>> {
        self.ask("query", &[("query", expr)])
    }

    /// The result of an expression since the start: the series that have a value other than NaN at any time.
    pub fn query_range(&self, expr: &str) -> anyhow::Result<Vec<Value>> {
        let seconds = |time: SystemTime| {
            let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            format!("{}.{:03}", since.as_secs(), since.subsec_millis())
        };
        let (start, end) = (seconds(self.started), seconds(SystemTime::now()));
        let series = self.ask("query_range", &[("query", expr), ("start", &start), ("end", &end), ("step", "0.5")])?;
        let has_value = |series: &Value| {
            let values = series["values"].as_array();
            values
                .is_some_and(|values| values.iter().any(|sample| sample[1].as_str().is_some_and(|text| text != "NaN")))
        };
        Ok(series.into_iter().filter(has_value).collect())
    }

    /// The names of the alerts that have been pending or firing at any time.
    pub fn alerts(&self) -> anyhow::Result<BTreeSet<String>> {
        let series = self.query_range("count by (alertname) (ALERTS)")?;
        let name = |series: &Value| series["metric"]["alertname"].as_str().map(str::to_owned);
        series.iter().map(|series| name(series).context("an alert without a name")).collect()
    }

    /// The alert rules that Prometheus cannot evaluate.
    pub fn broken_rules(&self) -> anyhow::Result<Vec<Value>> {
        let rules = data(&self.curl.get("/api/v1/rules")?.body)?;
        let groups = rules["groups"].as_array().context("no groups")?;
        let rules = groups.iter().filter_map(|group| group["rules"].as_array()).flatten();
        Ok(rules.filter(|rule| rule["health"] == "err").cloned().collect())
    }

    fn ask(&self, endpoint: &str, parameters: &[(&str, &str)]) -> anyhow::Result<Vec<Value>> {
        let encoded: Vec<_> = parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let options = encoded.iter().flat_map(|parameter| ["--data-urlencode", parameter]);
        let options: Vec<_> = std::iter::once("--get").chain(options).collect();
        let response = self.curl.clone().with(&options).get(&format!("/api/v1/{endpoint}"))?;
        let data = data(&response.body).with_context(|| encoded.join(" "))?;
        data["result"].as_array().cloned().context("no result")
    }
}

/// The data of a response.
fn data(body: &str) -> anyhow::Result<Value> {
    let mut response: Value = serde_json::from_str(body).with_context(|| body.to_owned())?;
    ensure!(response["status"] == "success", "{response}");
    Ok(response["data"].take())
}

/// Runs `promtool`, which must succeed. Returns its output.
pub fn promtool(args: &[&str]) -> anyhow::Result<String> {
    let output =
        Command::new("promtool").args(args).output().context("promtool is in Debian's package `prometheus`")?;
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "promtool {args:?}:\n{out}{error}");
    Ok(out.into_owned())
}
