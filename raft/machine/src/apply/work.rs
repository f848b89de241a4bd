//! Work: what a command examines, counted in units and bounded.
//!
//! A unit is one pool or address examined, four names compared, or eight rows of endpoints and allocations
//! read. Each command has a budget of [`WORK_PER_COMMAND_MAX`]; the requests that wait and are served along
//! with it have another budget of the same size. A loop whose length a request controls counts each item
//! before examining it, and ends early once the budget is used up; its caller then refuses the command before
//! the first row is written. The count is part of the rules: it must be the same on every member.

use crate::apply::step::Step;
use crate::command::{Action, Cause, Grant, Leases, Refusal, ReleaseOrphans, Renew, ScaleController};
use crate::state::State;
use ipam_api::limits::{WAITING_TRIED_PER_COMMAND_MAX, WORK_PER_COMMAND_MAX};
use ipam_api::name::{NamePattern, ResourceName};
use ipam_api::resource::EndpointKey;
use std::cell::Cell;

/// Number of names that are compared in the time in which one pool is examined.
const NAMES_PER_UNIT: u64 = 4;
/// Number of compared characters, pattern times name, in the time in which one name is fetched.
const CHARACTERS_PER_COMPARISON: usize = 128;
/// Number of rows of endpoints and allocations that are read by id in the time of examining one pool.
const READ_ROWS_PER_UNIT: u64 = 8;
/// Rows that a bulk command may write per unit. A row costs more than examining a pool, but a bulk exists to
/// write rows: this constant bounds their number, not their time.
const ROWS_PER_UNIT: u64 = 3;

/// Work of one command so far.
#[derive(Debug, Default)]
pub(crate) struct Work {
    spent: Cell<u64>,
    /// Compared names that don't add up to a unit yet.
    names: Cell<u64>,
    /// Rows of the transaction's draft that are counted already.
    rows: Cell<usize>,
    /// Rows that are no whole unit yet.
    pending_rows: Cell<u64>,
    /// Read rows that are no whole unit yet.
    pending_reads: Cell<u64>,
}

impl Work {
    /// Counts units. Returns false above the budget: then the caller's loop ends.
    pub(crate) fn take(&self, units: u64) -> bool {
        self.spent.set(self.spent.get().saturating_add(units));
        !self.is_exceeded()
    }

    /// Counts the comparison of a pattern with a name. A prefix with one wildcard at its end counts once; any
    /// other pattern counts in proportion to the lengths of the name and of the pattern's part after its
    /// prefix.
    pub(crate) fn take_name(&self, pattern: &NamePattern, name: &ResourceName) -> bool {
        let behind_prefix = pattern.as_str().len().saturating_sub(pattern.prefix().len() + 1);
        let comparisons = 1 + behind_prefix * name.as_str().len() / CHARACTERS_PER_COMPARISON;
        let names = self.names.get() + comparisons as u64;
        self.names.set(names % NAMES_PER_UNIT);
        self.take(names / NAMES_PER_UNIT)
    }

    /// Begins to count the rows of a nested draft. Returns the row count of the outer draft.
    pub(crate) fn begin_rows(&self) -> usize {
        self.rows.replace(0)
    }

    /// Continues with the outer draft, which has taken over the rows of the inner one.
    pub(crate) fn end_rows(&self, outer: usize) {
        self.rows.set(self.rows.get() + outer);
    }

    /// Counts rows that a transaction has written so far, each once.
    pub(crate) fn count_rows(&self, so_far: usize) {
        let more = so_far.saturating_sub(self.rows.replace(so_far));
        self.take_rows(more as u64);
    }

    /// Counts rows.
    fn take_rows(&self, rows: u64) -> bool {
        let rows = self.pending_rows.get() + rows;
        self.pending_rows.set(rows % ROWS_PER_UNIT);
        self.take(rows / ROWS_PER_UNIT)
    }

    /// Counts rows that are read by their ids. Returns false above the budget.
    pub(crate) fn take_reads(&self, rows: usize) -> bool {
        let rows = self.pending_reads.get() + rows as u64;
        self.pending_reads.set(rows % READ_ROWS_PER_UNIT);
        self.take(rows / READ_ROWS_PER_UNIT)
    }

    /// Returns true if the budget has this many units left.
    pub(crate) fn has_left(&self, units: u128) -> bool {
        units <= u128::from(WORK_PER_COMMAND_MAX.saturating_sub(self.spent.get()))
    }

    pub(crate) fn spent(&self) -> u64 {
        self.spent.get()
    }

    pub(crate) fn is_exceeded(&self) -> bool {
        self.spent.get() > WORK_PER_COMMAND_MAX
    }

    /// Refuses a command above the budget. Called before a result of counting loops is used.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        if self.is_exceeded() { Err(Cause::TooMuchWork.into()) } else { Ok(()) }
    }
}

impl Step<'_> {
    /// Refuses a command that would change too many rows, before all of them are examined.
    pub(crate) fn check_extent(&self, action: &Action) -> Result<(), Refusal> {
        let mut rows = match action {
            Action::ReleaseEndpoint { key } => self.state.allocations_of(key),
            Action::EndIncarnation(end) => self.state.allocations_of(&end.endpoint),
            Action::Renew(Renew { which: Leases::Endpoint(key), .. }) => self.state.allocations_of(key),
            Action::ScaleController(scale) => self.state.endpoints_of_controller(scale),
            Action::EndController(end) => self.state.endpoints_of_controller(&end.to_none()),
            Action::ReleaseOrphans(request) => self.state.allocations_of_orphans(request),
            Action::ReportProbes(report) => Box::new(report.results.iter().map(|_| ())),
            Action::ReportPods(report) => Box::new((0..report.pods.len() + report.gone.len()).map(|_| ())),
            Action::Reclaim(reclaim) => Box::new(reclaim.allocations.iter().map(|_| ())),
            _ => return Ok(()),
        };
        rows.all(|()| self.work.take_rows(1));
        self.work.check()
    }
}

impl State {
    /// Yields one item for each allocation of an endpoint, in all its incarnations.
    fn allocations_of<'a>(&'a self, key: &'a EndpointKey) -> Box<dyn Iterator<Item = ()> + 'a> {
        let rows = self.incarnations(key).map(|id| self.endpoints.named(id));
        Box::new(rows.flat_map(|row| row.allocations.iter().map(|_| ())))
    }

    /// Yields one item for each orphan, and for each allocation of its attachment.
    fn allocations_of_orphans<'a>(
        &'a self,
        request: &'a ReleaseOrphans,
    ) -> Box<dyn Iterator<Item = ()> + 'a> {
        let rows = request.orphans.iter().map(|orphan| self.attachment(&orphan.key(&request.node)));
        Box::new(rows.flat_map(|row| {
            let held = row.map(|(_, row)| row.allocations.as_slice()).unwrap_or_default();
            std::iter::once(()).chain(held.iter().map(|_| ()))
        }))
    }

    /// Yields one item for each sticky endpoint of a controller, and for each of its allocations.
    fn endpoints_of_controller<'a>(&'a self, scale: &ScaleController) -> Box<dyn Iterator<Item = ()> + 'a> {
        let rows = self.endpoints_scaled_by(scale).map(|id| self.endpoints.named(id));
        Box::new(rows.flat_map(|row| std::iter::once(()).chain(row.allocations.iter().map(|_| ()))))
    }
}

/// The work that a command does for requests that wait.
#[derive(Debug)]
pub(crate) struct Serving {
    /// Work for earlier claims.
    pub(crate) work: Work,
    /// Work for the missing resources of new claims.
    pub(crate) missing: Work,
    tries_left: Cell<usize>,
}

impl Default for Serving {
    fn default() -> Self {
        Self {
            work: Work::default(),
            missing: Work::default(),
            tries_left: Cell::new(WAITING_TRIED_PER_COMMAND_MAX),
        }
    }
}

impl Serving {
    /// Takes one more try, if the command has one left.
    pub(crate) fn begin_try(&self) -> bool {
        let left = self.tries_left.get();
        self.tries_left.set(left.saturating_sub(1));
        left > 0 && !self.work.is_exceeded()
    }
}

/// Search for addresses: the rights and the work budget that apply to it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Search<'a> {
    pub(crate) grant: &'a Grant,
    pub(crate) work: &'a Work,
}
