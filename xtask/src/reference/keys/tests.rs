use super::*;

fn keys(text: &str) -> Vec<(String, Vec<String>, Vec<String>)> {
    let keys = Example::parse(text).unwrap().keys.into_iter();
    let parts = keys.flat_map(|key| key.parts.into_iter().map(move |part| (key.path.clone(), part)));
    parts.map(|(path, part)| (path, part.comment, part.lines)).collect()
}

fn key(path: &str, comment: &[&str], lines: &[&str]) -> (String, Vec<String>, Vec<String>) {
    let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    (path.to_owned(), owned(comment), owned(lines))
}

#[test]
fn maps_and_lists_have_paths() {
    let text = "# A.\na:\n  # B.\n  b: {x: 1}\n# L.\nlist:\n# N.\n- name: one\n  # I.\n  in:\n    # D.\n    deep: 2\n# Z.\nz: 3\n";
    let expected = [
        key("a", &["A."], &[]),
        key("a.b", &["B."], &["b: {x: 1}"]),
        key("list", &["L."], &[]),
        key("list[].name", &["N."], &["name: one"]),
        key("list[].in", &["I."], &[]),
        key("list[].in.deep", &["D."], &["deep: 2"]),
        key("z", &["Z."], &["z: 3"]),
    ];
    assert_eq!(keys(text), expected);
}

#[test]
fn a_list_of_plain_items_is_one_value() {
    let text = "a:\n  # B.\n  b:\n  - {k: v}\n  - plain\n# C.\nc: 1\n".replacen("a:", "# A.\na:", 1);
    let expected =
        [key("a", &["A."], &[]), key("a.b", &["B."], &["b:", "- {k: v}", "- plain"]), key("c", &["C."], &["c: 1"])];
    assert_eq!(keys(&text), expected);
}

#[test]
fn a_second_item_adds_only_what_it_explains() {
    let text = "# L.\nl:\n# N.\n- n: 1\n  # M.\n  m: 2\n\n# Another.\n- n: 3\n  m: 4\n\n# Short.\n- {n: 5}\n";
    let expected = [
        key("l", &["L."], &[]),
        key("l[].n", &["N."], &["n: 1"]),
        key("l[].n", &["Another."], &["n: 3"]),
        key("l[].m", &["M."], &["m: 2"]),
    ];
    assert_eq!(keys(text), expected);
}

#[test]
fn one_comment_can_explain_two_lines() {
    assert_eq!(keys("# Both.\na: 1\nb: 2\n"), [key("a", &["Both."], &["a: 1", "b: 2"])]);
}

#[test]
fn comments_without_a_key_are_the_preface() {
    let example = Example::parse("# One.\n#\n# Two.\n\n# Three.\n\n# === Part\n\n# A.\na: 1\n").unwrap();
    assert_eq!(example.preface, ["One.", "", "Two.", "", "Three."]);
    assert_eq!(example.keys.len(), 1);
}

#[test]
fn what_is_not_understood_is_an_error() {
    assert_eq!(Example::parse("# A.\na: 1\n\nb: 2\n"), Err((1, "`b` has no comment".to_owned())));
    assert!(matches!(Example::parse("# A.\na: |\n  text\n"), Err((3, _))));
    assert!(matches!(Example::parse("- x\n"), Err((1, _))));
}
