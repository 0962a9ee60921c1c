//! Patches.
//!
//! | form | what the agent sends |
//! |---|---|
//! | merge, strategic | the mapped patch; if it removes the guard: the result of a dry run, with the guard, as a PUT |
//! | JSON patch | the unchanged patch; if it touches anything that is mapped, copies or is large: the patched virtual object, as a PUT |
//! | apply | the mapped apply, with the guard as [`apply`] describes |
//!
//! A PUT contains the resourceVersion that the agent has read. The agent repeats it after a conflict, as an API server
//! does with patches (`handlers/patch.go`).

pub(crate) mod apply;
mod directives;
mod last_applied;
pub(crate) mod patched;
mod resolve;

use bytes::Bytes;
use kube_wire::media::BodyType;
use kube_wire::{ResourceRequest, Status};
use rewrite::VirtualNamespace;
use rewrite::json::{Cursor, Edits, Malformed, Outcome};
use rewrite::json_patch::JsonPatch;

use crate::exchange::host::sample::result_needs_samples;
use crate::exchange::kinds::is_guarded;
use crate::exchange::ports::Form;
use crate::exchange::undecided::Undecided;
use crate::exchange::write::mapped::{own_nodes, same_name};
use crate::exchange::write::mapper::mapper;
use crate::exchange::write::node_ports::with_node_ports;
use crate::exchange::write::object::map_json;
use crate::exchange::write::patch::patched::{Patched, is_binding, is_labelled, put_patched, sent_patch};
use crate::refusal::{DryRunScope, Refusal, Unmapped};
use host_client::full;

use directives::Directives;

/// A JSON patch of at most this length, in bytes, does no harm with the name of a field manager.
const SHORT: usize = 256;

/// The refusal of a directive for an object of these kinds.
const UNDIRECTED: &str = "patches of Namespaces and ClusterRoles support neither $patch nor $retainKeys here; send a \
                          merge patch that sets removed fields to null, or send the whole object";

/// Maps a patch of the object at `path`, which is in host names.
pub(crate) async fn mapped_patch(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    namespace: Option<&VirtualNamespace>,
    path: &str,
    body: &Bytes,
) -> Result<Patched, Refusal> {
    match call.api.patch_type()? {
        BodyType::JsonPatch => {
            let patch = JsonPatch::parse(body).map_err(|_| {
                let status = Status::bad_request("the body is not a JSON patch");
                Unmapped::refusal(status, DryRunScope::KubeApiserver)
            })?;
            let program = call.api.program(request);
            // The host could apply many operations, or copies of large values, before the agent has checked the
            // result.
            let is_small = !patch.copies() && !result_needs_samples(call, body, &patch);
            // A longer patch could add the name of a manager that is too long.
            let names_managers = body.len() > SHORT && patch.pointers().any(resolve::is_of_managed);
            if is_small && !names_managers && !patch.pointers().any(|pointer| program.touches(pointer)) {
                return sent_patch(call, path, full(body.clone()));
            }
            put_patched(call, resolve::by_json_patch(call, request, namespace, path, &patch).await?, path)
        }
        BodyType::ApplyYaml => apply::apply(call, request, namespace, path, body).await,
        kind @ (BodyType::MergePatch | BodyType::StrategicMergePatch) => {
            let found = |body: &Bytes| match kind {
                BodyType::StrategicMergePatch => Directives::of(body),
                _ => Directives::default(),
            };
            if is_labelled(request) && found(body).of_maps {
                // It could remove what the client does not see: the labels that make the object the cluster's, or
                // the annotation with the `aggregationRule`.
                return Err(Status::bad_request(UNDIRECTED).into());
            }
            let directs = |body: &Bytes| (is_guarded(request) || is_binding(request)) && found(body).any();
            let body =
                if directs(body) { &resolve::without_moot_directive(call, request, path, body).await? } else { body };
            let body = &with_node_ports(call, Form::Partial, body);
            let name = request.path_name().unwrap_or_default();
            let mapper = mapper(call, namespace).partial();
            let (mapped, report) = map_json(request, name, &call.api.program(request), &mapper, body)?;
            own_nodes(call, request, name, &report).await?;
            if (request.is_namespace() || call.api.is_renamed())
                && let Some(own) = own_name(body)
            {
                same_name(request, &own)?;
            }
            if report.removes_guard || directs(body) {
                return put_patched(call, resolve::by_dry_run(call, request, namespace, path, mapped).await?, path);
            }
            sent_patch(call, path, full(mapped))
        }
        BodyType::Object(_) | BodyType::ApplyCbor => {
            let message = "this virtual cluster takes patches in JSON and YAML";
            let status = Status::failure(415, kube_wire::status::Reason::UnsupportedMediaType, message);
            Err(Unmapped::refusal(status, DryRunScope::WithoutBody))
        }
    }
}

/// The name of the object in a merge patch. The last of duplicate members counts, as in Go.
fn own_name(patch: &[u8]) -> Option<String> {
    let (mut name, mut cursor) = (None, Cursor::new(patch, 0, 0));
    cursor
        .object(&mut Edits::new(), |cursor, edits, key| {
            if !key.is("metadata") || cursor.peek()? != b'{' {
                cursor.skip()?;
                return Ok(Outcome::Keep);
            }
            cursor.object(edits, |cursor, _, key| {
                if key.is("name") && cursor.peek()? == b'"' {
                    name = Some(cursor.string()?.decode().into_owned());
                } else {
                    cursor.skip()?;
                }
                Ok::<_, Malformed>(Outcome::Keep)
            })?;
            Ok::<_, Malformed>(Outcome::Keep)
        })
        .ok()?;
    name
}
