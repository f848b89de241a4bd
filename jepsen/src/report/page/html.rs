//! HTML: escaping and tables.

/// Text that is safe in elements and in attributes with double quotes.
pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // Control characters are not allowed in a document.
            control if control.is_control() && !matches!(control, '\n' | '\t') => safe.push('\u{fffd}'),
            other => safe.push(other),
        }
    }
    safe
}

/// Cell of a table.
pub(super) struct Cell {
    /// Escaped content.
    html: String,
    class: &'static str,
}

impl Cell {
    /// Text.
    pub(super) fn text(text: &str) -> Self {
        Self { html: escaped(text), class: "" }
    }

    /// Number, aligned to the right.
    pub(super) fn number(text: &str) -> Self {
        Self { html: escaped(text), class: "number" }
    }

    /// Values and identifiers in a fixed-width font.
    pub(super) fn code(text: &str) -> Self {
        Self { html: format!("<code>{}</code>", escaped(text)), class: "" }
    }

    /// Verdict with its class: `good`, `bad` or `weak`.
    pub(super) fn verdict(text: &str, class: &str) -> Self {
        Self { html: badge(text, class), class: "" }
    }
}

/// Verdict in a coloured frame; the text alone states the verdict, too.
pub(super) fn badge(text: &str, class: &str) -> String {
    format!("<span class=\"badge {}\">{}</span>", escaped(class), escaped(text))
}

/// Table that scrolls sideways on narrow screens. Heads of columns of numbers end with a space.
pub(super) fn table(head: &[&str], rows: &[Vec<Cell>]) -> String {
    let mut html = String::from("<div class=\"scroll\"><table><thead><tr>");
    for name in head {
        let class = if name.ends_with(' ') { " class=\"number\"" } else { "" };
        html.push_str(&format!("<th{class}>{}</th>", escaped(name.trim_end())));
    }
    html.push_str("</tr></thead><tbody>\n");
    for row in rows {
        html.push_str("<tr>");
        for cell in row {
            match cell.class {
                "" => html.push_str(&format!("<td>{}</td>", cell.html)),
                class => html.push_str(&format!("<td class=\"{class}\">{}</td>", cell.html)),
            }
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table></div>\n");
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_and_control_characters_are_escaped() {
        assert_eq!(
            escaped("<a href=\"x\" onclick='y'>&\u{1}"),
            "&lt;a href=&quot;x&quot; onclick=&#39;y&#39;&gt;&amp;\u{fffd}"
        );
        assert!(table(&["x"], &[vec![Cell::code("<script>")]]).contains("<code>&lt;script&gt;</code>"));
    }
}
