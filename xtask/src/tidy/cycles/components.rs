//! Cycles in a level.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::level::Level;

/// The strongly connected components with two or more members.
pub(super) fn components(level: &Level) -> Vec<BTreeSet<String>> {
    let members: BTreeSet<&str> = level.edges().flat_map(|(from, to)| [from, to]).collect();
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        members.iter().map(|&from| (from, predecessors(level, from).into_keys().collect())).collect();
    let mut components = BTreeSet::new();
    for (&member, others) in &reached {
        if others.contains(member) {
            let component = others.iter().filter(|&&other| reached[other].contains(member));
            components.insert(component.map(|&name| name.to_owned()).collect());
        }
    }
    components.into_iter().collect()
}

/// A shortest cycle that begins with this edge: `[from, to, ..]`, where the last one leads to `from`.
pub(super) fn shortest_cycle<'a>(level: &'a Level, from: &'a str, to: &'a str) -> Option<Vec<&'a str>> {
    let predecessors = predecessors(level, to);
    let mut back = vec![from];
    let mut at = from;
    while at != to {
        at = predecessors.get(at)?;
        back.push(at);
    }
    // The path was followed from its end.
    back[1..].reverse();
    Some(back)
}

/// All nodes that can be reached from `start` by one or more edges, each with its predecessor on a shortest path.
fn predecessors<'a>(level: &'a Level, start: &'a str) -> BTreeMap<&'a str, &'a str> {
    let mut before = BTreeMap::new();
    let mut open = VecDeque::from([start]);
    while let Some(from) = open.pop_front() {
        for (_, to) in level.edges().filter(|&(edge, _)| edge == from) {
            if !before.contains_key(to) {
                before.insert(to, from);
                open.push_back(to);
            }
        }
    }
    before
}
