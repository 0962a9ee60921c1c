//! The flags of `atoll kubeconfig`.

use std::path::PathBuf;

use protocol::ClusterName;

use crate::lifetime::Lifetime;

/// Create a kubeconfig for a cluster.
///
/// For a virtual cluster, the command issues a client certificate, signed by the client CA of the cluster. The
/// proxy-server's configuration must name the key of this CA. Set --user to the name of the person or program that uses the
/// kubeconfig, and bind roles to that user in the virtual cluster. With --admin, the user is an administrator of the virtual
/// cluster, without rights on the host cluster. With --token, the kubeconfig contains a token of the host instead of a
/// certificate. With --oidc, it contains no credential, and every user logs in with `atoll login`.
///
/// For a cluster that an agent has added (`grants`), run the command on the machine of the proxy-server as its user, because
/// the key of the client CA is in `grants.directory`.
///
/// The API server of a physical cluster authenticates its own clients, so this command cannot issue credentials for it. Set
/// --physical-from to a kubeconfig that works at the site. The command copies its current context and adds a proxy-url.
///
/// Exits with 0 on success, and with 1 on failure.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    # Create a kubeconfig for an administrator of a virtual cluster, valid for a day\n  \
    atoll kubeconfig ke-beijing --server-config proxy-server.yaml --admin --user jane -o jane.kubeconfig\n\n  \
    # Create a kubeconfig for the user john in the group dev, valid for 12 hours\n  \
    atoll kubeconfig ke-beijing --server-config proxy-server.yaml --user john --group dev --lifetime 12h\n\n  \
    # Create a kubeconfig for all users of the OIDC issuer of the cluster\n  \
    atoll kubeconfig ke-beijing --server-config proxy-server.yaml --oidc -o ke-beijing.kubeconfig\n\n  \
    # Create a kubeconfig for connections without the HTTP proxy\n  \
    atoll kubeconfig ke-beijing --server-config proxy-server.yaml --user john --direct\n\n  \
    # Print the manifests that make a virtual cluster a member of Karmada\n  \
    atoll kubeconfig ke-beijing --server-config proxy-server.yaml --karmada -o member.yaml\n\n  \
    # Add the proxy to a kubeconfig of a physical cluster\n  \
    atoll kubeconfig branch-7 --physical-from branch-7-admin.conf --proxy-url http://proxy.example.com:8090")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command")]
pub(crate) struct Args {
    /// The name of the cluster. The context, the cluster and the user in the kubeconfig get the same name.
    #[arg(value_name = "CLUSTER")]
    pub(super) cluster: ClusterName,

    /// The proxy-server's configuration. It has the addresses of the endpoints and the files of the CAs.
    #[arg(long, value_name = "FILE", required_unless_present = "physical_from")]
    pub(super) server_config: Option<PathBuf>,

    /// The name of the user: the common name of the certificate. The host's audit log shows it. With --admin, the default is
    /// admin.
    #[arg(long, value_name = "USER", required_unless_present_any = ["admin", "token", "oidc", "physical_from", "karmada"],
        conflicts_with_all = ["token", "physical_from"])]
    pub(super) user: Option<String>,

    /// Make the user an administrator of the virtual cluster: a member of system:masters.
    #[arg(long, conflicts_with_all = ["token", "physical_from"])]
    pub(super) admin: bool,

    /// A group of the user: an organization of the certificate. Can be given several times.
    #[arg(long = "group", value_name = "GROUP", conflicts_with_all = ["token", "physical_from"])]
    pub(super) groups: Vec<String>,

    /// How long the certificate is valid, for example 12h or 30d. It cannot be valid for longer than the client CA.
    #[arg(long, value_name = "TIME", default_value = "1d", conflicts_with_all = ["token", "physical_from"])]
    pub(super) lifetime: Lifetime,

    /// A bearer token of the host cluster, for example of a service account, instead of a certificate.
    #[arg(long, value_name = "TOKEN", conflicts_with = "physical_from")]
    pub(super) token: Option<String>,

    /// Write no credential: kubectl runs `atoll login`, which logs the user in at the OIDC issuer of the cluster. The
    /// proxy-server's configuration must name the issuer.
    #[arg(long, conflicts_with_all = ["user", "admin", "groups", "lifetime", "token", "physical_from", "karmada"])]
    pub(super) oidc: bool,

    /// The ID of the client at the issuer. The default is the first of `issuer.audiences` in the configuration.
    #[arg(long, value_name = "ID", requires = "oidc")]
    pub(super) oidc_client_id: Option<String>,

    /// Connect without a proxy, to `https://HOST:PORT/clusters/CLUSTER` at `listeners.endpoint`, or to --server.
    #[arg(long, conflicts_with_all = ["proxy_url", "physical_from"])]
    pub(super) direct: bool,

    /// The URL of the HTTP proxy. The default is the address of `listeners.proxy` in the configuration, or the first of
    /// `hostNames` if it listens on all interfaces.
    #[arg(long, value_name = "URL")]
    pub(super) proxy_url: Option<String>,

    /// The URL of the endpoint in the kubeconfig. The default is `https://CLUSTER.DOMAIN:443`, or the URL that --direct
    /// describes.
    #[arg(long, value_name = "URL", conflicts_with = "physical_from")]
    pub(super) server: Option<String>,

    /// The kubeconfig of a physical cluster to which the command adds the proxy. With --server-config, the command
    /// checks that its `server` is the `apiServer` of the cluster in the proxy-server's configuration.
    #[arg(long, value_name = "FILE")]
    pub(super) physical_from: Option<PathBuf>,

    /// Instead of a kubeconfig, print manifests that make a virtual cluster a member of Karmada in push mode: a Cluster
    /// and two Secrets. Apply them in Karmada. If the configuration has a section `karmada`, the Cluster has its
    /// settings. The command prepares the virtual cluster as `karmadactl join` does, and requests the tokens for the
    /// Secrets from it, through `listeners.endpoint` or --direct --server.
    #[arg(long, conflicts_with_all = ["user", "admin", "groups", "token", "lifetime", "physical_from"])]
    pub(super) karmada: bool,

    /// The output file. Only its owner can read it. The default is standard output.
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,

    /// Replace the output file if it exists.
    #[arg(long, requires = "output")]
    pub(super) force: bool,
}
