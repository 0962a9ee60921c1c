//! Cluster-scoped custom objects: each virtual cluster has its own, with another name on the host.
//!
//! The caller needs the right in the root namespace. The agent then sends the request with its own identity. An object
//! belongs to the virtual cluster if its label and its name say so. Before the agent writes an object by its name, it
//! checks the owner of the host's object.

use bytes::Bytes;
use http::Method;
use kube_wire::media::BodyType;
use kube_wire::name::SegmentName;
use kube_wire::status::FieldError;
use kube_wire::{ResourceRequest, Status, Verb};
use rewrite::name::CLUSTER_LABEL;
use rewrite::view::Filter;
use rewrite::{Program, schema};
use serde_json::{Map, Value, json};
use tracing::warn;

use super::ApiRequest;
use super::body::{Body, content_type, same_name};
use super::cluster_scoped::forbidden;
use super::generate;
use super::host_error::Upstream as Place;
use super::patch::yaml_to_json;
use super::plan::{As, Plan, group_kind, program};
use crate::refusal::{DryRunScope, Refusal, Unmapped};
use crate::translate::ResponseTransform;
use host_client::{empty, full};
use virtual_cluster::own_rights::Lack;
use virtual_cluster::policy::{self, Class, Custom};

/// The media type of metadata only, from which the agent determines the owner of an object.
const METADATA: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";

/// The owner of a name on the host.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Holder {
    Nobody,
    /// The virtual cluster. Its object has this uid.
    Own(String),
    /// Another owner, for example the operator of the host.
    Other,
}

impl ApiRequest<'_> {
    /// Determines whether the request is for cluster-scoped custom objects, and how the cluster is served them.
    pub(super) async fn learn_custom(&mut self) -> Result<(), Refusal> {
        self.learn_kinds();
        let Some(request) = self.info.resource() else { return Ok(()) };
        let is_listed = policy::class(request.group_resource()) != Class::Empty(policy::UNKNOWN);
        if request.namespace().is_some() || request.group().is_empty() || is_listed {
            return Ok(());
        }
        let known = self.services.discovery.resource(request.group_version_resource()).await;
        let known = known.map_err(|error| Refusal::from(Status::service_unavailable(error.to_string())))?;
        if known.is_some_and(|known| known.custom && !known.namespaced) {
            self.custom = Some(self.custom_of(request).await?);
        }
        // The definition may be new, so read it from the host.
        self.learn_kinds();
        Ok(())
    }

    async fn custom_of(&self, request: &ResourceRequest<'_>) -> Result<Custom, Refusal> {
        self.known_definitions().await?;
        let name = format!("{}.{}", request.resource(), request.group());
        if let Some(custom) = self.services.discovery.custom(&name) {
            return Ok(custom);
        }
        // Another agent may have just created it.
        let definition = self.definition(&name).await?;
        let is_of_clusters = definition.is_some_and(|definition| definition.is_of_clusters());
        Ok(self.services.discovery.custom_of(&name, is_of_clusters))
    }

    fn learn_kinds(&mut self) {
        self.mapping = self.mapping.clone().renaming(self.services.discovery.renamed());
    }

    /// Whether the request is about objects that have other names on the host.
    pub(super) fn is_renamed(&self) -> bool {
        self.custom == Some(Custom::Renamed)
    }

    /// The places of names in the objects of the request.
    pub(super) fn program(&self, request: &ResourceRequest<'_>) -> Program {
        match self.custom {
            Some(Custom::Renamed) => schema::program_of_renamed(),
            Some(Custom::Read | Custom::Shared) => program(request).of_shared(),
            Some(Custom::Hidden) | None => program(request),
        }
    }

    /// A request for cluster-scoped custom objects. The caller is authorised.
    pub(super) async fn renamed(&self, request: &ResourceRequest<'_>, body: &Body) -> Result<Plan, Refusal> {
        if !matches!(request.subresource(), None | Some("status" | "scale")) {
            return Err(Status::path_not_found().into());
        }
        if !request.verb().is_read() {
            self.may_write_itself(request).await?;
        }
        match (request.verb(), request.path_name()) {
            (Verb::List | Verb::Watch | Verb::DeleteCollection, None) => {
                self.renamed_collection(request, &body.bytes())
            }
            (Verb::Create, None) => self.new_renamed(request, &body.bytes()).await,
            (Verb::Get | Verb::List | Verb::Watch, Some(name)) => self.read_renamed(request, name).await,
            (Verb::Update | Verb::Patch | Verb::Delete, Some(name)) => {
                self.write_renamed(request, name, &body.bytes()).await
            }
            _ => Err(Status::method_not_allowed_here().into()),
        }
    }

    /// Makes sure that the agent itself has the right to write.
    pub(super) async fn may_write_itself(&self, request: &ResourceRequest<'_>) -> Result<(), Refusal> {
        let scans = &self.cluster.lasting.scans;
        match self.outside(self.services.own_rights.to_write(request.group_resource(), scans)).await {
            Ok(()) => Ok(()),
            Err(Lack::NotGiven) => Err(forbidden(request, policy::NOT_GIVEN)),
            Err(Lack::NotDue) => Err(forbidden(request, policy::HIDDEN)),
            Err(Lack::Host(error)) => {
                let error: &dyn std::error::Error = &error;
                warn!(error, resource = %request.group_resource(), "cannot check the right to write custom resources");
                let message = "the host cluster did not say whether the agent may write this; try again";
                Err(Status::service_unavailable(message).with_retry_after(1).into())
            }
        }
    }

    fn renamed_collection(&self, request: &ResourceRequest<'_>, body: &Bytes) -> Result<Plan, Refusal> {
        let query = self.list_query(request, Some(&self.own_label()))?;
        let target = Self::target(&request.path().build(), &query);
        let sent = if request.verb() == Verb::DeleteCollection { full(body.clone()) } else { empty() };
        let mut upstream = self.upstream(self.info.method().clone(), &target, As::Agent, sent)?;
        self.readable(&mut upstream)?;
        let transform = self.list_transform(request, self.program(request), Filter::ByRole)?;
        Ok(self.planned(request, upstream, transform))
    }

    async fn new_renamed(&self, request: &ResourceRequest<'_>, body: &Bytes) -> Result<Plan, Refusal> {
        let path = request.path().build();
        let mapped = async {
            let (name, body) = self.named(body)?;
            if !name.is_empty() && self.holder(request, &self.renamed_path(request, &name)?).await? == Holder::Other {
                let why = "the name is taken on the host by something else";
                return Err(Status::conflict(request.group_resource(), &name, why).into());
            }
            Ok((self.body(request, None, &body).await?, name))
        };
        let (body, name) = match mapped.await {
            Ok(mapped) => mapped,
            Err(refusal) => return Err(self.renamed_refused(request, &path, body, refusal).await),
        };
        let target = Self::target(&path, self.info.query());
        let mut upstream = self.upstream(Method::POST, &target, As::Agent, body)?;
        self.readable(&mut upstream)?;
        let transform =
            ResponseTransform::Object { program: self.program(request), filter: Filter::ByRole, only: None };
        let mut plan = self.planned(request, upstream, transform);
        plan.mapping = self.mapping.clone().about_object(&name);
        Ok(plan)
    }

    /// The name of a new object, and its body with that name. The host cannot generate a name, because it would append
    /// the suffix after the name of the virtual cluster.
    fn named(&self, body: &Bytes) -> Result<(String, Bytes), Refusal> {
        let own = self.object(body)?.name()?;
        if !own.name.is_empty() || own.generate_name.is_empty() {
            return Ok((own.name, body.clone()));
        }
        let name = generate::with_suffix(&own.generate_name);
        let bad = |error: serde_json::Error| Refusal::from(Status::bad_request(error.to_string()));
        let json = self
            .object(body)?
            .into_json()
            .ok_or_else(|| Refusal::from(Status::bad_request("objects of this kind must be in JSON or YAML")))?;
        let mut object: Value = serde_json::from_slice(&json).map_err(bad)?;
        object["metadata"]["name"] = name.clone().into();
        Ok((name, serde_json::to_vec(&object).map_err(bad)?.into()))
    }

    async fn read_renamed(&self, request: &ResourceRequest<'_>, name: &str) -> Result<Plan, Refusal> {
        let path = self.renamed_path(request, name)?;
        let listed = request.verb() != Verb::Get;
        if request.subresource() == Some("scale") && !matches!(self.holder(request, &path).await?, Holder::Own(_)) {
            return Err(Status::not_found(request.group_resource(), name).into());
        }
        let query = if listed { self.list_query(request, None)? } else { self.info.query().borrowed().into_owned() };
        let mut upstream = self.upstream(Method::GET, &Self::target(&path, &query), As::Agent, empty())?;
        self.readable(&mut upstream)?;
        let transform = if listed {
            self.list_transform(request, self.program(request), Filter::ByRole)?
        } else {
            ResponseTransform::Object { program: self.program(request), filter: Self::filter(request), only: None }
        };
        let mut plan = self.planned(request, upstream, transform);
        plan.mapping = self.mapping.clone().about_object(name);
        Ok(plan)
    }

    async fn write_renamed(&self, request: &ResourceRequest<'_>, name: &str, body: &Bytes) -> Result<Plan, Refusal> {
        let path = self.renamed_path(request, name)?;
        let holder = self.holder(request, &path).await?;
        if holder == Holder::Other {
            return Err(if request.verb() == Verb::Patch {
                // An apply would otherwise create the object.
                let why = "the name is taken on the host by something else";
                Status::conflict(request.group_resource(), name, why).into()
            } else {
                Status::not_found(request.group_resource(), name).into()
            });
        }
        let planned = async {
            let body = &self.applied(request, holder, body).await?;
            if request.verb() == Verb::Patch {
                let patched = self.patch(request, None, &path, body).await?;
                return Ok((patched.request, patched.again));
            }
            if request.verb() == Verb::Update {
                same_name(request, &self.object(body)?.name()?.name)?;
            }
            let sent = self.body(request, None, body).await?;
            let target = Self::target(&path, self.info.query());
            Ok((self.upstream(self.info.method().clone(), &target, As::Agent, sent)?, false))
        };
        let (mut upstream, again) = match planned.await {
            Ok(planned) => planned,
            Err(refusal) => return Err(self.renamed_refused(request, &path, body, refusal).await),
        };
        self.readable(&mut upstream)?;
        let transform =
            ResponseTransform::Object { program: self.program(request), filter: Self::filter(request), only: None };
        let mut plan = self.planned(request, upstream, transform);
        plan.mapping = self.mapping.clone().about_object(name);
        plan.again = again;
        Ok(plan)
    }

    /// The body of a write. An apply may create the object only if the caller may create it. Otherwise, it gets the uid
    /// of the existing object, so that it can only change that one.
    async fn applied(&self, request: &ResourceRequest<'_>, holder: Holder, body: &Bytes) -> Result<Bytes, Refusal> {
        let kind = BodyType::of_patch(content_type(&self.headers));
        if request.verb() != Verb::Patch || request.subresource().is_some() || kind != Ok(BodyType::ApplyYaml) {
            return Ok(body.clone());
        }
        let may_create = self.may_create(request).await;
        let Holder::Own(uid) = holder else { return may_create.map(|()| body.clone()) };
        if may_create.is_ok() {
            return Ok(body.clone());
        }
        let json = yaml_to_json(body)?;
        self.admit_sent(&json)?;
        let mut object: Map<String, Value> =
            serde_json::from_slice(&json).map_err(|error| Status::bad_request(error.to_string()))?;
        if let Some(metadata) = object.entry("metadata").or_insert_with(|| json!({})).as_object_mut() {
            metadata.entry("uid").or_insert_with(|| uid.into());
        }
        Ok(Value::Object(object).to_string().into())
    }

    async fn renamed_refused(
        &self,
        request: &ResourceRequest<'_>,
        path: &str,
        body: &Bytes,
        refusal: Refusal,
    ) -> Refusal {
        let place = Place { path, identity: As::Agent, namespace: None, mapping: &self.mapping };
        self.prefer_host_error(request, &place, body, refusal).await
    }

    /// A `Scale` has no labels of its object.
    fn filter(request: &ResourceRequest<'_>) -> Filter {
        if request.subresource() == Some("scale") { Filter::Everything } else { Filter::ByRole }
    }

    /// The path on the host. If the host name is invalid, no such object exists.
    fn renamed_path(&self, request: &ResourceRequest<'_>, name: &str) -> Result<String, Refusal> {
        let missing = || Refusal::from(Status::not_found(request.group_resource(), name));
        let host = self.mapping.object(name).map_err(|error| {
            let error = FieldError::invalid("metadata.name", name, error.to_string());
            let refusal = Unmapped::refusal(Status::invalid(group_kind(request), name, &[error]), DryRunScope::Skip);
            if request.verb().is_read() || request.verb() == Verb::Delete { missing() } else { refusal }
        })?;
        let segment = SegmentName::new(host).map_err(|_| missing())?;
        let path = request.path_with(None, Some(&segment));
        Ok(if request.path_name().is_some() { path } else { format!("{}/{segment}", request.path().build()) })
    }

    /// The owner of the object at this path of the host.
    async fn holder(&self, request: &ResourceRequest<'_>, path: &str) -> Result<Holder, Refusal> {
        let path = match request.subresource() {
            Some(subresource) => path.strip_suffix(subresource).and_then(|path| path.strip_suffix('/')).unwrap_or(path),
            None => path,
        };
        let Some(body) = self.object_at(request, path, METADATA).await? else { return Ok(Holder::Nobody) };
        let object: Value = serde_json::from_slice(&body).map_err(|error| Refusal::Unreadable(error.to_string()))?;
        let label = object["metadata"]["labels"][CLUSTER_LABEL].as_str();
        let uid = || object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        Ok(if label == Some(self.cluster.name.as_str()) { Holder::Own(uid()) } else { Holder::Other })
    }
}
