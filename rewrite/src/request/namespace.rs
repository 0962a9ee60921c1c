//! Namespace objects: their names, the labels that assign them to a virtual cluster, and what clients may not write.

use super::names::virtual_name;
use super::object::{Writer, quotes_of, string};
use super::selector::members_of;
use super::{Form, ProtectedKeys, Reason, Refusal, Request};
use crate::json::{Cursor, Edits, Fate, Fault as _, FieldPath, Step, quoted};
use crate::name::{CLUSTER_LABEL, HIDDEN_PREFIX, METADATA_NAME_LABEL, NAMESPACE_LABEL, VirtualNamespace};
use crate::parked::{parked_annotation, unparked};
use crate::pod_security::{self, ENFORCE, Level};
use crate::program::{Node, descend};

/// The rules for writes to Namespaces.
#[derive(Clone, Debug)]
pub struct NamespaceRules {
    protected: ProtectedKeys,
    pub(super) labels: Vec<(String, String)>,
    pub(super) annotations: Vec<(String, String)>,
    enforced: Option<Level>,
    /// Whether `labels` has the labels that the host enforces, so that they do not depend on the body.
    is_standing: bool,
}

/// What is known about the name of the current Namespace.
#[derive(Default)]
pub(super) struct OwnName {
    name: Option<VirtualNamespace>,
    generated: bool,
    has_labels: bool,
    has_annotations: bool,
}

/// One of the two maps of strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Labels,
    Annotations,
}

/// Entries that a map of strings must have, and their state.
#[derive(Default)]
pub(super) struct Kept {
    entries: Vec<(String, String)>,
    has: Vec<bool>,
    /// The Pod Security level that the body requests.
    asked: Option<String>,
    /// A key that is not allowed, or has an invalid value.
    refused: Option<(String, Reason)>,
}

// === impl NamespaceRules ===

impl Default for NamespaceRules {
    /// The keys that are protected by default. None of them is set.
    fn default() -> Self {
        Self::new(ProtectedKeys::default())
    }
}

impl NamespaceRules {
    /// Protects these keys of labels and annotations. Atoll's own keys are always protected.
    pub fn new(protected: ProtectedKeys) -> Self {
        Self { protected, labels: Vec::new(), annotations: Vec::new(), enforced: None, is_standing: false }
    }

    /// The same rules if the host enforces `level`, or a stricter one that a client asks for.
    #[must_use]
    pub fn enforcing(mut self, level: Option<Level>) -> Self {
        self.enforced = level;
        self
    }

    /// The same rules for a new Namespace, which gets these annotations.
    #[must_use]
    pub fn annotated<'a>(mut self, annotations: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        self.annotations = annotations.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        self
    }

    /// The same rules for a Namespace that has these labels and annotations: a client may send the protected ones among
    /// them back as they are, and cannot drop them.
    #[must_use]
    pub fn given(
        &self,
        labels: impl IntoIterator<Item = (String, String)>,
        annotations: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        let protected = |(key, _): &(String, String)| self.protects(key);
        // The labels of Atoll follow from the request.
        let foreign = |entry: &(String, String)| protected(entry) && !is_ours(&entry.0);
        Self {
            labels: labels.into_iter().filter(foreign).collect(),
            annotations: annotations.into_iter().filter(|entry| protected(entry) && !is_parked(&entry.0)).collect(),
            ..self.clone()
        }
    }

    /// The same rules for an apply to a Namespace with these labels. An apply removes fields that it omits, so it must
    /// repeat the labels that the host enforces. It repeats them unchanged, because the patched object is not known yet.
    #[must_use]
    pub fn standing(&self, labels: impl IntoIterator<Item = (String, String)>) -> Self {
        let is_enforced = |(key, _): &(String, String)| pod_security::is_enforced(key) || key == pod_security::MARK;
        let labels = labels.into_iter().filter(|label| self.enforced.is_some() && is_enforced(label)).collect();
        Self { labels, is_standing: true, ..self.clone() }
    }

    /// The labels by which the host enforces a level, if they depend on the body.
    pub(super) fn enforced_labels(&self, asked: Option<&str>) -> impl Iterator<Item = (String, String)> + use<> {
        let level = self.enforced.filter(|_| !self.is_standing);
        let labels = level.map(|level| level.labels(asked));
        labels.into_iter().flatten().map(|(key, value)| (key.to_owned(), value.to_owned()))
    }

    /// The host's key of a label, if it differs from the client's.
    pub(super) fn asked_key(&self, key: &str) -> Option<String> {
        self.enforced.and_then(|_| pod_security::asked_key(key))
    }

    pub(super) fn protects(&self, key: &str) -> bool {
        is_ours(key) || self.protected.matches(key)
    }
}

// === impl Kept ===

impl Kept {
    pub(super) fn new(entries: Vec<(String, String)>) -> Self {
        Self { has: vec![false; entries.len()], entries, ..Self::default() }
    }

    /// Records a protected key, and whether it has the required value.
    pub(super) fn note(&mut self, key: &str, is: impl FnOnce(&str) -> bool) {
        match self.entries.iter().position(|(name, _)| name == key) {
            Some(number) if is(&self.entries[number].1) => self.has[number] = true,
            _ => self.refused = Some((key.to_owned(), Reason::Protected)),
        }
    }

    /// Records a Pod Security label of the body.
    pub(super) fn ask(&mut self, key: &str, value: &str) {
        if let Err(detail) = pod_security::check(key, value) {
            self.refused = Some((key.to_owned(), Reason::PodSecurity { value: value.to_owned(), detail }));
        }
        if key == ENFORCE {
            self.asked = Some(value.to_owned());
        }
    }

    /// The requested level.
    pub(super) fn asked(&self) -> Option<&str> {
        self.asked.as_deref()
    }

    /// The missing entries, at the end of the map.
    pub(super) fn missing(self) -> Result<Vec<(String, String)>, Refusal> {
        if let Some((key, reason)) = self.refused {
            // Paths write keys of maps in brackets, and only this code knows that it is a map.
            return Err(Refusal::from(reason).within(Step::MapKey(&key)));
        }
        Ok(self.entries.into_iter().zip(self.has).filter(|(_, has)| !has).map(|(entry, _)| entry).collect())
    }
}

// === impl Request ===

impl Request {
    /// Labels that the Namespace must have: those that assign it to the virtual cluster, and its protected ones.
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
            // Without a name: the host refuses it.
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
        let mut labels = self.request.kept_labels(self.own.name.as_ref());
        labels.extend(self.request.rules.enforced_labels(None));
        let annotations = self.request.rules.annotations.clone();
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
        // Empty or `null`: the caller does not name it.
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
        self.protected_map(Field::Labels, Kept::new(kept), cursor, edits)
    }

    pub(super) fn own_annotations(&mut self, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Refusal> {
        self.own.has_annotations = true;
        let kept = self.request.rules.annotations.clone();
        self.protected_map(Field::Annotations, Kept::new(kept), cursor, edits)
    }

    /// The entries to add to a map.
    fn missing(&self, kept: Kept, field: Field) -> Result<Vec<(String, String)>, Refusal> {
        let enforced = self.request.rules.enforced_labels(kept.asked());
        let mut missing = kept.missing()?;
        if field == Field::Labels {
            missing.extend(enforced);
        }
        Ok(missing)
    }

    /// A map of strings that must contain `kept`, and no other protected keys.
    fn protected_map(
        &mut self,
        field: Field,
        mut kept: Kept,
        cursor: &mut Cursor<'_>,
        edits: &mut Edits,
    ) -> Result<(), Refusal> {
        let first = cursor.peek()?;
        let open = cursor.at();
        match (first, self.request.form) {
            (b'{', _) => {}
            (b'n', Form::Whole) => {
                cursor.skip()?;
                let missing = self.missing(kept, field)?;
                if !missing.is_empty() {
                    edits.replace(open..cursor.at(), format!("{{{}}}", members_of(pairs(&missing))).into());
                }
                return Ok(());
            }
            // It would remove entries that must stay.
            (b'n', Form::Partial) => return Err(Reason::Protected.into()),
            _ => return Err(Reason::WrongType { expected: "an object" }.into()),
        }
        let is_empty = cursor.is_empty_container();
        let mut seen = Vec::new();
        cursor.object(edits, |cursor, edits, text| {
            let key = text.decode();
            let parked = match field {
                Field::Labels => self.request.rules.asked_key(&key),
                Field::Annotations => parked_annotation(&key),
            };
            if key == METADATA_NAME_LABEL || parked.is_some() {
                // The checked bytes are those that Kubernetes reads.
                if seen.iter().any(|seen| *seen == key) {
                    return Err(Refusal::from(Reason::Duplicate));
                }
                seen.push(key.to_string());
            }
            if key == METADATA_NAME_LABEL {
                self.namespace(cursor, edits)?;
            } else if let Some(parked) = parked {
                edits.replace(quotes_of(&text), quoted(&parked).into());
                if let Some(value) = string(cursor)?.filter(|_| field == Field::Labels) {
                    kept.ask(&key, &value.decode());
                }
            } else if self.request.rules.protects(&key) {
                let value = string(cursor)?;
                kept.note(&key, |wanted| value.is_some_and(|value| value.is(wanted)));
            } else {
                cursor.skip()?;
            }
            Ok(Fate::Keep)
        })?;
        let missing = self.missing(kept, field)?;
        if !missing.is_empty() && self.request.form == Form::Whole {
            let comma = if is_empty { "" } else { "," };
            edits.insert(open + 1, members_of(pairs(&missing)) + comma);
        }
        Ok(())
    }
}

/// Whether clients never see the key.
fn is_ours(key: &str) -> bool {
    key.starts_with(HIDDEN_PREFIX) || is_parked(key)
}

/// Whether the host has this key in place of a client's.
fn is_parked(key: &str) -> bool {
    unparked(key).is_some()
}

fn pairs(entries: &[(String, String)]) -> impl Iterator<Item = (&str, &str)> {
    entries.iter().map(|(key, value)| (&**key, &**value))
}
