//! Lanes: one line for each nemesis with its faults, and one for the leaders, on the time axis of the charts.

use std::collections::BTreeMap;

use super::axis::{Frame, WIDTH};
use super::charts::{Band, figure, time_axis};
use super::html::escaped;
use crate::checker::availability::{FaultGap, Target};
use crate::checker::intervals::Leader;

const LANE: f64 = 20.0;
const BAR: f64 = 12.0;
const TOP: f64 = 6.0;
/// Width below which the name of a leader does not fit into its bar.
const NAME_MIN: f64 = 20.0;
/// Number of shades of leaders.
const SHADES: usize = 5;

/// Bands of all faults for the charts.
pub(super) fn bands(gaps: &[FaultGap<'_>]) -> Vec<Band> {
    let band = |gap: &FaultGap<'_>| Band {
        begin_ns: gap.begin_ns,
        end_ns: gap.end_ns,
        text: format!("{} of {}", gap.fault.nemesis, gap.target),
    };
    gaps.iter().filter(|gap| !gap.is_refused).map(band).collect()
}

fn class(target: Target) -> &'static str {
    match target {
        Target::Leader => "leader",
        Target::Minority => "minority",
        Target::Majority => "majority",
        Target::All => "all",
        Target::Rolling => "rolling",
        Target::Other => "other",
    }
}

/// Draws the faults of each nemesis and the leaders.
pub(super) fn lanes(frame: &Frame, gaps: &[FaultGap<'_>], leaders: &[Leader<'_>]) -> String {
    let mut nemeses: BTreeMap<&str, Vec<&FaultGap<'_>>> = BTreeMap::new();
    for gap in gaps.iter().filter(|gap| !gap.is_refused) {
        nemeses.entry(gap.fault.nemesis.as_str()).or_default().push(gap);
    }
    let count = u32::try_from(nemeses.len() + 1).unwrap_or(u32::MAX);
    let bottom = TOP + f64::from(count) * LANE;
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {:.0}\" role=\"img\" aria-label=\"Faults and leaders\">\n",
        bottom + 24.0
    );
    let mut y = TOP;
    svg.push_str(&label(frame, y, "leader"));
    svg.push_str(&leader_bars(frame, y, leaders));
    for (nemesis, faults) in &nemeses {
        y += LANE;
        svg.push_str(&label(frame, y, nemesis));
        for gap in faults {
            let (from, to) = (frame.x(gap.begin_ns), frame.x(gap.end_ns));
            let seconds = std::time::Duration::from_nanos(gap.end_ns - gap.begin_ns).as_secs_f64();
            svg.push_str(&format!(
                "<rect class=\"{}\" x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{BAR}\" rx=\"2\">\
                 <title>{}</title></rect>\n",
                class(gap.target),
                y + (LANE - BAR) / 2.0,
                (to - from).max(2.0),
                escaped(&format!("{nemesis} of {}, {seconds:.1} s", gap.target))
            ));
        }
    }
    svg.push_str(&time_axis(frame, bottom));
    svg.push_str("</svg>\n");
    figure(
        "Faults",
        "from injection to the end of healing",
        &[
            ("leader", "leader"),
            ("minority", "minority"),
            ("majority", "majority"),
            ("all", "all members"),
            ("rolling", "one after another"),
            ("other", "clients, nodes, other"),
        ],
        &svg,
    )
}

/// Name of a lane at its left, and the line below it.
fn label(frame: &Frame, y: f64, name: &str) -> String {
    format!(
        "<line class=\"rule\" x1=\"{}\" x2=\"{}\" y1=\"{:.1}\" y2=\"{:.1}\"/>\
         <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\n",
        frame.left,
        frame.right,
        y + LANE,
        y + LANE,
        frame.left - 8.0,
        y + LANE / 2.0 + 4.0,
        escaped(name)
    )
}

/// Bar of each leader until the next one.
fn leader_bars(frame: &Frame, y: f64, leaders: &[Leader<'_>]) -> String {
    let mut names: Vec<&str> = leaders.iter().map(|leader| leader.name).collect();
    names.sort_unstable();
    names.dedup();
    let mut svg = String::new();
    let ends = leaders.iter().skip(1).map(|leader| leader.time_ns).chain([frame.end_ns]);
    for (leader, end_ns) in leaders.iter().zip(ends) {
        let shade = names.binary_search(&leader.name).unwrap_or_default() % SHADES;
        let (from, to) = (frame.x(leader.time_ns), frame.x(end_ns));
        svg.push_str(&format!(
            "<rect class=\"member m{shade}\" x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\">\
             <title>{} leads in term {}</title></rect>\n",
            y + 2.0,
            (to - from - 0.8).max(0.8),
            LANE - 4.0,
            escaped(leader.name),
            leader.term
        ));
        if to - from >= NAME_MIN {
            svg.push_str(&format!(
                "<text class=\"name\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n",
                f64::midpoint(from, to),
                y + LANE / 2.0 + 4.0,
                escaped(leader.name)
            ));
        }
    }
    svg
}
