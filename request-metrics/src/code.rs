//! Status codes as values of a label.

use http::StatusCode;
use ops::metrics::LabelValue;

/// A status code. API servers use these; a host may send any number, and all others are one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Code(usize);

/// In ascending order.
const KNOWN: [(u16, &str); 22] = [
    (101, "101"),
    (200, "200"),
    (201, "201"),
    (202, "202"),
    (304, "304"),
    (400, "400"),
    (401, "401"),
    (403, "403"),
    (404, "404"),
    (405, "405"),
    (406, "406"),
    (409, "409"),
    (410, "410"),
    (413, "413"),
    (415, "415"),
    (422, "422"),
    (429, "429"),
    (500, "500"),
    (501, "501"),
    (502, "502"),
    (503, "503"),
    (504, "504"),
];

const OTHER: &str = "other";

// === impl Code ===

impl Code {
    /// The number of values.
    pub(super) const COUNT: usize = KNOWN.len() + 1;

    pub(super) fn of(status: StatusCode) -> Self {
        Self(KNOWN.binary_search_by_key(&status.as_u16(), |(code, _)| *code).unwrap_or(KNOWN.len()))
    }

    pub(super) fn all() -> impl Iterator<Item = Self> {
        (0..Self::COUNT).map(Self)
    }

    pub(super) fn index(self) -> usize {
        self.0
    }
}

impl LabelValue for Code {
    fn label(&self) -> &str {
        KNOWN.get(self.0).map_or(OTHER, |(_, text)| text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_one_label() {
        assert!(KNOWN.is_sorted_by(|(one, _), (other, _)| one < other));
        for (number, text) in KNOWN {
            let code = Code::of(StatusCode::from_u16(number).unwrap());
            assert_eq!((code.label(), number.to_string().as_str()), (text, text));
        }
        assert_eq!(Code::of(StatusCode::IM_A_TEAPOT).label(), "other");
        assert_eq!(Code::all().map(|code| code.label().to_owned()).collect::<Vec<_>>().len(), Code::COUNT);
    }
}
