use super::*;

const CA: &str = "LS0tLS1DQQo="; // "-----CA\n"

/// A kubeconfig with one cluster and one user.
fn config(cluster: &str, user: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\npreferences: {{}}\n\
         contexts: [{{name: other, context: null}}, {{name: c, context: {{cluster: k, user: u, namespace: x}}}}]\n\
         clusters:\n- name: k\n  cluster: {{{cluster}}}\n\
         users:\n- name: u\n  user: {{{user}}}\n"
    )
}

fn read(cluster: &str, user: &str) -> Result<ClientConfig, KubeconfigError> {
    parse(config(cluster, user).as_bytes(), Path::new("/etc/atoll"))
}

fn server(more: &str) -> String {
    format!("server: 'https://10.0.0.1:6443', {more}")
}

fn shown(material: Option<&Material>) -> String {
    match material {
        None => "-".to_owned(),
        Some(Material::Inline(text)) => format!("text {}", text.expose()),
        Some(Material::File(path)) => format!("file {}", path.display()),
    }
}

#[test]
fn files_are_relative_to_the_kubeconfig_and_data_wins() {
    let cluster = server("certificate-authority: pki/ca.crt, tls-server-name: kubernetes");
    let user =
        "client-certificate: /abs/a.crt, client-key: a.key, client-key-data: LS0tLS1DQQo=, token: t, tokenFile: tok";
    let config = read(&cluster, user).unwrap();
    assert_eq!(config.server.to_string(), "https://10.0.0.1:6443");
    assert_eq!(config.server_name, Some(ServerName::try_from("kubernetes").unwrap()));
    assert_eq!(shown(Some(&config.authorities)), "file /etc/atoll/pki/ca.crt");
    let identity = config.identity.unwrap();
    assert_eq!(shown(Some(&identity.certificate)), "file /abs/a.crt");
    assert_eq!(shown(Some(&identity.key)), "text -----CA\n");
    assert_eq!(shown(config.token.as_ref()), "file /etc/atoll/tok");
}

#[test]
fn everything_may_be_inline_and_in_json() {
    let yaml = config(&server(&format!("certificate-authority-data: {CA}")), "token: secret");
    let config = parse(yaml.as_bytes(), Path::new("")).unwrap();
    assert_eq!(shown(config.token.as_ref()), "text secret");
    assert!(!format!("{config:?}").contains("secret"));
    let json = serde_json::json!({
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": "https://h", "certificate-authority-data": CA}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    });
    assert!(parse(json.to_string().as_bytes(), Path::new("")).is_ok());
}

#[test]
fn insecure_or_ambiguous_kubeconfigs_are_refused() {
    let ca = format!("certificate-authority-data: {CA}");
    let with = |more: &str| server(&format!("{ca}, {more}"));
    let refused = |cluster: &str, user: &str| read(cluster, user).unwrap_err().to_string();
    for (cluster, expected) in [
        (with("insecure-skip-tls-verify: true"), "insecure-skip-tls-verify"),
        (server("insecure-skip-tls-verify: true"), "insecure-skip-tls-verify"),
        (with("proxy-url: 'http://p'"), "proxy-url"),
        (with("tls-server-name: '-'"), "tls-server-name"),
        (server(""), "neither `certificate-authority`"),
        (server("certificate-authority-data: '***'"), "certificate-authority-data"),
        (format!("server: 'http://h', {ca}"), "server"),
        (ca.clone(), "server"),
    ] {
        let message = refused(&cluster, "token: t");
        assert!(message.contains(expected), "{message}");
    }
    for (user, expected) in [
        ("", "no credential"),
        ("token: ''", "no credential"),
        ("client-certificate: a.crt", "both are needed"),
        ("exec: {command: aws}", "`exec` is not supported"),
        ("auth-provider: {name: gcp}", "`auth-provider` is not supported"),
        ("username: a, password: b", "`username` is not supported"),
        ("token: t, as: admin", "`as` is not supported"),
        ("token: t, as-groups: [a]", "`as` is not supported"),
    ] {
        let message = refused(&server(&ca), user);
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn named_entries_must_exist() {
    for (text, expected) in [
        ("clusters: null\nusers: null\ncontexts: null\n", KubeconfigError::NoContext),
        ("current-context: ''", KubeconfigError::NoContext),
        ("current-context: c", KubeconfigError::Missing { kind: "context", name: "c".into() }),
        (
            "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]",
            KubeconfigError::Missing { kind: "cluster", name: "k".into() },
        ),
    ] {
        assert_eq!(parse(text.as_bytes(), Path::new("")).unwrap_err(), expected);
    }
}

#[test]
fn an_error_never_quotes_the_file() {
    for text in ["users: [{name: u, user: hunter2}]", "users: hunter2", "a: [hunter2", "hunter2", "\u{0}hunter2"] {
        let error = parse(text.as_bytes(), Path::new("")).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
    }
    assert_eq!(
        parse(b"current-context: c\nclusters: 1", Path::new("")).unwrap_err().to_string(),
        "not a kubeconfig: malformed in line 2"
    );
    assert!(parse(b"\xff", Path::new("")).is_err());
}
