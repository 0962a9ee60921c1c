//! Request bodies in host names.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::tunnel::{Inbound, Share};
use bytes::Bytes;
use http::{HeaderMap, header};
use kube_wire::media::{BodyType, Encoding};
use kube_wire::status::FieldError;
use kube_wire::{ResourceRequest, Status, Verb};
use rewrite::json::{MAX_WEIGHT, weight};
use rewrite::request::{NamespaceRules, Report, Request};
use rewrite::{Program, VirtualNamespace};
use tokio::time::timeout;

use super::object::{Object, map_json};
use super::plan::{group_kind, program};
use super::{Asked, generate};
use crate::host::{RequestBody, empty, full, stream};
use crate::refusal::{Ask, Refusal, Unmapped};
use crate::translate::{CollectError, MAX_FORGOTTEN, MAX_REQUEST, collect_charged, drain, exhausted};
use crate::turns::SMALL;

/// The body of a request, before anything is known of it.
pub(crate) enum Body {
    /// In one piece: it will be mapped, perhaps more than once.
    Whole(Bytes),
    /// For a pod's own server: it passes as it is, once.
    Stream(Mutex<Option<Inbound>>),
}

/// How the body of a request is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyUse {
    /// It is an object or options, and is mapped.
    Mapped,
    /// The server of a pod or a service gets it unchanged.
    Passed,
    /// An API server does not read the body of such a request.
    Ignored,
}

/// The time that a client has to send a mapped body. An API server limits the whole request to the same time
/// (`RequestTimeout` in apiserver's `pkg/server/config.go`).
const BODY_TIMEOUT: Duration = Duration::from_secs(60);

impl Body {
    /// Collects a mapped body, and charges it to the cluster's share. The caller is authorised.
    pub(crate) async fn receive(inbound: Inbound, body_use: BodyUse, share: &Share) -> Result<Self, Refusal> {
        match body_use {
            BodyUse::Ignored => Ok(Self::Whole(Bytes::new())),
            BodyUse::Passed => Ok(Self::Stream(Mutex::new(Some(inbound)))),
            BodyUse::Mapped => match timeout(BODY_TIMEOUT, Self::collected(inbound, share)).await {
                Ok(collected) => collected,
                // `WithTimeoutForNonLongRunningRequests` in apiserver's `pkg/server/filters/timeout.go`.
                Err(_) => Err(Status::timeout("request did not complete within the allotted timeout", 0).into()),
            },
        }
    }

    async fn collected(mut inbound: Inbound, share: &Share) -> Result<Self, Refusal> {
        match collect_charged(&mut inbound, MAX_REQUEST, share).await {
            Ok(bytes) if is_too_heavy(&bytes) => {
                let message = "the object consists of too many small values, which would need too much memory";
                Err(Status::request_entity_too_large(message).into())
            }
            Ok(bytes) => Ok(Self::Whole(bytes)),
            Err(CollectError::Exhausted) => Err(exhausted()),
            Err(CollectError::TooLarge(limit)) => {
                drain(&mut inbound, MAX_FORGOTTEN).await;
                Err(Status::request_entity_too_large(&format!("limit is {limit}")).into())
            }
            Err(CollectError::Broken(_)) => Err(Status::bad_request("the request body ended early").into()),
        }
    }

    /// The bytes; none of a stream.
    pub(crate) fn bytes(&self) -> Bytes {
        match self {
            Self::Whole(bytes) => bytes.clone(),
            Self::Stream(_) => Bytes::new(),
        }
    }

    /// Whether it can be sent once more.
    pub(crate) fn is_whole(&self) -> bool {
        matches!(self, Self::Whole(_))
    }

    /// The body as it came.
    pub(crate) fn take(&self) -> RequestBody {
        match self {
            Self::Whole(bytes) => full(bytes.clone()),
            Self::Stream(inbound) => {
                let inbound = inbound.lock().unwrap_or_else(PoisonError::into_inner).take();
                inbound.map_or_else(empty, stream)
            }
        }
    }
}

/// Whether a JSON body would need too much memory when parsed. Other encodings are never parsed as a whole.
fn is_too_heavy(body: &[u8]) -> bool {
    let first = body.iter().find(|byte| !byte.is_ascii_whitespace());
    body.len() > SMALL && matches!(first, Some(b'{' | b'[')) && weight(body) > MAX_WEIGHT
}

/// The media type of a body.
pub(super) fn content_type(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok())
}

impl Asked<'_> {
    /// A body as the host is to get it.
    pub(super) async fn body(
        &self,
        request: &ResourceRequest<'_>,
        namespace: Option<&VirtualNamespace>,
        body: &Bytes,
    ) -> Result<RequestBody, Refusal> {
        match request.verb() {
            // DeleteOptions name nothing but a uid and a resourceVersion, in any encoding.
            Verb::Delete | Verb::DeleteCollection => Ok(full(body.clone())),
            _ if body.is_empty() => Ok(empty()),
            _ => {
                let object = self.object(body)?;
                if request.is_namespace() && request.subresource().is_none() {
                    same_name(request, &object.name()?.name)?;
                }
                let mapper = self.whole_mapper(request, namespace).await?;
                self.map_object(request, &mapper, &object).await.map(full)
            }
        }
    }

    /// A new Namespace, and its virtual name.
    pub(super) async fn namespace_body(
        &self,
        request: &ResourceRequest<'_>,
        body: &Bytes,
    ) -> Result<(RequestBody, VirtualNamespace), Refusal> {
        let object = self.object(body)?;
        let own = object.name()?;
        if let Some(name) = generate::name(&self.mapping, &own)? {
            let mapper = self.new_namespace_mapper().naming(name.clone());
            return Ok((full(self.map_object(request, &mapper, &object).await?), name));
        }
        let mapped = self.map_object(request, &self.new_namespace_mapper(), &object).await?;
        let name = VirtualNamespace::new(&own.name).map_err(|_| {
            let status = Status::bad_request("metadata.name is not the name of a namespace");
            Unmapped::refusal(status, Ask::KubeApiserver)
        })?;
        Ok((full(mapped), name))
    }

    /// How bodies of this request are mapped.
    pub(super) fn mapper(&self, namespace: Option<&VirtualNamespace>) -> Request {
        let mapper = Request::new(self.mapping.clone())
            .guarding(Arc::clone(&self.cluster.guard))
            .ruled_by(Arc::clone(&self.cluster.namespace_rules));
        match namespace {
            Some(namespace) => mapper.in_namespace(namespace.clone()),
            None => mapper,
        }
    }

    /// How a new Namespace is mapped.
    fn new_namespace_mapper(&self) -> Request {
        let rules = NamespaceRules::clone(&self.cluster.namespace_rules);
        self.mapper(None).ruled_by(Arc::new(rules.annotated(self.cluster.annotations.entries())))
    }

    /// The object in a body.
    pub(super) fn object(&self, body: &Bytes) -> Result<Object, Refusal> {
        let content_type = content_type(&self.headers);
        if BodyType::of_object(content_type) == Ok(BodyType::Object(Encoding::Yaml)) {
            return self.yaml(body).map(Object::Json);
        }
        Object::receive(content_type, body)
    }

    /// Maps an object, and checks what the engine cannot: that pods are bound to the cluster's own nodes.
    async fn map_object(
        &self,
        request: &ResourceRequest<'_>,
        mapper: &Request,
        object: &Object,
    ) -> Result<Bytes, Refusal> {
        let name = match request.path_name() {
            Some(name) => name.to_owned(),
            // Whatever is wrong with it the engine says.
            None => object.name().map(|own| own.name).unwrap_or_default(),
        };
        let settled = self.object_with_node_ports(object);
        let (mapped, report) =
            settled.as_ref().unwrap_or(object).map(request, &name, &self.program(request), mapper)?;
        self.note(&report);
        self.own_nodes(request, &name, &report).await?;
        Ok(mapped)
    }

    /// The same for JSON that is no body of a client's.
    pub(super) async fn map(
        &self,
        request: &ResourceRequest<'_>,
        program: &Program,
        mapper: Request,
        json: &Bytes,
    ) -> Result<Bytes, Refusal> {
        let name = request.path_name().unwrap_or_default();
        let (mapped, report) = map_json(request, name, program, &mapper, json)?;
        self.note(&report);
        self.own_nodes(request, name, &report).await?;
        Ok(mapped)
    }

    /// Remembers what the answer may speak of.
    pub(super) fn note(&self, report: &Report) {
        if !report.namespaces.is_empty() {
            self.named.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&report.namespaces);
        }
    }

    /// `name` is that of the object whose pods are to be bound.
    pub(super) async fn own_nodes(
        &self,
        request: &ResourceRequest<'_>,
        name: &str,
        report: &Report,
    ) -> Result<(), Refusal> {
        for node in &report.nodes {
            if !self.parts.nodes.belongs(self.cluster, node).await? {
                let field = program(request).node_field().unwrap_or_else(|| "spec.nodeName".to_owned());
                let error = FieldError::invalid(field, node, "not a node of this cluster");
                let status = Status::invalid(group_kind(request), name, &[error]);
                return Err(Unmapped::refusal(status, Ask::Nobody));
            }
        }
        Ok(())
    }
}

/// A Namespace that is written must be the one that the path names. The host would say so in host names, some of which
/// are nobody's.
pub(super) fn same_name(request: &ResourceRequest<'_>, own: &str) -> Result<(), Refusal> {
    let name = request.path_name().unwrap_or_default();
    if own == name {
        return Ok(());
    }
    // `checkName` in apiserver's `handlers/rest.go`.
    let message = format!("the name of the object ({own}) does not match the name on the URL ({name})");
    Err(Unmapped::refusal(Status::bad_request(message), Ask::KubeApiserver))
}
