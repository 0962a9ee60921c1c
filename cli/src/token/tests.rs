use std::time::SystemTime;

use clap::Parser;
use ops::pki::Authority;
use protocol::enrolment::JoinToken;
use proxy_server::enrolment::tokens::Tokens;

use super::*;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    args: Args,
}

fn token(words: &[&str]) -> anyhow::Result<String> {
    let cli = Cli::try_parse_from([&["token"], words].concat())?;
    let mut out = Vec::new();
    run(&cli.args, &mut out)?;
    Ok(String::from_utf8(out)?)
}

/// A directory with a configuration and the files that it names.
fn world(enrolment: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for stem in ["serving", "agents"] {
        let authority = Authority::create(stem, std::time::Duration::from_secs(3600)).unwrap();
        std::fs::write(dir.path().join(format!("{stem}.crt")), authority.certificate_pem()).unwrap();
        std::fs::write(dir.path().join(format!("{stem}.key")), authority.pem().key.expose()).unwrap();
    }
    let config = format!(
        "apiVersion: atoll.dev/v1alpha1\nkind: ProxyServerConfiguration\nhostNames: [proxy.example.com]\n\
         servingCA: {{certificate: serving.crt, key: serving.key}}\n\
         agentCA: {{certificate: agents.crt, key: agents.key}}\n{enrolment}\n"
    );
    std::fs::write(dir.path().join("server.yaml"), config).unwrap();
    dir
}

#[test]
fn a_token_is_created_listed_and_deleted() {
    let dir = world("enrolment: {tokens: tokens}");
    let config = dir.path().join("server.yaml");
    let config = ["--server-config", config.to_str().unwrap()];
    let run = |words: &[&str]| token(&[words, &config[..]].concat());
    assert_eq!(run(&["list"]).unwrap(), "There are no join tokens.\n");
    let printed = run(&["create", "site-a"]).unwrap();
    let command = printed.lines().find(|line| line.starts_with("ATOLL_JOIN_TOKEN=")).unwrap();
    assert!(command.ends_with(" proxy-agent --config proxy-agent.yaml --server proxy.example.com:8091"), "{printed}");
    let quiet = run(&["create", "site-a", "--quiet", "--uses", "2"]).unwrap();
    let quiet: JoinToken = quiet.trim().parse().unwrap();
    let listed = run(&["list"]).unwrap();
    assert!(listed.contains(&quiet.credential.id) && listed.lines().count() == 3, "{listed}");
    // It is the digest of the CA, and the token is worth a certificate.
    let pem = std::fs::read(dir.path().join("serving.crt")).unwrap();
    assert!(ops::pki::with_key_digest(&pem, &quiet.ca_digest).is_some());
    let tokens = Tokens::new(dir.path().join("tokens"));
    assert_eq!(
        tokens.use_once(&quiet.credential, SystemTime::now(), |_| SystemTime::UNIX_EPOCH).unwrap().as_str(),
        "site-a"
    );
    run(&["delete", &quiet.credential.id]).unwrap();
    assert!(run(&["delete", &quiet.credential.id]).is_err());
    assert!(run(&["delete", "../server"]).is_err());
}

#[test]
fn a_configuration_without_enrolment_is_refused_with_a_remedy() {
    let dir = world("");
    let config = dir.path().join("server.yaml");
    let error = token(&["list", "--server-config", config.to_str().unwrap()]).unwrap_err();
    assert!(error.to_string().contains("enrolment: {tokens: DIRECTORY}"), "{error:#}");
}
