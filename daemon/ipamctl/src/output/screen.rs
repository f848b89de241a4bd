//! Filter for all output: removes control codes of external text, and inserts the program's colours.

use std::borrow::Cow;
use std::io::{IsTerminal as _, Write as _};
use std::sync::LazyLock;

use ipam_api::screen::{clean, json};

use uuid::Uuid;

use super::format::Format;
use super::table::terminal_width;

/// Marks the start of a colour inside text until it is written. Random, so external text can't contain it.
static MARK: LazyLock<String> = LazyLock::new(|| Uuid::new_v4().simple().to_string());

/// Meaning of a word, shown as its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Good state.
    Good,
    /// State that needs attention.
    Attention,
    /// Bad state.
    Bad,
}

impl Tone {
    /// Colours a text, if colours are enabled.
    pub(crate) fn paint(self, text: &str, color: bool) -> String {
        if !color {
            return text.to_owned();
        }
        let color = match self {
            Tone::Bad => "1",
            Tone::Good => "2",
            Tone::Attention => "3",
        };
        let mark = MARK.as_str();
        format!("{mark}{color}{text}{mark}{}", PLAIN.0)
    }
}

/// Number and terminal code that end a colour.
const PLAIN: (&str, &str) = ("0", "\u{1b}[0m");
/// Numbers that follow a mark, with the terminal codes of their colours.
const COLORS: [(&str, &str); 4] =
    [PLAIN, ("1", "\u{1b}[1;31m"), ("2", "\u{1b}[1;32m"), ("3", "\u{1b}[1;33m")];

/// Filters text for people.
pub(crate) fn text(text: &str) -> Cow<'_, str> {
    let mut pieces = text.split(MARK.as_str());
    let first = clean(pieces.next().unwrap_or_default());
    let mut shown = first.into_owned();
    for piece in pieces {
        let color = COLORS.iter().find_map(|(number, code)| Some((*code, piece.strip_prefix(number)?)));
        let (code, rest) = color.unwrap_or((PLAIN.1, piece));
        shown.push_str(code);
        shown.push_str(&clean(rest));
    }
    Cow::Owned(shown)
}

/// Filters data in a format.
pub(crate) fn data(bytes: &[u8], format: &Format) -> Vec<u8> {
    let all = String::from_utf8_lossy(bytes);
    match format {
        Format::Json => json(&all).into_owned().into_bytes(),
        _ => text(&all).into_owned().into_bytes(),
    }
}

/// Writes a line to standard error.
pub(crate) fn line(text: &str) {
    say(&format!("{text}\n"));
}

/// Indentation of the value behind a label.
const VALUE: usize = 13;
/// Indentation of the rest of any other line.
const REST: usize = 2;

/// Wraps text for people at word boundaries. Only longer words exceed the width.
pub(crate) fn folded(text: &str, width: Option<usize>) -> Cow<'_, str> {
    match width {
        Some(width) if text.lines().any(|line| visible(line) > width) => {
            Cow::Owned(text.split_inclusive('\n').map(|line| fold(line, width)).collect())
        }
        _ => Cow::Borrowed(text),
    }
}

fn fold(line: &str, width: usize) -> String {
    let label: String = line.chars().take(VALUE).collect();
    let indent = if label.chars().count() == VALUE && label.ends_with("  ") { VALUE } else { REST };
    let (mut whole, mut part) = (String::new(), String::new());
    for word in line.split_inclusive(' ') {
        let fits = visible(&part) + visible(word.trim_end()) <= width;
        if !fits && !part.trim().is_empty() {
            whole.push_str(part.trim_end());
            whole.push('\n');
            part = " ".repeat(indent);
        }
        part.push_str(word);
    }
    whole + &part
}

/// Width of a text in columns, without the marks of colours.
fn visible(text: &str) -> usize {
    let marks = text.matches(MARK.as_str()).count();
    text.chars().count().saturating_sub(marks * (MARK.chars().count() + 1))
}

/// Writes to standard error. An error is not reported: there is no other place to report it.
pub(crate) fn say(line: &str) {
    let width = if std::io::stderr().is_terminal() { terminal_width() } else { None };
    let line = &folded(line, width);
    let mut output = std::io::stderr().lock();
    output.write_all(text(line).as_bytes()).and_then(|()| output.flush()).ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_colours_pass_and_codes_of_others_do_not() {
        let word = Tone::Bad.paint("a\u{1b}[32mb", true);
        assert_eq!(
            text(&format!("x {word} y\u{202e}\n")),
            "x \u{1b}[1;31ma\u{fffd}[32mb\u{1b}[0m y\u{fffd}\n"
        );
        assert_eq!(text(&Tone::Good.paint("ok", true)), "\u{1b}[1;32mok\u{1b}[0m");
        assert_eq!(Tone::Good.paint("ok", false), "ok");
    }

    #[test]
    fn long_lines_break_between_words() {
        let fold = |text| folded(text, Some(20)).into_owned();
        assert_eq!(fold("a short line\n"), "a short line\n");
        assert_eq!(fold("one two three four five\nsix\n"), "one two three four\n  five\nsix\n");
        assert_eq!(fold("label        one two three\n"), "label        one two\n             three\n");
        assert_eq!(fold("ipamctl-0123456789-0123456789 x"), "ipamctl-0123456789-0123456789\n  x");
        let painted = Tone::Bad.paint("twelve chars", true);
        assert_eq!(folded(&painted, Some(12)), painted);
    }

    #[test]
    fn escaped_json_keeps_its_value() {
        let written = data("{\"a\":\"\u{202e}\"}".as_bytes(), &Format::Json);
        assert_eq!(written, b"{\"a\":\"\\u202e\"}");
        assert_eq!(data("\u{202e}".as_bytes(), &Format::Yaml), "\u{fffd}".as_bytes());
    }
}
