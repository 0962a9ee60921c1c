//! The images, as a kubelet would run them: unpacked, as the user that they name, with a root that nobody can write to.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, ensure};
use atoll_tests::kubectl::SOON;
use atoll_tests::process::Process;
use atoll_tests::{HostCluster, Image, Kubectl, Site, eventually, paths, site};
use libtest_mimic::Trial;

use crate::case;
use crate::trial::trial;

/// What an image may weigh, in bytes: a site may be at the end of a thin line.
const LIMIT: u64 = 20_000_000;
/// Who may serve what in the trials' own configuration.
const ENTRY: &str = "{name: boxed, agents: [site-b], clientCA: {certificate: clusters/boxed/client-ca.crt, \
                     key: clusters/boxed/client-ca.key}}";
const CONFIG: &str = "configs/kubernetes/agent/proxy-agent.yaml";

pub(crate) fn trials(host: Option<&Arc<HostCluster>>) -> Vec<Trial> {
    vec![
        trial("containers::hold_one_program", hold_one_program),
        case("containers::the_agent_works_in_its_own", host, the_agent_works_in_its_own),
    ]
}

fn hold_one_program() -> anyhow::Result<()> {
    for program in ["proxy-agent", "proxy-server"] {
        let image = Image::unpack(program)?;
        let path = format!("/{program}");
        ensure!(image.files()? == [Path::new(&path)], "{:?}", image.files());
        let size = image.root().join(program).metadata()?.len();
        ensure!(size <= LIMIT, "{program} has {size} bytes");
        ensure!(image.reference == format!("localhost/atoll/{program}:{}", env!("CARGO_PKG_VERSION")));
        let config = &image.config;
        ensure!(config["User"] == "65532:65532" && config["Entrypoint"] == serde_json::json!([path]), "{config}");

        // No library is there, so it is static or does not start.
        let mut process = image.start(&[], Some(&["--version"]))?;
        process.printed(env!("CARGO_PKG_VERSION"))?;
        // Without a configuration, the command of the image reports which file is missing.
        let mut process = image.start(&[], None)?;
        process.printed(&format!("/etc/atoll/{program}.yaml"))?;
    }
    Ok(())
}

fn the_agent_works_in_its_own(host: &HostCluster) -> anyhow::Result<()> {
    let site = Site::start(&[ENTRY], &["boxed"])?;
    let image = Image::unpack("proxy-agent")?;
    furnish(&image, &site, host)?;
    let api_server = host.api_servers()?.swap_remove(0);
    let (address, port) = api_server.rsplit_once(':').context("an address has a port")?;
    let variables = [format!("KUBERNETES_SERVICE_HOST={address}"), format!("KUBERNETES_SERVICE_PORT={port}")];
    let mut agent = image.start(&variables, None)?;
    agent.printed("tunnel established")?;
    agent.printed("the virtual cluster is provisioned")?;
    confined(&agent)?;

    let (config, kubeconfig) = (site.file("server.yaml"), site.file("boxed.kubeconfig"));
    let words = [config.to_str(), kubeconfig.to_str()].map(|path| path.context("temporary folders have plain names"));
    let [config, file] = words;
    site::atoll(&["kubeconfig", "boxed", "--server-config", config?, "-o", file?])?;
    let kubectl = Kubectl::new(kubeconfig);
    let nodes = eventually(SOON, || kubectl.ok(&["get", "nodes", "-o", "name"]))?;
    ensure!(nodes == "node/beijing-1\nnode/beijing-2\n", "{nodes}");
    kubectl.ok(&["create", "namespace", "edge"])?;
    kubectl.ok(&["delete", "namespace", "edge", "--wait=false"])?;

    let status = agent.terminate()?;
    ensure!(status.success(), "{status}: {}", agent.log());
    Ok(())
}

/// Mounts what `configs/kubernetes/agent` mounts, with addresses and names of this trial's in the configuration, and the
/// token and the hosts file that every pod has.
fn furnish(image: &Image, site: &Site, host: &HostCluster) -> anyhow::Result<()> {
    let mut config = fs::read_to_string(paths::workspace().join(CONFIG))?;
    for (theirs, ours) in [
        ("proxy.example.com:8091", format!("localhost:{}", site.ports.agents)),
        ("name: ke-beijing", "name: boxed".to_owned()),
        ("- {name: ke-hangzhou, nodeSelector: {location: hangzhou}}\n", listeners()),
    ] {
        ensure!(config.contains(theirs), "{CONFIG} has no {theirs:?}");
        config = config.replace(theirs, &ours);
    }
    let certificates = site.dir().to_str().context("temporary folders have plain names")?;
    site::atoll(&["certs", "agent", "site-b", "--dir", certificates])?;
    image.mount("/etc/atoll/proxy-agent.yaml", config.as_bytes())?;
    image.mount("/etc/atoll/agent.crt", &fs::read(site.file("agents/site-b.crt"))?)?;
    image.mount("/etc/atoll/agent.key", &fs::read(site.file("agents/site-b.key"))?)?;
    image.mount("/etc/atoll/serving-ca.crt", &fs::read(site.file("serving-ca.crt"))?)?;

    let token = host.kubectl().ok(&["create", "token", "proxy-agent", "-n", "atoll-system"])?;
    let account = "/var/run/secrets/kubernetes.io/serviceaccount";
    image.mount(&format!("{account}/token"), token.trim().as_bytes())?;
    image.mount(&format!("{account}/ca.crt"), &fs::read(host.dir().join("pki/ca.crt"))?)?;
    // The only way to know `localhost` here: a static program has no module to ask.
    image.mount("/etc/hosts", b"127.0.0.1\tlocalhost\n")
}

fn listeners() -> String {
    let (probes, admin) = (paths::free_port(), paths::free_port());
    format!("listeners: {{probes: 127.0.0.1:{probes}, admin: 127.0.0.1:{admin}}}\n")
}

/// By the kernel's word: no right of root, and a root that is read-only.
fn confined(process: &Process) -> anyhow::Result<()> {
    let proc = |name: &str| fs::read_to_string(format!("/proc/{}/{name}", process.id()));
    let status = proc("status")?;
    for line in ["Uid:\t65532\t65532\t65532\t65532", "Gid:\t65532\t65532\t65532\t65532", "CapEff:\t0000000000000000"] {
        ensure!(status.contains(line), "no {line:?}:\n{status}");
    }
    // `proc_pid_mountinfo(5)`: the fifth field is the mount point below the process's root, the sixth its options.
    let mounts = proc("mountinfo")?;
    let root =
        mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>()).find(|fields| fields.get(4) == Some(&"/"));
    let options = root.and_then(|fields| fields.get(5).copied()).with_context(|| format!("no root:\n{mounts}"))?;
    ensure!(options.split(',').any(|option| option == "ro"), "{options}");
    Ok(())
}
