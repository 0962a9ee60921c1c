//! Adds the guard to pod specifications.

use std::ops::Range;

use kube_wire::proto::Writer;

use super::map::Entry;
use super::{Mapper, Message};
use crate::json::{Fault as _, Step};
use crate::protobuf::toleration;
use crate::request::pod::GuardedLabels;
use crate::request::{Refusal, Request};

/// The parts of the guard in the current specification.
pub(super) struct PodFields<'r> {
    labels: GuardedLabels<'r>,
    tolerations: Vec<bool>,
}

// === impl PodFields ===

impl<'r> PodFields<'r> {
    pub(super) fn new(request: &'r Request) -> Self {
        let tolerations = vec![false; request.guard.tolerations().len()];
        Self { labels: GuardedLabels::new(&request.guard), tolerations }
    }
}

// === impl Mapper ===

impl Mapper<'_, '_> {
    pub(super) fn pod_spec(&mut self, message: &Message, range: &Range<usize>) -> Result<(), Refusal> {
        self.pod = PodFields::new(self.request);
        self.descend(message, range)?;
        let has = std::mem::replace(&mut self.pod, PodFields::new(self.request));

        let number = |key| message.number(key).expect("PodSpec has it, as a test shows");
        let mut missing = Writer::new();
        let labels = has.labels.missing().map_err(|refusal| refusal.within(Step::Key("nodeSelector")))?;
        for entry in labels {
            Entry::write(&mut missing, number("nodeSelector"), &entry.key, &entry.value);
        }
        let tolerations = self.request.guard.tolerations().iter().zip(has.tolerations).filter(|(_, has)| !has);
        for ((toleration, _), _) in tolerations {
            missing.bytes(number("tolerations"), &toleration::write(toleration));
        }
        self.splice.append(range, missing);
        Ok(())
    }

    pub(super) fn node_selector(&mut self, entry: &Entry<'_>) -> Result<(), Refusal> {
        let labels = &mut self.pod.labels;
        if let Some(number) = labels.position(|label| entry.key == label)
            && !labels.claim(number, |guard| entry.text == guard.as_bytes())?
        {
            labels.conflict(number, String::from_utf8_lossy(entry.text).into_owned());
        }
        Ok(())
    }

    pub(super) fn toleration(&mut self, range: Range<usize>) -> Result<(), Refusal> {
        if let Some(found) = toleration::read(self.splice.slice(range))?
            && let Some(number) = self.request.guard.toleration(&found)
        {
            self.pod.tolerations[number] = true;
        }
        Ok(())
    }
}
