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
        let named = if place == Place::Reference && self.is_renamed(message, range, word)? {
            Named::Renamed
        } else {
            Named::at(place, |known| word == known.as_bytes())
        };
        for key in ["namespace", "name"] {
            let Some(number) = message.number(key) else { continue };
            let mut map = || {
                let found = self.find(range.clone(), number)?;
                match (key, named) {
                    ("namespace", _) if place == Place::ResourceAttributes => self.asked(found.as_ref(), number, range),
                    ("name", Named::Namespace) if place == Place::ResourceAttributes => self.asked_name(found.as_ref()),
                    ("namespace", _) | (_, Named::Namespace) => found.map_or(Ok(()), |found| self.namespace(&found)),
                    (_, Named::Identity) => found.map_or(Ok(()), |found| self.identity(&found)),
                    (_, Named::Node) => {
                        let name = found.map(|found| String::from_utf8_lossy(self.splice.bytes(&found)).into_owned());
                        self.report.nodes.extend(name);
                        Ok(())
                    }
                    ("name", Named::Role) if place == Place::ResourceAttributes => {
                        self.asked_role(found.as_ref());
                        Ok(())
                    }
                    (_, Named::Role) => found.map_or(Ok(()), |found| self.role(&found)),
                    (_, Named::Renamed) => found.map_or(Ok(()), |found| self.renamed(&found)),
                    (_, Named::Other) => Ok(()),
                }
            };
            map().map_err(|refusal| refusal.within(Step::Key(key)))?;
        }
        Ok(())
    }

    /// Whether a reference is to a cluster-scoped custom object.
    fn is_renamed(&self, message: &Message, range: &Range<usize>, kind: &[u8]) -> Result<bool, Refusal> {
        let version = self.look_up(range, message.number("apiVersion"));
        let version = version.map_err(|refusal| refusal.within(Step::Key("apiVersion")))?;
        Ok(self.request.mapping.objects.renames(&String::from_utf8_lossy(version), &String::from_utf8_lossy(kind)))
    }

    /// The name of a cluster-scoped custom object.
    fn renamed(&mut self, found: &Found) -> Result<(), Refusal> {
        if !found.is_empty() {
            let host = self.request.object(&self.text_of(found))?;
            self.splice.replace(found, host.into());
        }
        Ok(())
    }

    /// The namespace of a review, in the field with this number.
    fn asked(&mut self, found: Option<&Found>, number: u32, range: &Range<usize>) -> Result<(), Refusal> {
        match (found, &self.request.root) {
            (Some(found), _) if !found.is_empty() => {
                self.report.about.namespace = Some(self.text_of(found));
                self.asked_namespace(found)?;
            }
            (Some(found), Some(root)) => self.splice.replace(found, root.to_bytes()),
            (None, Some(root)) => {
                let mut namespace = Writer::new();
                namespace.bytes(number, root.as_ref());
                self.splice.append(range, namespace);
            }
            (Some(_) | None, None) => {}
        }
        Ok(())
    }

    /// The namespace of a review. An empty one stays unchanged.
    pub(super) fn asked_namespace(&mut self, found: &Found) -> Result<(), Refusal> {
        if !found.is_empty() {
            let host = self.request.asked_namespace(self.splice.bytes(found))?;
            self.splice.replace(found, host);
        }
        Ok(())
    }

    /// The name of a namespace in a review.
    fn asked_name(&mut self, found: Option<&Found>) -> Result<(), Refusal> {
        let Some(found) = found.filter(|found| !found.is_empty()) else { return Ok(()) };
        let name = self.text_of(found);
        self.splice.replace(found, self.request.asked_name(&name)?.into());
        self.report.about.name = Some(name);
        Ok(())
    }

    /// The name of a ClusterRole in a review.
    fn asked_role(&mut self, found: Option<&Found>) {
        let Some(found) = found.filter(|found| !found.is_empty()) else { return };
        let name = self.text_of(found);
        self.splice.replace(found, self.request.asked_role(&name).into());
        self.report.about.name = Some(name);
    }

    fn text_of(&self, found: &Found) -> String {
        String::from_utf8_lossy(self.splice.bytes(found)).into_owned()
    }
}
