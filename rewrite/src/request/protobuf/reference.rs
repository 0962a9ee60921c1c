//! References to other objects.

use std::ops::Range;

use kube_wire::proto::Writer;

use super::{Found, Mapper, Message};
use crate::json::{Fault as _, Step};
use crate::program::Place;
use crate::request::Refusal;
use crate::request::reference::Named;

// === impl Mapper ===

impl Mapper<'_, '_> {
    pub(super) fn reference(&mut self, place: Place, message: &Message, range: &Range<usize>) -> Result<(), Refusal> {
        let decider = Named::decider(place);
        let word = self.look_up(range, message.number(decider));
        let word = word.map_err(|refusal| refusal.within(Step::Key(decider)))?;
        let named = Named::at(place, |known| word == known.as_bytes());
        for key in ["namespace", "name"] {
            let Some(number) = message.number(key) else { continue };
            let mut map = || {
                let found = self.find(range.clone(), number)?;
                match (key, named) {
                    ("namespace", _) if place == Place::ResourceAttributes => self.asked(found.as_ref(), number, range),
                    ("namespace", _) | (_, Named::Namespace) => found.map_or(Ok(()), |found| self.namespace(&found)),
                    (_, Named::Identity) => found.map_or(Ok(()), |found| self.identity(&found)),
                    (_, Named::Node) => {
                        let name = found.map(|found| String::from_utf8_lossy(self.splice.bytes(&found)).into_owned());
                        self.report.nodes.extend(name);
                        Ok(())
                    }
                    (_, Named::Other) => Ok(()),
                }
            };
            map().map_err(|refusal| refusal.within(Step::Key(key)))?;
        }
        Ok(())
    }

    /// The namespace of a question, whose field has this number.
    fn asked(&mut self, found: Option<&Found>, number: u32, range: &Range<usize>) -> Result<(), Refusal> {
        match (found, &self.request.root) {
            (Some(found), Some(root)) if found.is_empty() => self.splice.replace(found, root.to_bytes()),
            (Some(found), _) => self.namespace(found)?,
            (None, Some(root)) => {
                let mut namespace = Writer::new();
                namespace.bytes(number, root.as_ref());
                self.splice.append(range, namespace);
            }
            (None, None) => {}
        }
        Ok(())
    }
}
