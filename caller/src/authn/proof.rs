//! The caller of a credential, in one virtual cluster.

use protocol::identity::Identity;
use rewrite::Mapping;

use super::host_tokens::HostTokens;
use crate::identity::host_user::{ACCOUNTS, ACCOUNTS_OF, AUTHENTICATED};
use crate::identity::{ANONYMOUS, Account, Caller, HostUser, Inexpressible, Kind};
use crate::reviews::TokenUser;

/// `CredentialIDKey` of `k8s.io/apiserver/pkg/authentication/user/user.go`: an extra field that identifies the
/// credential in audit logs.
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// The caller with a client certificate.
pub(super) fn of_certificate(mapping: &Mapping, identity: Identity) -> Result<Caller, Inexpressible> {
    let extra = identity.credential.map(|id| (CREDENTIAL_ID.to_owned(), vec![id])).into_iter().collect();
    let host = HostUser::prefixed(mapping, &identity.user, &identity.groups, identity.uid, extra)?;
    Ok(Caller::new(host, identity.user, Kind::Certificate))
}

/// `None` if the user is a service account of another owner, has no name in this cluster, or cannot be written in
/// headers.
pub(super) fn of_token(mapping: &Mapping, host_tokens: Option<&HostTokens>, user: &TokenUser) -> Option<Caller> {
    let uid = Some(user.uid.clone()).filter(|uid| !uid.is_empty());
    let extra = user.extra.clone().into_iter().collect();
    let Some(account) = Account::parse(&user.name) else {
        let host_tokens = host_tokens?;
        let virtual_name = host_tokens.name(&user.name)?;
        let groups = host_tokens.groups(&user.groups);
        let host = HostUser::prefixed(mapping, &virtual_name, &groups, uid, extra).ok()?;
        return Some(Caller::new(host, virtual_name, Kind::Token));
    };
    let namespace = mapping.member(account.namespace.as_bytes())?;
    let virtual_name = Account { namespace: namespace.as_str(), ..account }.to_string();
    let host = HostUser::account(mapping, &user.name, &user.groups, uid, extra).ok()?;
    Some(Caller::new(host, virtual_name, Kind::ServiceAccount))
}

/// The name of a token's user in the virtual cluster. `None` if the user has none.
pub fn shown(mapping: &Mapping, host_tokens: Option<&HostTokens>, user: TokenUser) -> Option<TokenUser> {
    let caller = of_token(mapping, host_tokens, &user)?;
    let (name, kind) = (caller.virtual_name().to_owned(), caller.kind);
    let groups = if kind == Kind::Token {
        let own = host_tokens.map(|host_tokens| host_tokens.groups(&user.groups)).unwrap_or_default();
        own.into_iter().chain([AUTHENTICATED.to_owned()]).collect()
    } else {
        let shown = user.groups.into_iter().filter_map(|group| match group.strip_prefix(ACCOUNTS_OF) {
            Some(of) => Some(format!("{ACCOUNTS_OF}{}", mapping.member(of.as_bytes())?)),
            None => matches!(&*group, AUTHENTICATED | ACCOUNTS).then_some(group),
        });
        shown.collect()
    };
    Some(TokenUser { name, groups, ..user })
}

/// The anonymous user.
pub(super) fn anonymous(mapping: &Mapping) -> Caller {
    let host = HostUser::anonymous(mapping);
    Caller::new(host, ANONYMOUS.to_owned(), Kind::Anonymous)
}
