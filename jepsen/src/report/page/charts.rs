//! Charts: throughput by end and latency over time, with bands where faults were active.

use super::axis::{Frame, WIDTH, float, round_up, time_label};
use super::html::escaped;
use super::series::Series;
use crate::report::words::{microseconds, thousands};

/// Fault as a band: begin, end and text.
pub(super) struct Band {
    pub(super) begin_ns: u64,
    pub(super) end_ns: u64,
    pub(super) text: String,
}

const HEIGHT: f64 = 196.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = HEIGHT - 24.0;
/// Lowest latency of the logarithmic axis, in microseconds.
const LATENCY_MIN_US: u64 = 100;

/// Successful, failed and indeterminate operations per second, stacked.
pub(super) fn throughput(frame: &Frame, series: &Series, bands: &[Band]) -> String {
    let per_second = |count: u64| count.div_ceil(series.width_s());
    let most = series.buckets.iter().map(|bucket| per_second(bucket.ends.iter().sum())).max();
    let top = round_up(most.unwrap_or(1).max(1));
    let y = |value: f64| BOTTOM - value / float(top) * (BOTTOM - TOP);
    let mut svg = open("Operations per second", bands, frame);
    for part in 0..=4_u64 {
        let value = float(top) * float(part) / 4.0;
        // Labels of small axes would repeat.
        let label = if top >= 4 || part % 4 == 0 { thousands(top * part / 4) } else { String::new() };
        svg.push_str(&rule(frame, y(value), &label));
    }
    let step = frame.x(series.width_ns) - frame.x(0);
    for (at, bucket) in (0_u64..).zip(&series.buckets) {
        let x = frame.x(at * series.width_ns);
        let width = (step - 0.6).min(frame.right - x).max(0.6);
        let mut below = 0.0;
        for (count, class) in bucket.ends.into_iter().zip(["ok", "fail", "info"]) {
            if count == 0 {
                continue;
            }
            let value = float(count) / float(series.width_s());
            let (upper, lower) = (y(below + value), y(below));
            below += value;
            svg.push_str(&format!(
                "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{upper:.1}\" width=\"{width:.1}\" height=\"{:.1}\">\
                 <title>{}: {} {class}</title></rect>\n",
                (lower - upper).max(0.5),
                time_label(at * series.width_s()),
                thousands(count)
            ));
        }
    }
    svg.push_str("</svg>\n");
    figure(
        "Operations per second",
        "ends of operations; bands mark active faults",
        &[("ok", "ok"), ("fail", "fail: no effect"), ("info", "info: indeterminate"), ("band", "fault")],
        &svg,
    )
}

/// Median and 99th percentile of the latency on a logarithmic axis.
pub(super) fn latency(frame: &Frame, series: &Series, bands: &[Band]) -> String {
    let most = series.buckets.iter().filter_map(|bucket| bucket.p99_us).max().unwrap_or(1000);
    let mut powers = vec![LATENCY_MIN_US];
    while powers.last().is_some_and(|last| *last < most) {
        powers.extend(powers.last().map(|last| last.saturating_mul(10)));
    }
    let span = float(powers.len().saturating_sub(1).max(1) as u64);
    let y = |value_us: u64| {
        let share = (float(value_us.max(LATENCY_MIN_US)) / float(LATENCY_MIN_US)).log10() / span;
        BOTTOM - share * (BOTTOM - TOP)
    };
    let mut svg = open("Latency", bands, frame);
    for power in &powers {
        svg.push_str(&rule(frame, y(*power), &plain_time(*power)));
    }
    for (class, of) in [
        ("p99", (|bucket: &super::series::Bucket| bucket.p99_us) as fn(&_) -> _),
        ("p50", |bucket| bucket.p50_us),
    ] {
        let mut path = String::new();
        let mut is_open = false;
        let mut points = String::new();
        for (at, bucket) in (0_u64..).zip(&series.buckets) {
            let Some(value_us) = of(bucket) else {
                is_open = false;
                continue;
            };
            let (x, y) = (frame.x(at * series.width_ns + series.width_ns / 2), y(value_us));
            path.push_str(&format!("{}{x:.1} {y:.1}", if is_open { "L" } else { "M" }));
            is_open = true;
            points.push_str(&format!(
                "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2\"><title>{}: {class} {}</title>\
                 </circle>\n",
                time_label(at * series.width_s()),
                microseconds(value_us)
            ));
        }
        svg.push_str(&format!("<path class=\"line {class}\" d=\"{path}\"/>\n{points}"));
    }
    svg.push_str("</svg>\n");
    figure(
        "Latency of successful operations",
        "logarithmic; without operations that wait on purpose (claims, event streams)",
        &[("p50", "p50"), ("p99", "p99"), ("band", "fault")],
        &svg,
    )
}

/// Power of ten without digits after the point.
fn plain_time(time_us: u64) -> String {
    match time_us {
        0..1000 => format!("{time_us} µs"),
        1000..1_000_000 => format!("{} ms", time_us / 1000),
        _ => format!("{} s", time_us / 1_000_000),
    }
}

/// Begin of a drawing with the bands of faults and the time axis.
fn open(name: &str, bands: &[Band], frame: &Frame) -> String {
    let mut svg =
        format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n", escaped(name));
    for band in bands {
        let (from, to) = (frame.x(band.begin_ns), frame.x(band.end_ns));
        svg.push_str(&format!(
            "<rect class=\"band\" x=\"{from:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{:.1}\">\
             <title>{}</title>\
             </rect>\n",
            (to - from).max(1.0),
            BOTTOM - TOP,
            escaped(&band.text)
        ));
    }
    svg.push_str(&time_axis(frame, BOTTOM));
    svg
}

/// Labels of the time axis below a line at this height.
pub(super) fn time_axis(frame: &Frame, y: f64) -> String {
    let mut svg = String::new();
    for seconds in frame.labels() {
        let x = frame.x(seconds * 1_000_000_000);
        // The first and the last label stay inside the drawing.
        let anchor = if x > frame.right - 24.0 { "end" } else { "middle" };
        svg.push_str(&format!(
            "<line class=\"tick\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{y}\" y2=\"{:.1}\"/>\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>\n",
            y + 4.0,
            y + 17.0,
            time_label(seconds)
        ));
    }
    svg
}

/// Horizontal line with its label.
fn rule(frame: &Frame, y: f64, label: &str) -> String {
    format!(
        "<line class=\"rule\" x1=\"{}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
         <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>\n",
        frame.left,
        frame.right,
        frame.left - 8.0,
        y + 4.0
    )
}

/// Drawing with its caption and its legend.
pub(super) fn figure(name: &str, about: &str, legend: &[(&str, &str)], svg: &str) -> String {
    let keys: String = legend
        .iter()
        .map(|(class, text)| format!("<span class=\"key\"><i class=\"{class}\"></i>{}</span>", escaped(text)))
        .collect();
    format!(
        "<figure><figcaption><b>{}</b> <span class=\"about\">{}</span><span class=\"legend\">{keys}</span>\
         </figcaption><div class=\"scroll\"><div class=\"wide\">{svg}</div></div></figure>\n",
        escaped(name),
        escaped(about)
    )
}
