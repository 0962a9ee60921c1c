//! Requests as the host received them.

use std::fmt;

use bytes::Bytes;
use http::{HeaderMap, Method, Request};
use serde_json::Value;

/// The path of SubjectAccessReviews.
const ACCESS_REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

/// One request.
#[derive(Clone, Debug)]
pub struct Received {
    /// The method.
    pub method: Method,
    /// Path and query.
    pub target: String,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

// === impl Received ===

impl Received {
    pub(crate) fn new(request: Request<Bytes>) -> Self {
        let (head, body) = request.into_parts();
        let target = head.uri.path_and_query().map_or_else(String::new, ToString::to_string);
        Self { method: head.method, target, headers: head.headers, body }
    }

    /// The path.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// The query, without the question mark.
    pub fn query(&self) -> &str {
        self.target.split_once('?').map_or("", |(_, query)| query)
    }

    /// The body as JSON; null if it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The values of a header, in order.
    pub fn header(&self, name: &str) -> Vec<&str> {
        self.headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect()
    }

    /// The impersonated user. `None` if the agent sent the request with its own identity.
    pub fn user(&self) -> Option<&str> {
        self.header("impersonate-user").first().copied()
    }

    /// Whether it is a SubjectAccessReview of the agent.
    pub fn is_review(&self) -> bool {
        self.method == Method::POST && self.path() == ACCESS_REVIEWS && self.user().is_none()
    }
}

/// `METHOD TARGET`, and `as USER` if it is impersonated; `review USER: VERB RESOURCE.GROUP/SUBRESOURCE NAME in NAMESPACE`
/// for a SubjectAccessReview of the agent.
impl fmt::Display for Received {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_review() {
            write!(f, "{} {}", self.method, self.target)?;
            return self.user().map_or(Ok(()), |user| write!(f, " as {user}"));
        }
        let spec = &self.json()["spec"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let part = |separator: &str, value: &Value| match text(value) {
            empty if empty.is_empty() => empty,
            value => format!("{separator}{value}"),
        };
        let attributes = &spec["resourceAttributes"];
        write!(f, "review {}: {} {}", text(&spec["user"]), text(&attributes["verb"]), text(&attributes["resource"]))?;
        f.write_str(&part(".", &attributes["group"]))?;
        f.write_str(&part("/", &attributes["subresource"]))?;
        f.write_str(&part(" ", &attributes["name"]))?;
        f.write_str(&part(" in ", &attributes["namespace"]))
    }
}
