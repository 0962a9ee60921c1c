//! Splitting a path, strictly.

use std::borrow::Cow;

use super::PathError;
use crate::name::{SegmentName, is_plain_segment};
use crate::percent;

/// A resource path, split and decoded.
pub(super) struct ParsedPath<'a> {
    pub(super) group: Cow<'a, str>,
    pub(super) version: Cow<'a, str>,
    /// `/api/v1/watch/...`: the legacy form of `?watch=true`.
    pub(super) watch_prefix: bool,
    pub(super) namespace: Option<SegmentName<'a>>,
    pub(super) resource: Cow<'a, str>,
    pub(super) name: Option<SegmentName<'a>>,
    pub(super) subresource: Option<Cow<'a, str>>,
    /// The unchanged text after `proxy`: empty, or beginning with `/`.
    pub(super) remainder: &'a str,
}

/// Splits a path into segments, one at a time.
struct Segments<'a> {
    path: &'a str,
    /// The text after the last consumed slash. `None` at the end.
    rest: Option<&'a str>,
}

/// `None` if the path is not that of a resource. Such a path has not been checked to its end.
///
/// The order of the checks is that of `NewRequestInfo`.
pub(super) fn parse(path: &str) -> Result<Option<ParsedPath<'_>>, PathError> {
    let mut segments = Segments::new(path)?;
    let group = match segments.next()?.as_deref() {
        Some("api") => Cow::Borrowed(""),
        Some("apis") => match segments.next()? {
            Some(group) => group,
            None => return Ok(None),
        },
        _ => return Ok(None),
    };
    let (Some(version), Some(first)) = (segments.next()?, segments.next()?) else {
        return Ok(None);
    };
    if first == "proxy" {
        return Err(PathError::LegacyProxy);
    }
    let watch_prefix = first == "watch";
    let first = if watch_prefix { segments.next()?.ok_or(PathError::Incomplete)? } else { first };

    let mut parsed = ParsedPath {
        group,
        version,
        watch_prefix,
        namespace: None,
        resource: first,
        name: None,
        subresource: None,
        remainder: "",
    };
    if parsed.resource == "namespaces" {
        parsed.namespace = segments.next_name()?;
        match (&parsed.namespace, segments.next()?) {
            (Some(_), Some(below)) if below == "namespaces" => {
                return Err(PathError::NestedNamespace);
            }
            (Some(_), Some(below)) if below != "status" && below != "finalize" => {
                parsed.resource = below;
                parsed.name = segments.next_name()?;
                parsed.subresource = segments.next()?;
            }
            (namespace, below) => {
                parsed.name = namespace.clone();
                parsed.subresource = below;
            }
        }
    } else {
        parsed.name = segments.next_name()?;
        parsed.subresource = segments.next()?;
    }
    if parsed.is_proxy() {
        parsed.remainder = segments.remainder();
        check_remainder(parsed.remainder)?;
    } else if segments.next()?.is_some() {
        return Err(PathError::TrailingSegments);
    }
    Ok(Some(parsed))
}

/// Checks every segment and decodes the whole path.
pub(super) fn decode_all(path: &str) -> Result<Cow<'_, str>, PathError> {
    let mut segments = Segments::new(path)?;
    while segments.next()?.is_some() {}
    // Every segment can be decoded, and none contains a slash, so the whole path can be decoded at once.
    Ok(percent::decode_segment(path)?)
}

/// A proxied path belongs to the backend, which may accept empty segments and encoded slashes. But it must not leave the
/// subresource, whichever server on the path decodes it.
fn check_remainder(remainder: &str) -> Result<(), PathError> {
    let decoded = percent::decode_segment(remainder)?;
    if decoded.contains(char::is_control) {
        return Err(PathError::Control);
    }
    if decoded.split(['/', '\\']).any(is_dots) {
        return Err(PathError::DotSegment);
    }
    Ok(())
}

fn is_dots(segment: &str) -> bool {
    matches!(segment, "." | "..")
}

// === impl ParsedPath ===

impl ParsedPath<'_> {
    /// Whether the rest of the path and the query belong to a backend.
    pub(super) fn is_proxy(&self) -> bool {
        self.subresource.as_deref() == Some("proxy")
    }

    /// Whether the server behind this path may support OPTIONS.
    pub(super) fn takes_options(&self) -> bool {
        self.is_proxy() && self.group.is_empty() && matches!(&*self.resource, "pods" | "services")
    }
}

// === impl Segments ===

impl<'a> Segments<'a> {
    fn new(path: &'a str) -> Result<Self, PathError> {
        if path.bytes().any(|byte| byte.is_ascii_control() || matches!(byte, b' ' | b'?' | b'#')) {
            return Err(PathError::Control);
        }
        let rest = path.strip_prefix('/').ok_or(PathError::NotAbsolute)?;
        Ok(Self { path, rest: Some(rest) })
    }

    /// The next segment, decoded. `None` at the end, and after a trailing slash.
    fn next(&mut self) -> Result<Option<Cow<'a, str>>, PathError> {
        let Some(rest) = self.rest else {
            return Ok(None);
        };
        if rest.is_empty() {
            self.rest = None;
            return Ok(None);
        }
        let (segment, rest) = match rest.split_once('/') {
            Some((segment, rest)) => (segment, Some(rest)),
            None => (rest, None),
        };
        self.rest = rest;
        if is_plain_segment(segment) {
            return Ok(Some(Cow::Borrowed(segment)));
        }
        let decoded = percent::decode_segment(segment)?;
        match decoded.as_ref() {
            "" => Err(PathError::EmptySegment),
            dots if is_dots(dots) => Err(PathError::DotSegment),
            text if text.contains('/') => Err(PathError::EncodedSlash),
            text if text.contains('%') => Err(PathError::EncodedPercent),
            text if text.contains(char::is_control) => Err(PathError::Control),
            _ => Ok(Some(decoded)),
        }
    }

    fn next_name(&mut self) -> Result<Option<SegmentName<'a>>, PathError> {
        let Some(segment) = self.next()? else {
            return Ok(None);
        };
        Ok(Some(SegmentName::new(segment).expect("a segment has just passed the same rules")))
    }

    /// The remaining text, with the slash before it.
    fn remainder(&self) -> &'a str {
        let length = self.rest.map_or(0, |rest| rest.len() + 1);
        &self.path[self.path.len() - length..]
    }
}
