//! Pages for browsers: HTML without scripts.
//!
//! Cells may quote peers: other processes, hosts, and through them anybody. So all text is escaped here, in one place,
//! and [`CONTENT_SECURITY_POLICY`] forbids a browser to run or load anything, even if a mistake lets markup through.

use std::fmt::{self, Display, Write as _};
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use crate::report::{Report, Table};

/// The text of the heading of a column that has none in the text form.
const UNNAMED: &str = "MESSAGE";

/// The style of all pages. Browsers refuse any other one.
const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:15px/1.4 system-ui,sans-serif;margin:1.5rem;max-width:100rem}\
h1{font-size:1.3rem;margin:0 0 .5rem}\
div{overflow-x:auto;margin:1.5rem 0}\
table{border-collapse:collapse}\
caption{text-align:left;font-weight:600;padding:.2rem 0}\
th,td{text-align:left;vertical-align:top;padding:.25rem 1rem .25rem 0;border-bottom:1px solid #8886;overflow-wrap:break-word}\
thead th{font-size:.8rem;white-space:nowrap}\
tbody th{font-weight:600}\
td{min-width:4ch;max-width:60ch}";

/// The value of the header of that name. It allows the style of this module and nothing else.
pub static CONTENT_SECURITY_POLICY: LazyLock<String> = LazyLock::new(|| {
    let hash = STANDARD.encode(Sha256::digest(STYLE));
    format!(
        "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
});

/// Text with references instead of the characters that have a meaning in HTML, in elements and in quoted attributes.
/// Control characters become spaces: HTML has no references for them.
struct Escaped<'t>(&'t str);

/// The page of a report. `home` is the name of the process, which links to the list of its pages.
pub fn report(home: &str, report: &Report) -> String {
    let mut body = format!("<h1>{}</h1>\n", Escaped(report.summary()));
    for table in report.tables() {
        write_table(&mut body, table);
    }
    for note in report.notes() {
        push(&mut body, format_args!("<p>{}</p>\n", Escaped(note)));
    }
    push(&mut body, format_args!("<p><a href=\"/\">All pages of this {}</a></p>\n", Escaped(home)));
    page(&format!("Status of {home}"), &body)
}

/// A list of paths with links to them, and what is there.
pub fn index<'p>(title: &str, pages: impl IntoIterator<Item = (&'p str, &'p str)>) -> String {
    let mut body = format!("<h1>{}</h1>\n<ul>\n", Escaped(title));
    for (path, about) in pages {
        let path = Escaped(path);
        push(&mut body, format_args!("<li><a href=\"{path}\">{path}</a> {}</li>\n", Escaped(about)));
    }
    body.push_str("</ul>\n");
    page(title, &body)
}

fn page(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{}</title>\n<style>{STYLE}</style>\n</head>\n\
         <body>\n{body}</body>\n</html>\n",
        Escaped(title)
    )
}

fn write_table(body: &mut String, table: &Table) {
    push(body, format_args!("<div><table>\n<caption>{}</caption>\n<thead><tr>", Escaped(table.caption)));
    for name in table.columns.heading() {
        let name = if name.is_empty() { UNNAMED } else { name };
        push(body, format_args!("<th scope=\"col\">{}</th>", Escaped(name)));
    }
    body.push_str("</tr></thead>\n<tbody>\n");
    for row in table.columns.rows() {
        body.push_str("<tr>");
        for (column, cell) in row.iter().enumerate() {
            let cell = Escaped(cell);
            match column {
                0 => push(body, format_args!("<th scope=\"row\">{cell}</th>")),
                _ => push(body, format_args!("<td>{cell}</td>")),
            }
        }
        body.push_str("</tr>\n");
    }
    body.push_str("</tbody>\n</table></div>\n");
}

fn push(body: &mut String, text: fmt::Arguments<'_>) {
    body.write_fmt(text).expect("writing to a String cannot fail");
}

// === impl Escaped ===

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for char in self.0.chars() {
            match char {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                char if char.is_control() => f.write_char(' ')?,
                char => f.write_char(char)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::Columns;

    const HOSTILE: &str = "<script>alert(\"1\")</script> & 'x' \u{0}\u{1b}[1m\u{85}\u{7f}";
    const HARMLESS: &str = "&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; &#39;x&#39;   [1m  ";

    #[test]
    fn a_report_is_a_whole_page() {
        let mut clusters = Columns::new(["CLUSTER", "READY", ""]);
        clusters.row(["ke-beijing", "yes", "a & b"]);
        let page = report("agent", &Report::new("all is well").with_table("Clusters", clusters).with_note("A note."));
        assert!(page.starts_with("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">"), "{page}");
        let expected = "<h1>all is well</h1>\n<div><table>\n<caption>Clusters</caption>\n\
            <thead><tr><th scope=\"col\">CLUSTER</th><th scope=\"col\">READY</th><th scope=\"col\">MESSAGE</th></tr></thead>\n\
            <tbody>\n<tr><th scope=\"row\">ke-beijing</th><td>yes</td><td>a &amp; b</td></tr>\n</tbody>\n</table></div>\n\
            <p>A note.</p>\n<p><a href=\"/\">All pages of this agent</a></p>\n</body>\n</html>\n";
        assert!(page.ends_with(expected), "{page}");
        assert!(page.contains("<title>Status of agent</title>"), "{page}");
    }

    /// Markup in any part stays text.
    #[test]
    fn all_text_is_escaped() {
        let mut table = Columns::new([HOSTILE, ""]);
        table.row([HOSTILE, HOSTILE]);
        let hostile = Report::new(HOSTILE).with_table(HOSTILE, table).with_note(HOSTILE);
        // In the title, in the first heading, in a caption, in a heading, in two cells, in a note and in the last line.
        for (page, count) in [(report(HOSTILE, &hostile), 8), (index(HOSTILE, [(HOSTILE, HOSTILE)]), 5)] {
            assert_eq!(page.matches(HARMLESS).count(), count, "{page}");
            assert!(!page.contains("<script") && !page.contains("alert(\""), "{page}");
            assert!(page.chars().all(|char| char == '\n' || !char.is_control()), "{page:?}");
        }
    }

    /// A browser compares the hash of the style with that of the header.
    #[test]
    fn the_policy_allows_the_style_alone() {
        let page = index("title", []);
        let style = page.split("<style>").nth(1).unwrap().split("</style>").next().unwrap();
        let hash = format!("style-src 'sha256-{}';", STANDARD.encode(Sha256::digest(style)));
        assert!(CONTENT_SECURITY_POLICY.contains(&hash), "{}", *CONTENT_SECURITY_POLICY);
        assert!(CONTENT_SECURITY_POLICY.starts_with("default-src 'none';"));
        assert!(!page.contains("style=\""));
    }
}
