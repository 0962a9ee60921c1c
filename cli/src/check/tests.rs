use std::fs;
use std::path::Path;
use std::time::Duration;

use ops::pki::Authority;

use super::*;

struct World(tempfile::TempDir);

impl World {
    /// The files of `atoll certs`, with CAs of this lifetime.
    fn new(lifetime: Duration) -> Self {
        let world = Self(tempfile::tempdir().unwrap());
        for name in ["serving", "agent", "beijing", "hangzhou"] {
            let authority = Authority::create(name, lifetime).unwrap();
            world.write(&format!("{name}.crt"), authority.certificate_pem());
            world.write(&format!("{name}.key"), authority.pem().key.expose());
            if name == "agent" {
                let pair = authority.issue_client("site-a", &["agents"], lifetime / 2).unwrap();
                world.write("site-a.crt", &pair.certificate);
                world.write("site-a.key", pair.key.expose());
            }
        }
        world
    }

    fn write(&self, name: &str, text: &str) {
        use std::os::unix::fs::PermissionsExt as _;
        fs::write(self.0.path().join(name), text).unwrap();
        fs::set_permissions(self.0.path().join(name), fs::Permissions::from_mode(0o600)).unwrap();
    }

    /// The output for this configuration, without the directory, and whether the check succeeded.
    fn check(&self, text: &str) -> (Vec<String>, bool) {
        self.write("c.yaml", text);
        let file = self.0.path().join("c.yaml");
        let mut out = Vec::new();
        let code = run(&args(file), &mut out).unwrap();
        let folder = format!("{}/", self.0.path().display());
        let lines = String::from_utf8(out).unwrap().replace(&folder, "");
        (lines.lines().map(str::to_owned).collect(), code == ExitCode::SUCCESS)
    }
}

/// Without a host.
fn args(file: PathBuf) -> Args {
    Args { file, host: false, host_kubeconfig: None, accept: Vec::new(), output: Format::Text }
}

const DAY: Duration = ops::date::DAY;

const SERVER: &str = "\
apiVersion: atoll.dev/v1alpha1
kind: ProxyServerConfiguration
servingCA: {certificate: serving.crt, key: serving.key}
agentCA: {certificate: agent.crt}
clusters:
- {name: ke-beijing, agents: [site-a], clientCA: {certificate: beijing.crt, key: beijing.key}}
- {name: ke-hangzhou, agents: [site-a], clientCA: {certificate: hangzhou.crt}}
";

const AGENT: &str = "\
apiVersion: atoll.dev/v1alpha1
kind: ProxyAgentConfiguration
servers: [proxy:8091]
identity: {certificate: site-a.crt, key: site-a.key, serverCA: serving.crt}
physicalClusters: [{name: branch-7, apiServer: 10.2.0.1:6443}]
";

#[test]
fn a_correct_file_is_reported_as_correct() {
    let world = World::new(400 * DAY);
    for text in [SERVER.to_owned(), AGENT.to_owned(), format!("{SERVER}---\n{AGENT}---\nkind: Other\n")] {
        assert_eq!(world.check(&text), (vec!["c.yaml: no mistakes, no warnings".to_owned()], true));
    }
}

#[test]
fn mistakes_in_files_have_the_lines_that_name_the_files() {
    let world = World::new(400 * DAY);
    let text = SERVER
        .replace("key: serving.key", "key: beijing.key")
        .replace("certificate: agent.crt", "certificate: site-a.crt")
        .replace("hangzhou.crt", "beijing.crt");
    let (lines, good) =
        world.check(&format!("{text}- {{name: gone, agents: [a], clientCA: {{certificate: no.crt}}}}\n"));
    assert!(!good);
    for (line, expected) in
        lines.iter().zip(["c.yaml:3:", "c.yaml:4:", "c.yaml:7:", "c.yaml:8:", "c.yaml: 4 mistakes, no warnings"])
    {
        assert!(line.starts_with(expected), "{lines:#?}");
    }
    for (line, expected) in [(0, "cannot use beijing.key"), (1, "\"site-a\", which is not a CA"), (3, "no.crt")] {
        assert!(lines[line].contains(expected), "{lines:#?}");
    }
    assert!(lines[2].contains("clientCA of cluster ke-hangzhou is the same CA as clientCA of cluster ke-beijing"));
}

/// An agent with the common name of the proxy-servers could serve any cluster.
#[test]
fn no_agent_has_the_name_of_the_proxy_servers() {
    let world = World::new(400 * DAY);
    let peers = |name: &str| {
        format!(
            "{SERVER}peers: {{servers: [\"localhost:8091\"], identity: {{certificate: {name}.crt, key: {name}.key}}}}\n"
        )
    };
    let (lines, good) = world.check(&peers("site-a"));
    assert!(!good && lines.len() == 2, "{lines:#?}");
    assert!(lines[0].starts_with("c.yaml:6:") && lines[0].contains("could serve any cluster"), "{lines:#?}");
    let (lines, good) = world.check(&peers("gone"));
    assert!(!good && lines[0].contains("gone.crt"), "{lines:#?}");
    let other = SERVER.replace("[site-a]", "[site-b]");
    assert!(world.check(&peers("site-a").replace(SERVER, &other)).1);
    let unverified = peers("site-a").replace("localhost", "proxies").replace("[site-a]", "[site-b]");
    let (lines, good) = world.check(&unverified);
    assert!(!good && lines[0].contains("`hostNames` must contain `proxies`"), "{lines:#?}");
    let (lines, good) = world
        .check(&format!("{SERVER}peers: {{servers: [], identity: {{certificate: site-a.crt, key: site-a.key}}}}\n"));
    assert!(!good && lines.iter().any(|line| line.contains("must name at least one proxy-server")), "{lines:#?}");
}

#[test]
fn mistakes_in_the_configuration_do_not_hide_those_in_files() {
    let world = World::new(400 * DAY);
    let (lines, good) = world.check(&AGENT.replace("key: site-a.key", "key: gone.key, typo: 1"));
    assert!(!good && lines.len() == 3, "{lines:#?}");
    assert!(lines[0].starts_with("c.yaml:4:") && lines[0].contains("typo"), "{lines:#?}");
    assert!(lines[1].starts_with("c.yaml:4:") && lines[1].contains("cannot read gone.key"), "{lines:#?}");
}

#[test]
fn equal_addresses_of_physical_clusters_get_a_warning() {
    let physical = "\
- {name: branch-7, agents: [site-a], mode: physical, apiServer: 127.0.0.1:6443}
- {name: branch-8, agents: [site-b], mode: physical, apiServer: 127.0.0.1:6443}
";
    let (lines, is_success) = World::new(400 * DAY).check(&format!("{SERVER}{physical}"));
    let warned =
        lines.iter().find(|line| line.contains("branch-8 has the apiServer 127.0.0.1:6443 of cluster branch-7"));
    assert!(warned.is_some_and(|line| line.starts_with("c.yaml:9:3: warning: ")), "{lines:#?}");
    assert!(is_success, "{lines:#?}");
}

#[test]
fn a_key_that_all_users_can_read_gets_a_warning() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new(400 * DAY);
    fs::set_permissions(world.0.path().join("serving.key"), fs::Permissions::from_mode(0o644)).unwrap();
    let (lines, good) = world.check(SERVER);
    assert!(good && lines.len() == 2, "{lines:#?}");
    assert!(lines[0].starts_with("c.yaml:3:") && lines[0].contains(" warning: servingCA: all users"), "{lines:#?}");
    assert_eq!(lines[1], "c.yaml: no mistakes, 1 warning");
}

#[test]
fn a_missing_file_is_reported_once() {
    let world = World::new(400 * DAY);
    let (lines, _) = world.check(&SERVER.replace("certificate: serving.crt", "certificate: no.crt"));
    assert_eq!(lines.iter().filter(|line| line.contains("no.crt")).count(), 1, "{lines:#?}");
}

#[test]
fn an_invalid_host_and_an_invalid_selector_are_reported() {
    let world = World::new(400 * DAY);
    world.write("host.kubeconfig", "clusters: []");
    let more = "host: {kubeconfig: host.kubeconfig}\nvirtualClusters:\n- {name: a, nodeSelector: {\"-\": x}}\n";
    let (lines, good) = world.check(&format!("{AGENT}{more}"));
    assert!(!good, "{lines:#?}");
    assert!(lines.iter().any(|line| line.starts_with("c.yaml:8:") && line.contains("nodeSelector")), "{lines:#?}");
    assert!(lines.iter().any(|line| line.starts_with("c.yaml:6:") && line.contains("host")), "{lines:#?}");
}

#[test]
fn node_labels_that_a_kubelet_may_set_get_a_warning() {
    let world = World::new(400 * DAY);
    let more = "host: {inCluster: true}\nvirtualClusters:\n\
        - {name: a, nodeSelector: {location: x, topology.kubernetes.io/zone: y}}\n\
        - {name: b, nodeSelector: {location: x, node-restriction.kubernetes.io/site: y}}\n\
        - {name: c, nodeGroup: z}\n";
    let (lines, _) = world.check(&format!("{AGENT}{more}"));
    let warned: Vec<_> = lines.iter().filter(|line| line.contains("warning: virtual cluster")).collect();
    assert_eq!(warned.len(), 2, "{lines:#?}");
    assert!(warned[0].starts_with("c.yaml:8:") && warned[0].contains("(location, topology.kubernetes.io/zone)"));
    assert!(warned[1].starts_with("c.yaml:10:") && warned[1].contains("(apps.kubeedge.io/belonging-to)"));
}

#[test]
fn a_file_of_another_kind_is_reported() {
    let world = World::new(400 * DAY);
    let (lines, good) = world.check("apiVersion: v1\nkind: Config\n");
    assert!(!good && lines[0].ends_with("no ProxyAgentConfiguration, only Config"), "{lines:#?}");
    let mut out = Vec::new();
    assert_eq!(run(&args(Path::new("/nowhere/c.yaml").to_owned()), &mut out).unwrap(), ExitCode::FAILURE);
    assert!(String::from_utf8(out).unwrap().starts_with("/nowhere/c.yaml: cannot read the file"));
}
