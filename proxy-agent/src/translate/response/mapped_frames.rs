//! Frames of feeds that have just been mapped.
//!
//! All watches that a feed serves get the same frame, at the same place in memory. Watches of one virtual cluster mostly also
//! show it by the same bytes. So the first of them maps the frame, and the others take what it has made. Whatever decides the
//! bytes is a part of [`Showing`]. An entry holds its frame, so nothing else can get its place.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use rewrite::Same;
use rewrite::view::Showing;
use tokio::time::Instant;

/// The maximum number of frames. It is more than a watch takes from the hub at a time, if the objects are not tiny.
const MAX_FRAMES: usize = 128;

/// The maximum memory of all frames, in bytes. One longer frame is possible.
const MAX_BYTES: usize = 4 << 20;

/// An entry is not used after this time. Almost all watches take a frame within milliseconds.
const LIFETIME: Duration = Duration::from_secs(10);

/// The mapped frames of all virtual clusters.
#[derive(Debug, Default)]
pub(crate) struct MappedFrames(Mutex<Recent>);

#[derive(Debug, Default)]
struct Recent {
    entries: HashMap<Place, Entry>,
    /// Oldest first.
    order: VecDeque<Place>,
    bytes: usize,
}

/// Where a frame is in memory: the address of its first byte.
type Place = usize;

#[derive(Debug)]
struct Entry {
    frame: Bytes,
    showing: Showing,
    shown: Shown,
    at: Instant,
}

/// What clients see of a frame. Empty if it is hidden.
pub(super) type Shown = Arc<[Bytes]>;

// === impl MappedFrames ===

impl MappedFrames {
    /// What a watch shows of this frame, if another one has mapped it.
    pub(super) fn get(&self, frame: &Bytes, showing: &Showing) -> Option<Shown> {
        let recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = recent.entries.get(&place(frame))?;
        let is_same = entry.frame.len() == frame.len() && entry.showing.is_same(showing);
        (is_same && entry.at.elapsed() < LIFETIME).then(|| Arc::clone(&entry.shown))
    }

    /// Takes what a watch shows of this frame.
    pub(super) fn put(&self, frame: Bytes, showing: &Showing, shown: &[Bytes]) {
        let entry = Entry { frame, showing: showing.clone(), shown: shown.into(), at: Instant::now() };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).put(entry);
    }
}

// === impl Recent ===

impl Recent {
    fn put(&mut self, entry: Entry) {
        // The index of namespaces can be large, so entries keep only one alive.
        let is_outdated = |other: &Entry| !other.showing.has_index_of(&entry.showing);
        if self.order.back().and_then(|place| self.entries.get(place)).is_some_and(is_outdated) {
            *self = Self::default();
        }
        let at = place(&entry.frame);
        self.remove(at);
        self.bytes += entry.bytes();
        self.entries.insert(at, entry);
        self.order.push_back(at);
        while let Some(oldest) = self.order.front().copied().filter(|oldest| *oldest != at && self.is_over(*oldest)) {
            self.remove(oldest);
        }
    }

    /// Whether the oldest entry must go.
    fn is_over(&self, oldest: Place) -> bool {
        let is_old = self.entries.get(&oldest).is_some_and(|entry| entry.at.elapsed() >= LIFETIME);
        is_old || self.bytes > MAX_BYTES || self.order.len() > MAX_FRAMES
    }

    fn remove(&mut self, at: Place) {
        if let Some(entry) = self.entries.remove(&at) {
            self.bytes -= entry.bytes();
            self.order.retain(|place| *place != at);
        }
    }
}

// === impl Entry ===

impl Entry {
    /// The approximate memory, in bytes.
    fn bytes(&self) -> usize {
        let pieces = self.shown.iter().map(|piece| piece.len() + size_of::<Bytes>());
        self.frame.len() + pieces.sum::<usize>()
    }
}

fn place(frame: &Bytes) -> Place {
    frame.as_ptr().addr()
}

#[cfg(test)]
mod tests {
    use rewrite::program::Place;
    use rewrite::view::{Filter, View, WatchStream};
    use rewrite::{Index, Mapping, Program};

    use super::*;

    fn mapping(index: &Arc<Index>) -> Mapping {
        Mapping::new("ke".parse().unwrap(), Arc::clone(index))
    }

    fn showing(mapping: Mapping, program: &Program) -> Showing {
        WatchStream::new(View::new(mapping), program.clone(), Filter::ByNamespace).showing().clone()
    }

    fn frame(length: usize) -> Bytes {
        vec![b'x'; length].into()
    }

    #[test]
    fn only_the_same_frame_is_known_to_those_who_show_it_alike() {
        let (index, program) = (Arc::default(), Program::default());
        let (names, frames) = (mapping(&index), MappedFrames::default());
        let (alike, text) = (showing(names.clone(), &program), frame(100));
        frames.put(text.clone(), &alike, &[Bytes::from("shown")]);
        assert_eq!(frames.get(&text, &alike).unwrap().concat(), b"shown");
        assert!(frames.get(&frame(100), &alike).is_none(), "it is equal, but another one");
        assert!(frames.get(&text.slice(..99), &alike).is_none());
        let other_program = Program::new([("metadata.name", Place::NodeName)]).unwrap();
        let requested = names.clone().with_requested_namespace("other".parse().unwrap());
        let others = [
            showing(names.clone(), &other_program),
            showing(names.clone().with_nodes(Arc::default()), &program),
            showing(names.clone().with_recently_deleted(Arc::default()), &program),
            showing(names.clone().with_shared_roles(Arc::default()), &program),
            showing(names.clone().with_renamed_kinds(Arc::default()), &program),
            showing(names.with_requested_object("a"), &program),
            showing(requested, &program),
            showing(Mapping::new("hz".parse().unwrap(), Arc::clone(&index)), &program),
            showing(mapping(&Arc::default()), &program),
        ];
        for other in others {
            assert!(frames.get(&text, &other).is_none(), "{other:?}");
        }
    }

    #[test]
    fn memory_is_bounded() {
        let (index, program, frames) = (Arc::default(), Program::default(), MappedFrames::default());
        let alike = showing(mapping(&index), &program);
        for length in [1000, 100_000, 2 * MAX_BYTES, 1000] {
            let texts: Vec<_> = (0..2 * MAX_FRAMES).map(|_| frame(length)).collect();
            for text in &texts {
                frames.put(text.clone(), &alike, std::slice::from_ref(text));
                assert!(frames.get(text, &alike).is_some());
                let recent = frames.0.lock().unwrap();
                let sum: usize = recent.entries.values().map(Entry::bytes).sum();
                assert_eq!((recent.bytes, recent.entries.len()), (sum, recent.order.len()));
                assert!(recent.order.len() <= MAX_FRAMES);
                assert!(recent.bytes <= MAX_BYTES || recent.order.len() == 1);
            }
        }
        let newer = showing(mapping(&Arc::default()), &program);
        frames.put(frame(1), &newer, &[]);
        assert_eq!(frames.0.lock().unwrap().order.len(), 1, "former indexes are not kept");
    }

    #[tokio::test(start_paused = true)]
    async fn a_frame_is_forgotten() {
        let (index, frames, text) = (Arc::default(), MappedFrames::default(), frame(100));
        let alike = showing(mapping(&index), &Program::default());
        frames.put(text.clone(), &alike, &[]);
        tokio::time::advance(LIFETIME).await;
        assert!(frames.get(&text, &alike).is_none());
        frames.put(frame(100), &alike, &[]);
        assert_eq!(frames.0.lock().unwrap().order.len(), 1);
    }
}
