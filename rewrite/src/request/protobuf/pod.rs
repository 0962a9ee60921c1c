//! Adds the guard to pod specifications.

use std::ops::Range;

use kube_wire::proto::Writer;

use super::super::guarded_labels::GuardedLabels;
use super::super::refusal::Refusal;
use super::super::settings::Settings;
use super::entry::Entry;
use super::fields::Fields;
use crate::json::{Fault as _, Step};
use crate::protobuf::{Message, toleration};

/// The parts of the guard in the current specification.
#[derive(Default)]
pub(super) struct PodFields<'r> {
    labels: GuardedLabels<'r>,
    tolerations: Vec<bool>,
}

// === impl PodFields ===

impl<'r> PodFields<'r> {
    pub(super) fn new(settings: &'r Settings) -> Self {
        let tolerations = vec![false; settings.guard.tolerations().len()];
        Self { labels: GuardedLabels::new(&settings.guard), tolerations }
    }

    /// Adds the missing parts to the specification at `range`.
    pub(super) fn finish(
        self,
        fields: &mut Fields<'_, '_>,
        message: &Message,
        range: &Range<usize>,
    ) -> Result<(), Refusal> {
        let number = |key| message.number(key).expect("PodSpec has it, as a test shows");
        let mut missing = Writer::new();
        let labels = self.labels.missing().map_err(|refusal| refusal.within(Step::Key("nodeSelector")))?;
        for entry in labels {
            Entry::write(&mut missing, number("nodeSelector"), &entry.key, &entry.value);
        }
        let tolerations = fields.settings.guard.tolerations().iter().zip(self.tolerations).filter(|(_, has)| !has);
        for ((toleration, _), _) in tolerations {
            missing.bytes(number("tolerations"), &toleration::write(toleration));
        }
        fields.splice.append(range, missing);
        Ok(())
    }

    /// An entry of the node selector.
    pub(super) fn node_selector(&mut self, entry: &Entry<'_>) -> Result<(), Refusal> {
        let labels = &mut self.labels;
        if let Some(number) = labels.position(|label| entry.key == label)
            && !labels.claim(number, |guard| entry.text == guard.as_bytes())?
        {
            labels.conflict(number, String::from_utf8_lossy(entry.text).into_owned());
        }
        Ok(())
    }

    /// A toleration.
    pub(super) fn toleration(&mut self, settings: &Settings, message: &[u8]) -> Result<(), Refusal> {
        if let Some(found) = toleration::read(message)?
            && let Some(number) = settings.guard.toleration(&found)
        {
            self.tolerations[number] = true;
        }
        Ok(())
    }
}
