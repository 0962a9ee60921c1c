//! Where things are.

use std::path::{Path, PathBuf};

/// The root of the workspace.
pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this package is a folder of the workspace")
}

/// A release binary of the workspace; `ATOLL_BIN_DIR` names another folder.
pub fn binary(name: &str) -> PathBuf {
    let folder = std::env::var_os("ATOLL_BIN_DIR").map(PathBuf::from);
    let path = folder.unwrap_or_else(|| workspace().join("target/release")).join(name);
    assert!(path.exists(), "{} is missing: cargo build --release --workspace --bins", path.display());
    path
}

/// A real component, made by `tests/kube/build`.
pub fn component(name: &str) -> PathBuf {
    let path = workspace().join("target/kube/bin").join(name);
    assert!(path.exists(), "{} is missing: run tests/kube/build", path.display());
    path
}

/// The archive of an image, made by `configs/container/build`.
pub fn image(program: &str) -> PathBuf {
    let path = workspace().join("target/container").join(program).with_extension("tar");
    assert!(path.exists(), "{} is missing: run configs/container/build", path.display());
    path
}

/// A TCP port of loopback that nothing listens on at the moment.
pub fn free_port() -> u16 {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
    socket.local_addr().expect("a bound socket has an address").port()
}
