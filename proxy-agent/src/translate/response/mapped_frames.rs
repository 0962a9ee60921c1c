//! Frames of feeds that watches have mapped.
//!
//! All watches that a feed serves get the same frame, at the same address. Most watches of one virtual cluster also send the same
//! bytes for it. So the first watch maps the frame, and the others reuse the result. [`Showing`] contains everything that
//! determines these bytes. An entry keeps its frame in memory, so no other frame can get the same address.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use rewrite::Same;
use rewrite::view::Showing;

/// The maximum number of frames. A watch takes fewer frames from the hub at a time (64 KiB), unless they are shorter than 512
/// bytes. A search compares all of them, so ten times as many would cost more than it takes to map a short frame.
const MAX_FRAMES: usize = 128;

/// The maximum memory of all frames, in bytes. A single larger frame may exceed it. A few of the largest objects fit, and an
/// idle agent keeps little.
const MAX_BYTES: usize = 4 << 20;

/// The mapped frames of all virtual clusters.
#[derive(Debug, Default)]
pub(crate) struct MappedFrames(Mutex<Recent>);

#[derive(Debug, Default)]
struct Recent {
    /// Oldest first.
    entries: VecDeque<Entry>,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    frame: Bytes,
    showing: Showing,
    mapped: MappedFrame,
}

/// What clients see of a frame. Empty if the frame is hidden.
pub(super) type MappedFrame = Arc<[Bytes]>;

// === impl MappedFrames ===

impl MappedFrames {
    /// The mapped frame, if another watch has mapped this frame in the same way.
    pub(super) fn get(&self, frame: &Bytes, showing: &Showing) -> Option<MappedFrame> {
        let recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut latest_first = recent.entries.iter().rev();
        let found = latest_first.find(|entry| entry.is_of(frame) && entry.showing.is_same(showing));
        found.map(|entry| Arc::clone(&entry.mapped))
    }

    /// Takes what a watch shows of this frame.
    pub(super) fn put(&self, frame: Bytes, showing: &Showing, mapped: &[Bytes]) {
        let entry = Entry { frame, showing: showing.clone(), mapped: mapped.into() };
        // Large frames are freed without the lock.
        let _former = self.0.lock().unwrap_or_else(PoisonError::into_inner).put(entry);
    }
}

// === impl Recent ===

impl Recent {
    /// Returns the entries that have left.
    fn put(&mut self, entry: Entry) -> VecDeque<Entry> {
        let mut former = VecDeque::new();
        // The index of namespaces can be large, so the entries keep only one version of it in memory.
        if self.entries.back().is_some_and(|latest| !latest.showing.has_namespaces_of(&entry.showing)) {
            former = std::mem::take(self).entries;
        }
        self.bytes += entry.bytes();
        self.entries.push_back(entry);
        while self.entries.len() > MAX_FRAMES || (self.bytes > MAX_BYTES && self.entries.len() > 1) {
            let Some(oldest) = self.entries.pop_front() else { break };
            self.bytes -= oldest.bytes();
            former.push_back(oldest);
        }
        former
    }
}

// === impl Entry ===

impl Entry {
    fn is_of(&self, frame: &Bytes) -> bool {
        (self.frame.as_ptr(), self.frame.len()) == (frame.as_ptr(), frame.len())
    }

    /// The approximate memory, in bytes.
    fn bytes(&self) -> usize {
        let pieces = self.mapped.iter().map(|piece| piece.len() + size_of::<Bytes>());
        self.frame.len() + pieces.sum::<usize>()
    }
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
    fn only_the_same_frame_is_known_to_watches_that_show_it_alike() {
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
        for (length, count) in [(100, 2 * MAX_FRAMES), (100_000, 100), (2 * MAX_BYTES, 3), (100, 3)] {
            for _ in 0..count {
                let text = frame(length);
                frames.put(text.clone(), &alike, std::slice::from_ref(&text));
                assert!(frames.get(&text, &alike).is_some());
                let recent = frames.0.lock().unwrap();
                assert_eq!(recent.bytes, recent.entries.iter().map(Entry::bytes).sum::<usize>());
                assert!(recent.entries.len() <= MAX_FRAMES);
                assert!(recent.bytes <= MAX_BYTES || recent.entries.len() == 1);
            }
        }
        let newer = showing(mapping(&Arc::default()), &program);
        frames.put(frame(1), &newer, &[]);
        assert_eq!(frames.0.lock().unwrap().entries.len(), 1, "former indexes are not kept");
    }
}
