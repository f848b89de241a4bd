//! Limits of the measured figures.

use std::process::ExitCode;

/// Figures with their limits.
#[derive(Default)]
pub(crate) struct Limits(Vec<(&'static str, f64, f64)>);

impl Limits {
    /// Takes note of a figure.
    pub(crate) fn hold(&mut self, what: &'static str, measured: f64, at_most: f64) {
        self.0.push((what, measured, at_most));
    }

    /// Prints all of them; fails when one is over its limit.
    pub(crate) fn say(&self) -> ExitCode {
        let mut over = 0;
        for (what, measured, at_most) in &self.0 {
            let is_kept = measured <= at_most;
            over += usize::from(!is_kept);
            println!("{} {measured:>8.2} of {at_most:>5.0}  {what}", if is_kept { "kept" } else { "OVER" });
        }
        if over > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }
}
