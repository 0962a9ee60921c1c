//! References to other objects.

use super::object::{Writer, string};
use super::{Reason, Refusal};
use crate::json::{Cursor, Edits, Fate};
use crate::program::Place;

/// The type of the name in a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    Namespace,
    /// A user or group.
    Identity,
    Node,
    /// A ClusterRole.
    Role,
    /// A cluster-scoped custom object.
    Renamed,
    /// An object with the same name on the host.
    Other,
}

// === impl Named ===

impl Named {
    /// The field that determines the target of a reference.
    pub(super) fn decider(place: Place) -> &'static str {
        if place == Place::ResourceAttributes { "resource" } else { "kind" }
    }

    /// `says` tells whether that is the given word.
    pub(super) fn at(place: Place, says: impl Fn(&str) -> bool) -> Self {
        match place {
            // Even without a kind, as in `assignPod` in pkg/registry/core/pod.
            Place::BindingTarget => Self::Node,
            Place::BoundObject if says("Node") => Self::Node,
            Place::Subject if says("User") || says("Group") => Self::Identity,
            Place::Reference | Place::Claim | Place::EventObject if says("Namespace") => Self::Namespace,
            Place::ResourceAttributes if says("namespaces") => Self::Namespace,
            Place::ResourceAttributes if says("clusterroles") => Self::Role,
            Place::RoleRef if says("ClusterRole") => Self::Role,
            _ => Self::Other,
        }
    }
}

// === impl Writer ===

impl Writer<'_> {
    /// Maps a reference, according to its place.
    pub(super) fn reference(
        &mut self,
        place: Place,
        cursor: &mut Cursor<'_>,
        edits: &mut Edits,
    ) -> Result<(), Refusal> {
        let decider = cursor.look_up(Named::decider(place))?;
        let version = if place == Place::Reference { cursor.look_up("apiVersion")? } else { None };
        let named = match (decider, version) {
            (Some(kind), Some(version)) if self.request.mapping.objects.renames(&version.decode(), &kind.decode()) => {
                Named::Renamed
            }
            _ => Named::at(place, |word| decider.is_some_and(|text| text.is(word))),
        };
        self.fields(named, cursor, edits)
    }

    fn fields(&mut self, named: Named, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Refusal> {
        self.members(
            &["apiVersion", "kind", "resource", "name", "namespace"],
            cursor,
            edits,
            |writer, key, cursor, edits| match (key, named) {
                ("namespace", _) | ("name", Named::Namespace) => writer.namespace(cursor, edits),
                ("name", Named::Renamed) => writer.renamed(cursor, edits),
                ("name", Named::Identity) => writer.identity(cursor, edits),
                ("name", Named::Node) => {
                    if let Some(name) = string(cursor)? {
                        writer.report.nodes.push(name.decode().into_owned());
                    }
                    Ok(())
                }
                _ => Ok(cursor.skip()?),
            },
        )
    }

    /// Visits the members of the next value if it is an object, and skips it otherwise. Keys in `once` must not be repeated,
    /// so that Kubernetes reads the same value as the earlier lookup.
    pub(super) fn members<'a>(
        &mut self,
        once: &[&str],
        cursor: &mut Cursor<'a>,
        edits: &mut Edits,
        mut visit: impl FnMut(&mut Self, &str, &mut Cursor<'a>, &mut Edits) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        if cursor.peek()? != b'{' {
            return Ok(cursor.skip()?);
        }
        let mut seen = 0_u32;
        cursor.object(edits, |cursor, edits, key| {
            if self.in_revision
                && let Some(expected) = once.iter().find(|once| !key.is(once) && key.folds_to(once))
            {
                return Err(Reason::Spelling { expected: (*expected).to_owned() }.into());
            }
            let key = key.decode();
            if let Some(number) = once.iter().position(|once| key == *once) {
                if seen & 1 << number != 0 {
                    return Err(Refusal::from(Reason::Duplicate));
                }
                seen |= 1 << number;
            }
            visit(self, &key, cursor, edits)?;
            Ok(Fate::Keep)
        })?;
        Ok(())
    }
}
