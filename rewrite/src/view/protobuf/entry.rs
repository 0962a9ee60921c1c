//! Entries of maps: each is a message of a key and a value
//! (<https://protobuf.dev/programming-guides/encoding/#maps>).

use std::ops::Range;

use super::super::last_applied;
use super::super::namespace::Key;
use super::Unreadable;
use super::object::ObjectReader;
use crate::json::Fate;
use crate::mapping::Shown;
use crate::name::{LAST_APPLIED_ANNOTATION, METADATA_NAME_LABEL};
use crate::program::Place;
use crate::protobuf::Found;

pub(super) const KEY: u32 = 1;
pub(super) const VALUE: u32 = 2;

// === impl ObjectReader ===

impl ObjectReader<'_, '_> {
    /// Handles an entry of a map with a place, or of one in which some keys have places.
    pub(super) fn entry(
        &mut self,
        place: Option<Place>,
        values: &[(Box<str>, Place)],
        range: &Range<usize>,
    ) -> Result<Fate, Unreadable> {
        let key = self.splice.text(range, Some(KEY))?;
        let value = self.splice.only(range, VALUE)?.filter(|value| !value.is_empty());
        match place {
            Some(place @ (Place::OwnLabels | Place::OwnAnnotations)) => {
                let text = String::from_utf8_lossy(key);
                let shown = match place {
                    Place::OwnLabels => Key::of_label(&text, self.state.view.enforces_pod_security),
                    _ => Key::of_annotation(&text),
                };
                match shown {
                    Key::Hidden => return Ok(Fate::Remove),
                    Key::Itself => self.own_key(key, value.as_ref()),
                    Key::As(shown) => {
                        if let Some(found) = self.splice.only(range, KEY)? {
                            self.splice.replace(&found, shown.into());
                        }
                    }
                }
                return Ok(Fate::Keep);
            }
            Some(Place::ServiceAnnotations) => return self.service_annotation(key, value.as_ref(), range),
            Some(Place::NodeSelector) => return Ok(self.node_selector(key)),
            _ => {}
        }
        let known = values.iter().find(|(known, _)| known.as_bytes() == key);
        if let (Some((_, place)), Some(value)) = (known, &value) {
            self.value(*place, value);
        }
        Ok(Fate::Keep)
    }

    /// A label or annotation of a Namespace.
    fn own_key(&mut self, key: &[u8], value: Option<&Found>) {
        match value {
            Some(value) if key == METADATA_NAME_LABEL.as_bytes() => self.namespace(value),
            Some(value) if key == LAST_APPLIED_ANNOTATION.as_bytes() => self.value(Place::LastApplied, value),
            _ => {}
        }
    }

    pub(super) fn value(&mut self, place: Place, value: &Found) {
        let text = self.splice.bytes(value);
        let shown = match place {
            Place::AutoupdateSpec => {
                self.state.decide_by_autoupdate(text);
                None
            }
            Place::LastApplied if !self.own().is_empty() => {
                last_applied::plain(self.state.view, &self.kind.program, self.own(), text)
            }
            Place::SecretNamespace if self.is_token() => match self.state.view.mapping.shown(text) {
                Shown::As(name) => Some(name),
                Shown::Unchanged | Shown::Foreign => None,
            },
            Place::SecretCertificate | Place::ConfigMapCertificate => self.certificate(place),
            _ => None,
        };
        if let Some(shown) = shown {
            self.splice.replace(value, shown);
        }
    }
}
