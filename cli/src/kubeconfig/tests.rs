use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Parser;
use ops::date::Moment;
use ops::pki::{Authority, certificates_from_pem};
use ops::tls::{ClientCa, Identity, PeerIdentity};
use serde_json::{Value, json};

use super::*;

const DAY: Duration = Duration::from_secs(24 * 3600);

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

/// Runs the command in a directory that has `server.yaml` and its files.
struct World(tempfile::TempDir);

impl World {
    fn new() -> Self {
        let world = Self(tempfile::tempdir().unwrap());
        for stem in ["serving", "clients"] {
            let authority = Authority::create(stem, 30 * DAY).unwrap();
            world.put(&format!("{stem}.crt"), authority.certificate_pem());
            world.put(&format!("{stem}.key"), authority.pem().key.expose());
        }
        world.put(
            "server.yaml",
            "apiVersion: atoll.dev/v1alpha1\n\
             kind: ProxyServerConfiguration\n\
             domain: clusters.example\n\
             listeners: {proxy: 127.0.0.1:18090, endpoint: 0.0.0.0:18443}\n\
             servingCA: {certificate: serving.crt, key: serving.key}\n\
             agentCA: {certificate: serving.crt}\n\
             clusters:\n\
             - {name: ke-beijing, agents: [a], clientCA: {certificate: clients.crt, key: clients.key}}\n\
             - {name: keyless, agents: [a], clientCA: {certificate: clients.crt}}\n\
             - {name: branch-7, agents: [b], mode: physical, apiServer: 10.2.0.1:6443}\n",
        );
        world
    }

    fn put(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// `@name` is a file in the directory.
    fn atoll(&self, words: &[&str]) -> anyhow::Result<String> {
        let words = words.iter().map(|word| match word.strip_prefix('@') {
            Some(name) => self.path(name).to_str().unwrap().to_owned(),
            None => (*word).to_owned(),
        });
        let line = Line::try_parse_from(std::iter::once("kubeconfig".to_owned()).chain(words))?;
        let mut out = Vec::new();
        run(&line.args, &mut out)?;
        Ok(String::from_utf8(out)?)
    }

    fn kubeconfig(&self, arguments: &[&str]) -> Value {
        serde_saphyr::from_str(&self.atoll(arguments).unwrap()).unwrap()
    }

    /// The identity in the client certificate, verified with the client CA of the cluster.
    fn peer(&self, kubeconfig: &Value) -> PeerIdentity {
        let user = &kubeconfig["users"][0]["user"];
        let certificate = decode(&user["client-certificate-data"]);
        Identity::from_pem(&certificate, &decode(&user["client-key-data"])).unwrap();
        let ca = ClientCa::from_pem(&fs::read(self.path("clients.crt")).unwrap()).unwrap();
        ca.verify(&certificates_from_pem(&certificate).unwrap(), SystemTime::now()).unwrap()
    }
}

fn decode(value: &Value) -> Vec<u8> {
    STANDARD.decode(value.as_str().unwrap()).unwrap()
}

const BEIJING: [&str; 3] = ["ke-beijing", "--server-config", "@server.yaml"];
const ADMIN: [&str; 4] = ["ke-beijing", "--admin", "--server-config", "@server.yaml"];

#[test]
fn everything_is_named_after_the_cluster_and_inline() {
    let world = World::new();
    let config = world.kubeconfig(&ADMIN);
    assert_eq!(config["apiVersion"], "v1");
    assert_eq!(config["kind"], "Config");
    assert_eq!(config["current-context"], "ke-beijing");
    assert_eq!(
        config["contexts"],
        json!([{"name": "ke-beijing", "context": {"cluster": "ke-beijing", "user": "ke-beijing"}}])
    );
    assert_eq!(config["users"][0]["name"], "ke-beijing");
    assert_eq!(config["clusters"][0]["name"], "ke-beijing");
    let cluster = &config["clusters"][0]["cluster"];
    assert_eq!(cluster["server"], "https://ke-beijing.clusters.example:443");
    assert_eq!(cluster["proxy-url"], "http://127.0.0.1:18090");
    assert_eq!(decode(&cluster["certificate-authority-data"]), fs::read(world.path("serving.crt")).unwrap());
}

#[test]
fn an_administrator_is_one_only_on_request() {
    let world = World::new();
    assert!(world.atoll(&BEIJING).is_err(), "somebody must have a name");
    let admin = world.peer(&world.kubeconfig(&ADMIN));
    let left = admin.valid_until.duration_since(SystemTime::now()).unwrap();
    assert!(left <= DAY && left + Duration::from_secs(60) > DAY, "{left:?}");
    assert_eq!((admin.common_name.as_str(), admin.organizations), ("admin", vec!["system:masters".to_owned()]));

    let words = [&BEIJING[..], &["--user", "jane"]].concat();
    let jane = world.peer(&world.kubeconfig(&words));
    assert_eq!((jane.common_name.as_str(), jane.organizations.len()), ("jane", 0));

    let words = [&words[..], &["--group", "dev", "--group", "ops", "--lifetime", "2h"]].concat();
    let jane = world.peer(&world.kubeconfig(&words));
    assert_eq!(jane.organizations, ["dev", "ops"]);
    let left = jane.valid_until.duration_since(SystemTime::now()).unwrap();
    assert!(left <= Duration::from_secs(2 * 3600) && left > Duration::from_secs(2 * 3600 - 60), "{left:?}");
}

#[test]
fn a_new_certificate_of_a_user_is_not_revoked_with_the_old_ones() {
    let world = World::new();
    let config = fs::read_to_string(world.path("server.yaml")).unwrap();
    world.put("server.yaml", &config.replace("clusters:", "revocations: revoked.yaml\nclusters:"));
    let before = SystemTime::now() - Duration::from_secs(60);
    let revoked = Moment::from(before);
    world.put(
        "revoked.yaml",
        &format!(
            "apiVersion: atoll.dev/v1alpha1\nkind: Revocations\n\
             revoked: [{{cluster: ke-beijing, user: jane, issuedBefore: {revoked}}}]\n"
        ),
    );
    let enrolled = |user| world.peer(&world.kubeconfig(&[&BEIJING[..], &["--user", user]].concat())).enrolled;
    assert_eq!(enrolled("jane"), revoked.time());
    assert!(enrolled("john") < revoked.time());
}

#[test]
fn a_direct_kubeconfig_has_no_proxy() {
    let world = World::new();
    let direct = world.kubeconfig(&[&ADMIN[..], &["--direct"]].concat());
    let cluster = direct["clusters"][0]["cluster"].as_object().unwrap();
    assert_eq!(cluster["server"], "https://127.0.0.1:18443/clusters/ke-beijing");
    assert!(!cluster.contains_key("proxy-url"));

    let server = fs::read_to_string(world.path("server.yaml")).unwrap();
    world.put("named.yaml", &format!("{server}hostNames: [proxy.example]\n"));
    let named = world.kubeconfig(&["ke-beijing", "--admin", "--server-config", "@named.yaml", "--direct"]);
    assert_eq!(named["clusters"][0]["cluster"]["server"], "https://proxy.example:18443/clusters/ke-beijing");

    let elsewhere = world.kubeconfig(&[&ADMIN[..], &["--direct", "--server", "https://proxy.example:8443"]].concat());
    assert_eq!(elsewhere["clusters"][0]["cluster"]["server"], "https://proxy.example:8443");
}

#[test]
fn a_token_replaces_the_certificate() {
    let world = World::new();
    let config = world.kubeconfig(&["keyless", "--server-config", "@server.yaml", "--token", "abc.def"]);
    assert_eq!(config["users"][0]["user"], json!({"token": "abc.def"}));
    let error = world.atoll(&["keyless", "--admin", "--server-config", "@server.yaml"]).unwrap_err();
    assert!(format!("{error:#}").contains("cluster keyless has no clientCA.key"), "{error:#}");
}

#[test]
fn an_output_file_is_secret_and_replaced_only_with_force() {
    use std::os::unix::fs::PermissionsExt as _;

    let world = World::new();
    let words = [&ADMIN[..], &["-o", "@out"]].concat();
    let printed = world.atoll(&words).unwrap();
    assert!(!printed.contains("client-key-data"), "{printed}");
    assert_eq!(fs::metadata(world.path("out")).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(world.atoll(&words).is_err());
    world.atoll(&[&words[..], &["--force"]].concat()).unwrap();
}

#[test]
fn a_physical_cluster_keeps_its_own_credentials() {
    let world = World::new();
    world.put(
        "admin.conf",
        r#"
apiVersion: v1
kind: Config
current-context: here
preferences: {}
clusters:
- {name: other, cluster: {server: "https://other:6443"}}
- name: edge
  cluster: {server: "https://10.2.0.1:6443", certificate-authority: pki/ca.crt, tls-server-name: "yes"}
users:
- {name: other, user: {token: secret}}
- name: me
  user: {client-certificate: /abs/me.crt, client-key: me.key, exec: {command: ./login, args: ["1e3", ""], env: null}}
contexts:
- {name: there, context: {cluster: other, user: other}}
- {name: here, context: {cluster: edge, user: me, namespace: work}}
"#,
    );
    let config = world.kubeconfig(&["branch-7", "--server-config", "@server.yaml", "--physical-from", "@admin.conf"]);
    let file = |name: &str| world.path(name).to_str().unwrap().to_owned();
    assert_eq!(
        config,
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "branch-7",
            "clusters": [{"name": "branch-7", "cluster": {
                "server": "https://10.2.0.1:6443",
                "certificate-authority": file("pki/ca.crt"),
                "tls-server-name": "yes",
                "proxy-url": "http://127.0.0.1:18090",
            }}],
            "users": [{"name": "branch-7", "user": {
                "client-certificate": "/abs/me.crt",
                "client-key": file("me.key"),
                "exec": {"command": file("./login"), "args": ["1e3", ""], "env": null},
            }}],
            "contexts": [{"name": "branch-7", "context": {
                "cluster": "branch-7", "user": "branch-7", "namespace": "work",
            }}],
        })
    );
}

#[test]
fn sites_with_the_same_api_server_are_told_apart_by_name() {
    let world = World::new();
    let server = fs::read_to_string(world.path("server.yaml")).unwrap();
    let both = server.replace("10.2.0.1", "127.0.0.1")
        + "- {name: branch-8, agents: [c], mode: physical, apiServer: 127.0.0.1:6443}\n";
    world.put("server.yaml", &both);
    world.put(
        "k3s.yaml",
        "{current-context: c, contexts: [{name: c, context: {cluster: c, user: c}}], \
         clusters: [{name: c, cluster: {server: \"https://127.0.0.1:6443\"}}], users: [{name: c, user: {token: t}}]}",
    );
    let config = world.kubeconfig(&["branch-8", "--server-config", "@server.yaml", "--physical-from", "@k3s.yaml"]);
    assert_eq!(
        config["clusters"][0]["cluster"],
        json!({
            "server": "https://branch-8.clusters.example:6443",
            "tls-server-name": "127.0.0.1",
            "proxy-url": "http://127.0.0.1:18090",
        })
    );
}

#[test]
fn a_kubeconfig_that_the_proxy_would_refuse_is_refused_here() {
    let world = World::new();
    let put = |server: &str| {
        world.put(
            "admin.conf",
            &format!(
                "{{current-context: c, contexts: [{{name: c, context: {{cluster: c, user: c}}}}], \
                 clusters: [{{name: c, cluster: {{server: \"{server}\"}}}}], users: [{{name: c, user: {{token: t}}}}]}}"
            ),
        );
    };
    let take =
        |cluster: &str, flags: &[&str]| world.atoll(&[&[cluster, "--physical-from", "@admin.conf"], flags].concat());
    let with_config = ["--server-config", "@server.yaml"];
    put("https://10.2.0.2:6443");
    let error = take("branch-7", &with_config).unwrap_err().to_string();
    assert!(error.contains("10.2.0.2:6443") && error.contains("10.2.0.1:6443"), "{error}");
    put("https://10.2.0.1:6443/path");
    take("branch-7", &with_config).unwrap();
    let error = take("ke-beijing", &with_config).unwrap_err().to_string();
    assert!(error.contains("is a virtual cluster"), "{error}");
    put("http://10.2.0.1:6443");
    assert!(take("branch-7", &with_config).is_err());

    put("https://10.9.9.9");
    let error = take("branch-9", &[]).unwrap_err().to_string();
    assert!(error.contains("--proxy-url"), "{error}");
    take("branch-9", &["--proxy-url", "https://proxy.example.com:8090"]).unwrap();
}

#[test]
fn errors_name_the_remedy() {
    let world = World::new();
    let error = |words: &[&str]| format!("{:#}", world.atoll(words).unwrap_err());
    assert!(error(&["nowhere", "--admin", "--server-config", "@server.yaml"]).contains("has no cluster nowhere"));
    assert!(error(&["branch-7", "--admin", "--server-config", "@server.yaml"]).contains("--physical-from"));
    assert!(error(&["ke-beijing"]).contains("--server-config"));
    assert!(error(&[&BEIJING[..], &["--token", "a b"]].concat()).contains("--token"));
    assert!(error(&[&BEIJING[..], &["--token", "t", "--user", "u"]].concat()).contains("cannot be used with"));
    assert!(error(&[&ADMIN[..], &["--proxy-url", "proxy:8090"]].concat()).contains("--proxy-url"));
}
