//! Reads the current context of an existing kubeconfig.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use kubeconfig::{Document, data};
use serde_json::{Map, Value};

/// Keys whose value is a path, relative to the kubeconfig's directory (`clientcmd`, `RelativizePathWithNoBacksteps`).
const CLUSTER_PATHS: [&str; 1] = ["certificate-authority"];
const USER_PATHS: [&str; 3] = ["client-certificate", "client-key", "tokenFile"];

/// Keys whose files can be inlined in the kubeconfig, under the same name with `-data`. Token files cannot, because
/// clients reload them.
const CLUSTER_FILES: [&str; 1] = ["certificate-authority"];
const USER_FILES: [&str; 2] = ["client-certificate", "client-key"];

/// The current context of the kubeconfig at `path`, with absolute paths. It does not contain other
/// contexts, because their credentials do not belong in the result.
pub(crate) fn current_context(path: &Path) -> anyhow::Result<Document> {
    let content = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    read(&content, path).with_context(|| path.display().to_string())
}

/// Like [`current_context`], with inline certificates and keys, so that the result does not depend on other files.
pub(crate) fn flattened(path: &Path) -> anyhow::Result<Document> {
    let mut document = current_context(path)?;
    inline(&mut document.cluster, &CLUSTER_FILES).with_context(|| path.display().to_string())?;
    inline(&mut document.user, &USER_FILES).with_context(|| path.display().to_string())?;
    Ok(document)
}

fn read(content: &[u8], path: &Path) -> anyhow::Result<Document> {
    let file: Value = kubeconfig::parse::yaml(content)?;
    let current =
        file["current-context"].as_str().filter(|name| !name.is_empty()).context("it has no current-context")?;
    let context = named(&file, "contexts", "context", current)?;
    let reference = |key: &str| {
        context.get(key).and_then(Value::as_str).with_context(|| format!("the current context has no {key}"))
    };
    let mut cluster = named(&file, "clusters", "cluster", reference("cluster")?)?;
    let mut user = named(&file, "users", "user", reference("user")?)?;

    let base = std::path::absolute(path)?.parent().map(Path::to_path_buf).unwrap_or_default();
    make_absolute(&mut cluster, &CLUSTER_PATHS, &base);
    make_absolute(&mut user, &USER_PATHS, &base);
    // client-go looks up a command without a slash in PATH.
    if let Some(exec) = user.get_mut("exec").and_then(Value::as_object_mut)
        && exec.get("command").and_then(Value::as_str).is_some_and(|command| command.contains('/'))
    {
        make_absolute(exec, &["command"], &base);
    }
    let namespace = context.get("namespace").cloned();
    Ok(Document { name: current.to_owned(), cluster, user, namespace })
}

/// The object with this name in a list.
fn named(file: &Value, list: &str, kind: &str, name: &str) -> anyhow::Result<Map<String, Value>> {
    let entries = file[list].as_array().map(Vec::as_slice).unwrap_or_default();
    let entry = entries.iter().find(|entry| entry["name"] == name);
    let object = entry.and_then(|entry| entry[kind].as_object());
    object.cloned().with_context(|| format!("{list} has no entry {name:?}"))
}

fn make_absolute(object: &mut Map<String, Value>, keys: &[&str], base: &Path) {
    for key in keys {
        if let Some(Value::String(path)) = object.get_mut(*key)
            && !path.is_empty()
        {
            let absolute: PathBuf = base.join(&*path);
            *path = absolute.to_string_lossy().into_owned();
        }
    }
}

fn inline(object: &mut Map<String, Value>, keys: &[&str]) -> anyhow::Result<()> {
    for key in keys {
        let inline = format!("{key}-data");
        let Some(Value::String(file)) = object.remove(*key) else { continue };
        // Data overrides the file (`tools/clientcmd/api/types.go`).
        let is_given = object.get(&inline).and_then(Value::as_str).is_some_and(|data| !data.is_empty());
        if !is_given && !file.is_empty() {
            let content = fs::read(&file).with_context(|| format!("cannot read {file}"))?;
            object.insert(inline, data(&content));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_never_quotes_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        for text in [
            "users:\n- name: u\n  user:\n    token: hunter2\n   client-key: no\n",
            "users: [{name: u, user: {token: hunter2, token: hunter2}}]",
            "token: hunter2: hunter2",
            "hunter2",
            "current-context: c\nusers: hunter2",
            "current-context: c\ncontexts: [{name: c, context: {user: u, cluster: k}}]\nclusters: [{name: k, cluster: hunter2}]",
        ] {
            fs::write(&path, text).unwrap();
            let error = current_context(&path).unwrap_err();
            assert!(!format!("{error:#} {error:?}").contains("hunter2"), "{error:#}");
        }
        fs::write(&path, "users:\n- name: u\n  user: {token: hunter2").unwrap();
        let error = format!("{:#}", current_context(&path).unwrap_err());
        assert_eq!(error, format!("{}: not a kubeconfig: malformed in line 3", path.display()));
    }

    #[test]
    fn files_become_data_and_data_stays() {
        let folder = tempfile::tempdir().unwrap();
        for file in ["ca.crt", "own.crt", "own.key"] {
            fs::write(folder.path().join(file), file).unwrap();
        }
        let path = folder.path().join("config");
        let text = "{current-context: c, contexts: [{name: c, context: {cluster: h, user: u, namespace: n}}], \
                    clusters: [{name: h, cluster: {server: https://h, certificate-authority: ca.crt}}], \
                    users: [{name: u, user: {client-certificate: own.crt, client-key: gone.key, \
                    client-key-data: b3duLmtleQ==, tokenFile: token}}]}";
        fs::write(&path, text).unwrap();
        let document = flattened(&path).unwrap();
        assert_eq!(document.cluster["certificate-authority-data"], data(b"ca.crt"));
        assert_eq!(document.user["client-certificate-data"], data(b"own.crt"));
        assert_eq!(document.user["client-key-data"], data(b"own.key"));
        assert_eq!(document.user["tokenFile"], folder.path().join("token").to_str().unwrap());
        assert!(!document.cluster.contains_key("certificate-authority") && !document.user.contains_key("client-key"));

        fs::remove_file(folder.path().join("ca.crt")).unwrap();
        assert!(format!("{:#}", flattened(&path).unwrap_err()).contains("ca.crt"));
    }
}
