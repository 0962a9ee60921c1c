//! Tokens of service accounts. They have the form of JWTs, because clients read their claims. The server does not sign
//! them, but looks them up in a table.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use aws_lc_rs::rand;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kube_wire::Status;
use serde_json::{Value, json};

use super::User;
use crate::kinds::{self, Kind};
use crate::object;
use crate::store::Store;

/// The issuer of the tokens, and the audience of this server.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// The maximum number of valid tokens. A further one replaces the oldest.
const MAX_TOKENS: usize = 10_000;

/// The issued tokens.
#[derive(Debug)]
pub(crate) struct Tokens {
    store: Arc<Store>,
    issued: Mutex<Issued>,
}

#[derive(Debug, Default)]
struct Issued {
    by_token: HashMap<String, Token>,
    in_order: VecDeque<String>,
}

#[derive(Clone, Debug)]
struct Token {
    user: User,
    namespace: String,
    account: String,
    uid: String,
    audiences: Vec<String>,
    /// Seconds since the epoch.
    expires: u64,
    /// The object whose deletion invalidates the token: kind, name, uid.
    bound: Option<(&'static Kind, String, String)>,
}

/// A new token.
#[derive(Debug)]
pub(crate) struct IssuedToken {
    pub(crate) token: String,
    /// Seconds since the epoch.
    pub(crate) expires: u64,
}

// === impl Tokens ===

impl Tokens {
    pub(crate) fn new(store: Arc<Store>) -> Self {
        Self { store, issued: Mutex::default() }
    }

    /// Issues a token for a service account. `bound` is a Pod, Secret or Node.
    pub(crate) fn issue(
        &self,
        account: &Value,
        audiences: Vec<String>,
        lifetime: u64,
        bound: Option<(&'static Kind, &Value)>,
    ) -> Result<IssuedToken, Status> {
        let (namespace, name) = (object::namespace(account), object::name(account));
        let id = object::new_uid();
        let mut user = User::service_account(namespace, name);
        object::uid(account).clone_into(&mut user.uid);
        let mut extra = BTreeMap::from([("authentication.kubernetes.io/credential-id", format!("JTI={id}"))]);
        let mut private = json!({"namespace": namespace, "serviceaccount": {"name": name, "uid": user.uid}});
        if let Some((kind, object)) = bound {
            private[kind.singular()] = json!({"name": object::name(object), "uid": object::uid(object)});
            if kind.is_pod() {
                extra.insert("authentication.kubernetes.io/pod-name", object::name(object).to_owned());
                extra.insert("authentication.kubernetes.io/pod-uid", object::uid(object).to_owned());
                if let Some(node) = object["spec"]["nodeName"].as_str() {
                    extra.insert("authentication.kubernetes.io/node-name", node.to_owned());
                }
            }
        }
        user.extra = extra.into_iter().map(|(key, value)| (key.to_owned(), vec![value])).collect();
        let now = seconds_now();
        let expires = now + lifetime;
        let claims = json!({
            "aud": audiences, "exp": expires, "iat": now, "iss": ISSUER, "jti": id, "nbf": now,
            "kubernetes.io": private, "sub": user.name,
        });
        let token = format!("{}.{}.{}", part(&json!({"alg": "none"})), part(&claims), secret()?);
        let bound = bound.map(|(kind, object)| (kind, object::name(object).to_owned(), object::uid(object).to_owned()));
        let held = Token {
            uid: user.uid.clone(),
            user,
            namespace: namespace.to_owned(),
            account: name.to_owned(),
            audiences,
            expires,
            bound,
        };
        let mut issued = self.issued.lock().unwrap_or_else(PoisonError::into_inner);
        if issued.in_order.len() == MAX_TOKENS
            && let Some(oldest) = issued.in_order.pop_front()
        {
            issued.by_token.remove(&oldest);
        }
        issued.in_order.push_back(token.clone());
        issued.by_token.insert(token.clone(), held);
        Ok(IssuedToken { token, expires })
    }

    /// The user of a token that is valid for this server.
    pub(crate) fn user(&self, token: &str) -> Option<User> {
        self.review(token, &[]).map(|(user, _)| user)
    }

    /// The user of a token, and for which of these audiences it is valid. No audiences mean this server.
    pub(crate) fn review(&self, token: &str, audiences: &[String]) -> Option<(User, Vec<String>)> {
        let issued = self.issued.lock().unwrap_or_else(PoisonError::into_inner);
        let held = issued.by_token.get(token)?.clone();
        drop(issued);
        let own = [ISSUER.to_owned()];
        let requested = if audiences.is_empty() { &own } else { audiences };
        let common: Vec<_> = requested.iter().filter(|one| held.audiences.contains(one)).cloned().collect();
        if common.is_empty() || held.expires <= seconds_now() {
            return None;
        }
        let is_alive = self.store.read(|state| {
            let account = state.get(kinds::of("", "serviceaccounts"), &held.namespace, &held.account);
            let is_bound = held.bound.as_ref().is_none_or(|(kind, name, uid)| {
                let namespace = if kind.namespaced { held.namespace.as_str() } else { "" };
                state.get(kind, namespace, name).is_some_and(|object| object::uid(object) == uid)
            });
            account.is_some_and(|account| object::uid(account) == held.uid) && is_bound
        });
        is_alive.then_some((held.user, common))
    }
}

/// Seconds since the epoch.
fn seconds_now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn part(claims: &Value) -> String {
    URL_SAFE_NO_PAD.encode(claims.to_string())
}

/// Random bytes in the place of the signature.
fn secret() -> Result<String, Status> {
    let mut bytes = [0; 32];
    rand::fill(&mut bytes).map_err(|_| Status::internal_error("cannot generate random bytes"))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_invalid_without_its_account() {
        let store = Arc::new(Store::new());
        let accounts = kinds::of("", "serviceaccounts");
        let account = json!({"metadata": {"namespace": "a", "name": "b", "uid": "u"}});
        let account = store.write(|state| state.put(accounts, account));
        let tokens = Tokens::new(Arc::clone(&store));
        let token = tokens.issue(&account, vec![ISSUER.to_owned()], 600, None).unwrap().token;
        assert_eq!(tokens.user(&token).unwrap().name, "system:serviceaccount:a:b");
        assert!(tokens.user(&format!("{token}x")).is_none());
        assert!(tokens.review(&token, &["other".to_owned()]).is_none());
        store.write(|state| state.remove(accounts, "a", "b"));
        assert!(tokens.user(&token).is_none());
    }
}
