//! Decides whether an object of a response is visible.
//!
//! A name in the object determines it. In a Table, whose rows contain only metadata by default, a cell has the same name
//! (`pkg/printers/internalversion/printers.go`).

use bytes::Bytes;

use super::filter::{Filter, Projected, Verdict};
use super::settings::Settings;
use crate::name::VirtualNamespace;

/// The decision about one object, as far as the object has been read.
pub(super) struct Decision<'v> {
    view: &'v Settings,
    filter: Filter,
    /// `None` until the owner is known.
    verdict: Option<Verdict>,
    /// Whether it is in the namespace of the host from which objects are projected.
    is_in_source: bool,
    /// Whether it is one of the projected objects.
    is_projected: bool,
}

// === impl Decision ===

impl<'v> Decision<'v> {
    pub(super) fn new(view: &'v Settings, filter: Filter) -> Self {
        Self { view, filter, verdict: None, is_in_source: false, is_projected: false }
    }

    /// Which objects are visible.
    pub(super) fn filter(&self) -> Filter {
        self.filter
    }

    /// Whether the rest of the object does not matter.
    pub(super) fn is_foreign(&self) -> bool {
        self.verdict == Some(Verdict::Foreign)
    }

    /// The result so far. `of_role` is the result for an object that its name and its label assign.
    pub(super) fn verdict(&self, of_role: Option<Verdict>) -> Verdict {
        match (of_role.or(self.verdict), self.filter) {
            (_, Filter::Nothing) => Verdict::Foreign,
            _ if self.is_in_source && !self.is_projected => Verdict::Foreign,
            (Some(verdict), _) => verdict,
            (None, Filter::Everything) => Verdict::Shown,
            // An object without an owner is hidden.
            (
                None,
                Filter::ByNamespace
                | Filter::ByName
                | Filter::ByClaim
                | Filter::ByNode
                | Filter::ByParent
                | Filter::Autoupdated
                | Filter::ByRole
                | Filter::Shared,
            ) => Verdict::Foreign,
        }
    }

    /// The result for a shared object.
    pub(super) fn set(&mut self, verdict: Verdict) {
        self.verdict = Some(verdict);
    }

    /// Decides by the host name of a namespace, and returns how it is shown.
    pub(super) fn by_namespace(&mut self, host: &[u8]) -> Option<Bytes> {
        let projection = self.view.projection.as_deref();
        let name = match projection {
            Some(projection) if projection.from.as_ref() == host => {
                self.is_in_source = true;
                Some(&projection.to)
            }
            _ => {
                let name = self.view.mapping.namespaces.member_or_recently_deleted(host);
                name.filter(|name| projection.is_none_or(|projection| !projection.only || projection.to == **name))
            }
        };
        match name {
            // One foreign name among several (duplicate keys) is enough.
            Some(_) => drop(self.verdict.get_or_insert(Verdict::Shown)),
            None => self.verdict = Some(Verdict::Foreign),
        }
        name.map(VirtualNamespace::to_bytes)
    }

    /// Decides by the namespace of its claim, if the filter uses it.
    pub(super) fn by_claim(&mut self, namespace: &[u8]) {
        if self.filter == Filter::ByClaim {
            self.decide(self.view.mapping.namespaces.member_or_recently_deleted(namespace).is_some());
        }
    }

    /// Decides by the name of a node, if the filter uses it.
    pub(super) fn by_node(&mut self, name: &[u8]) {
        if self.filter == Filter::ByNode {
            self.decide(self.view.mapping.has_node(name));
        }
    }

    /// Decides by the annotation that shows whether Kubernetes maintains the object's default specification
    /// (`AutoUpdateAnnotationKey` in k8s.io/api `flowcontrol/v1/types.go`), if the filter uses it.
    pub(super) fn by_autoupdate(&mut self, value: &[u8]) {
        if self.filter == Filter::Autoupdated {
            self.decide(value == b"true");
        }
    }

    /// Whether objects are projected by their names.
    pub(super) fn projects(&self) -> bool {
        self.view.projection.is_some()
    }

    /// Whether Events about nodes are projected.
    pub(super) fn projects_events(&self) -> bool {
        self.view.projection.as_ref().is_some_and(|projection| projection.what == Projected::AboutNodes)
    }

    /// Records the name of an object that can be projected by its name.
    pub(super) fn note_name(&mut self, name: &[u8]) {
        let Some(projection) = self.view.projection.as_deref() else { return };
        self.is_projected |= match projection.what {
            Projected::NamedLikeNodes => self.view.mapping.has_node(name),
            Projected::Named(projected) => name == projected.as_bytes(),
            Projected::AboutNodes => false,
        };
    }

    /// Records the node of an Event.
    pub(super) fn note_event_about(&mut self, node: &[u8]) {
        self.is_projected |= self.projects_events() && self.view.mapping.has_node(node);
    }

    fn decide(&mut self, is_own: bool) {
        if is_own {
            self.verdict.get_or_insert(Verdict::Shown);
        } else {
            self.verdict = Some(Verdict::Foreign);
        }
    }
}
