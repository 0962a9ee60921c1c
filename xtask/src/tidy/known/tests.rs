use super::*;

fn share(percent: usize) -> Violation {
    Violation::Share { package: "a".to_owned(), percent }
}

fn methods(ty: &str, count: usize) -> Violation {
    Violation::Methods { unit: "a".to_owned(), ty: ty.to_owned(), count }
}

fn cycle(unit: &str, members: &[&str]) -> Violation {
    Violation::Cycle { unit: unit.to_owned(), members: members.iter().map(|&name| name.to_owned()).collect() }
}

/// The list for code with these violations.
fn listed(violations: &[Violation]) -> Known {
    Known::parse(&Known::default().updated(violations)).unwrap()
}

#[track_caller]
fn check(known: &Known, now: &[Violation], expected: &[&str]) {
    let found: Vec<_> = known.check(now).iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.contains(expected), "{found} lacks {expected}");
    }
}

#[test]
fn a_list_is_read_as_it_was_written() {
    let now = [share(25), methods("crate::X", 30), cycle("a", &["crate", "crate::b"]), cycle("a/bin", &["c", "d"])];
    let text = Known::default().updated(&now);
    let entries = text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>();
    let expected = [
        "",
        "share a 26",
        "methods a crate::X 30",
        "cycle a",
        "    crate",
        "    crate::b",
        "cycle a/bin",
        "    c",
        "    d",
    ];
    assert_eq!(entries, expected);
    let known = Known::parse(&text).unwrap();
    assert!(now.iter().all(|now| known.covers(now)));
    check(&known, &now, &[]);
    assert_eq!(known.updated(&now), text);
}

#[test]
fn the_order_of_what_is_found_does_not_matter() {
    let (a, b, c) = (cycle("a", &["x", "y"]), cycle("a", &["v", "w"]), methods("crate::X", 30));
    let text = Known::default().updated(&[a.clone(), b.clone(), c.clone()]);
    assert_eq!(Known::default().updated(&[c, b, a]), text);
}

#[test]
fn only_what_is_listed_is_covered() {
    let known = listed(&[share(25), methods("crate::X", 30), cycle("a", &["x", "y", "z"]), cycle("a", &["v", "w"])]);
    for inside in [share(26), methods("crate::X", 26), cycle("a", &["x", "z"])] {
        assert!(known.covers(&inside), "{inside}");
    }
    for outside in [
        share(27),
        Violation::Share { package: "b".to_owned(), percent: 21 },
        methods("crate::X", 31),
        methods("crate::y::X", 26),
        cycle("a", &["x", "y", "z", "new"]),
        // Two known cycles that became one.
        cycle("a", &["v", "w", "x", "y", "z"]),
        cycle("b", &["x", "y"]),
    ] {
        assert!(!known.covers(&outside), "{outside}");
    }
}

#[test]
fn what_is_gone_must_leave_the_list() {
    check(&listed(&[methods("crate::X", 30)]), &[], &["a known violation is gone: methods a crate::X 30; run"]);
    check(&listed(&[cycle("a", &["x", "y"])]), &[cycle("b", &["x", "y"])], &["gone: cycle a of 2: x y; run"]);
    check(&listed(&[share(25)]), &[], &["gone: share a 26; run"]);
}

#[test]
fn what_became_smaller_must_be_lowered() {
    check(&listed(&[methods("crate::X", 30)]), &[methods("crate::X", 29)], &["smaller: methods a crate::X 30 is now"]);
    check(
        &listed(&[cycle("a", &["v", "w", "x", "y", "z"])]),
        &[cycle("a", &["v", "w"]), cycle("a", &["y", "z"])],
        &["smaller: cycle a of 5: v w x y z is now cycle a of 2: v w and cycle a of 2: y z; run"],
    );
}

#[test]
fn what_became_larger_is_not_gone() {
    check(&listed(&[methods("crate::X", 30)]), &[methods("crate::X", 31)], &[]);
    check(&listed(&[cycle("a", &["x", "y"])]), &[cycle("a", &["x", "y", "z"])], &[]);
    check(&listed(&[share(30)]), &[share(40)], &[]);
}

/// Changes of other crates change the share of an unchanged crate.
#[test]
fn a_share_may_move_a_little() {
    let known = listed(&[share(30)]);
    for percent in [29, 30, 31] {
        check(&known, &[share(percent)], &[]);
        assert_eq!(known.updated(&[share(percent)]), known.updated(&[share(30)]));
    }
    check(&known, &[share(28)], &["smaller: share a 31 is now share a 28"]);
    assert!(known.updated(&[share(28)]).contains("share a 29\n"));
    assert!(!known.covers(&share(32)));
}

#[test]
fn a_finding_has_the_line_of_its_entry() {
    let known = Known::parse("# a\n\nmethods a crate::X 30\ncycle a\n    x\n    y\nshare a 30\n").unwrap();
    let lines: Vec<_> = known.check(&[]).iter().map(|found| found.to_string()[FILE.len()..].to_owned()).collect();
    assert!(lines[0].starts_with(":3: ") && lines[1].starts_with(":4: ") && lines[2].starts_with(":7: "), "{lines:?}");
}

#[test]
fn what_is_no_entry_is_a_mistake() {
    let mistake = |text| Known::parse(text).unwrap_err().to_string();
    assert!(mistake("share a 30\nsize a 3\n").contains(":2: `size a 3` is not an entry; "));
    assert!(mistake("share a many\n").contains(":1: `many` is not a number"));
    assert!(mistake("    crate::b\n").contains(":1: `    crate::b` is not an entry"));
    assert!(mistake("cycle a\ncrate::b\n").contains(":2: `crate::b` is not an entry"));
    assert!(mistake("<<<<<<< HEAD\n").contains(":1: "));
}
