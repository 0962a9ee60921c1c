//! Namespace objects: their name, the labels that make them a virtual cluster's, and what clients may not write.

use super::names::virtual_name;
use super::object::{Writer, string};
use super::selector::members_of;
use super::{Form, Reason, Refusal, Request};
use crate::json::{Cursor, Edits, Fault, FieldPath, Step};
use crate::name::{CLUSTER_LABEL, HIDDEN_PREFIX, METADATA_NAME_LABEL, NAMESPACE_LABEL, VirtualNamespace};
use crate::program::{Node, descend};

/// Labels and annotations that give access to the host: to devices (`AdminAccess` in resource/v1), and the node selectors
/// and tolerations of the `PodNodeSelector` and `PodTolerationRestriction` plugins. A final `*` matches any suffix.
/// Clients may write the labels of Pod Security, as Helm charts and GitOps tools do.
pub const PROTECTED: [&str; 2] = ["resource.kubernetes.io/admin-access", "scheduler.alpha.kubernetes.io/*"];

/// What may be written to Namespaces.
#[derive(Clone, Debug)]
pub struct NamespaceRules {
    protected: Vec<String>,
    pub(super) labels: Vec<(String, String)>,
    pub(super) annotations: Vec<(String, String)>,
}

/// What is known of the name of the Namespace in hand.
#[derive(Default)]
pub(super) struct OwnName {
    name: Option<VirtualNamespace>,
    generated: bool,
    has_labels: bool,
    has_annotations: bool,
}

/// Entries that must be in a map of strings, and what is known of them.
#[derive(Default)]
pub(super) struct Kept {
    entries: Vec<(String, String)>,
    has: Vec<bool>,
    /// A protected key that is not to be there.
    refused: Option<String>,
}

// === impl NamespaceRules ===

impl Default for NamespaceRules {
    /// The keys that are protected on every host, none of which is set.
    fn default() -> Self {
        Self::new(PROTECTED.map(str::to_owned))
    }
}

impl NamespaceRules {
    /// Protects these keys of labels and annotations, or all that begin with what stands before a final `*`. Atoll's own
    /// are always protected.
    pub fn new(protected: impl IntoIterator<Item = String>) -> Self {
        Self { protected: protected.into_iter().collect(), labels: Vec::new(), annotations: Vec::new() }
    }

    /// The same rules for a Namespace that has these labels and annotations: a client may send the protected ones among
    /// them back as they are, and cannot drop them.
    #[must_use]
    pub fn given(
        &self,
        labels: impl IntoIterator<Item = (String, String)>,
        annotations: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        let protected = |(key, _): &(String, String)| self.protects(key) && !key.starts_with(HIDDEN_PREFIX);
        Self {
            protected: self.protected.clone(),
            labels: labels.into_iter().filter(protected).collect(),
            annotations: annotations.into_iter().filter(protected).collect(),
        }
    }

    pub(super) fn protects(&self, key: &str) -> bool {
        key.starts_with(HIDDEN_PREFIX)
            || self.protected.iter().any(|pattern| match pattern.strip_suffix('*') {
                Some(prefix) => key.starts_with(prefix),
                None => key == pattern,
            })
    }
}

// === impl Kept ===

impl Kept {
    pub(super) fn new(entries: Vec<(String, String)>) -> Self {
        Self { has: vec![false; entries.len()], entries, refused: None }
    }

    /// Takes note of a protected key, and whether its value is the one that it must have.
    pub(super) fn note(&mut self, key: &str, is: impl FnOnce(&str) -> bool) {
        match self.entries.iter().position(|(name, _)| name == key) {
            Some(number) if is(&self.entries[number].1) => self.has[number] = true,
            _ => self.refused = Some(key.to_owned()),
        }
    }

    /// The entries that were not there, at the end of the map.
    pub(super) fn missing(self) -> Result<Vec<(String, String)>, Refusal> {
        if let Some(key) = self.refused {
            // A map's key stands in brackets, which only we know it to be.
            return Err(Refusal::from(Reason::Protected).within(Step::MapKey(&key)));
        }
        Ok(self.entries.into_iter().zip(self.has).filter(|(_, has)| !has).map(|(entry, _)| entry).collect())
    }
}

// === impl Request ===

impl Request {
    /// Labels that the Namespace must have: those that make it the virtual cluster's, and protected ones it has.
    pub(super) fn kept_labels(&self, name: Option<&VirtualNamespace>) -> Vec<(String, String)> {
        let mut labels = Vec::new();
        if let Some(name) = name {
            labels.push((CLUSTER_LABEL.to_owned(), self.mapping.cluster().to_string()));
            labels.push((NAMESPACE_LABEL.to_owned(), name.to_string()));
        }
        labels.extend_from_slice(&self.rules.labels);
        labels
    }
}

// === impl Writer ===

impl Writer<'_> {
    pub(super) fn namespace_meta(
        &mut self,
        node: &Node,
        cursor: &mut Cursor<'_>,
        edits: &mut Edits,
    ) -> Result<(), Refusal> {
        if cursor.peek()? != b'{' {
            // Without a name: the host will say so.
            return Ok(cursor.skip()?);
        }
        self.own = OwnName::default();
        if let Some(name) = cursor.look_up("name")?
            && !name.raw.is_empty()
        {
            self.own.name = Some(virtual_name(&name.bytes()).map_err(|refusal| refusal.within(Step::Key("name")))?);
        }
        let is_made = self.own.name.is_none() && self.request.made.is_some();
        if is_made {
            self.own.name.clone_from(&self.request.made);
        }
        let has_name = cursor.member_at("name")?.is_some();
        let open = cursor.at();
        let is_empty = cursor.is_empty_container();
        descend(self, node, cursor, edits)?;
        if self.own.generated && self.own.name.is_none() {
            return Err(Refusal { path: FieldPath::of("generateName"), reason: Reason::GeneratedName });
        }
        if self.request.form == Form::Partial {
            return Ok(());
        }

        let mut missing = String::new();
        if let Some(made) = self.request.made.as_ref().filter(|_| is_made && !has_name) {
            missing = format!("\"name\":\"{}\"", self.request.host(made.as_ref())?);
        }
        let (labels, annotations) =
            (self.request.kept_labels(self.own.name.as_ref()), self.request.rules.annotations.clone());
        for (key, has, entries) in
            [("labels", self.own.has_labels, labels), ("annotations", self.own.has_annotations, annotations)]
        {
            if !has && !entries.is_empty() {
                if !missing.is_empty() {
                    missing.push(',');
                }
                missing.extend(["\"", key, "\":{", &members_of(pairs(&entries)), "}"]);
            }
        }
        if !missing.is_empty() {
            edits.insert(open + 1, missing + if is_empty { "" } else { "," });
        }
        Ok(())
    }

    pub(super) fn own_name(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Refusal> {
        let Some(made) = &self.request.made else { return self.namespace(cursor, edits) };
        cursor.peek()?;
        let start = cursor.at();
        // Empty or `null`: the caller does not name what has a name.
        string(cursor)?;
        edits.replace(start..cursor.at(), format!("\"{}\"", self.request.host(made.as_ref())?).into());
        Ok(())
    }

    pub(super) fn own_generate_name(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Refusal> {
        self.own.generated = string(cursor)?.is_some_and(|text| !text.raw.is_empty());
        Ok(())
    }

    pub(super) fn own_labels(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Refusal> {
        self.own.has_labels = true;
        let kept = self.request.kept_labels(self.own.name.as_ref());
        self.protected_map(Kept::new(kept), cursor, edits)
    }

    pub(super) fn own_annotations(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Refusal> {
        self.own.has_annotations = true;
        let kept = self.request.rules.annotations.clone();
        self.protected_map(Kept::new(kept), cursor, edits)
    }

    /// A map of strings in which `kept` must be and no other protected key may be.
    fn protected_map(&mut self, mut kept: Kept, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Refusal> {
        let first = cursor.peek()?;
        let open = cursor.at();
        match (first, self.request.form) {
            (b'{', _) => {}
            (b'n', Form::Whole) => {
                cursor.skip()?;
                let missing = kept.missing()?;
                if !missing.is_empty() {
                    edits.replace(open..cursor.at(), format!("{{{}}}", members_of(pairs(&missing))).into());
                }
                return Ok(());
            }
            // It would remove what must stay.
            (b'n', Form::Partial) => return Err(Reason::Protected.into()),
            _ => return Err(Reason::WrongType { expected: "an object" }.into()),
        }
        let is_empty = cursor.is_empty_container();
        self.members(&[METADATA_NAME_LABEL], cursor, edits, |writer, key, cursor, edits| {
            if key == METADATA_NAME_LABEL {
                return writer.namespace(cursor, edits);
            }
            if !writer.request.rules.protects(key) {
                return Ok(cursor.skip()?);
            }
            let value = string(cursor)?;
            kept.note(key, |wanted| value.is_some_and(|value| value.is(wanted)));
            Ok(())
        })?;
        let missing = kept.missing()?;
        if !missing.is_empty() && self.request.form == Form::Whole {
            let comma = if is_empty { "" } else { "," };
            edits.insert(open + 1, members_of(pairs(&missing)) + comma);
        }
        Ok(())
    }
}

fn pairs(entries: &[(String, String)]) -> impl Iterator<Item = (&str, &str)> {
    entries.iter().map(|(key, value)| (&**key, &**value))
}
