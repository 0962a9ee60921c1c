//! Request bodies in host names.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::tunnel::{Inbound, Share};
use bytes::Bytes;
use http::{HeaderMap, header};
use kube_wire::media::{BodyType, Encoding};
use kube_wire::status::FieldError;
use kube_wire::{ResourceRequest, Status, Verb};
use rewrite::request::{NamespaceRules, Report, Request};
use rewrite::{Program, VirtualNamespace};
use tokio::time::timeout;

use super::object::{Object, map_json};
use super::plan::{group_kind, program};
use super::{ApiRequest, generate};
use crate::refusal::{DryRunScope, Exhausted, Refusal, Unmapped};
use crate::translate::{MAX_FORGOTTEN, MAX_REQUEST};
use host_client::collect::{CollectError, collect_charged, drain};
use host_client::{RequestBody, empty, full, stream};

/// The body of a request, as the client sends it.
pub(crate) enum Body {
    /// In one piece. It is mapped, perhaps more than once.
    Whole(Bytes),
    /// For the server of a pod or a service. It is sent unchanged, and only once.
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
            Ok(bytes) => Ok(Self::Whole(bytes)),
            Err(CollectError::Exhausted) => Err(Exhausted::Memory.into()),
            Err(CollectError::TooLarge(limit)) => {
                drain(&mut inbound, MAX_FORGOTTEN).await;
                Err(Status::request_entity_too_large(&format!("limit is {limit}")).into())
            }
            Err(CollectError::Broken(_)) => Err(Status::bad_request("the request body ended early").into()),
        }
    }

    /// The bytes. A stream returns none.
    pub(crate) fn bytes(&self) -> Bytes {
        match self {
            Self::Whole(bytes) => bytes.clone(),
            Self::Stream(_) => Bytes::new(),
        }
    }

    /// Whether it can be sent again.
    pub(crate) fn is_whole(&self) -> bool {
        matches!(self, Self::Whole(_))
    }

    /// The unchanged body.
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

/// The media type of a body.
pub(super) fn content_type(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok())
}

impl ApiRequest<'_> {
    /// The body for the host.
    pub(super) async fn body(
        &self,
        request: &ResourceRequest<'_>,
        namespace: Option<&VirtualNamespace>,
        body: &Bytes,
    ) -> Result<RequestBody, Refusal> {
        match request.verb() {
            // DeleteOptions have no names to map, only a uid and a resourceVersion, in any encoding.
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

    /// The body of a new Namespace for the host, and the virtual name.
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
            Unmapped::refusal(status, DryRunScope::KubeApiserver)
        })?;
        Ok((full(mapped), name))
    }

    /// The mapper for bodies of this request.
    pub(super) fn mapper(&self, namespace: Option<&VirtualNamespace>) -> Request {
        let mapper = Request::new(self.mapping.clone())
            .guarding(Arc::clone(&self.cluster.guard))
            .ruled_by(Arc::clone(&self.cluster.namespace_rules));
        match namespace {
            Some(namespace) => mapper.in_namespace(namespace.clone()),
            None => mapper,
        }
    }

    /// The mapper for a new Namespace.
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

    /// Maps an object, and checks that it binds pods only to the cluster's own nodes, which the engine cannot check.
    async fn map_object(
        &self,
        request: &ResourceRequest<'_>,
        mapper: &Request,
        object: &Object,
    ) -> Result<Bytes, Refusal> {
        let name = match request.path_name() {
            Some(name) => name.to_owned(),
            // If the object is invalid, the engine returns the error.
            None => object.name().map(|own| own.name).unwrap_or_default(),
        };
        let settled = self.object_with_node_ports(object);
        let (mapped, report) =
            settled.as_ref().unwrap_or(object).map(request, &name, &self.program(request), mapper)?;
        self.note(&report);
        self.own_nodes(request, &name, &report).await?;
        Ok(mapped)
    }

    /// Maps JSON that is not the body of a client, and checks its nodes.
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

    /// Stores the namespaces that a body names, because the response may name them, too.
    pub(super) fn note(&self, report: &Report) {
        if !report.namespaces.is_empty() {
            self.named.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&report.namespaces);
        }
    }

    /// Refuses nodes that are not the cluster's own. `name` is the name of the object that binds pods.
    pub(super) async fn own_nodes(
        &self,
        request: &ResourceRequest<'_>,
        name: &str,
        report: &Report,
    ) -> Result<(), Refusal> {
        for node in &report.nodes {
            if !self.outside(self.services.nodes.belongs(self.cluster, node)).await? {
                let field = program(request).node_field().unwrap_or_else(|| "spec.nodeName".to_owned());
                let error = FieldError::invalid(field, node, "not a node of this cluster");
                let status = Status::invalid(group_kind(request), name, &[error]);
                return Err(Unmapped::refusal(status, DryRunScope::Skip));
            }
        }
        Ok(())
    }
}

/// Refuses a Namespace with another name than in the path. The host would do so in host names, some of which belong to
/// no virtual cluster.
pub(super) fn same_name(request: &ResourceRequest<'_>, own: &str) -> Result<(), Refusal> {
    let name = request.path_name().unwrap_or_default();
    if own == name {
        return Ok(());
    }
    // `checkName` in apiserver's `handlers/rest.go`.
    let message = format!("the name of the object ({own}) does not match the name on the URL ({name})");
    Err(Unmapped::refusal(Status::bad_request(message), DryRunScope::KubeApiserver))
}
