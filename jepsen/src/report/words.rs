//! Numbers and tables as text.

use std::time::Duration;

/// Number with a comma between thousands.
pub(super) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Number with its noun, whose plural has an s.
pub(super) fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", thousands(number), if number == 1 { "" } else { "s" })
}

/// Time in milliseconds, as seconds or milliseconds.
pub(super) fn milliseconds(time_ms: u64) -> String {
    if time_ms < 1000 {
        return format!("{time_ms} ms");
    }
    format!("{:.2} s", Duration::from_millis(time_ms).as_secs_f64())
}

/// Time in microseconds, in a unit that fits.
pub(super) fn microseconds(time_us: u64) -> String {
    match time_us {
        0..1000 => format!("{time_us} µs"),
        1000..1_000_000 => format!("{:.1} ms", Duration::from_micros(time_us).as_secs_f64() * 1000.0),
        _ => format!("{:.2} s", Duration::from_micros(time_us).as_secs_f64()),
    }
}

/// Share of a total, in percent with one digit.
pub(super) fn percent(part: u64, total: u64) -> String {
    let Some(permille) = part.saturating_mul(1000).checked_div(total) else { return "–".to_owned() };
    format!("{}.{} %", permille / 10, permille % 10)
}

/// Table of text with aligned columns. Columns from the second on are aligned to the right if `is_number`.
pub(super) fn columns(head: &[(&str, bool)], rows: &[Vec<String>]) -> String {
    let cell = |row: &[String], at: usize| row.get(at).map_or(0, |text| text.chars().count());
    let width = |at: usize, name: &str| {
        rows.iter().map(|row| cell(row, at)).chain([name.chars().count()]).max().unwrap_or_default()
    };
    let widths: Vec<usize> = head.iter().enumerate().map(|(at, (name, _))| width(at, name)).collect();
    let line = |cells: &mut dyn Iterator<Item = String>| {
        let padded = cells.zip(head.iter().zip(&widths)).map(|(text, ((_, is_number), width))| {
            if *is_number { format!("{text:>width$}") } else { format!("{text:<width$}") }
        });
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    let mut text = line(&mut head.iter().map(|(name, _)| (*name).to_owned()));
    for row in rows {
        text.push_str(&line(&mut row.iter().cloned()));
    }
    text
}

/// Table in Markdown.
pub(super) fn markdown(head: &[(&str, bool)], rows: &[Vec<String>]) -> String {
    let line = |cells: &mut dyn Iterator<Item = String>| {
        let cells = cells.map(|cell| cell.replace('|', "\\|")).collect::<Vec<_>>();
        format!("| {} |\n", cells.join(" | "))
    };
    let mut text = line(&mut head.iter().map(|(name, _)| (*name).to_owned()));
    let rule = head.iter().map(|(_, is_number)| if *is_number { "---:" } else { "---" });
    text.push_str(&format!("|{}|\n", rule.collect::<Vec<_>>().join("|")));
    for row in rows {
        text.push_str(&line(&mut row.iter().cloned()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_legible() {
        assert_eq!((thousands(7), thousands(1_234_567)), ("7".to_owned(), "1,234,567".to_owned()));
        assert_eq!((milliseconds(70), milliseconds(1510)), ("70 ms".to_owned(), "1.51 s".to_owned()));
        assert_eq!((microseconds(70), microseconds(1510)), ("70 µs".to_owned(), "1.5 ms".to_owned()));
        assert_eq!((percent(1, 3), percent(0, 0)), ("33.3 %".to_owned(), "–".to_owned()));
    }

    #[test]
    fn columns_are_aligned() {
        let rows = vec![vec!["a".to_owned(), "10".to_owned()], vec!["bcd".to_owned(), "7".to_owned()]];
        assert_eq!(columns(&[("x", false), ("n", true)], &rows), "x     n\na    10\nbcd   7\n");
        assert_eq!(
            markdown(&[("x", false), ("n", true)], &rows),
            "| x | n |\n|---|---:|\n| a | 10 |\n| bcd | 7 |\n"
        );
    }
}
