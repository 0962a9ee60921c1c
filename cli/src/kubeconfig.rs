//! `atoll kubeconfig`: kubeconfigs for clients of a cluster.
//!
//! [`addresses`] determines the address of the endpoint, [`virtual_cluster`] issues credentials, and
//! [`physical_cluster`] copies those of an [`existing`] kubeconfig. [`karmada`] prints manifests for Karmada instead.

mod addresses;
mod args;
pub(crate) mod existing;
mod karmada;
mod physical_cluster;
mod virtual_cluster;

use std::io::Write;

use anyhow::Context as _;
use ops::files::{Existing, Secrecy, write};

pub(crate) use args::Args;

/// Creates the kubeconfig and writes it.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let text = match &args.physical_from {
        Some(path) => physical_cluster::kubeconfig(args, path)?,
        None if args.karmada => karmada::manifests(args)?,
        None => virtual_cluster::kubeconfig(args)?,
    };
    let Some(path) = &args.output else {
        out.write_all(text.as_bytes())?;
        return Ok(());
    };
    let existing = if args.force { Existing::Replace } else { Existing::Refuse };
    write(path, text.as_bytes(), Secrecy::Secret, existing).context("set --force to replace the file")?;
    if args.karmada {
        writeln!(out, "wrote {}; apply it in Karmada: kubectl apply --server-side -f {0}", path.display())?;
    } else {
        writeln!(out, "wrote {}; try: kubectl --kubeconfig {0} version", path.display())?;
        if let Some(user) = args.user.as_ref().filter(|_| !args.admin && args.groups.is_empty()) {
            writeln!(
                out,
                "{user} has no rights unless an administrator of {} binds a role, for example: kubectl create \
                 clusterrolebinding {user} --clusterrole=view --user={user}",
                args.cluster
            )?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
