//! Document: the parts of the page in their order.

use super::anomalies::anomalies;
use super::axis::Frame;
use super::charts::{latency, throughput};
use super::html::escaped;
use super::lanes::{bands, lanes};
use super::series::Series;
use super::tables;
use crate::checker::Record;
use crate::checker::availability::gaps;
use crate::checker::intervals::{leaders, operations};
use crate::report::words::{counted, milliseconds, thousands};
use crate::report::{AvailabilityRow, Results, Validity};

const STYLE: &str = include_str!("style.css");

/// Returns the page of a run: one HTML document without scripts and external resources.
#[must_use]
pub fn page(record: &Record, results: &Results) -> String {
    let gaps = gaps(record);
    let end_ns = record.history.last().map_or(0, |last| last.time_ns);
    let frame = Frame::new(end_ns);
    let series = Series::of(&operations(&record.history), end_ns);
    let bands = bands(&gaps);
    let violations = anomalies(record, results);
    let settings = &results.settings;
    let title = format!("ipamd fault injection, seed {}", settings.seed);
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n\
         <style>\n{STYLE}</style></head><body>\n<h1>{}</h1>\n",
        escaped(&title),
        escaped(&title)
    );
    html.push_str(&verdict(results));
    html.push_str(&tiles(results));
    if !violations.is_empty() {
        html.push_str(&section("Violations", "", &violations));
    }
    html.push_str(&section("Promises", "", &tables::promises(results)));
    let charts = format!(
        "{}{}{}",
        throughput(&frame, &series, &bands),
        latency(&frame, &series, &bands),
        lanes(&frame, &gaps, &leaders(&record.samples))
    );
    html.push_str(&section("Operations and faults over time", "", &charts));
    html.push_str(&section(
        "Availability",
        "The gap is the longest time without an accepted write, from the begin of a fault until the first \
         accepted write after its healing. ok is the share of operations that began during the fault.",
        &tables::availability(results),
    ));
    html.push_str(&section("Latency", "", &tables::latencies(results)));
    html.push_str(&section("Invariants", "", &tables::invariants(results)));
    html.push_str(&section("Faults", "", &details("All faults", gaps.len(), &tables::faults(&gaps))));
    let counts = tables::operations(results);
    html.push_str(&section("Operations", "", &details("By workload", results.operations.len(), &counts)));
    let command = format!("<pre><code>{}</code></pre>\n", escaped(&results.command()));
    let about = "The command repeats the run with the same choices.";
    html.push_str(&section("Settings", about, &format!("{command}{}", tables::settings(results))));
    html.push_str("</body></html>\n");
    html
}

fn section(name: &str, about: &str, content: &str) -> String {
    let about = match about {
        "" => String::new(),
        about => format!("<p class=\"about\">{}</p>\n", escaped(about)),
    };
    format!("<h2>{}</h2>\n{about}{content}", escaped(name))
}

fn details(name: &str, count: usize, content: &str) -> String {
    let open = if count <= 40 { " open" } else { "" };
    format!("<details{open}><summary>{} ({count})</summary>{content}</details>\n", escaped(name))
}

fn verdict(results: &Results) -> String {
    let (class, text) = match results.valid {
        Validity::Yes => ("good", "Valid: no violation in a run that did enough".to_owned()),
        Validity::Unknown => ("weak", "Undecided: no violation, but the run did too little".to_owned()),
        Validity::No => {
            let failures = results.failures.len() as u64;
            ("bad", format!("Violated: {}", counted(results.violations + failures, "violation")))
        }
    };
    let reasons: String = results
        .failures
        .iter()
        .chain(&results.shortfalls)
        .map(|reason| format!("<li>{}</li>", escaped(reason)))
        .collect();
    let reasons = if reasons.is_empty() { String::new() } else { format!("<ul>{reasons}</ul>") };
    format!("<div class=\"verdict {class}\"><b>{}</b>{reasons}</div>\n", escaped(&text))
}

fn tiles(results: &Results) -> String {
    let [ok, fail, info] = results.ends();
    let longest = results.availability.iter().filter_map(AvailabilityRow::max_ms).max();
    let tiles = [
        (thousands(ok), "operations ok"),
        (thousands(fail), "fail: no effect"),
        (thousands(info), "info: indeterminate"),
        (thousands(results.fault_count()), "faults"),
        (thousands(results.power_cuts), "power cuts"),
        (thousands(results.leader_changes), "changes of the leader"),
        (longest.map_or_else(|| "–".to_owned(), milliseconds), "longest gap"),
        (thousands(results.events), "events in the journal"),
        (thousands(results.panics), "panics"),
        (thousands(results.leaks), "leaks"),
    ];
    let tile = |(value, name): &(String, &str)| {
        format!("<div class=\"tile\"><b>{}</b><span>{}</span></div>", escaped(value), escaped(name))
    };
    format!("<div class=\"tiles\">{}</div>\n", tiles.iter().map(tile).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checker::{Anomaly, Verdict};
    use crate::report::results::tests::record;
    use crate::report::{Checked, results};

    fn html(message: &str) -> String {
        let mut record = record();
        record.settings.version = "<b>1</b>".to_owned();
        let anomaly = Anomaly { message: message.to_owned(), operations: vec![0, 1, 99], events: Vec::new() };
        let verdict = Verdict { anomalies: vec![anomaly], violations: 1, ..Verdict::default() };
        let checked = Checked {
            id: "I1".to_owned(),
            name: "n".to_owned(),
            about: "a".to_owned(),
            promises: vec![1],
            verdict,
        };
        page(&record, &results(&record, vec![checked]))
    }

    #[test]
    fn the_page_is_self_contained_and_escaped() {
        let html = html("<script>alert('x')</script>");
        for outside in ["<script", "http://", "https://", "url(", "<link", "<img"] {
            assert!(!html.contains(outside), "{outside}");
        }
        assert!(html.contains("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;"));
        assert!(html.contains("&lt;b&gt;1&lt;/b&gt;"));
        assert!(!html.contains("NaN") && !html.contains("inf\""));
    }

    #[test]
    fn tags_are_closed() {
        let html = html("m");
        for tag in ["table", "tr", "td", "div", "svg", "figure", "details", "text", "h2", "span"] {
            let count = |text: &str| html.matches(text).count();
            let opened = count(&format!("<{tag}>")) + count(&format!("<{tag} "));
            assert_eq!(opened, count(&format!("</{tag}>")), "{tag}");
        }
    }

    #[test]
    fn a_run_without_history_has_a_page() {
        let record = Record::default();
        let html = page(&record, &results(&record, Vec::new()));
        assert!(html.contains("</html>") && !html.contains("NaN"));
    }
}
