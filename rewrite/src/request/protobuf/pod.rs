//! Putting the guard into pod specifications.

use std::ops::Range;

use kube_wire::proto::{Reader, Value, Writer};

use super::map::Entry;
use super::{Mapper, Message};
use crate::guard::Toleration;
use crate::json::{Fault as _, Step};
use crate::request::pod::GuardedLabels;
use crate::request::{Refusal, Request};

/// `Toleration` in core/v1 generated.proto.
const KEY: u32 = 1;
const OPERATOR: u32 = 2;
const VALUE: u32 = 3;
const EFFECT: u32 = 4;
const SECONDS: u32 = 5;

/// What the specification in hand has of the guard.
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
            missing.bytes(number("tolerations"), &written(toleration));
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
        if let Some(found) = read(self.splice.slice(range))?
            && let Some(number) = self.request.guard.toleration(&found)
        {
            self.pod.tolerations[number] = true;
        }
        Ok(())
    }
}

/// Reads a toleration; nothing if it has fields that we do not know.
fn read(message: &[u8]) -> Result<Option<Toleration>, Refusal> {
    let mut found = Toleration::empty();
    let mut fields = Reader::new(message);
    while let Some(field) = fields.next_field()? {
        let text = || field.bytes().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        match field.number {
            KEY => found.key = text()?,
            OPERATOR if field.value == Value::Bytes(b"") => {}
            OPERATOR => found.operator = text()?,
            VALUE => found.value = text()?,
            EFFECT => found.effect = text()?,
            SECONDS => found.seconds = Some(field.varint()?.cast_signed()),
            _ => return Ok(None),
        }
    }
    Ok(Some(found))
}

/// As Kubernetes writes it: what is empty is there too.
fn written(toleration: &Toleration) -> Vec<u8> {
    let mut message = Writer::new();
    message.bytes(KEY, toleration.key.as_bytes());
    message.bytes(OPERATOR, toleration.operator.as_bytes());
    message.bytes(VALUE, toleration.value.as_bytes());
    message.bytes(EFFECT, toleration.effect.as_bytes());
    if let Some(seconds) = toleration.seconds {
        message.varint(SECONDS, seconds.cast_unsigned());
    }
    message.into_bytes()
}
