//! The network namespaces of the two ends.

use std::process::Command;

use anyhow::{Context as _, ensure};

/// The address of the cloud's end (RFC 5737: for documentation, so nothing else on this machine has it).
pub const CLOUD: &str = "198.51.100.1";

/// The address of the site's end.
pub const SITE: &str = "198.51.100.2";

/// The name of the device in both namespaces.
const DEVICE: &str = "wan0";

/// A network namespace for the cloud, and one for the site. They end when the value is dropped.
#[derive(Debug)]
pub struct Namespaces {
    cloud: String,
    site: String,
}

// === impl Namespaces ===

impl Namespaces {
    /// Makes the namespaces `NAME-cloud` and `NAME-site`, each with a loopback device.
    pub(crate) fn create(name: &str) -> anyhow::Result<Self> {
        let namespaces = Self { cloud: format!("{name}-cloud"), site: format!("{name}-site") };
        for namespace in [&namespaces.cloud, &namespaces.site] {
            ip(&["netns", "add", namespace]).context("a link needs root and its own namespaces")?;
            ip(&["-n", namespace, "link", "set", "lo", "up"])?;
        }
        Ok(namespaces)
    }

    /// Moves a device into each namespace, and gives it its address.
    pub(crate) fn attach(&self, cloud: &str, site: &str) -> anyhow::Result<()> {
        for (device, namespace, address) in [(cloud, &self.cloud, CLOUD), (site, &self.site, SITE)] {
            ip(&["link", "set", device, "netns", namespace, "name", DEVICE])?;
            ip(&["-n", namespace, "address", "add", &format!("{address}/30"), "dev", DEVICE])?;
            ip(&["-n", namespace, "link", "set", DEVICE, "up"])?;
        }
        Ok(())
    }

    /// Sets the longest packet that each end sends. The kernel tells its peers the segment size that follows from it.
    pub(crate) fn set_mtu(&self, mtu: u16) -> anyhow::Result<()> {
        for namespace in [&self.cloud, &self.site] {
            ip(&["-n", namespace, "link", "set", DEVICE, "mtu", &mtu.to_string()])?;
        }
        Ok(())
    }

    /// The name of the cloud's namespace, for `ip netns exec`.
    #[must_use]
    pub fn cloud(&self) -> &str {
        &self.cloud
    }

    /// The name of the site's namespace.
    #[must_use]
    pub fn site(&self) -> &str {
        &self.site
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for namespace in [&self.cloud, &self.site] {
            // It may not exist, if making it has failed.
            drop(ip(&["netns", "delete", namespace]));
        }
    }
}

/// Runs ip(8).
fn ip(words: &[&str]) -> anyhow::Result<()> {
    let output = Command::new("ip").args(words).output().context("cannot run ip, of the package iproute2")?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "ip {}: {}", words.join(" "), error.trim());
    Ok(())
}
