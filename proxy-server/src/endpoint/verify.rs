//! The fifth phase: verifies a token of the cluster's OIDC issuer. The agent gets the user, and never the token.
//!
//! A request with any other token passes. It comes after the limits, because a signature costs more than a look-up, and
//! because a request may wait for the keys of the issuer. Nearly no request does: only then, the phase boxes a future.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use kube_wire::bearer::InvalidToken;
use oidc::{Refused, Verified};
use pin_project_lite::pin_project;
use tower::Service;
use tracing::info;

use super::admit::Admitted;
use super::bearer;
use super::issuer_token::IssuerToken;
use super::peer::ClientIdentity;
use super::record;
use super::refusal::Refusal;

/// Calls the inner service with the identity that a token proves, or refuses the token.
#[derive(Clone, Copy, Debug)]
pub(super) struct VerifyToken<S> {
    inner: S,
}

type Waiting = Pin<Box<dyn Future<Output = Result<Verified, Refused>> + Send>>;

pin_project! {
    /// The response of the inner service, or the refusal.
    #[project = StateProjection]
    pub(super) enum State<S, F> {
        Refused { refused: Option<Box<record::Refused>> },
        Waiting { waiting: Waiting, held: Option<Box<Held<S>>> },
        Passed { #[pin] inner: F },
    }
}

/// A request that waits for the keys of an issuer.
pub(super) struct Held<S> {
    admitted: Admitted,
    found: IssuerToken,
    inner: S,
}

/// The token of the issuer in a request. Removes all tokens then.
fn take_token(admitted: &mut Admitted) -> Result<Option<IssuerToken>, Refusal> {
    let recorded = &mut admitted.routed.recorded;
    let Some(authenticator) = recorded.connection.services.issuers.get(&admitted.routed.cluster.name) else {
        return Ok(None);
    };
    let headers = recorded.head.headers_mut();
    let taken = bearer::take(headers, |token| authenticator.token(token).is_some());
    match taken {
        // As in kube-apiserver, a token has no effect beside a valid certificate.
        Some(_) if admitted.identity.is_some() => Ok(None),
        Some(Ok(token)) => Ok(Some(IssuerToken { authenticator, token })),
        Some(Err(InvalidToken)) => Err(Refusal::Token(Refused::Malformed)),
        None => Ok(None),
    }
}

/// Gives the request its identity, unless that is revoked or exceeds a limit.
fn accept(admitted: &mut Admitted, identity: Arc<ClientIdentity>) -> Result<(), Refusal> {
    let connection = Arc::clone(&admitted.routed.recorded.connection);
    let cluster = &admitted.routed.cluster.name;
    // Before the check: if the list changes in between, the connection ends.
    connection.peer.accepted(cluster, &identity)?;
    if connection.services.client_cas.revocations().revokes_user(cluster, identity.certificate()) {
        info!(user = %identity.user, %cluster, "the token is revoked");
        return Err(Refusal::RevokedToken);
    }
    admitted.charge.prove(&connection, cluster, &identity.user).map_err(Refusal::TooMany)?;
    admitted.routed.recorded.record.identified(&identity);
    admitted.identity = Some(identity);
    Ok(())
}

fn finish(
    mut admitted: Admitted,
    result: Result<Arc<ClientIdentity>, Refused>,
) -> Result<Admitted, Box<record::Refused>> {
    let refusal = match result {
        Ok(identity) => accept(&mut admitted, identity).err(),
        // The token may be valid, so the client may try again.
        Err(Refused::NoKeys) => Some(Refusal::NoKeys),
        Err(refused) => Some(Refusal::Token(refused)),
    };
    match refusal {
        None => Ok(admitted),
        Some(refusal) => Err(refuse(admitted, refusal)),
    }
}

fn refuse(admitted: Admitted, refusal: Refusal) -> Box<record::Refused> {
    let Admitted { routed, charge, .. } = admitted;
    let services = &routed.recorded.connection.services;
    charge.forget(services);
    match &refusal {
        Refusal::Token(refused) => services.issuers.count_refused(&routed.cluster.name, refused),
        Refusal::NoKeys => services.issuers.count_refused(&routed.cluster.name, &Refused::NoKeys),
        Refusal::TooMany(limit) => services.limits.count_refused(&routed.cluster.name, *limit),
        _ => {}
    }
    routed.recorded.refuse(refusal)
}

// === impl VerifyToken ===

impl<S> VerifyToken<S> {
    pub(super) fn new(inner: S) -> Self {
        Self { inner }
    }
}

impl<S> Service<Admitted> for VerifyToken<S>
where
    S: Service<Admitted, Error = Box<record::Refused>> + Clone,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = State<S, S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut admitted: Admitted) -> Self::Future {
        let found = match take_token(&mut admitted) {
            Ok(Some(found)) => found,
            Ok(None) => return State::Passed { inner: self.inner.call(admitted) },
            Err(refusal) => return State::Refused { refused: Some(refuse(admitted, refusal)) },
        };
        let last = &admitted.routed.recorded.connection.last_token;
        let known = last.known(&found).map(Ok);
        let now = known.or_else(|| Some(found.verify_now()?.map(|verified| last.learn(&found, verified))));
        if let Some(result) = now {
            return match finish(admitted, result) {
                Ok(admitted) => State::Passed { inner: self.inner.call(admitted) },
                Err(refused) => State::Refused { refused: Some(refused) },
            };
        }
        let waiting = Box::pin(found.clone().verify());
        // The service that was ready goes with the request (`Service::poll_ready`).
        let clone = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, clone);
        State::Waiting { waiting, held: Some(Box::new(Held { admitted, found, inner })) }
    }
}

// === impl State ===

impl<S> Future for State<S, S::Future>
where
    S: Service<Admitted, Error = Box<record::Refused>>,
{
    type Output = Result<S::Response, S::Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let StateProjection::Waiting { waiting, held } = self.as_mut().project() {
            let result = ready!(waiting.as_mut().poll(cx));
            let held = held.take().expect("a future is not polled after it is ready");
            let Held { admitted, found, mut inner } = *held;
            let last = &admitted.routed.recorded.connection.last_token;
            let result = result.map(|verified| last.learn(&found, verified));
            let next = match finish(admitted, result) {
                Ok(admitted) => Self::Passed { inner: inner.call(admitted) },
                Err(refused) => Self::Refused { refused: Some(refused) },
            };
            self.set(next);
        }
        match self.project() {
            StateProjection::Passed { inner } => inner.poll(cx),
            StateProjection::Refused { refused } => {
                Poll::Ready(Err(refused.take().expect("a future is not polled after it is ready")))
            }
            StateProjection::Waiting { .. } => Poll::Pending,
        }
    }
}
