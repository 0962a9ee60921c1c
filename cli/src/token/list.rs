//! `atoll token list`.

use std::io::Write;
use std::time::SystemTime;

use ops::columns::Columns;
use ops::date::Age;

use super::store_args::StoreArgs;

/// List the join tokens that are still valid.
///
/// The secrets of tokens are not stored, so no command can print a token again.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    atoll token list --server-config proxy-server.yaml")]
pub(super) struct Args {
    #[command(flatten)]
    store: StoreArgs,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let (_, tokens) = args.store.open()?;
    let now = SystemTime::now();
    let tokens = tokens.list(now)?;
    if tokens.is_empty() {
        writeln!(out, "There are no join tokens.")?;
        return Ok(());
    }
    let mut columns = Columns::new(["ID", "AGENT", "USES LEFT", "EXPIRES IN"]);
    for token in tokens {
        let rest = Age(token.expires.time().duration_since(now).unwrap_or_default());
        columns.row([token.id, token.agent.to_string(), token.uses_left.to_string(), rest.to_string()]);
    }
    write!(out, "{columns}")?;
    Ok(())
}
