//! Table of a run's results.

use std::fmt;

use super::ledger::Findings;
use super::plan::Kind;

/// Results of the cuts of one kind.
#[derive(Debug, Clone, Copy, Default)]
struct Row {
    cuts: u64,
    acknowledged: u64,
    lost: u64,
    corrupt: u64,
    refused: u64,
}

impl Row {
    fn add(&mut self, other: Self) {
        self.cuts += other.cuts;
        self.acknowledged += other.acknowledged;
        self.lost += other.lost;
        self.corrupt += other.corrupt;
        self.refused += other.refused;
    }
}

/// Results of all cuts so far, by kind.
#[derive(Debug, Default)]
pub(super) struct Tally(Vec<(Kind, Row)>);

impl Tally {
    /// Adds a cut, the writes acknowledged since the previous cut, and the findings after the cut.
    pub(super) fn add(&mut self, kind: Kind, acknowledged: u64, findings: &Findings) {
        let Findings { lost, corrupt, refused, .. } = *findings;
        let row = Row { cuts: 1, acknowledged, lost, corrupt, refused };
        match self.0.iter_mut().find(|(one, _)| *one == kind) {
            Some((_, there)) => there.add(row),
            None => self.0.push((kind, row)),
        }
    }

    /// True if no guarantee was broken.
    pub(super) fn is_clean(&self) -> bool {
        let Row { lost, corrupt, refused, .. } = self.all();
        lost + corrupt + refused == 0
    }

    /// Totals in one line.
    pub(super) fn line(&self) -> String {
        let Row { acknowledged, lost, corrupt, refused, .. } = self.all();
        format!("{acknowledged} acknowledged, {lost} lost, {corrupt} corrupt, {refused} refused")
    }

    fn all(&self) -> Row {
        let mut all = Row::default();
        self.0.iter().for_each(|(_, row)| all.add(*row));
        all
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cut         cuts  acknowledged      lost   corrupt   refused")?;
        let rows = Kind::EACH.into_iter().filter_map(|kind| self.0.iter().find(|(one, _)| *one == kind));
        let rows = rows.map(|(kind, row)| (kind.name(), *row)).chain([("together", self.all())]);
        for (name, Row { cuts, acknowledged, lost, corrupt, refused }) in rows {
            write!(f, "\n{name:<10}{cuts:>6}{acknowledged:>14}{lost:>10}{corrupt:>10}{refused:>10}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_adds_up() {
        let mut tally = Tally::default();
        tally.add(Kind::All, 100, &Findings::default());
        tally.add(Kind::One, 20, &Findings::default());
        assert!(tally.is_clean());
        tally.add(Kind::All, 3, &Findings { lost: 2, refused: 1, ..Findings::default() });
        assert!(!tally.is_clean());
        let expected = "\
cut         cuts  acknowledged      lost   corrupt   refused
one            1            20         0         0         0
all            2           103         2         0         1
together       3           123         2         0         1";
        assert_eq!(tally.to_string(), expected);
    }
}
