//! The site of one attack, and the order of the phases.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use atoll_tests::process::{memory, peak};
use atoll_tests::{Curl, HostCluster, Kubectl, Nodes, Route, VirtualSite};

use serde_json::Value;

use crate::Measure;
use crate::attacker::{Args, BEGUN, USER};
use crate::list::Attack;
use crate::report::Row;
use crate::tenant::{Outcome, Tenant};

pub(crate) struct Stage {
    attack: &'static Attack,
    site: VirtualSite,
    tenant: Tenant,
    /// The attacker's virtual cluster.
    pub(crate) cluster: String,
    /// Its administrator.
    pub(crate) admin: Kubectl,
    pub(crate) curl: Curl,
    user: Kubectl,
}

/// The attacker's process.
struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

// === impl Stage ===

impl Stage {
    pub(crate) fn new(host: &Arc<HostCluster>, number: usize, attack: &'static Attack) -> anyhow::Result<Self> {
        let (cluster, other) = (format!("attacker-{number}"), format!("tenant-{number}"));
        let clusters = [(cluster.as_str(), Nodes::Location("beijing")), (other.as_str(), Nodes::Location("hangzhou"))];
        let site = VirtualSite::with(Arc::clone(host), &clusters, "proxy: {tls: true}")?;
        let tenant = Tenant::settle(&site.administrator(&other, Route::Path)?, site.site().ports.endpoint, other)?;
        let admin = site.administrator(&cluster, Route::Path)?;
        let curl = site.curl_like(&admin, &cluster, Route::Path)?;
        let user = site.user(&cluster, USER)?;
        Ok(Self { attack, site, tenant, cluster, admin, curl, user })
    }

    /// The host's administrator.
    pub(crate) fn host(&self) -> Kubectl {
        self.site.host().kubectl()
    }

    /// Creates an object in the attacker's cluster. Some attacks provoke a refusal.
    pub(crate) fn create(&self, path: &str, object: &Value) -> anyhow::Result<()> {
        let answer = self.curl.send("POST", path, &object.to_string())?;
        // An attack that fills a quota is refused at some point.
        ensure!([201, 403, 413, 429].contains(&answer.code), "{path}: {} {:.300}", answer.code, answer.body);
        Ok(())
    }

    /// Creates `count` copies of an object, each with a number after its name.
    pub(crate) fn create_all(&self, path: &str, count: usize, object: &Value) -> anyhow::Result<()> {
        let mut object = object.clone();
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        (0..count).try_for_each(|number| {
            object["metadata"]["name"] = format!("{name}-{number}").into();
            self.create(path, &object)
        })
    }

    pub(crate) fn measure(self, measure: &Measure) -> anyhow::Result<Row> {
        let (rate, phase) = (measure.rate, measure.phase());
        // Opens connections and fills caches before the measurement.
        self.tenant.work(rate, Duration::from_secs(3), &mut Outcome::default())?;
        let processes = [self.site.agent().id(), self.site.site().server.id(), self.host_api_server()?];
        let mut idle = [0; 3];
        for (idle, process) in idle.iter_mut().zip(processes) {
            *idle = memory(process)?;
        }
        (self.attack.prepare)(&self).context("cannot prepare the attack")?;
        let (mut without, mut with) = (Outcome::default(), Outcome::default());
        let mut answers = BTreeMap::new();
        for _ in 0..measure.rounds {
            self.tenant.work(rate, phase, &mut without)?;
            let attacker = self.begin(measure)?;
            self.tenant.work(rate, phase, &mut with)?;
            for (answer, times) in attacker.ended()? {
                *answers.entry(answer).or_default() += times;
            }
        }
        let mut above = [0; 3];
        for (number, process) in processes.into_iter().enumerate() {
            // A process that has ended has no memory.
            above[number] = peak(process).context("a process has ended")?.saturating_sub(idle[number]);
        }
        let [agent, server, host] = above;
        Ok(Row { name: self.attack.name, answers, agent, server, host, without, with })
    }

    fn host_api_server(&self) -> anyhow::Result<u32> {
        let file = self.site.host().dir().join("pids/kube-apiserver-1");
        let pid = std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        Ok(pid.trim().parse()?)
    }

    /// Starts the attacker's process, and waits until it begins.
    fn begin(&self, measure: &Measure) -> anyhow::Result<Running> {
        let ports = self.site.site().ports;
        let args = Args {
            attack: self.attack.name.to_owned(),
            endpoint: ports.endpoint,
            proxy: ports.proxy,
            cluster: self.cluster.clone(),
            admin: self.admin.kubeconfig().to_owned(),
            user: self.user.kubeconfig().to_owned(),
            seconds: measure.seconds,
            control: measure.control,
        };
        let mut command = Command::new("nice");
        command.args(["-n", "19"]).arg(std::env::current_exe()?).arg("perform").args(args.words());
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let mut lines = BufReader::new(child.stdout.take().context("no stdout")?).lines();
        let begun = lines.next().context("the attacker has not begun")??;
        ensure!(begun == BEGUN, "the attacker says {begun:?}");
        Ok(Running { child, lines })
    }
}

// === impl Running ===

impl Running {
    /// Waits for the end. Returns how often the attacker got each response.
    fn ended(mut self) -> anyhow::Result<Vec<(String, u64)>> {
        let mut answers = Vec::new();
        for line in self.lines {
            let line = line?;
            let (times, answer) = line.split_once(' ').context("no number")?;
            answers.push((answer.to_owned(), times.parse()?));
        }
        let status = self.child.wait()?;
        ensure!(status.success(), "the attacker ended with {status}");
        Ok(answers)
    }
}
