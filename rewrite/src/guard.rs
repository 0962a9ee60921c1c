//! The guard: node selector and tolerations, which keep the pods of a virtual cluster on its nodes.
//!
//! The engine adds the guard to every pod specification in requests, and removes it from responses. The guard owns its keys:
//! clients never see them, and cannot request other values.

use bytes::Bytes;

use crate::json::{Cursor, Edits, Malformed, Text, quoted};

/// Node selector and tolerations of one virtual cluster.
#[derive(Clone, Debug)]
pub struct Guard {
    selector: Vec<Entry>,
    tolerations: Vec<(Toleration, Bytes)>,
    /// `"nodeSelector":{...}`.
    selector_member: Bytes,
    /// `"tolerations":[...]`.
    tolerations_member: Bytes,
}

const SELECTOR: &str = r#""nodeSelector":"#;
const TOLERATIONS: &str = r#""tolerations":"#;

/// A key of the guard's node selector and its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) value: String,
    /// Both as a member of an object: `"location":"beijing"`.
    pub(crate) member: Bytes,
}

/// `v1.Toleration`, with the default of the operator, so that equal tolerations compare equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toleration {
    /// The key of the taint. Empty for all keys.
    pub key: String,
    /// `Exists` or `Equal`.
    pub operator: String,
    /// The taint's value.
    pub value: String,
    /// The effect of the taint. Empty for all effects.
    pub effect: String,
    /// Seconds until eviction. `None` means forever.
    pub seconds: Option<i64>,
}

// === impl Guard ===

impl Guard {
    /// A guard of these node labels and tolerations. The labels are written in this order.
    pub fn new(
        selector: impl IntoIterator<Item = (String, String)>,
        tolerations: impl IntoIterator<Item = Toleration>,
    ) -> Self {
        let entry = |(key, value): (String, String)| {
            let member = Bytes::from(format!("{}:{}", quoted(&key), quoted(&value)));
            Entry { key, value, member }
        };
        let toleration = |toleration: Toleration| {
            let text = Bytes::from(toleration.to_json());
            (toleration, text)
        };
        let selector: Vec<_> = selector.into_iter().map(entry).collect();
        let tolerations: Vec<_> = tolerations.into_iter().map(toleration).collect();
        let members: Vec<_> = selector.iter().map(|entry| &entry.member[..]).collect();
        let elements: Vec<_> = tolerations.iter().map(|(_, json)| &json[..]).collect();
        Self {
            selector_member: [SELECTOR.as_bytes(), b"{", &members.join(&b","[..]), b"}"].concat().into(),
            tolerations_member: [TOLERATIONS.as_bytes(), b"[", &elements.join(&b","[..]), b"]"].concat().into(),
            selector,
            tolerations,
        }
    }

    /// The guard as a member of a pod specification without a node selector: `"nodeSelector":{...}`.
    pub(crate) fn selector_member(&self) -> &Bytes {
        &self.selector_member
    }

    /// The value of that member.
    pub(crate) fn whole_selector(&self) -> Bytes {
        self.selector_member.slice(SELECTOR.len()..)
    }

    /// The guard as a member of a pod specification without tolerations: `"tolerations":[...]`.
    pub(crate) fn tolerations_member(&self) -> &Bytes {
        &self.tolerations_member
    }

    /// The value of that member.
    pub(crate) fn whole_tolerations(&self) -> Bytes {
        self.tolerations_member.slice(TOLERATIONS.len()..)
    }

    /// Whether there is anything to write or hide.
    pub fn is_empty(&self) -> bool {
        self.selector.is_empty() && self.tolerations.is_empty()
    }

    /// The node labels, in order.
    pub fn selector(&self) -> impl Iterator<Item = (&str, &str)> {
        self.selector.iter().map(|entry| (entry.key.as_str(), entry.value.as_str()))
    }

    /// The tolerations, in order.
    pub fn tolerated(&self) -> impl Iterator<Item = &Toleration> {
        self.tolerations.iter().map(|(toleration, _)| toleration)
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.selector
    }

    /// Whether `key` is a guarded label, given as a key of a node selector.
    pub(crate) fn has_key(&self, key: &Text<'_>) -> bool {
        self.selector.iter().any(|entry| key.is(&entry.key))
    }

    /// The tolerations, each as JSON too.
    pub(crate) fn tolerations(&self) -> &[(Toleration, Bytes)] {
        &self.tolerations
    }

    /// Consumes the next value. Returns the index of this toleration in the guard, or `None` if it is not in the guard.
    pub(crate) fn toleration_at(&self, cursor: &mut Cursor<'_>) -> Result<Option<usize>, Malformed> {
        if self.tolerations.is_empty() {
            // Checks the grammar as well, and allocates nothing.
            cursor.skip()?;
            return Ok(None);
        }
        let Some(found) = Toleration::read(cursor)? else {
            return Ok(None);
        };
        Ok(self.toleration(&found))
    }

    /// The index of this toleration in the guard.
    pub(crate) fn toleration(&self, found: &Toleration) -> Option<usize> {
        self.tolerations.iter().position(|(toleration, _)| toleration == found)
    }
}

impl Default for Guard {
    fn default() -> Self {
        Self::new([], [])
    }
}

// === impl Toleration ===

impl Toleration {
    /// Every taint with this key.
    pub fn of_key(key: &str) -> Self {
        Self {
            key: key.to_owned(),
            operator: "Exists".to_owned(),
            value: String::new(),
            effect: String::new(),
            seconds: None,
        }
    }

    /// An empty toleration.
    pub(crate) fn empty() -> Self {
        // The default (`Toleration` in core/v1/types.go).
        Self { operator: "Equal".to_owned(), ..Self::of_key("") }
    }

    /// Whether the host adds it to every pod without such a toleration (`plugin/pkg/admission/defaulttolerationseconds` of
    /// Kubernetes). A flag of its API server determines the seconds.
    pub(crate) fn is_admitted(&self) -> bool {
        matches!(&*self.key, "node.kubernetes.io/not-ready" | "node.kubernetes.io/unreachable")
            && (&*self.operator, &*self.value, &*self.effect) == ("Exists", "", "NoExecute")
            && self.seconds.is_some()
    }

    /// In the order in which Go writes it to a ControllerRevision.
    fn to_json(&self) -> String {
        let text = |value: &str| (!value.is_empty()).then(|| quoted(value));
        let members = [
            ("effect", text(&self.effect)),
            ("key", text(&self.key)),
            ("operator", text(&self.operator)),
            ("tolerationSeconds", self.seconds.map(|seconds| seconds.to_string())),
            ("value", text(&self.value)),
        ];
        let members = members.into_iter().filter_map(|(key, value)| Some(format!("\"{key}\":{}", value?)));
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    }

    /// Reads the next value. `None` if it is not a toleration, or has unknown fields.
    pub(crate) fn read(cursor: &mut Cursor<'_>) -> Result<Option<Self>, Malformed> {
        if cursor.peek()? != b'{' {
            cursor.skip()?;
            return Ok(None);
        }
        let mut found = Self::of_key("");
        found.operator.clear();
        let mut known = true;
        cursor.object::<Malformed>(&mut Edits::new(), |cursor, _, key| {
            cursor.peek()?;
            let start = cursor.at();
            let text = if cursor.peek()? == b'"' {
                Some(cursor.string()?)
            } else {
                cursor.skip()?;
                None
            };
            let raw = cursor.slice(start..cursor.at());
            match (&*key.decode(), text) {
                (_, None) if raw == b"null" => {}
                ("key", Some(text)) => found.key = text.decode().into_owned(),
                ("operator", Some(text)) => found.operator = text.decode().into_owned(),
                ("value", Some(text)) => found.value = text.decode().into_owned(),
                ("effect", Some(text)) => found.effect = text.decode().into_owned(),
                ("tolerationSeconds", None) => {
                    found.seconds = std::str::from_utf8(raw).ok().and_then(|raw| raw.parse().ok());
                    known &= found.seconds.is_some();
                }
                _ => known = false,
            }
            Ok(crate::json::Outcome::Keep)
        })?;
        if found.operator.is_empty() {
            // The default (`Toleration` in core/v1/types.go).
            "Equal".clone_into(&mut found.operator);
        }
        Ok(known.then_some(found))
    }
}
