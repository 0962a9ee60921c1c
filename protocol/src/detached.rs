//! Copies of headers for values that live longer than a request.
//!
//! A clone of a [`HeaderValue`] shares the buffer from which the whole head was read. If a client chose what is kept, a few bytes
//! could keep a quarter of a MiB each.

use http::{HeaderMap, HeaderValue};

/// Copies a value.
pub fn value(value: &HeaderValue) -> HeaderValue {
    let mut copy = HeaderValue::from_bytes(value.as_bytes()).expect("it is a value");
    copy.set_sensitive(value.is_sensitive());
    copy
}

/// Copies all values of a head.
pub fn head(head: &HeaderMap) -> HeaderMap {
    let mut copy = HeaderMap::with_capacity(head.len());
    for (name, of_name) in head {
        copy.append(name.clone(), value(of_name));
    }
    copy
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_equal() {
        let mut original = HeaderMap::new();
        for (name, text) in [("accept", "a"), ("accept", "b"), ("authorization", "Bearer t")] {
            original.append(name, HeaderValue::from_static(text));
        }
        original.get_mut("authorization").unwrap().set_sensitive(true);
        let copy = head(&original);
        assert_eq!(copy, original);
        assert!(copy["authorization"].is_sensitive() && !copy["accept"].is_sensitive());
    }
}
