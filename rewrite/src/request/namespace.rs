//! Namespace objects: their names, the labels that assign them to a virtual cluster, and what clients may not write.

use super::fields::Fields;
use super::form::Form;
use super::names::virtual_name;
use super::open::Open;
use super::refusal::{Reason, Refusal};
use super::required_entries::RequiredEntries;
use super::settings::Settings;
use super::strings::{members_of, non_empty_string, quotes_of, string};
use crate::json::{Cursor, Edits, Fault as _, FieldPath, Outcome, Step, quoted};
use crate::name::{METADATA_NAME_LABEL, VirtualNamespace};
use crate::parked::parked_annotation;

/// The metadata of the current Namespace.
#[derive(Default)]
pub(super) struct NamespaceMeta {
    name: Option<VirtualNamespace>,
    /// The name that is added, because the body has none.
    added: Option<VirtualNamespace>,
    generated: bool,
    has_labels: bool,
    has_annotations: bool,
    open: Open,
}

/// One of the two maps of strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Labels,
    Annotations,
}

// === impl NamespaceMeta ===

impl NamespaceMeta {
    /// Reads the name in the `metadata` that is the next value, which is an object.
    pub(super) fn begin(settings: &Settings, cursor: &Cursor<'_>) -> Result<Self, Refusal> {
        let has_name = cursor.member_at("name")?.is_some();
        let mut name = None;
        if let Some(text) = cursor.look_up("name")?
            && !text.raw.is_empty()
        {
            name = Some(virtual_name(&text.bytes()).map_err(|refusal| refusal.within(Step::Key("name")))?);
        }
        let mut added = None;
        if name.is_none() {
            name.clone_from(&settings.made);
            added = name.clone().filter(|_| !has_name);
        }
        Ok(Self { name, added, open: Open::of(cursor), ..Self::default() })
    }

    /// Adds what is missing.
    pub(super) fn finish(&self, settings: &Settings, edits: &mut Edits) -> Result<(), Refusal> {
        if self.generated && self.name.is_none() {
            return Err(Refusal { path: FieldPath::of("generateName"), reason: Reason::GeneratedName });
        }
        if settings.form == Form::Partial {
            return Ok(());
        }

        let mut missing = String::new();
        if let Some(name) = &self.added {
            missing = format!("\"name\":\"{}\"", settings.names.namespace(name.as_ref())?);
        }
        let mut labels = settings.required_labels(self.name.as_ref());
        labels.extend(settings.rules.enforced_labels(None));
        let annotations = settings.rules.annotations.clone();
        for (key, has, entries) in
            [("labels", self.has_labels, labels), ("annotations", self.has_annotations, annotations)]
        {
            if !has && !entries.is_empty() {
                if !missing.is_empty() {
                    missing.push(',');
                }
                missing.extend(["\"", key, "\":{", &members_of(pairs(&entries)), "}"]);
            }
        }
        if !missing.is_empty() {
            self.open.insert(missing, edits);
        }
        Ok(())
    }

    /// `metadata.generateName`.
    pub(super) fn generate_name(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Refusal> {
        self.generated = non_empty_string(cursor)?.is_some();
        Ok(())
    }

    /// `metadata.labels`.
    pub(super) fn labels(
        &mut self,
        fields: &mut Fields<'_>,
        cursor: &mut Cursor<'_>,
        edits: &mut Edits,
    ) -> Result<(), Refusal> {
        self.has_labels = true;
        let required = fields.settings.required_labels(self.name.as_ref());
        protected_map(fields, Field::Labels, RequiredEntries::new(required), cursor, edits)
    }

    /// `metadata.annotations`.
    pub(super) fn annotations(
        &mut self,
        fields: &mut Fields<'_>,
        cursor: &mut Cursor<'_>,
        edits: &mut Edits,
    ) -> Result<(), Refusal> {
        self.has_annotations = true;
        let required = fields.settings.rules.annotations.clone();
        protected_map(fields, Field::Annotations, RequiredEntries::new(required), cursor, edits)
    }
}

/// `metadata.name`.
pub(super) fn name(fields: &mut Fields<'_>, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Refusal> {
    let Some(made) = &fields.settings.made else { return fields.namespace(cursor, edits) };
    cursor.peek()?;
    let start = cursor.at();
    // Empty or `null`: the caller does not name it.
    string(cursor)?;
    let host = fields.settings.names.namespace(made.as_ref())?;
    edits.replace(start..cursor.at(), format!("\"{host}\"").into());
    Ok(())
}

/// The entries to add to a map.
fn missing(settings: &Settings, required: RequiredEntries, field: Field) -> Result<Vec<(String, String)>, Refusal> {
    let enforced = settings.rules.enforced_labels(required.requested_level());
    let mut missing = required.missing()?;
    if field == Field::Labels {
        missing.extend(enforced);
    }
    Ok(missing)
}

/// A map of strings that must contain `required`, and no other protected keys.
fn protected_map(
    fields: &mut Fields<'_>,
    field: Field,
    mut required: RequiredEntries,
    cursor: &mut Cursor<'_>,
    edits: &mut Edits,
) -> Result<(), Refusal> {
    let first = cursor.peek()?;
    let open = cursor.at();
    match (first, fields.settings.form) {
        (b'{', _) => {}
        (b'n', Form::Whole) => {
            cursor.skip()?;
            let missing = missing(fields.settings, required, field)?;
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
            Field::Labels => fields.settings.rules.requested_key(&key),
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
            fields.namespace(cursor, edits)?;
        } else if let Some(parked) = parked {
            edits.replace(quotes_of(&text), quoted(&parked).into());
            if let Some(value) = string(cursor)?.filter(|_| field == Field::Labels) {
                required.note_level(&key, &value.decode());
            }
        } else if fields.settings.rules.protects(&key) {
            let value = string(cursor)?;
            required.note(&key, |wanted| value.is_some_and(|value| value.is(wanted)));
        } else {
            cursor.skip()?;
        }
        Ok(Outcome::Keep)
    })?;
    let missing = missing(fields.settings, required, field)?;
    if !missing.is_empty() && fields.settings.form == Form::Whole {
        let comma = if is_empty { "" } else { "," };
        edits.insert(open + 1, members_of(pairs(&missing)) + comma);
    }
    Ok(())
}

fn pairs(entries: &[(String, String)]) -> impl Iterator<Item = (&str, &str)> {
    entries.iter().map(|(key, value)| (&**key, &**value))
}
