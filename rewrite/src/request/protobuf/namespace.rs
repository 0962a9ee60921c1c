//! Namespace objects.

use std::ops::Range;

use kube_wire::proto::Writer;

use super::map::Entry;
use super::{Mapper, Message};
use crate::json::{Fault as _, Step};
use crate::name::METADATA_NAME_LABEL;
use crate::request::names::virtual_name;
use crate::request::namespace::Kept;
use crate::request::{Reason, Refusal};

/// What is known of the labels and annotations of the Namespace in hand.
#[derive(Default)]
pub(super) struct OwnMaps {
    labels: Kept,
    annotations: Kept,
    is_name_labelled: bool,
}

// === impl Mapper ===

impl Mapper<'_, '_> {
    pub(super) fn namespace_meta(&mut self, message: &Message, range: &Range<usize>) -> Result<(), Refusal> {
        let within = |key: &'static str| move |refusal: Refusal| refusal.within(Step::Key(key));
        let name = self.look_up(range, message.number("name")).map_err(within("name"))?;
        let generated = self.look_up(range, message.number("generateName")).map_err(within("generateName"))?;
        let name = match name {
            b"" if !generated.is_empty() => {
                return Err(Refusal::from(Reason::GeneratedName).within(Step::Key("generateName")));
            }
            b"" => None,
            name => Some(virtual_name(name).map_err(within("name"))?),
        };
        self.own = OwnMaps {
            labels: Kept::new(self.request.kept_labels(name.as_ref())),
            annotations: Kept::new(self.request.rules.annotations.clone()),
            is_name_labelled: false,
        };
        self.descend(message, range)?;

        let OwnMaps { labels, annotations, .. } = std::mem::take(&mut self.own);
        let mut missing = Writer::new();
        for (key, kept) in [("labels", labels), ("annotations", annotations)] {
            let number = message.number(key).expect("ObjectMeta has it, as a test shows");
            for (key, value) in kept.missing().map_err(within(key))? {
                Entry::write(&mut missing, number, &key, &value);
            }
        }
        self.splice.append(range, missing);
        Ok(())
    }

    pub(super) fn own_label(&mut self, entry: &Entry<'_>) -> Result<(), Refusal> {
        if entry.key == METADATA_NAME_LABEL {
            if std::mem::replace(&mut self.own.is_name_labelled, true) {
                return Err(Reason::Duplicate.into());
            }
            return entry.value.as_ref().map_or(Ok(()), |value| self.namespace(value));
        }
        if self.request.rules.protects(&entry.key) {
            self.own.labels.note(&entry.key, |wanted| entry.text == wanted.as_bytes());
        }
        Ok(())
    }

    pub(super) fn own_annotation(&mut self, entry: &Entry<'_>) {
        if self.request.rules.protects(&entry.key) {
            self.own.annotations.note(&entry.key, |wanted| entry.text == wanted.as_bytes());
        }
    }
}
