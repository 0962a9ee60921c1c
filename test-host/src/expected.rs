//! Requests that a script expects.

use http::Method;
use serde_json::Value;

use crate::received::Received;

/// The word for the agent's own identity.
const THE_AGENT: &str = "the agent";

/// A request that a script expects. What a test does not say about it is not checked.
#[derive(Clone, Debug)]
pub struct Expected {
    method: Method,
    target: String,
    identity: Option<Identity>,
    groups: Option<Vec<String>>,
    headers: Vec<(&'static str, Option<String>)>,
    body: Vec<(String, Value)>,
    is_bodiless: bool,
}

/// The identity with which the agent sends a request.
#[derive(Clone, Debug)]
enum Identity {
    Agent,
    User(String),
}

/// Expects a request with this method, and this path and query. Escapes in the query need not be written.
pub fn expect(method: &str, target: &str) -> Expected {
    Expected {
        method: method.parse().unwrap(),
        target: target.to_owned(),
        identity: None,
        groups: None,
        headers: Vec::new(),
        body: Vec::new(),
        is_bodiless: false,
    }
}

// === impl Expected ===

impl Expected {
    /// The agent impersonates this user.
    #[must_use]
    pub fn as_user(mut self, name: &str) -> Self {
        self.identity = Some(Identity::User(name.to_owned()));
        self
    }

    /// The agent uses its own identity.
    #[must_use]
    pub fn as_agent(mut self) -> Self {
        self.identity = Some(Identity::Agent);
        self
    }

    /// The impersonated groups, in any order.
    #[must_use]
    pub fn in_groups(mut self, groups: &[&str]) -> Self {
        let mut groups: Vec<_> = groups.iter().map(|&group| group.to_owned()).collect();
        groups.sort();
        self.groups = Some(groups);
        self
    }

    /// It has this header.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, Some(value.to_owned())));
        self
    }

    /// It does not have this header.
    #[must_use]
    pub fn without_header(mut self, name: &'static str) -> Self {
        self.headers.push((name, None));
        self
    }

    /// The JSON body has this value at a pointer (RFC 6901). Null matches a value that is absent, too.
    #[must_use]
    pub fn with(mut self, pointer: &str, value: impl Into<Value>) -> Self {
        self.body.push((pointer.to_owned(), value.into()));
        self
    }

    /// It has no body.
    #[must_use]
    pub fn bodiless(mut self) -> Self {
        self.is_bodiless = true;
        self
    }

    pub(crate) fn describe(&self) -> String {
        let identity = self.identity.as_ref().map(|identity| format!(" as {}", identity.name()));
        format!("{} {}{}", self.method, self.target, identity.unwrap_or_default())
    }

    /// What differs in a request. Nothing if it is the expected one.
    pub(crate) fn differences(&self, received: &Received) -> Vec<String> {
        let mut found = Vec::new();
        let mut differ = |what: &str, expected: &str, is: &str| {
            if expected != is {
                found.push(format!("{what}: expected {expected}, got {is}"));
            }
        };
        differ("method", self.method.as_str(), received.method.as_str());
        differ("target", &unescaped(&self.target), &unescaped(&received.target));
        if let Some(identity) = &self.identity {
            differ("identity", identity.name(), received.user().unwrap_or(THE_AGENT));
        }
        if let Some(groups) = &self.groups {
            let mut is = received.header("impersonate-group");
            is.sort_unstable();
            differ("groups", &format!("{groups:?}"), &format!("{is:?}"));
        }
        for (name, value) in &self.headers {
            let is = received.header(name);
            let expected: Vec<_> = value.iter().map(String::as_str).collect();
            differ(&format!("header {name}"), &format!("{expected:?}"), &format!("{is:?}"));
        }
        let body = received.json();
        for (pointer, value) in &self.body {
            let is = body.pointer(pointer).unwrap_or(&Value::Null);
            differ(&format!("body at {pointer}"), &value.to_string(), &is.to_string());
        }
        if self.is_bodiless {
            differ("body", "", &String::from_utf8_lossy(&received.body));
        }
        found
    }
}

// === impl Identity ===

impl Identity {
    fn name(&self) -> &str {
        match self {
            Self::Agent => THE_AGENT,
            Self::User(name) => name,
        }
    }
}

/// A target without the escapes of its query.
fn unescaped(target: &str) -> String {
    let Some((path, query)) = target.split_once('?') else { return target.to_owned() };
    let (mut bytes, mut rest) = (Vec::new(), query.as_bytes());
    while let [first, tail @ ..] = rest {
        let digits = tail.get(..2).filter(|_| *first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(escaped.unwrap_or(*first));
        rest = &tail[if escaped.is_some() { 2 } else { 0 }..];
    }
    format!("{path}?{}", String::from_utf8_lossy(&bytes))
}
