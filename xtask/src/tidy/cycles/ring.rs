//! Cycles in a level.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::level::Level;

/// The strongly connected components with two or more members.
pub(super) fn knots(level: &Level) -> Vec<BTreeSet<String>> {
    let members: BTreeSet<&str> = level.edges().flat_map(|(from, to)| [from, to]).collect();
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        members.iter().map(|&from| (from, ways_from(level, from).into_keys().collect())).collect();
    let mut knots = BTreeSet::new();
    for (&member, others) in &reached {
        if others.contains(member) {
            let knot = others.iter().filter(|&&other| reached[other].contains(member));
            knots.insert(knot.map(|&name| name.to_owned()).collect());
        }
    }
    knots.into_iter().collect()
}

/// A shortest cycle that begins with this edge: `[from, to, ..]`, where the last one leads to `from`.
pub(super) fn ring_through<'a>(level: &'a Level, from: &'a str, to: &'a str) -> Option<Vec<&'a str>> {
    let ways = ways_from(level, to);
    let mut back = vec![from];
    let mut at = from;
    while at != to {
        at = ways.get(at)?;
        back.push(at);
    }
    // The path was followed from its end.
    back[1..].reverse();
    Some(back)
}

/// All nodes that can be reached from `start` by one or more edges, each with its predecessor on a shortest path.
fn ways_from<'a>(level: &'a Level, start: &'a str) -> BTreeMap<&'a str, &'a str> {
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
