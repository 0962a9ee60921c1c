//! An image of `configs/container/build`. It is unpacked like in a container runtime, and started without one.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::Value;
use tempfile::TempDir;

use crate::paths;
use crate::process::Process;

/// A root file system and the configuration of its container.
#[derive(Debug)]
pub struct Image {
    /// The reference of the image in the archive.
    pub reference: String,
    /// `config` of the image's configuration (`image-spec/config.md` of the Open Container Initiative).
    pub config: Value,
    dir: TempDir,
}

// === impl Image ===

impl Image {
    /// Unpacks the image of this program, for this machine.
    pub fn unpack(program: &str) -> anyhow::Result<Self> {
        let user = fs::metadata("/proc/self")?.uid();
        ensure!(
            user == 0,
            "only root can start an image as another user in another root directory; this is user {user}"
        );
        Self::of(&paths::image(program), None)
    }

    /// Unpacks the image for this architecture, or the only one of an archive.
    pub fn of(archive: &Path, architecture: Option<&str>) -> anyhow::Result<Self> {
        let dir = tempfile::Builder::new().prefix("atoll-image-").tempdir()?;
        let unpacked = dir.path().join("archive");
        fs::create_dir(&unpacked)?;
        extract(archive, &unpacked)?;
        let index = json(&unpacked.join("index.json"))?;
        let [entry] = index["manifests"].as_array().context("the index has no manifests")?.as_slice() else {
            anyhow::bail!("the index does not have exactly one manifest: {index}");
        };
        let reference = entry["annotations"]["org.opencontainers.image.ref.name"].as_str().unwrap_or_default();
        let mut manifest = json(&blob(&unpacked, entry)?)?;
        if let Some(architecture) = architecture {
            // The entry is another index, with a manifest for each architecture.
            let of_architecture = |entry: &&Value| {
                entry["platform"]["architecture"] == architecture && entry["platform"]["os"] == "linux"
            };
            let mut entries = manifest["manifests"].as_array().context("the image has one architecture")?.iter();
            let entry = entries.find(of_architecture).with_context(|| format!("no {architecture}: {manifest}"))?;
            manifest = json(&blob(&unpacked, entry)?)?;
        }
        let config = json(&blob(&unpacked, &manifest["config"])?)?;
        let is_expected = architecture.is_none_or(|architecture| config["architecture"] == architecture);
        ensure!(is_expected, "the image is for {}", config["architecture"]);
        let image = Self { reference: reference.to_owned(), config: config["config"].clone(), dir };
        fs::create_dir(image.root())?;
        for layer in manifest["layers"].as_array().context("no layers")? {
            extract(&blob(&unpacked, layer)?, &image.root())?;
        }
        Ok(image)
    }

    /// The root directory.
    pub fn root(&self) -> PathBuf {
        self.dir.path().join("root")
    }

    /// All files, without directories.
    pub fn files(&self) -> anyhow::Result<Vec<PathBuf>> {
        let root = self.root();
        let (mut folders, mut files) = (vec![root.clone()], Vec::new());
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder)? {
                let entry = entry?;
                if entry.file_type()?.is_dir() {
                    folders.push(entry.path());
                } else {
                    files.push(Path::new("/").join(entry.path().strip_prefix(&root)?));
                }
            }
        }
        Ok(files)
    }

    /// Writes a file like one that a kubelet mounts: root owns it, and the group of the image can read it.
    pub fn mount(&self, path: &str, content: &[u8]) -> anyhow::Result<()> {
        let file = self.root().join(path.trim_start_matches('/'));
        fs::create_dir_all(file.parent().context("a file has a directory")?)?;
        fs::write(&file, content)?;
        let (_, group) = self.user()?.split_once(':').context("the user has no group")?;
        chown(&file, Some(0), Some(group.parse()?))?;
        Ok(fs::set_permissions(&file, fs::Permissions::from_mode(0o440))?)
    }

    /// `UID:GID`.
    pub fn user(&self) -> anyhow::Result<&str> {
        self.config["User"].as_str().context("no user")
    }

    /// Starts the container as the user of the image, with only these environment variables, and with a read-only root.
    /// The default `command` is that of the image.
    pub fn start(&self, variables: &[String], command: Option<&[&str]>) -> anyhow::Result<Process> {
        let list = |key: &str| -> Vec<&str> {
            self.config[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
        };
        // Each command replaces the previous one (exec), so that the program receives signals.
        let script = "mount --bind \"$0\" \"$0\" && mount -o remount,bind,ro \"$0\" \
                      && user=$1 && shift && exec chroot --userspec=\"$user\" --groups= \"$0\" \"$@\"";
        let root = self.root();
        let mut args = vec!["-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"];
        args.extend(variables.iter().map(String::as_str));
        args.extend(["unshare", "--mount", "sh", "-euc", script]);
        args.extend([root.to_str().context("temporary directories have UTF-8 names")?, self.user()?]);
        args.extend(list("Entrypoint"));
        args.extend(command.map_or_else(|| list("Cmd"), <[&str]>::to_vec));
        let name = self.reference.rsplit('/').next().unwrap_or_default();
        Process::start(name, Path::new("/usr/bin/env"), &args, self.dir.path().join("log"))
    }
}

fn extract(archive: &Path, into: &Path) -> anyhow::Result<()> {
    let output = Command::new("tar").arg("-xf").arg(archive).arg("-C").arg(into).output()?;
    ensure!(output.status.success(), "{}: {}", archive.display(), String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// The file of a descriptor.
fn blob(archive: &Path, descriptor: &Value) -> anyhow::Result<PathBuf> {
    let digest = descriptor["digest"].as_str().with_context(|| format!("no digest: {descriptor}"))?;
    Ok(archive.join("blobs").join(digest.replace(':', "/")))
}

fn json(file: &Path) -> anyhow::Result<Value> {
    let text = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(serde_json::from_slice(&text)?)
}
