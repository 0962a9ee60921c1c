//! The `Accept` header.

use std::borrow::Cow;
use std::collections::HashSet;

use super::{Encoding, JSON, PROTOBUF, essence};

/// The encoding of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusFormat {
    /// [`crate::Status::to_json`]
    Json,
    /// [`crate::Status::to_protobuf`]
    Protobuf,
}

/// The media ranges that a client accepts, in its order, without clauses with `q=0` and invalid clauses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accept<'a> {
    clauses: Vec<AcceptClause<'a>>,
    /// Whether the header has any clause: `q=0` alone leaves no clause, but accepts nothing.
    stated: bool,
}

/// One media range with its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptClause<'a> {
    essence: &'a str,
    /// The unchanged text after the first `;`. Can be empty.
    params: &'a str,
    /// In thousandths (RFC 9110, section 12.4.2).
    quality: u16,
}

/// The form of object that a clause requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// The resource itself, or a list of it.
    Object,
    /// `meta.k8s.io` `Table`, for printing.
    Table,
    /// `meta.k8s.io` `PartialObjectMetadata`
    PartialObjectMetadata,
    /// `meta.k8s.io` `PartialObjectMetadataList`
    PartialObjectMetadataList,
    /// `apidiscovery.k8s.io` `APIGroupDiscoveryList` (KEP-3352, aggregated discovery)
    ApiGroupDiscoveryList,
}

/// An [`Accept`] restricted to one encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Only<'a> {
    header: Cow<'a, str>,
    forms: Vec<Form>,
}

/// The parameters of the clauses so far. Clients send a few clauses, but may send tens of thousands.
#[derive(Default)]
struct SeenParams<'a> {
    first: [Option<&'a str>; 4],
    others: HashSet<&'a str>,
}

/// Nothing is left: 406. The text is that of the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"
)]
pub struct NotAcceptable;

// === impl Accept ===

impl<'a> Accept<'a> {
    /// Parses all `Accept` header lines of a request. Several lines are equivalent to one that is joined by commas (RFC
    /// 9110, section 5.3). No lines, or only empty ones, accept anything.
    pub fn parse(values: impl IntoIterator<Item = &'a str>) -> Self {
        let mut accept = Self::default();
        for value in values {
            accept.stated |= !essence(value).is_empty();
            accept.clauses.extend(value.split(',').filter_map(AcceptClause::parse));
        }
        accept
    }

    /// Whether [`json_only`](Self::json_only) succeeds for these header lines. It allocates nothing, and stops at the first
    /// clause that allows JSON.
    pub fn allows_json(values: impl IntoIterator<Item = &'a str>) -> bool {
        let mut stated = false;
        for value in values {
            stated |= !essence(value).is_empty();
            let mut clauses = value.split(',').filter_map(AcceptClause::parse);
            if clauses.any(|clause| clause.may_be_json() && clause.form().is_some()) {
                return true;
            }
        }
        !stated
    }

    /// The accepted media ranges, in the client's order.
    pub fn clauses(&self) -> &[AcceptClause<'a>] {
        &self.clauses
    }

    /// The accepted media ranges, the best first: by quality, then by specificity, then by their order in the header.
    pub fn by_preference(&self) -> Vec<&AcceptClause<'a>> {
        let mut ordered: Vec<_> = self.clauses.iter().collect();
        ordered.sort_by_key(|clause| (u16::MAX - clause.quality, clause.is_wildcard()));
        ordered
    }

    /// The encoding of a `Status` for this client: protobuf if it prefers that to JSON and to a wildcard. Clauses for another
    /// form (a Table) do not count, because a Status is never converted.
    pub fn status_format(&self) -> StatusFormat {
        for clause in self.by_preference().into_iter().filter(|clause| clause.form() == Some(Form::Object)) {
            match clause.encoding() {
                Some(Encoding::Protobuf) => return StatusFormat::Protobuf,
                Some(Encoding::Json) => return StatusFormat::Json,
                _ if clause.is_wildcard() => return StatusFormat::Json,
                _ => {}
            }
        }
        StatusFormat::Json
    }

    /// The header to send upstream instead, to get only JSON. The order and the parameters stay. A wildcard becomes JSON, which
    /// the API server would have chosen too. Other encodings are removed, and so are forms that are not in [`Form`].
    ///
    /// Use it for responses that will be parsed. Requests for responses that are forwarded as bytes (logs, OpenAPI) keep the
    /// client's header.
    pub fn json_only(&self) -> Result<Only<'a>, NotAcceptable> {
        if !self.stated {
            return Ok(Only { header: Cow::Borrowed(JSON), forms: vec![Form::Object] });
        }
        self.only(JSON, AcceptClause::may_be_json)
    }

    /// The same for protobuf, which a client gets only if it names it.
    pub fn protobuf_only(&self) -> Result<Only<'a>, NotAcceptable> {
        self.only(PROTOBUF, |clause| clause.encoding() == Some(Encoding::Protobuf))
    }

    fn only(&self, media_type: &str, may_be: impl Fn(&AcceptClause<'a>) -> bool) -> Result<Only<'a>, NotAcceptable> {
        let mut header = String::new();
        let mut forms = Vec::new();
        let mut seen = SeenParams::default();
        for clause in self.clauses.iter().filter(|clause| may_be(clause)) {
            let Some(form) = clause.form() else {
                continue;
            };
            if !forms.contains(&form) {
                forms.push(form);
            }
            // `application/json, */*` would become two equal clauses.
            if !seen.insert(clause.params) {
                continue;
            }
            if !header.is_empty() {
                header.push(',');
            }
            header.push_str(media_type);
            if !clause.params.is_empty() {
                header.push(';');
                header.push_str(clause.params);
            }
        }
        if forms.is_empty() {
            return Err(NotAcceptable);
        }
        Ok(Only { header: Cow::Owned(header), forms })
    }
}

// === impl SeenParams ===

impl<'a> SeenParams<'a> {
    /// Whether it is new.
    fn insert(&mut self, params: &'a str) -> bool {
        if self.first.contains(&Some(params)) {
            return false;
        }
        match self.first.iter_mut().find(|first| first.is_none()) {
            Some(first) => first.replace(params).is_none(),
            None => self.others.insert(params),
        }
    }
}

// === impl AcceptClause ===

impl<'a> AcceptClause<'a> {
    /// `None` for an invalid media range, and for a range with `q=0`, which is not acceptable (RFC 9110).
    fn parse(text: &'a str) -> Option<Self> {
        let essence = match essence(text) {
            "*" => "*/*",
            text => text,
        };
        let params = text.split_once(';').map_or("", |(_, params)| params).trim_matches([' ', '\t']);
        let (kind, subtype) = essence.split_once('/')?;
        if kind.is_empty() || subtype.is_empty() || subtype.contains('/') {
            return None;
        }
        let mut clause = Self { essence, params, quality: 1000 };
        if !params.is_empty()
            && let Some(text) = clause.param("q")
        {
            clause.quality = quality(text);
        }
        (clause.quality > 0).then_some(clause)
    }

    /// The unchanged `type/subtype`.
    pub fn essence(&self) -> &'a str {
        self.essence
    }

    /// Its encoding of objects, if any. A wildcard has none.
    pub fn encoding(&self) -> Option<Encoding> {
        Encoding::of(self.essence)
    }

    /// `*/*` or `application/*`.
    pub fn is_wildcard(&self) -> bool {
        self.essence == "*/*" || self.essence.eq_ignore_ascii_case("application/*")
    }

    fn may_be_json(&self) -> bool {
        self.encoding() == Some(Encoding::Json) || self.is_wildcard()
    }

    /// The value of a parameter. If it is repeated, the last one, as in Kubernetes, which reads them into a map.
    pub fn param(&self, key: &str) -> Option<&'a str> {
        self.params.split(';').rev().find_map(|param| {
            let (name, value) = param.split_once('=')?;
            (name.trim_matches(' ') == key).then_some(value.trim_matches(' '))
        })
    }

    /// The form that `as`, `v` and `g` request. `None` if it is not in [`Form`]; then the API server ignores the clause.
    pub fn form(&self) -> Option<Form> {
        if self.params.is_empty() {
            return Some(Form::Object);
        }
        let [kind, version, group] = ["as", "v", "g"].map(|key| self.param(key).unwrap_or_default());
        match (group, version, kind) {
            ("", "", "") => Some(Form::Object),
            ("meta.k8s.io", "v1" | "v1beta1", "Table") => Some(Form::Table),
            ("meta.k8s.io", "v1" | "v1beta1", "PartialObjectMetadata") => Some(Form::PartialObjectMetadata),
            ("meta.k8s.io", "v1" | "v1beta1", "PartialObjectMetadataList") => Some(Form::PartialObjectMetadataList),
            ("apidiscovery.k8s.io", "v2" | "v2beta1", "APIGroupDiscoveryList") => Some(Form::ApiGroupDiscoveryList),
            _ => None,
        }
    }
}

// === impl Only ===

impl Only<'_> {
    /// The value of the `Accept` header to send.
    pub fn header(&self) -> &str {
        &self.header
    }

    /// The possible forms of the response, each once, in the client's order. Never empty.
    pub fn forms(&self) -> &[Form] {
        &self.forms
    }
}

/// `0`, `1`, `0.5`... in thousandths, without further digits. An invalid number counts as 0, as in goautoneg, which ignores
/// the error of Go's `strconv.ParseFloat`.
fn quality(text: &str) -> u16 {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return 0;
    }
    let digits = fraction.bytes().chain([b'0'; 3]).take(3);
    match whole {
        "0" => digits.fold(0, |sum, digit| sum * 10 + u16::from(digit - b'0')),
        "1" => 1000,
        _ => 0,
    }
}
