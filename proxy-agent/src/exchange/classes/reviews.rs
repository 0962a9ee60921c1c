//! Reviews: questions of clients about rights and identities, answered for the virtual cluster.
//!
//! | review | goes upstream | as |
//! |---|---|---|
//! | SelfSubjectAccessReview, SelfSubjectRulesReview, SelfSubjectReview | in host names | the caller |
//! | LocalSubjectAccessReview | in the host's namespace | the caller |
//! | SubjectAccessReview, TokenReview | in host names, if the caller may create it here | the agent |
//!
//! The host answers every review, so that the response has the form of its version. The agent puts into `status` what
//! only it knows ([`ReviewAnswer`]): the answer for paths that are no resources, the virtual cluster of a token, and refusals
//! regardless of roles.

mod question;

use kube_wire::{ResourceRequest, Verb};
use rewrite::view::Filter;
use rewrite::{HostNamespace, Mapping, VirtualNamespace};

use crate::exchange::api_request::As;
use crate::exchange::body::Body;
use crate::exchange::host::error::{Destination, prefer_host_error};
use crate::exchange::kinds::{group_kind, program, segment};
use crate::exchange::plan::Plan;
use crate::exchange::undecided::Undecided;
use crate::exchange::upstream;
use crate::exchange::write::mapper::mapper;
use crate::exchange::write::object::received;
use crate::refusal::Refusal;
use crate::translate::{ResponseTransform, ReviewAnswer, Ruling};
use caller::HostUser;
use caller::authz::paths::PathClass;
use caller::identity::host_user::{ACCOUNTS, AUTHENTICATED, UNAUTHENTICATED};
use host_client::full;
use virtual_cluster::policy::{self, Custom};

use question::{About, Path, Question, Subject};

/// The kinds of review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Whether the caller or another user may do something.
    Access,
    /// The owner of a token.
    Token,
    /// All rights of the caller, or its identity.
    Other,
}

/// The reason why a path is refused to all users.
const NOT_SERVED: &str = "this path shows the whole host cluster and is not served by virtual clusters";

// === impl Kind ===

impl Kind {
    /// The kind of review that a request creates. `None` if it creates none.
    pub(crate) fn of(request: &ResourceRequest<'_>) -> Option<Self> {
        if request.verb() != Verb::Create || request.subresource().is_some() {
            return None;
        }
        match (request.group(), request.resource()) {
            (
                "authorization.k8s.io",
                "localsubjectaccessreviews" | "selfsubjectaccessreviews" | "subjectaccessreviews",
            ) => Some(Self::Access),
            ("authentication.k8s.io", "tokenreviews") => Some(Self::Token),
            ("authentication.k8s.io", "selfsubjectreviews") | ("authorization.k8s.io", "selfsubjectrulesreviews") => {
                Some(Self::Other)
            }
            _ => None,
        }
    }
}

/// Handles a review. `namespace` is the namespace of a LocalSubjectAccessReview.
pub(crate) async fn decide(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    kind: Kind,
    namespace: Option<(&VirtualNamespace, &HostNamespace)>,
    body: &Body,
) -> Result<Box<Plan>, Refusal> {
    let segment = namespace.map(|(_, host)| segment(host));
    let path = request.path_with(segment.as_ref(), None);
    // All callers may ask about their own rights, by the host's role `system:basic-user`.
    let identity = match request.resource() {
        "subjectaccessreviews" | "tokenreviews" => As::Agent,
        _ => As::Caller,
    };
    match reviewed(call, request, kind, namespace, &path, identity, body).await {
        Ok(plan) => Ok(plan),
        Err(refusal) => {
            let namespace = namespace.map(|(_, host)| host);
            let upstream = Destination { path: &path, identity, namespace, mapping: &call.api.mapping };
            Err(prefer_host_error(call, request, &upstream, &body.bytes(), refusal).await)
        }
    }
}

async fn reviewed(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    kind: Kind,
    namespace: Option<(&VirtualNamespace, &HostNamespace)>,
    path: &str,
    identity: As,
    body: &Body,
) -> Result<Box<Plan>, Refusal> {
    let object = received(call, &body.bytes())?;
    let mut mapper = mapper(call, namespace.map(|(name, _)| name)).with_review_root(call.api.cluster.root.clone());
    let mut ruling = if kind == Kind::Token { Ruling::Token } else { Ruling::Host };
    if kind == Kind::Access {
        let about = match request.resource() {
            "selfsubjectaccessreviews" => About::Caller,
            _ => About::Named,
        };
        let question = Question::read(&object, about, group_kind(request))?;
        mapper = mapper.with_review_groups(added_groups(&question, &call.api.mapping));
        ruling = ruling_of(call, &question).await?;
    }
    let (mapped, report) = object.map(request, "", &program(request), &mapper)?;
    let target = upstream::target(path, call.api.info.query());
    let mut upstream = upstream::request(&call.api, call.api.info.method().clone(), &target, identity, full(mapped))?;
    upstream::readable(&call.api, &mut upstream)?;
    let (root, host_tokens) = (call.api.cluster.root.clone(), call.api.cluster.host_tokens.clone());
    let answer = ReviewAnswer { ruling, root, about: report.about, host_tokens };
    // The answer about a token already has the user in virtual names.
    let program = if kind == Kind::Token { rewrite::schema::program_of_any() } else { program(request) };
    let transform = ResponseTransform::Review { program, filter: Filter::Everything, answer };
    let mut plan = Plan::new(&call.api, upstream, transform);
    if let Some((name, _)) = namespace {
        plan.mapping = plan.mapping.with_requested_namespace(name.clone());
    }
    Ok(plan)
}

/// The part of the answer that only the agent knows.
async fn ruling_of(call: &Undecided<'_>, question: &Question) -> Result<Ruling, Refusal> {
    if let Some(attributes) = &question.resource {
        let (resource, subresource, verb) = (attributes.as_resource(), &*attributes.subresource, &*attributes.verb);
        if call.services.shared.load().let_do(resource, subresource, verb) {
            return Ok(Ruling::Host);
        }
        let withheld = match call.services.discovery.known_custom(resource) {
            Some(custom) => policy::withheld_custom(custom, verb),
            None if call.services.discovery.is_reserved(resource) => policy::withheld_custom(Custom::Hidden, verb),
            None => policy::withheld(resource, subresource, verb),
        };
        return Ok(withheld.map_or(Ruling::Host, Ruling::Withheld));
    }
    let Some(Path { path, verb }) = &question.path else { return Ok(Ruling::Host) };
    match question::class(verb, path) {
        // The host's own roles allow this to all users, and all virtual clusters have these roles.
        PathClass::Public | PathClass::Authenticated => Ok(Ruling::Host),
        PathClass::Never => Ok(Ruling::Denied(NOT_SERVED)),
        PathClass::ByRule => {
            let stranger;
            let user = match &question.subject {
                None => Some(&call.api.caller.host),
                Some(subject) => {
                    stranger = as_user(subject, &call.api.mapping);
                    stranger.as_ref()
                }
            };
            let Some(user) = user else { return Ok(Ruling::Agent(false)) };
            let rules = call.services.authz.rules(user, &call.api.cluster.root).await;
            let rules = rules.map_err(|error| Refusal::from(kube_wire::Status::from(&error)))?;
            Ok(Ruling::Agent(rules.allow_path(verb, path)))
        }
    }
}

/// The host's own groups that the host would add to a user with the groups of the question.
fn added_groups(question: &Question, mapping: &Mapping) -> Vec<String> {
    let ours = [AUTHENTICATED, UNAUTHENTICATED, ACCOUNTS];
    let user = question.subject.as_ref().and_then(|subject| as_user(subject, mapping));
    let groups = user.iter().flat_map(HostUser::groups);
    groups.filter(|group| ours.contains(&group.as_str())).cloned().collect()
}

/// The subject as a user of the host. `None` if the host cannot know such a user.
fn as_user(subject: &Subject, mapping: &Mapping) -> Option<HostUser> {
    HostUser::impersonated(mapping, &subject.user, subject.groups(), None, Vec::new()).ok()
}
