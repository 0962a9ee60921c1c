//! Rules of roles.

use std::ops::Range;

use super::{Mapper, Message};
use crate::json::{Fault as _, Step};
use crate::program::Names;
use crate::request::Refusal;
use crate::request::rule::{RuleLengths, add_permissions};

// === impl Mapper ===

impl Mapper<'_, '_> {
    pub(super) fn rule(&mut self, message: &Message, range: &Range<usize>) -> Result<(), Refusal> {
        let groups = self.texts(range, message.number("apiGroups"))?;
        let resources = self.texts(range, message.number("resources"))?;
        let lengths = RuleLengths {
            verbs: self.count(range, message.number("verbs"))?,
            groups: groups.len(),
            resources: resources.len(),
            names: self.count(range, message.number("resourceNames"))?,
            paths: self.count(range, message.number("nonResourceURLs"))?,
        };
        add_permissions(&mut self.permissions, lengths)?;
        let about = Names::of(&groups, &resources);
        let Some(number) = message.number("resourceNames").filter(|_| about != Names::OfOthers) else { return Ok(()) };
        let mut names = self.splice.fields(range.clone());
        while let Some(found) = names.next(|other| other == number)? {
            let host = self.request.rule_name(about, self.splice.bytes(&found));
            if let Some(host) = host.map_err(|refusal: Refusal| refusal.within(Step::Key("resourceNames")))? {
                self.splice.replace(&found, host);
            }
        }
        Ok(())
    }

    fn count(&self, range: &Range<usize>, number: Option<u32>) -> Result<usize, Refusal> {
        let mut count = 0;
        let mut fields = self.splice.fields(range.clone());
        while fields.next(|other| Some(other) == number)?.is_some() {
            count += 1;
        }
        Ok(count)
    }

    fn texts(&self, range: &Range<usize>, number: Option<u32>) -> Result<Vec<String>, Refusal> {
        let mut texts = Vec::new();
        let mut fields = self.splice.fields(range.clone());
        while let Some(found) = fields.next(|other| Some(other) == number)? {
            texts.push(String::from_utf8_lossy(self.splice.bytes(&found)).into_owned());
        }
        Ok(texts)
    }
}
