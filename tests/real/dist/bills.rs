//! The metadata of a release: checksums and bills of materials.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::Value;

use super::{ARCHS, VERSION, output, tools};

/// The validator of the CycloneDX project. It contains the schema.
const VALIDATOR: &str = "cyclonedx-python-lib[json-validation]==11.12.0";

/// Prints the first line of the error, because the error contains the whole schema.
const SCRIPT: &str = "
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
error = JsonStrictValidator(SchemaVersion.V1_5).validate_str(open(sys.argv[1]).read())
sys.exit(error and str(error).splitlines()[0])
";

pub(super) fn all_files_have_checksums(release: &Path) -> anyhow::Result<()> {
    let checked = output(Command::new("sha256sum").current_dir(release).args(["--check", "--strict", "SHA256SUMS"]))?;
    let mut right: Vec<_> = checked.lines().filter_map(|line| line.strip_suffix(": OK")).collect();
    right.push("SHA256SUMS");
    right.sort_unstable();
    let mut files = Vec::new();
    for entry in fs::read_dir(release)? {
        files.push(entry?.file_name().into_string().ok().context("the name is not UTF-8")?);
    }
    files.sort_unstable();
    ensure!(right == files, "{right:#?} {files:#?}");
    // Two archives and a bill for each architecture, two images, six packages, the manifest, install.sh, the checksums.
    ensure!(files.len() == 17, "{files:#?}");
    Ok(())
}

pub(super) fn are_valid(release: &Path) -> anyhow::Result<()> {
    let environment = tools()?.join("cyclonedx");
    let python = environment.join("bin/python");
    if !environment.join("done").exists() {
        output(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))?;
        output(Command::new(&python).args(["-m", "pip", "install", "--quiet", VALIDATOR]))?;
        fs::write(environment.join("done"), VALIDATOR)?;
    }
    for arch in ARCHS {
        let file = release.join(format!("atoll-{VERSION}-linux-{}.cdx.json", arch.name));
        output(Command::new(&python).args(["-c", SCRIPT]).arg(&file))?;
        let bill: Value = serde_json::from_slice(&fs::read(&file)?)?;
        let components = bill["components"].as_array().context("no components")?;
        let named = |name: &str| components.iter().find(|component| component["name"] == name);
        for name in ["proxy-server", "proxy-agent", "atoll", "rewrite", "hyper", "aws-lc-sys", "rust-std"] {
            named(name).with_context(|| format!("no {name}"))?;
        }
        // Procedural macros and other architectures' crates are not in the programs.
        ensure!(named("serde_derive").is_none() && named("windows-sys").is_none(), "{}", file.display());
        let c_library = |component: &&Value| component["purl"].as_str().is_some_and(|purl| purl.contains("/libc6-dev"));
        ensure!(components.iter().any(|component| c_library(&component)), "no C library");
        // Nobody has changed the program after its checksum was computed.
        let archive = release.join(format!("kubectl-atoll-{VERSION}-linux-{}.tar.gz", arch.name));
        let folder = tempfile::Builder::new().prefix("atoll-bill-").tempdir()?;
        output(Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(folder.path()))?;
        let sum = output(Command::new("sha256sum").arg(folder.path().join("kubectl-atoll")))?;
        let recorded = named("atoll").and_then(|atoll| atoll["hashes"][0]["content"].as_str()).context("no hash")?;
        ensure!(sum.starts_with(recorded), "{recorded} {sum}");
    }
    Ok(())
}
