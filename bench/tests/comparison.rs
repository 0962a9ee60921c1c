//! Runs the tests of `bench/hops`, which is a Python program.

use std::process::Command;

#[test]
fn hops_computes_what_it_says() {
    let mut command = Command::new("python3");
    // -B: no files of its own in the sources.
    command.args(["-B", "-m", "unittest", "comparison.tests"]).current_dir(env!("CARGO_MANIFEST_DIR"));
    let output = command.output().expect("python3 is installed; tests/kube needs it too");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
