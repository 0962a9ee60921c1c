//! The images, started like in a pod: as the user of the image, with a read-only root file system.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, ensure};
use atoll_tests::kubectl::CONDITION_TIMEOUT;
use atoll_tests::process::Process;
use atoll_tests::{HostCluster, Image, Kubectl, Site, eventually, paths, site};
use libtest_mimic::Trial;

use crate::case;
use crate::trial::trial;

/// The maximum size of an image, in bytes. A site can have a slow connection.
const LIMIT: u64 = 20_000_000;
/// The cluster and its agent in the configuration of the tests.
const ENTRY: &str = "{name: boxed, agents: [site-b], clientCA: {certificate: clusters/boxed/client-ca.crt, \
                     key: clusters/boxed/client-ca.key}}";
const CONFIG: &str = "configs/kubernetes/agent/proxy-agent.yaml";

pub(crate) fn trials(host: Option<&Arc<HostCluster>>) -> Vec<Trial> {
    vec![
        trial("containers::contain_one_program", contain_one_program),
        case("containers::the_agent_works_in_its_image", host, the_agent_works_in_its_image),
    ]
}

fn contain_one_program() -> anyhow::Result<()> {
    for program in ["proxy-agent", "proxy-server"] {
        let image = Image::unpack(program)?;
        let path = format!("/{program}");
        ensure!(image.files()? == [Path::new(&path)], "{:?}", image.files());
        let size = image.root().join(program).metadata()?.len();
        ensure!(size <= LIMIT, "{program} has {size} bytes");
        ensure!(image.reference == format!("localhost/atoll/{program}:{}", env!("CARGO_PKG_VERSION")));
        let config = &image.config;
        ensure!(config["User"] == "65532:65532" && config["Entrypoint"] == serde_json::json!([path]), "{config}");

        // The image contains no library, so a dynamically linked program would not start.
        let mut process = image.start(&[], Some(&["--version"]))?;
        process.printed(env!("CARGO_PKG_VERSION"))?;
        // Without a configuration, the program reports the missing file.
        let mut process = image.start(&[], None)?;
        process.printed(&format!("/etc/atoll/{program}.yaml"))?;
    }
    Ok(())
}

fn the_agent_works_in_its_image(host: &HostCluster) -> anyhow::Result<()> {
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
    let words =
        [config.to_str(), kubeconfig.to_str()].map(|path| path.context("temporary directories have UTF-8 names"));
    let [config, file] = words;
    site::atoll(&["kubeconfig", "boxed", "--admin", "--server-config", config?, "-o", file?])?;
    let kubectl = Kubectl::new(kubeconfig);
    let nodes = eventually(CONDITION_TIMEOUT, || kubectl.ok(&["get", "nodes", "-o", "name"]))?;
    ensure!(nodes == "node/beijing-1\nnode/beijing-2\n", "{nodes}");
    kubectl.ok(&["create", "namespace", "edge"])?;
    kubectl.ok(&["delete", "namespace", "edge", "--wait=false"])?;

    let status = agent.terminate()?;
    ensure!(status.success(), "{status}: {}", agent.log());
    Ok(())
}

/// Mounts the files of `configs/kubernetes/agent` with the addresses and names of this test, and the token and the
/// hosts file of each pod.
fn furnish(image: &Image, site: &Site, host: &HostCluster) -> anyhow::Result<()> {
    let mut config = fs::read_to_string(paths::workspace().join(CONFIG))?;
    for (theirs, ours) in [
        ("proxy.example.com:8091", format!("localhost:{}", site.ports.agents)),
        ("name: ke-beijing", "name: boxed".to_owned()),
        ("- {name: ke-hangzhou, nodeSelector: {location: hangzhou}}\n", String::new()),
        ("listeners: {metrics: 0.0.0.0:9094}\n", listeners()),
    ] {
        ensure!(config.contains(theirs), "{CONFIG} has no {theirs:?}");
        config = config.replace(theirs, &ours);
    }
    let certificates = site.dir().to_str().context("temporary directories have UTF-8 names")?;
    site::atoll(&["certs", "agent", "site-b", "--dir", certificates])?;
    image.mount("/etc/atoll/proxy-agent.yaml", config.as_bytes())?;
    image.mount("/etc/atoll/agent.crt", &fs::read(site.file("agents/site-b.crt"))?)?;
    image.mount("/etc/atoll/agent.key", &fs::read(site.file("agents/site-b.key"))?)?;
    image.mount("/etc/atoll/serving-ca.crt", &fs::read(site.file("serving-ca.crt"))?)?;

    let token = host.kubectl().ok(&["create", "token", "proxy-agent", "-n", "atoll-system"])?;
    let account = "/var/run/secrets/kubernetes.io/serviceaccount";
    image.mount(&format!("{account}/token"), token.trim().as_bytes())?;
    image.mount(&format!("{account}/ca.crt"), &fs::read(host.dir().join("pki/ca.crt"))?)?;
    // A static program uses no name service modules, so it finds `localhost` only in this file.
    image.mount("/etc/hosts", b"127.0.0.1\tlocalhost\n")
}

fn listeners() -> String {
    let (probes, admin) = (paths::free_port(), paths::free_port());
    format!("listeners: {{probes: 127.0.0.1:{probes}, admin: 127.0.0.1:{admin}}}\n")
}

/// Checks in `/proc` that the process has no capabilities, and that its root is read-only.
fn confined(process: &Process) -> anyhow::Result<()> {
    let proc = |name: &str| fs::read_to_string(format!("/proc/{}/{name}", process.id()));
    let status = proc("status")?;
    for line in ["Uid:\t65532\t65532\t65532\t65532", "Gid:\t65532\t65532\t65532\t65532", "CapEff:\t0000000000000000"] {
        ensure!(status.contains(line), "no {line:?}:\n{status}");
    }
    // `proc_pid_mountinfo(5)`: the fifth field is the mount point relative to the root of the process, and the sixth
    // has the options.
    let mounts = proc("mountinfo")?;
    let root =
        mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>()).find(|fields| fields.get(4) == Some(&"/"));
    let options = root.and_then(|fields| fields.get(5).copied()).with_context(|| format!("no root:\n{mounts}"))?;
    ensure!(options.split(',').any(|option| option == "ro"), "{options}");
    Ok(())
}
