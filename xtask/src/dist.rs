//! `xtask dist`: the files of a release, for one or both architectures.
//!
//! The same commit, with the same compilers, results in the same files. What is *not* here: the installation
//! (`install.sh`), the images (`configs/container/build`), and everything that a file of a release contains but this
//! program does not compute (`configs/`).
//!
//! Reading order: [`release`], [`version`] and [`arch`] (what is built); [`requirements`], [`command`], [`progress`],
//! [`output`], [`tree`], [`archive`] and [`checksums`] (how); [`build`] and [`documents`] (the parts); [`tarball`],
//! [`debian`], [`images`] and [`krew`] (the files made of them); [`component`], [`components`], [`sbom`] and [`notices`]
//! (what they contain).

mod arch;
mod archive;
mod build;
mod checksums;
mod command;
mod component;
mod components;
mod debian;
mod documents;
mod images;
mod krew;
mod notices;
mod output;
mod progress;
mod release;
mod requirements;
mod sbom;
mod tarball;
mod tree;
mod version;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, ValueEnum};

use arch::Arch;
use component::Component;
use output::Output;
use progress::{Progress, say};
use release::{PROGRAMS, Release};
use tarball::Parts;
use tree::{Mode, Tree};
use version::Version;

/// The domain of the default URL. Nobody can download from it (RFC 2606).
const EXAMPLE: &str = "https://downloads.example.com/atoll";

/// Flags of `xtask dist`.
#[derive(Args)]
#[command(after_long_help = "Files:\n  \
    atoll-VERSION-linux-ARCH.tar.gz           all programs, with documents and configurations\n  \
    kubectl-atoll-VERSION-linux-ARCH.tar.gz   the plugin of kubectl\n  \
    atoll.yaml                                the manifest of the plugin for krew\n  \
    PACKAGE_VERSION_ARCH.deb                  atoll-proxy-server, atoll-proxy-agent, atoll\n  \
    PROGRAM-VERSION-oci.tar                   images, for all architectures\n  \
    atoll-VERSION-linux-ARCH.cdx.json         the software bill of materials\n  \
    install.sh                                verifies and installs the first archive\n  \
    SHA256SUMS                                the checksums of all files\n\n\
    Examples:\n  \
    # Build everything; about 20 minutes per architecture on two cores\n  \
    cargo run -p xtask -- dist --base-url https://downloads.example.com/atoll/v0.1.0\n\n  \
    # Build for this machine only, and install it\n  \
    cargo run -p xtask -- dist --target x86_64\n  \
    sh target/dist/install.sh --from target/dist --prefix ~/.local\n\n  \
    # Test what was built for aarch64, with an emulator\n  \
    ATOLL_TEST_DIST=target/dist cargo test -p atoll-tests --test real -- dist::")]
pub(crate) struct Options {
    /// The architectures of the programs. A foreign one requires GCC's cross compiler; the command says which package.
    #[arg(long, value_name = "ARCH", default_value = "all")]
    target: Target,
    /// The directory of the files. An earlier release in it is replaced when the new one is complete. Default:
    /// target/dist.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The version in the names of files, in packages and in images. Default: that of the workspace, which the programs
    /// report. It may have a suffix, such as -rc.1.
    #[arg(long, value_name = "VERSION")]
    version: Option<Version>,
    /// The URL of the directory where you will publish the files, for the manifest of krew. Default: an example, from
    /// which nobody can download.
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// The home page in the manifest of krew. Default: the value of --base-url.
    #[arg(long, value_name = "URL")]
    homepage: Option<String>,
    /// The maintainer in the Debian packages.
    #[arg(long, value_name = "NAME <EMAIL>", default_value = "The maintainers of Atoll <atoll@example.com>")]
    maintainer: String,
}

/// The architectures to build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Target {
    /// amd64
    #[value(name = "x86_64")]
    X86_64,
    /// arm64
    #[value(name = "aarch64")]
    Aarch64,
    /// Both
    All,
}

/// What was built for one architecture.
struct Build {
    arch: Arch,
    /// The directory of the programs.
    programs: PathBuf,
    notices: String,
}

/// Builds all files of a release.
pub(crate) fn run(root: &Path, options: &Options) -> anyhow::Result<ExitCode> {
    let version = options.version.clone().unwrap_or_default();
    let release = Release::of_workspace(root, version, options.target.archs())?;
    requirements::check(&release.archs)?;
    let out = options.out.clone().unwrap_or_else(|| root.join("target/dist"));
    let out = Output::begin(std::path::absolute(out)?)?;
    let mut progress = Progress::new(release.archs.len() + 6);

    let programs = out.work().join("programs");
    for &arch in &release.archs {
        let what = format!("build the programs for {}", arch.name());
        progress.step(&what, || build::programs(&release, arch, &programs.join(arch.name())))?;
    }
    let documents = Tree::create(out.work().join("documents"))?;
    progress.step("write man pages and completions", || {
        let arch = release.archs.iter().copied().find(|arch| arch.is_native()).unwrap_or(release.archs[0]);
        documents::write(&programs.join(arch.name()).join("atoll"), arch, &documents)
    })?;
    let builds = progress.step("list the libraries", || {
        let mut builds = Vec::new();
        for &arch in &release.archs {
            let programs = programs.join(arch.name());
            let components = components::read(&release, arch)?;
            write_sbom(&release, arch, &components, &programs, out.folder())?;
            builds.push(Build { arch, programs, notices: notices::text(&components)? });
        }
        Ok(builds)
    })?;
    let archives = progress.step("write archives", || {
        let mut archives = Vec::new();
        for build in &builds {
            let (arch, parts) = (build.arch, build.parts(&documents));
            tarball::write(&release, arch, parts, out.work(), out.folder())?;
            let name = tarball::write_plugin(&release, arch, parts, out.work(), out.folder())?;
            let sha256 = checksums::of(&out.folder().join(&name))?;
            archives.push(krew::Archive { arch, name, sha256 });
        }
        Ok(archives)
    })?;
    progress.step("write Debian packages", || {
        let work = out.work().join("debian");
        let write = |build: &Build| {
            debian::write(&release, build.arch, &options.maintainer, build.parts(&documents), &work, out.folder())
        };
        builds.iter().try_for_each(write)
    })?;
    progress.step("write images", || images::write(&release, &programs, &out.work().join("images"), out.folder()))?;
    progress.step("write the manifest of krew, install.sh and checksums", || {
        let folder = Tree::create(out.folder().to_owned())?;
        folder.write(krew::FILE, options.manifest(&release, &archives)?, Mode::Data)?;
        folder.copy(&root.join("install.sh"), "install.sh", Mode::Program)?;
        checksums::write(out.folder())
    })?;
    report(&out.finish()?, progress.seconds())?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the bill of materials of an architecture.
fn write_sbom(
    release: &Release,
    arch: Arch,
    components: &[Component],
    programs: &Path,
    out: &Path,
) -> anyhow::Result<()> {
    let mut sums = BTreeMap::new();
    for program in PROGRAMS {
        sums.insert(program, checksums::of(&programs.join(program))?);
    }
    let document = sbom::document(release, arch, components, &sums)?;
    let file = out.join(format!("{}.cdx.json", release.stem("atoll", arch)));
    fs::write(&file, format!("{document:#}\n")).with_context(|| format!("cannot write {}", file.display()))
}

/// Lists the files and their sizes.
fn report(out: &Path, seconds: u64) -> anyhow::Result<()> {
    let mut files = Vec::new();
    for entry in fs::read_dir(out)? {
        let entry = entry?;
        files.push((entry.file_name().to_string_lossy().into_owned(), entry.metadata()?.len()));
    }
    files.sort_unstable();
    for (name, bytes) in &files {
        say(&format!("{bytes:>10}  {name}"));
    }
    say(&format!("dist: {} files in {} after {seconds} s", files.len(), out.display()));
    Ok(())
}

// === impl Options ===

impl Options {
    fn manifest(&self, release: &Release, archives: &[krew::Archive]) -> anyhow::Result<String> {
        if self.base_url.is_none() {
            say("nobody can install the plugin with this manifest, because --base-url is not set");
        }
        let base_url = self.base_url.clone().unwrap_or_else(|| format!("{EXAMPLE}/v{}", release.version));
        let base_url = base_url.trim_end_matches('/');
        let addresses = krew::Addresses { homepage: self.homepage.as_deref().unwrap_or(base_url), base_url };
        let template = release.root.join("configs/krew").join(krew::FILE);
        let template = fs::read_to_string(&template).with_context(|| format!("cannot read {}", template.display()))?;
        krew::manifest(&template, &release.version, addresses, archives)
    }
}

// === impl Build ===

impl Build {
    fn parts<'a>(&'a self, documents: &'a Tree) -> Parts<'a> {
        Parts { programs: &self.programs, documents: documents.root(), notices: &self.notices }
    }
}

// === impl Target ===

impl Target {
    /// This machine's own architecture first.
    fn archs(self) -> Vec<Arch> {
        let mut archs = match self {
            Self::X86_64 => vec![Arch::X86_64],
            Self::Aarch64 => vec![Arch::Aarch64],
            Self::All => vec![Arch::X86_64, Arch::Aarch64],
        };
        archs.sort_by_key(|arch| !arch.is_native());
        archs
    }
}

#[cfg(test)]
mod tests;
