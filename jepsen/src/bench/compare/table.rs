//! Table of ratios in Markdown, and the judgement of each row by its bar.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::results::Results;
use super::rows::{Bar, ROWS, Row};

/// Judgement of a row that was measured.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::bench) struct Judgement {
    name: &'static str,
    unit: &'static str,
    own: f64,
    /// Other system and its value.
    other: Option<(&'static str, f64)>,
    bar: Bar,
}

impl Judgement {
    fn ratio(&self) -> Option<f64> {
        self.other.map(|(_, other)| self.own / other.max(f64::MIN_POSITIVE))
    }

    /// Returns true if the bar is met, and none if there is no bar.
    pub(in crate::bench) fn is_met(&self) -> Option<bool> {
        let judged = self.ratio().unwrap_or(self.own);
        match self.bar {
            Bar::AtLeast(bar) => Some(judged >= bar),
            Bar::AtMost(bar) => Some(judged <= bar),
            Bar::None => None,
        }
    }

    /// Returns the row as JSON.
    pub(in crate::bench) fn json(&self) -> Value {
        json!({
            "figure": self.name, "unit": self.unit, "value": self.own,
            "other": self.other.map(|(system, value)| json!({"system": system, "value": value})),
            "ratio": self.ratio(), "bar": bar(self), "is_met": self.is_met(),
        })
    }
}

/// Judges all rows whose figures were measured.
pub(in crate::bench) fn judge(results: &Results) -> Vec<Judgement> {
    ROWS.iter().filter_map(|row| judge_row(row, results)).collect()
}

fn judge_row(row: &Row, results: &Results) -> Option<Judgement> {
    let own = Row::value(row.own, results)?;
    let other = match row.other {
        Some(other) => Some((other.subject.name(), Row::value(other, results)?)),
        None => None,
    };
    Some(Judgement { name: row.name, unit: row.unit, own, other, bar: row.bar })
}

/// The table in Markdown.
pub(in crate::bench) fn shown(judgements: &[Judgement]) -> String {
    let mut text =
        "| figure | value | compared with | ratio | bar | result |\n|---|---|---|---|---|---|\n".to_owned();
    for judgement in judgements {
        let with_unit = |value: f64| format!("{} {}", number(value), judgement.unit).trim_end().to_owned();
        let other = judgement.other.map(|(system, value)| format!("{system} {}", with_unit(value)));
        let result = match judgement.is_met() {
            Some(true) => "pass",
            Some(false) => "**miss**",
            None => "",
        };
        // Writing to a string doesn't fail.
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {result} |",
            judgement.name,
            with_unit(judgement.own),
            other.unwrap_or_default(),
            judgement.ratio().map(|ratio| format!("{}×", number(ratio))).unwrap_or_default(),
            bar(judgement),
        );
    }
    text
}

fn bar(judgement: &Judgement) -> String {
    let sign = if judgement.other.is_some() { "×" } else { "" };
    match judgement.bar {
        Bar::AtLeast(bar) => format!("≥ {}{sign}", number(bar)),
        Bar::AtMost(bar) => format!("≤ {}{sign}", number(bar)),
        Bar::None => String::new(),
    }
}

/// Number with three significant digits at least.
fn number(value: f64) -> String {
    let size = value.abs();
    let digits = match () {
        () if size >= 100.0 || size == 0.0 => 0,
        () if size >= 10.0 => 1,
        () => 2,
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::lab::Subject;
    use crate::bench::load::Measured;

    fn results(figures: &[(&'static str, Subject, &str, f64)]) -> Results {
        let mut results = Results::default();
        for (measurement, subject, figure, value) in figures {
            let mut measured = Measured::default();
            measured.add(figure, *value);
            results.add(measurement, *subject, measured);
        }
        results
    }

    #[test]
    fn ratios_are_judged_by_their_bars_and_figures_without_other_by_their_value() {
        let judgements = judge(&results(&[
            ("allocate-64", Subject::Ipamd, "per_s", 21_000.0),
            ("allocate-64", Subject::Etcd, "per_s", 10_000.0),
            ("burst", Subject::Ipamd, "elapsed_s", 0.8),
            ("burst", Subject::Etcd, "elapsed_s", 1.0),
            ("bulk", Subject::Ipamd, "per_s", 49_000.0),
            ("million", Subject::Ipamd, "resident-bytes", 800.0),
        ]));
        let text = shown(&judgements);
        for line in [
            "| allocate, 64 clients; etcd: put | 21000 /s | etcd 10000 /s | 2.10× | ≥ 2.00× | pass |",
            "| burst of 1,000 dual-stack; etcd: puts | 0.80 s | etcd 1.00 s | 0.80× | ≤ 0.70× | **miss** |",
            "| bulk of 1,000, addresses | 49000 /s |  |  | ≥ 50000 | **miss** |",
            "| resident bytes per held allocation, leader | 800 B |  |  | ≤ 800 | pass |",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        assert_eq!(judgements.len(), 4, "rows without figures are left out: {text}");
    }

    #[test]
    fn each_row_names_a_measurement_that_measures_its_systems() {
        for row in ROWS {
            for source in [Some(row.own), row.other].into_iter().flatten() {
                let measurement = super::super::Measurement::named(source.measurement);
                let subjects = measurement.map(|measurement| measurement.subjects).unwrap_or_default();
                assert!(subjects.contains(&source.subject), "{}: {source:?}", row.name);
            }
        }
    }
}
