//! The lists that serve a closed virtual cluster again.

use std::future::pending;
use std::vec;

use host_client::api::{Api, Read, Selection, Source};
use hub::{ClusterId, ResourceVersion};
use serde_json::value::RawValue;

/// The lists of all objects of a virtual cluster, one after the other.
pub(crate) struct Reopening {
    pub(crate) cluster: ClusterId,
    api: Api,
    paths: vec::IntoIter<String>,
    /// The current list. It is dropped before it begins to watch.
    source: Option<Source>,
    /// The newest version of the lists.
    pub(crate) listed: ResourceVersion,
    /// The number of objects so far.
    pub(crate) objects: usize,
    /// Their size, as JSON.
    pub(crate) bytes: usize,
}

/// What the lists have next.
pub(crate) enum Listed {
    Item(Box<RawValue>),
    /// They are complete.
    End,
    /// The host refuses a list, or has forgotten its version. The items so far are void.
    Interrupted,
}

// === impl Reopening ===

impl Reopening {
    /// Lists these collections. `version` is that of the hub.
    pub(crate) fn new(cluster: ClusterId, api: &Api, paths: Vec<String>, version: ResourceVersion) -> Self {
        let (paths, source) = (paths.into_iter(), None);
        Self { cluster, api: api.clone(), paths, source, listed: version, objects: 0, bytes: 0 }
    }

    async fn next(&mut self) -> Listed {
        loop {
            let Some(source) = &mut self.source else {
                let Some(path) = self.paths.next() else { return Listed::End };
                self.source = Some(Source::new(&self.api, path, Selection::default()));
                continue;
            };
            match source.next().await {
                Read::Item(item) => return Listed::Item(item),
                Read::Listed(version) => {
                    let Ok(version) = version.parse() else { return Listed::Interrupted };
                    self.listed = self.listed.max(version);
                    self.source = None;
                }
                Read::Restarted { .. } | Read::Refused | Read::Frame(_) => return Listed::Interrupted,
            }
        }
    }
}

/// What the lists have next. Waits for ever if there are none. Cancel-safe.
pub(crate) async fn next(reopening: &mut Option<Reopening>) -> Listed {
    match reopening {
        Some(reopening) => reopening.next().await,
        None => pending().await,
    }
}
