//! `atoll token delete`.

use std::io::Write;

use anyhow::ensure;

use super::store_args::StoreArgs;

/// Delete a join token.
///
/// Agents that have joined with it keep their certificates; `atoll revoke agent` revokes those.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    atoll token delete 7hd2kq94xm --server-config proxy-server.yaml")]
pub(super) struct Args {
    /// The ID of the token: its first part, which `atoll token list` shows.
    #[arg(value_name = "ID")]
    id: String,

    #[command(flatten)]
    store: StoreArgs,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let (_, tokens) = args.store.open()?;
    // It becomes the name of a file.
    let is_id = !args.id.is_empty() && args.id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    ensure!(is_id, "{:?} is not the ID of a token", args.id);
    ensure!(tokens.delete(&args.id)?, "there is no token {}", args.id);
    writeln!(out, "deleted {}", args.id)?;
    Ok(())
}
