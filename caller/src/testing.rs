//! A host that returns the answers that a test sets, and counts the questions.
#![expect(clippy::unwrap_used, reason = "only tests use this module")]

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rewrite::{HostNamespace, Index, Mapping};
use tokio::sync::Semaphore;

use crate::identity::HostUser;
use crate::reviews::{Attributes, Decision, ReviewError, Reviews, Rules, TokenUser};

/// The host.
pub struct FakeHost {
    /// The tokens that it knows.
    pub tokens: HashMap<&'static str, TokenUser>,
    /// The allowed questions, in the form of [`question`].
    pub allowed: Mutex<Vec<String>>,
    /// The rights of every user.
    pub rules: Rules,
    /// Whether it never answers.
    pub fails: bool,
    /// Each answer takes one of these permits.
    pub answers: Semaphore,
    /// The number of questions so far.
    pub questions: AtomicUsize,
}

// === impl FakeHost ===

impl FakeHost {
    /// The number of questions so far.
    pub fn questions(&self) -> usize {
        self.questions.load(Ordering::SeqCst)
    }

    /// A host that allows only these questions.
    pub fn allowing(questions: &[&str]) -> Arc<Self> {
        let allowed = questions.iter().map(ToString::to_string).collect();
        Arc::new(Self { allowed: Mutex::new(allowed), ..Self::default() })
    }

    async fn answer(&self) -> Result<(), ReviewError> {
        self.questions.fetch_add(1, Ordering::SeqCst);
        self.answers.acquire().await.unwrap().forget();
        if self.fails { Err(ReviewError::Silent) } else { Ok(()) }
    }
}

impl Default for FakeHost {
    fn default() -> Self {
        Self {
            tokens: HashMap::new(),
            allowed: Mutex::default(),
            rules: Rules::default(),
            fails: false,
            answers: Semaphore::new(Semaphore::MAX_PERMITS),
            questions: AtomicUsize::new(0),
        }
    }
}

impl Reviews for FakeHost {
    async fn token_review(&self, token: &str) -> Result<Option<TokenUser>, ReviewError> {
        self.answer().await?;
        Ok(self.tokens.get(token).cloned())
    }

    async fn subject_access_review(
        &self,
        user: &HostUser,
        attributes: &Attributes<'_>,
    ) -> Result<Decision, ReviewError> {
        self.answer().await?;
        let allowed = self.allowed.lock().unwrap().contains(&question(user, attributes));
        Ok(Decision { allowed, reason: Arc::default() })
    }

    async fn rules_review(&self, _: &HostUser, _: &HostNamespace) -> Result<Rules, ReviewError> {
        self.answer().await?;
        Ok(self.rules.clone())
    }
}

/// `USER: VERB RESOURCE.GROUP/SUBRESOURCE NAME in NAMESPACE`.
pub fn question(user: &HostUser, attributes: &Attributes<'_>) -> String {
    let Attributes { verb, group, resource, subresource, name, namespace, version: _ } = attributes;
    let user = user.name();
    format!("{user}: {verb} {resource}.{group}/{subresource} {name} in {namespace}")
}

/// Virtual cluster `ke` with the namespace `edge`, beside `hz` with its own, and the host's `kube-system`.
pub fn ke() -> Mapping {
    let mut index = Index::new();
    for (cluster, host) in [("ke", "edge-ke"), ("hz", "edge-hz")] {
        let (host, cluster) = (host.parse().unwrap(), cluster.parse().unwrap());
        index.insert(host, cluster, "edge".parse().unwrap()).unwrap();
    }
    index.insert_host("kube-system".parse().unwrap());
    index.insert_host("atoll-root-ke".parse().unwrap());
    Mapping::new("ke".parse().unwrap(), Arc::new(index))
}
