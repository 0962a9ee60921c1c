//! Paths of binaries, components and images, and free ports.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The root of the workspace.
pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this package is a directory of the workspace")
}

/// A release binary of the workspace, or one in the directory that `ATOLL_BIN_DIR` names. For one program, such as a `proxy-agent` of
/// another version, `ATOLL_BIN_DIR_PROXY_AGENT` names a directory (see `tests/skew`).
pub fn binary(name: &str) -> PathBuf {
    let of_program = format!("ATOLL_BIN_DIR_{}", name.to_uppercase().replace('-', "_"));
    let folder = [of_program.as_str(), "ATOLL_BIN_DIR"].into_iter().find_map(std::env::var_os).map(PathBuf::from);
    let path = folder.unwrap_or_else(|| workspace().join("target/release")).join(name);
    assert!(path.exists(), "{} is missing: cargo build --release --workspace --bins", path.display());
    path
}

/// A real component, built by `tests/kube/build`, or a client, built by `tests/conformance/build`.
pub fn component(name: &str) -> PathBuf {
    let path = workspace().join("target/kube/bin").join(name);
    assert!(path.exists(), "{} is missing: run tests/kube/build and tests/conformance/build", path.display());
    path
}

/// The archive of an image, built by `configs/container/build`.
pub fn image(program: &str) -> PathBuf {
    let path = workspace().join("target/container").join(program).with_extension("tar");
    assert!(path.exists(), "{} is missing: run configs/container/build", path.display());
    path
}

/// A free TCP port of loopback that no other call in this process returns.
///
/// It is none of those that the configurations of this repository and its pages have, because tests run these as they are. It is
/// lower than the ports of `tests/kube/up`, and lower than the ports of outgoing connections, so that a program
/// can bind it later.
pub fn free_port() -> u16 {
    const FIRST: u32 = 3000;
    const COUNT: u32 = 9000;
    /// From the listeners of `proxy-server.yaml` to those of metrics.
    const WRITTEN: std::ops::RangeInclusive<u16> = 8000..=9199;
    static CALLS: AtomicU32 = AtomicU32::new(0);
    // Different processes start at different ports.
    let start = std::process::id() % 90 * 100;
    (0..COUNT)
        .map(|_| FIRST + start.wrapping_add(CALLS.fetch_add(1, Ordering::Relaxed)) % COUNT)
        .filter_map(|port| u16::try_from(port).ok().filter(|port| !WRITTEN.contains(port)))
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .expect("loopback has free ports")
}
