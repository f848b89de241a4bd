//! Charts as SVG: latencies by percentile, and throughput, of all loads of a measurement.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Result;

use super::results::Results;
use crate::bench::load::Load;

const WIDTH: f64 = 760.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 580.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 320.0;
/// Height of a bar of throughput with its gap.
const BAR: f64 = 22.0;
/// Colours that people with a colour vision deficiency distinguish (Okabe and Ito).
const COLOURS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];
/// Percentiles of the axis, in millionths. Each nine takes the same space.
const PERCENTILES: [(u64, &str); 5] =
    [(0, "0"), (900_000, "90"), (990_000, "99"), (999_000, "99.9"), (999_900, "99.99")];
/// Points of a line between two percentiles.
const POINTS: u64 = 20;

/// Writes one file for each measurement with loads into a directory.
pub(in crate::bench) fn write(dir: &Path, results: &Results) -> Result<()> {
    fs::create_dir_all(dir)?;
    for name in results.measurements() {
        let loads = results.loads(name);
        if loads.iter().any(|(_, load)| load.latency.count() > 0) {
            fs::write(dir.join(format!("{name}.svg")), chart(name, &loads))?;
        }
    }
    Ok(())
}

fn chart(title: &str, loads: &[(String, Load)]) -> String {
    let count = u32::try_from(loads.len()).unwrap_or_default();
    let height = BOTTOM + 60.0 + BAR * f64::from(count);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"22\" font-size=\"15\">{title}: latency by percentile, and operations per \
         second</text>\n"
    );
    let scale = Scale::of(loads);
    axes(&mut svg, &scale);
    let fastest = loads.iter().map(|(_, load)| load.throughput()).fold(f64::MIN_POSITIVE, f64::max);
    for ((number, (name, load)), colour) in (0_u32..).zip(loads).zip(COLOURS.iter().cycle()) {
        let points: Vec<String> = percentiles()
            .map(|(x, millionths)| format!("{x:.1},{:.1}", scale.y(ms(load, millionths))))
            .collect();
        let y = BOTTOM + 45.0 + BAR * f64::from(number);
        let width = load.throughput() / fastest * (RIGHT - LEFT);
        // Writing to a string doesn't fail.
        let _ = writeln!(
            svg,
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" points=\"{}\"/>\n\
             <rect x=\"{LEFT}\" y=\"{y}\" width=\"{width:.1}\" height=\"{}\" fill=\"{colour}\"/>\n\
             <text x=\"{}\" y=\"{}\">{name}: {:.0}/s</text>",
            points.join(" "),
            BAR - 6.0,
            RIGHT + 8.0,
            y + 12.0,
            load.throughput(),
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// Logarithmic axis of latencies between two powers of ten.
struct Scale {
    low: i32,
    high: i32,
}

impl Scale {
    fn of(loads: &[(String, Load)]) -> Self {
        let measured = loads.iter().filter(|(_, load)| load.latency.count() > 0);
        let ends = measured.map(|(_, load)| (ms(load, 1), ms(load, 999_900)));
        let (low, high) =
            ends.fold((f64::MAX, f64::MIN_POSITIVE), |(low, high), ends| (low.min(ends.0), high.max(ends.1)));
        let powers = -4..=6;
        let above = |value: f64| powers.clone().find(|power| 10_f64.powi(*power) >= value).unwrap_or(6);
        let high = above(high);
        Self { low: (above(low) - 1).min(high - 1), high }
    }

    fn y(&self, ms: f64) -> f64 {
        let share = (ms.max(1e-6).log10() - f64::from(self.low)) / f64::from(self.high - self.low);
        BOTTOM - share.clamp(0.0, 1.0) * (BOTTOM - TOP)
    }
}

fn axes(svg: &mut String, scale: &Scale) {
    for power in scale.low..=scale.high {
        let (value, y) = (10_f64.powi(power), scale.y(10_f64.powi(power)));
        let _ = writeln!(
            svg,
            "<path d=\"M{LEFT} {y:.1}H{RIGHT}\" stroke=\"#ccc\"/><text x=\"{}\" y=\"{:.1}\" \
             text-anchor=\"end\">{value} ms</text>",
            LEFT - 6.0,
            y + 4.0
        );
    }
    for (at, (_, label)) in (0_u32..).zip(PERCENTILES) {
        let x = place(at);
        let _ = writeln!(
            svg,
            "<path d=\"M{x:.1} {TOP}V{BOTTOM}\" stroke=\"#eee\"/><text x=\"{x:.1}\" y=\"{}\" \
             text-anchor=\"middle\">{label} %</text>",
            BOTTOM + 18.0
        );
    }
}

/// Place of a percentile of the axis.
fn place(number: u32) -> f64 {
    LEFT + (RIGHT - LEFT) * f64::from(number) / 4.0
}

/// Places and shares of the points of a line.
fn percentiles() -> impl Iterator<Item = (f64, u64)> {
    (0_u32..).zip(PERCENTILES).zip(PERCENTILES.iter().skip(1)).flat_map(|((at, (from, _)), (to, _))| {
        let to = *to;
        (0..=POINTS).map(move |part| {
            let along = f64::from(u32::try_from(part).unwrap_or_default()) / 20.0;
            let x = place(at) + along * (place(at + 1) - place(at));
            (x, (from + (to - from) * part / POINTS).max(1))
        })
    })
}

fn ms(load: &Load, millionths: u64) -> f64 {
    load.latency.quantile(millionths).as_secs_f64() * 1000.0
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_chart_has_a_line_and_a_bar_for_each_load_inside_the_frame() {
        let mut fast = Load { operations: 100, elapsed: Duration::from_secs(1), ..Load::default() };
        (1..=100).for_each(|ms| fast.latency.add(Duration::from_millis(ms)));
        let slow = Load { operations: 50, ..fast.clone() };
        let svg = chart("allocate", &[("ipamd".to_owned(), fast), ("etcd".to_owned(), slow)]);
        assert_eq!((svg.matches("<polyline").count(), svg.matches("/s</text>").count()), (2, 2));
        assert!(svg.contains("etcd: 50/s") && svg.contains("100 ms"), "{svg}");
        let points = svg.split("points=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        for point in points.split(' ') {
            let (x, y) = point.split_once(',').unwrap();
            let (x, y): (f64, f64) = (x.parse().unwrap(), y.parse().unwrap());
            assert!((LEFT..=RIGHT).contains(&x) && (TOP..=BOTTOM).contains(&y), "{point}");
        }
    }
}
