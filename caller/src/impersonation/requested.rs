//! The identity that a client requests to impersonate (`processImpersonationHeaders` of apiserver's
//! `pkg/endpoints/filters/impersonation/constrained_impersonation.go`).

use std::collections::BTreeMap;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use kube_wire::Status;

use crate::identity::headers::{EXTRA, GROUP, UID, USER};
use crate::identity::host_user::{ACCOUNTS, ACCOUNTS_OF, AUTHENTICATED, UNAUTHENTICATED};
use crate::identity::{ANONYMOUS, Account};

/// The maximum number of groups and values of extra fields, because each one is a question to the host.
const MAX_PARTS: usize = 256;

/// The identity in the headers, in virtual names. Groups that an API server adds are missing, and nothing is authorised
/// yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requested {
    /// The name of the user, which is never empty.
    pub user: String,
    /// The groups, in the order of the headers.
    pub groups: Vec<String>,
    /// The uid, if one is requested.
    pub uid: Option<String>,
    /// The values of extra fields, by key.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// The headers are invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadRequest {
    /// They have groups, a uid or extra fields, but no user.
    #[error("requested groups, a uid or extra fields without impersonating a user name")]
    NoUser,
    /// They are not UTF-8.
    #[error("the impersonation headers are not UTF-8")]
    NotUtf8,
    /// They have too many groups and extra fields.
    #[error("more than {MAX_PARTS} groups and extra fields to impersonate")]
    TooMany,
}

// === impl Requested ===

impl Requested {
    /// Reads the headers; `None` if the client requests no impersonation.
    pub fn parse(headers: &HeaderMap) -> Result<Option<Self>, BadRequest> {
        // Go uses the first of several headers, and an empty one counts as absent.
        let first = |name: HeaderName| headers.get(name).map(text).transpose();
        let user = first(USER)?.filter(|user| !user.is_empty());
        let uid = first(UID)?.filter(|uid| !uid.is_empty());
        let groups = headers.get_all(GROUP).iter().map(text).collect::<Result<Vec<_>, _>>()?;
        let mut extra = BTreeMap::<_, Vec<_>>::new();
        for (name, value) in headers {
            if let Some(key) = name.as_str().strip_prefix(EXTRA) {
                extra.entry(unescape(key)?).or_default().push(text(value)?);
            }
        }
        let Some(user) = user else {
            let is_nothing = groups.is_empty() && uid.is_none() && extra.is_empty();
            return if is_nothing { Ok(None) } else { Err(BadRequest::NoUser) };
        };
        if groups.len() + extra.values().map(Vec::len).sum::<usize>() > MAX_PARTS {
            return Err(BadRequest::TooMany);
        }
        Ok(Some(Self { user, groups, uid, extra }))
    }

    /// The groups, including those that an API server adds. `account` is the user, if it is a service account.
    pub(super) fn all_groups(&self, account: Option<Account<'_>>) -> Vec<String> {
        let mut groups = self.groups.clone();
        if let (true, Some(account)) = (groups.is_empty(), account) {
            groups.extend([ACCOUNTS.to_owned(), format!("{ACCOUNTS_OF}{}", account.namespace)]);
        }
        let has = |group: &str| groups.iter().any(|given| given == group);
        if self.user == ANONYMOUS {
            groups.push(UNAUTHENTICATED.to_owned());
        } else if !has(UNAUTHENTICATED) && !has(AUTHENTICATED) {
            groups.push(AUTHENTICATED.to_owned());
        }
        groups
    }
}

/// The response 400.
impl From<BadRequest> for Status {
    fn from(error: BadRequest) -> Self {
        Self::bad_request(error.to_string())
    }
}

fn text(value: &HeaderValue) -> Result<String, BadRequest> {
    std::str::from_utf8(value.as_bytes()).map(str::to_owned).map_err(|_| BadRequest::NotUtf8)
}

/// Decodes percent-encoding. A key with invalid encoding stays unchanged (`unescapeExtraKey`).
fn unescape(key: &str) -> Result<String, BadRequest> {
    let mut out = Vec::with_capacity(key.len());
    let mut bytes = key.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        match (digit(), digit()) {
            (Some(high), Some(low)) => out.push(u8::try_from(high * 16 + low).expect("two hex digits make a byte")),
            _ => return Ok(key.to_owned()),
        }
    }
    String::from_utf8(out).map_err(|_| BadRequest::NotUtf8)
}
