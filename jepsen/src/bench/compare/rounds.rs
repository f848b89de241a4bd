//! Rounds: all systems of a measurement in turn, each round beginning with another one.

use super::measure::measure;
use super::measurement::Measurement;
use super::plan::Plan;
use super::results::Results;
use crate::bench::lab::{Lab, Subject};

/// Makes all rounds of these measurements. A measurement that fails is reported and left out.
pub(in crate::bench) async fn compare(measurements: &[Measurement], lab: &mut Lab, plan: Plan) -> Results {
    let mut results = Results::default();
    for measurement in measurements {
        let subjects: Vec<Subject> =
            measurement.subjects.iter().copied().filter(|subject| lab.has(*subject)).collect();
        let mut failed: Vec<Subject> = Vec::new();
        for round in 0..measurement.rounds(plan.rounds) {
            let mut order = subjects.clone();
            order.rotate_left(round % subjects.len().max(1));
            for subject in order {
                if failed.contains(&subject) {
                    continue;
                }
                let title = format!("{} {} {}", measurement.name, round + 1, subject.name());
                match measure(*measurement, subject, lab, plan).await {
                    Ok(measured) => {
                        for (name, load) in &measured.loads {
                            eprintln!("{title:<28} {name:<10} {}", load.shown());
                        }
                        results.add(measurement.name, subject, measured);
                    }
                    Err(error) => {
                        eprintln!("{title}: {error:#}");
                        results.failures.push(format!("{title}: {error:#}"));
                        failed.push(subject);
                    }
                }
            }
        }
    }
    results
}
