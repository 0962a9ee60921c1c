//! The Debian packages.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

use super::{ARCHS, VERSION, output};

const PACKAGES: [(&str, &str); 3] =
    [("atoll-proxy-server", "proxy-server"), ("atoll-proxy-agent", "proxy-agent"), ("atoll", "atoll")];

/// Runs a script in a copy of the root file system that ends with the script. The first argument is an empty directory,
/// the second one is the directory with the packages, and the third one is the script.
const SCRATCH: &str = r#"
scratch=$1
mount -t tmpfs tmpfs "$scratch"
mkdir "$scratch/upper" "$scratch/work" "$scratch/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$scratch/upper,workdir=$scratch/work" "$scratch/root"
mkdir -p "$scratch/root/packages"
cp "$2"/*.deb "$scratch/root/packages"
mount --rbind /dev "$scratch/root/dev"
mount --rbind /proc "$scratch/root/proc"
exec chroot "$scratch/root" sh -euc "$3" sh
"#;

/// What an administrator does. Each line that begins with `ok` is a check.
const SCRIPT: &str = r#"
cd /packages
rm -rf /etc/atoll
dpkg --install ./atoll*_"$ARCH".deb
[ -z "$(dpkg --verify atoll atoll-proxy-server atoll-proxy-agent)" ] && echo ok files
[ "$(getent passwd atoll | cut -d : -f 6,7)" = /nonexistent:/usr/sbin/nologin ] && echo ok user
atoll --version && kubectl-atoll --help | grep -q 'kubectl atoll status' && echo ok atoll
zcat /usr/share/man/man1/atoll-check.1.gz | grep -q 'atoll.*check' && echo ok man page
if command -v systemd-analyze >/dev/null; then
    systemd-analyze verify --man=no proxy-server.service proxy-agent.service && echo ok units
else
    echo ok units, without systemd-analyze
fi
for program in proxy-server proxy-agent; do
    # The example is valid, but the files that it names are missing.
    status=0
    setpriv --reuid atoll --regid atoll --clear-groups "$program" --config "/etc/atoll/$program.yaml" >log 2>&1 || status=$?
    cat log
    [ "$status" = 1 ] && grep -q 'cannot read /etc/atoll/' log && echo ok "$program"
done

echo '# by the administrator' >>/etc/atoll/proxy-agent.yaml
dpkg --install ./atoll*_"$ARCH".deb
grep -q '# by the administrator' /etc/atoll/proxy-agent.yaml && echo ok configuration after an upgrade
dpkg --remove atoll-proxy-agent
[ ! -e /usr/bin/proxy-agent ] && [ -e /etc/atoll/proxy-agent.yaml ] && echo ok removed
touch /etc/atoll/serving-ca.crt
dpkg --purge atoll atoll-proxy-agent atoll-proxy-server
[ "$(ls /etc/atoll)" = serving-ca.crt ] && [ ! -e /usr/bin/atoll ] && echo ok purged
"#;

const CHECKS: usize = 10;

pub(super) fn are_installed_and_removed(release: &Path) -> anyhow::Result<()> {
    let arch = ARCHS.into_iter().find(|arch| arch.is_native()).context("no package is for this machine")?;
    let scratch = tempfile::Builder::new().prefix("atoll-packages-").tempdir()?;
    let mut script = Command::new("unshare");
    script.args(["--mount", "sh", "-euc", SCRATCH, "sh"]).arg(scratch.path()).arg(release).arg(SCRIPT);
    let printed = output(script.env("ARCH", arch.short).env("DEBIAN_FRONTEND", "noninteractive"))?;
    let checks: Vec<_> = printed.lines().filter(|line| line.starts_with("ok ")).collect();
    ensure!(checks.len() == CHECKS, "{checks:#?} of:\n{printed}");
    Ok(())
}

pub(super) fn are_for_both_architectures(release: &Path) -> anyhow::Result<()> {
    for arch in ARCHS {
        for (package, program) in PACKAGES {
            let file = release.join(format!("{package}_{VERSION}_{}.deb", arch.short));
            let fields = ["Package", "Version", "Architecture"].map(|field| {
                Ok(output(Command::new("dpkg-deb").arg("--field").arg(&file).arg(field))?.trim().to_owned())
            });
            let fields = fields.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
            ensure!(fields == [package, VERSION, arch.short], "{fields:?}");
            let folder = tempfile::Builder::new().prefix("atoll-package-").tempdir()?;
            output(Command::new("dpkg-deb").arg("--extract").arg(&file).arg(folder.path()))?;
            arch.check(&folder.path().join("usr/bin").join(program))?;
        }
    }
    Ok(())
}
