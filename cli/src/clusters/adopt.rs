//! `atoll clusters adopt`.

mod args;
mod belongs;
mod host_names;
mod namespace;
mod namespaces;
mod objection;
mod pod_specs;
mod policies;
mod put;
mod reader;
mod restore;

use std::io::Write;
use std::process::ExitCode;

pub(super) use args::Args;

pub(super) async fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    let api = args.host.open()?;
    match &args.file {
        Some(file) => restore::run(&api, args, file, out).await,
        None => namespaces::run(&api, args, out).await,
    }
}
