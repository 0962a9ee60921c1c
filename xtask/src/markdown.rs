//! The links of a Markdown page, and the anchors to which links can lead.
//!
//! The parser and the rule for anchors are those of mdBook. Code hosting sites use the same rule for all headings that
//! consist of letters, digits, spaces and punctuation.

use std::collections::BTreeSet;
use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::finding::line_at;

/// A page.
#[derive(Debug, Default)]
pub(crate) struct Page {
    /// In the order of their targets in the text; first those without a place.
    pub(crate) links: Vec<Link>,
    /// Of the headings.
    pub(crate) anchors: BTreeSet<String>,
}

/// A link or an image.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Link {
    /// The line, from 1, where it begins.
    pub(crate) line: usize,
    pub(crate) target: String,
    /// The place of the target in the text of the page; none if the link is not written as `[text](target)`.
    pub(crate) place: Option<Range<usize>>,
}

// === impl Page ===

impl Page {
    pub(crate) fn read(text: &str) -> Self {
        let mut page = Self::default();
        let mut heading: Option<String> = None;
        let options = Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES | Options::ENABLE_STRIKETHROUGH;
        for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
            match event {
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => page.end_heading(&heading.take().unwrap_or_default()),
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    let place = place_of(&dest_url, text, &range);
                    let line = line_at(text, range.start);
                    page.links.push(Link { line, target: dest_url.into_string(), place });
                }
                Event::Text(part) | Event::Code(part) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&part);
                    }
                }
                _ => {}
            }
        }
        // The place of an image is within that of a link around it.
        page.links.sort_by_key(|link| link.place.as_ref().map(|place| place.start));
        page
    }

    fn end_heading(&mut self, text: &str) {
        let anchor = anchor_of(text);
        let numbered = (1..).map(|number| format!("{anchor}-{number}"));
        let mut candidates = std::iter::once(anchor.clone()).chain(numbered);
        self.anchors.extend(candidates.find(|candidate| !self.anchors.contains(candidate)));
    }
}

/// Where a link of this range has its target.
fn place_of(target: &str, text: &str, range: &Range<usize>) -> Option<Range<usize>> {
    let before = text[range.clone()].rfind(&format!("]({target}"))? + "](".len();
    let start = range.start + before;
    Some(start..start + target.len())
}

/// The anchor of the first heading with this text.
fn anchor_of(heading: &str) -> String {
    let kept = heading.trim().chars().flat_map(char::to_lowercase).filter_map(|char| match char {
        _ if char.is_whitespace() => Some('-'),
        _ => (char.is_alphanumeric() || "-_".contains(char)).then_some(char),
    });
    kept.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_outside_of_code() {
        let text =
            "# A\n[one](a.md#b), `[no](x)`, and\n[two\nlines](<c.md> \"t\") ![i](d.svg)\n\n```text\n[no](y)\n```\n";
        let links = Page::read(text).links;
        let found: Vec<_> = links.iter().map(|link| (link.line, link.target.as_str())).collect();
        assert_eq!(found, [(3, "c.md"), (2, "a.md#b"), (4, "d.svg")]);
        assert_eq!(links[0].place, None);
        assert_eq!(&text[links[1].place.clone().unwrap()], "a.md#b");
    }

    #[test]
    fn links_of_links_and_of_definitions() {
        let links = Page::read("[![i](a.svg)](b.md) [c]\n\n[c]: d.md\n").links;
        let found: Vec<_> = links.iter().map(|l| (l.target.as_str(), l.place.is_some())).collect();
        assert_eq!(found, [("d.md", false), ("a.svg", true), ("b.md", true)]);
    }

    #[test]
    fn anchors_are_those_of_code_hosting_sites() {
        let page = Page::read("# The hub\n## `atoll status`: 10,000 sites_x\n### The hub\n### The Hub?\n");
        let anchors: Vec<_> = page.anchors.iter().map(String::as_str).collect();
        assert_eq!(anchors, ["atoll-status-10000-sites_x", "the-hub", "the-hub-1", "the-hub-2"]);
    }
}
