//! Bodies that cost far more than they weigh.

use std::fmt::Write as _;

/// A test that makes the agent apply a patch itself.
pub const TEST: &str = r#"{"op":"test","path":"/spec/template/spec/nodeSelector","value":null}"#;

/// Adds values of 110 levels, and moves what there is into the leaf of each.
pub fn grown(at: &str) -> String {
    let deep = format!("{}{{}}{}", r#"{"x":"#.repeat(110), "}".repeat(110));
    let leaf = "/x".repeat(110);
    let mut patch = format!(r#"[{{"op":"add","path":"{at}/grown","value":{{}}}}"#);
    for _ in 0..600 {
        let _ = write!(
            patch,
            r#",{{"op":"add","path":"{at}/new","value":{deep}}},{{"op":"move","from":"{at}/grown","path":"{at}/new{leaf}/x"}},{{"op":"move","from":"{at}/new","path":"{at}/grown"}}"#
        );
    }
    let _ = write!(patch, ",{TEST}]");
    patch
}

/// Copies what is at a path into itself, which doubles it each time.
pub fn copied(at: &str, times: usize) -> String {
    let text = "x".repeat(1000);
    let mut patch = format!(r#"[{TEST},{{"op":"add","path":"{at}/text","value":"{text}"}}"#);
    for number in 0..times {
        let _ = write!(patch, r#",{{"op":"copy","from":"{at}","path":"{at}/c{number}"}}"#);
    }
    patch.push(']');
    patch
}

/// Adds this array, and then elements before its first, each of which moves all the others.
pub fn moved(elements: &str) -> String {
    let mut patch = format!(r#"[{TEST},{{"op":"add","path":"/metadata/x","value":[{elements}]}}"#);
    for _ in 0..9000 {
        patch.push_str(r#",{"op":"add","path":"/metadata/x/0","value":0}"#);
    }
    patch.push(']');
    patch
}

/// An array in an array, so deep.
pub fn nested(levels: usize) -> String {
    format!("{}{}", "[".repeat(levels), "]".repeat(levels))
}

/// Nine levels of nine aliases each.
pub fn aliases() -> String {
    let mut yaml = String::from("{a0: &a0 [x,x,x,x,x,x,x,x,x]");
    for level in 1..9 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(",");
        let _ = write!(yaml, ", a{level}: &a{level} [{aliases}]");
    }
    yaml.push('}');
    yaml
}
