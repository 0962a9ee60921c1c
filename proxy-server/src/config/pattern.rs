//! Patterns of names, in which `*` matches any text.

/// Whether a name matches. Each part between two `*` is matched as far left as possible, and the last one at the end.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        match left.split_once(part) {
            Some((_, after)) => left = after,
            None => return false,
        }
    }
    left.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, name, expect) in [
            ("*", "ke-beijing", true),
            ("ke-*", "ke-beijing", true),
            ("*-beijing", "ke-beijing", true),
            ("ke-*-1", "ke-a-1", true),
            ("*a*b", "xxaxxb", true),
            ("ke-beijing", "ke-beijing", true),
            ("ke-beijing", "ke-beijing2", false),
            ("ke-*", "eke-1", false),
            ("*-1", "ke-12", false),
            ("ab*ba", "aba", false),
            ("*a*a*", "ba", false),
        ] {
            assert_eq!(matches(pattern, name), expect, "{pattern} {name}");
        }
    }
}
