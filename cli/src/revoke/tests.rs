use clap::Parser;
use ops::pki::Authority;
use proxy_server::config::RevocationList;

use ops::config;

use super::*;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    args: Args,
}

fn revoke(words: &[&str]) -> anyhow::Result<String> {
    let cli = Cli::try_parse_from([&["revoke"], words].concat())?;
    let mut out = Vec::new();
    run(&cli.args, &mut out)?;
    Ok(String::from_utf8(out)?)
}

#[test]
fn each_command_adds_a_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("revocations.yaml");
    let file = path.to_str().unwrap();
    let printed = revoke(&["agent", "site-a", "--file", file, "--reason", "it's \"stolen\""]).unwrap();
    assert!(printed.starts_with("revoked: certificates of agent site-a from before 2"), "{printed}");
    revoke(&["user", "jane: x", "--cluster", "ke-beijing", "--file", file]).unwrap();

    let authority = Authority::create("clients", std::time::Duration::from_secs(3600)).unwrap();
    let pair = authority.issue_client("jane", &["dev"], std::time::Duration::from_secs(600)).unwrap();
    let certificate = dir.path().join("jane.crt");
    std::fs::write(&certificate, &pair.certificate).unwrap();
    let printed = revoke(&["certificate", certificate.to_str().unwrap(), "--file", file]).unwrap();
    assert!(printed.contains("the certificate of jane in "), "{printed}");

    let list: RevocationList = config::load(&path).unwrap();
    let [agent, user, single] = &list.revoked[..] else { panic!("{list:?}") };
    assert_eq!(agent.reason.as_deref(), Some("it's \"stolen\""));
    assert_eq!(user.user.as_deref(), Some("jane: x"));
    let der = ops::pki::certificates_from_pem(pair.certificate.as_bytes()).unwrap();
    let digest = sha256(&der[0]);
    assert_eq!(single.credential.as_ref().unwrap().as_str(), format!("X509SHA256={digest}"));
    // The digest itself means the same.
    revoke(&["certificate", single.credential.as_ref().unwrap().as_str(), "--file", file]).unwrap();
    let again: RevocationList = config::load(&path).unwrap();
    assert_eq!(again.revoked[3].credential, single.credential);
}

/// SHA-256 in hexadecimal, by coreutils.
fn sha256(der: &[u8]) -> String {
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    let mut command = Command::new("sha256sum").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    command.stdin.take().unwrap().write_all(der).unwrap();
    let output = command.wait_with_output().unwrap();
    String::from_utf8(output.stdout).unwrap().split_whitespace().next().unwrap().to_owned()
}

#[test]
fn an_authority_and_other_files_are_not_revoked() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("revocations.yaml");
    let file = path.to_str().unwrap();
    let authority = Authority::create("clients", std::time::Duration::from_secs(3600)).unwrap();
    let ca = dir.path().join("ca.crt");
    std::fs::write(&ca, authority.certificate_pem()).unwrap();
    let error = revoke(&["certificate", ca.to_str().unwrap(), "--file", file]).unwrap_err();
    assert!(error.to_string().contains("replace the CA"), "{error:#}");
    assert!(revoke(&["certificate", "/nowhere", "--file", file]).is_err());
    assert!(!path.exists());
}

#[test]
fn an_empty_file_is_valid() {
    let list: RevocationList = config::parse(&crate::revocation_list::empty(), std::path::Path::new("x")).unwrap();
    assert_eq!(list.revoked, []);
}
