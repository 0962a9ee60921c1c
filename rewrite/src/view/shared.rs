//! Objects that virtual clusters share: the host has one object, and each cluster has its own labels and annotations on
//! it.
//!
//! | on the host | who sees it | with which labels and annotations |
//! |---|---|---|
//! | without [`SHARED_LABEL`] | everybody: it is the operator's | its own, and over them those of the overlay |
//! | with it | who has an overlay | those of the overlay |
//!
//! An overlay is an annotation, [`OVERLAY_PREFIX`] and the cluster's name: JSON with `labels` and `annotations`. So there
//! is one object, one resource version and one watch, regardless of who changes what. A large overlay is stored
//! elsewhere, and is inserted [before](crate::pointer) the view reads the object.

use std::collections::BTreeMap;

use kube_wire::selector::LabelSelector;

use super::decision::Decision;
use super::filter::{Filter, Verdict};
use super::settings::Settings;
use crate::json::{Cursor, Edits, Malformed, Outcome, quoted, unquoted};
use crate::name::{LEFT_PREFIX, MANAGER_PREFIX, OVERLAY_PREFIX, SHARED_LABEL, is_own_key};

/// Labels or annotations.
type Keys = BTreeMap<String, String>;

/// How one virtual cluster sees a shared object.
#[derive(Debug, Default)]
struct Shared {
    is_marked: bool,
    is_ours: bool,
    has_left: bool,
    labels: Map,
    annotations: Map,
}

/// Labels or annotations: those on the host, and those that are shown.
#[derive(Debug, Default)]
struct Map {
    /// Whether the member exists.
    is_there: bool,
    /// `None` if they are shown unchanged.
    shown: Option<Keys>,
}

// === impl Shared ===

impl Shared {
    /// Reads the `metadata` at the cursor. Consumes nothing.
    fn of(cursor: &Cursor<'_>, cluster: &str) -> Result<Self, Malformed> {
        let (labels, annotations) = (cursor.member_at("labels")?, cursor.member_at("annotations")?);
        let is_there = (labels.is_some(), annotations.is_some());
        let (labels, annotations) = (keys(labels)?, keys(annotations)?);
        let is_marked = labels.contains_key(SHARED_LABEL);
        let overlay = annotations.get(&format!("{OVERLAY_PREFIX}{cluster}"));
        // Even an unreadable overlay shows that the object belongs to the cluster.
        let (over_labels, over_annotations) =
            overlay.map(|overlay| read(overlay).unwrap_or_default()).unwrap_or_default();
        Ok(Self {
            is_marked,
            is_ours: overlay.is_some(),
            has_left: annotations.contains_key(&format!("{LEFT_PREFIX}{cluster}")),
            labels: Map::new(is_there.0, labels, over_labels, is_marked),
            annotations: Map::new(is_there.1, annotations, over_annotations, is_marked),
        })
    }

    fn verdict(&self) -> Verdict {
        match self.is_ours || !self.is_marked {
            true => Verdict::Shown,
            false if self.has_left => Verdict::Left,
            false => Verdict::Foreign,
        }
    }

    /// Whether it is visible, and matches the `selector`. Its `metadata` is at the cursor.
    fn selected(&self, selector: Option<&LabelSelector>, cursor: &Cursor<'_>) -> Result<Verdict, Malformed> {
        let verdict = self.verdict();
        let Some(selector) = selector.filter(|_| verdict == Verdict::Shown) else {
            return Ok(verdict);
        };
        let host;
        let labels = if let Some(shown) = &self.labels.shown {
            shown
        } else {
            host = keys(cursor.member_at("labels")?)?;
            &host
        };
        let is_selected = selector.matches(|key| labels.get(key).map(String::as_str));
        Ok(if is_selected { Verdict::Shown } else { Verdict::Unselected })
    }
}

// === impl Map ===

impl Map {
    fn new(is_there: bool, host: Keys, overlay: Keys, is_marked: bool) -> Self {
        let hides = is_marked || host.keys().any(|key| is_own_key(key));
        if !hides && overlay.is_empty() {
            return Self { is_there, shown: None };
        }
        let mut shown = host;
        shown.retain(|key, _| !is_marked && !is_own_key(key));
        shown.extend(overlay.into_iter().filter(|(key, _)| !is_own_key(key)));
        Self { is_there, shown: Some(shown) }
    }

    /// The member that the object of the host does not have, with its comma.
    fn missing(&self, key: &str) -> Option<String> {
        let shown = self.shown.as_ref().filter(|shown| !self.is_there && !shown.is_empty())?;
        Some(format!("\"{key}\":{},", object(shown)))
    }
}

/// `metadata` of a shared object.
pub(super) fn metadata(
    view: &Settings,
    decision: &mut Decision<'_>,
    cursor: &mut Cursor<'_>,
    edits: &mut Edits,
) -> Result<(), Malformed> {
    if cursor.peek()? != b'{' {
        return cursor.skip();
    }
    let cluster = view.mapping.cluster().as_str();
    let shared = Shared::of(cursor, cluster)?;
    if decision.filter() == Filter::Shared {
        decision.set(shared.selected(view.selector.as_deref(), cursor)?);
    }
    let extent = cursor.object(edits, |cursor, edits, key| {
        if key.is("managedFields") {
            return managers(cluster, shared.is_marked, cursor, edits);
        }
        cursor.peek()?;
        let start = cursor.at();
        cursor.skip()?;
        let map = match () {
            () if key.is("labels") => &shared.labels,
            () if key.is("annotations") => &shared.annotations,
            () => return Ok(Outcome::Keep),
        };
        Ok::<_, Malformed>(match &map.shown {
            None => Outcome::Keep,
            Some(shown) if shown.is_empty() => Outcome::Remove,
            Some(shown) => {
                edits.replace(start..cursor.at(), object(shown).into());
                Outcome::Keep
            }
        })
    })?;
    // An object of the host has at least a name. Nothing is added to one without a name.
    if extent.kept > 0 {
        for (key, map) in [("labels", &shared.labels), ("annotations", &shared.annotations)] {
            if let Some(member) = map.missing(key) {
                edits.insert(extent.inside, member);
            }
        }
    }
    Ok(())
}

/// `metadata.managedFields`: the cluster's own managers under their own names, those of others not at all. If the
/// object is `marked`, entries about labels and annotations refer to overlays.
fn managers(cluster: &str, marked: bool, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<Outcome, Malformed> {
    if cursor.peek()? != b'[' {
        cursor.skip()?;
        return Ok(Outcome::Keep);
    }
    let own = format!("{MANAGER_PREFIX}{cluster}:");
    let extent = cursor.array(edits, |cursor, edits, _| {
        let manager = cursor.look_up("manager")?;
        let name = manager.map(|manager| manager.decode().into_owned()).unwrap_or_default();
        let is_ours = name.starts_with(MANAGER_PREFIX);
        let Some(shown) = name.strip_prefix(&own).or((!is_ours).then_some(&*name)) else {
            cursor.skip()?;
            return Ok(Outcome::Remove);
        };
        if !is_ours && !marked {
            cursor.skip()?;
            return Ok(Outcome::Keep);
        }
        let mut is_empty = false;
        let shown = unquoted(shown);
        if cursor.peek()? != b'{' {
            cursor.skip()?;
            return Ok(Outcome::Keep);
        }
        cursor.object(edits, |cursor, edits, key| {
            if key.is("manager") && is_ours && cursor.peek()? == b'"' {
                let text = cursor.string()?;
                edits.replace(text.range(), shown.clone());
            } else if key.is("fieldsV1") && cursor.peek()? == b'{' {
                let fields = cursor.object(edits, |cursor, _, key| {
                    cursor.skip()?;
                    Ok::<_, Malformed>(if key.is("f:metadata") { Outcome::Remove } else { Outcome::Keep })
                })?;
                is_empty = fields.removed > 0 && fields.kept == 0;
            } else {
                cursor.skip()?;
            }
            Ok::<_, Malformed>(Outcome::Keep)
        })?;
        Ok::<_, Malformed>(if is_empty { Outcome::Remove } else { Outcome::Keep })
    })?;
    Ok(if extent.removed > 0 && extent.kept == 0 { Outcome::Remove } else { Outcome::Keep })
}

/// The labels and the annotations of an overlay.
fn read(overlay: &str) -> Result<(Keys, Keys), Malformed> {
    let mut cursor = Cursor::new(overlay.as_bytes(), 0, 0);
    let found = (keys(cursor.member_at("labels")?)?, keys(cursor.member_at("annotations")?)?);
    cursor.skip()?;
    cursor.finish()?;
    Ok(found)
}

/// The texts in a map. Empty if it is not a map, or does not exist.
fn keys(map: Option<Cursor<'_>>) -> Result<Keys, Malformed> {
    let mut keys = Keys::new();
    let Some(mut cursor) = map else { return Ok(keys) };
    if cursor.peek()? != b'{' {
        return Ok(keys);
    }
    cursor.object(&mut Edits::new(), |cursor, _, key| {
        if cursor.peek()? == b'"' {
            keys.insert(key.decode().into_owned(), cursor.string()?.decode().into_owned());
        } else {
            cursor.skip()?;
        }
        Ok::<_, Malformed>(Outcome::Keep)
    })?;
    Ok(keys)
}

/// A map as JSON, in the order in which Go writes one.
fn object(keys: &Keys) -> String {
    let members: Vec<_> = keys.iter().map(|(key, value)| format!("{}:{}", quoted(key), quoted(value))).collect();
    format!("{{{}}}", members.join(","))
}

#[cfg(test)]
mod tests;
