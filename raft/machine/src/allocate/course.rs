//! Evaluation of candidates, done once for all interfaces of a request that have the same candidates.

use crate::allocate::candidates::{Candidate, Candidates, Passed};
use crate::allocate::choosing::Choosing;
use crate::allocate::pick::{Evaluated, Evaluation};
use crate::allocate::selectors::Requester;
use crate::command::{Cause, Refusal};
use crate::state::id::AllocationId;
use crate::value::cause::{RejectReason, Rule, Unserved};
use ipam_api::Family;
use ipam_api::name::InterfaceName;
use std::collections::VecDeque;

/// Candidates of one family in progress: the evaluated and the remaining ones.
pub(crate) struct Course<'a> {
    pub(crate) family: Family,
    pub(crate) rule: Rule,
    /// Candidates evaluated ahead of their turn. The first may be the last one used, since it may have more
    /// addresses.
    pub(crate) ahead: VecDeque<Candidate<'a>>,
    pub(crate) candidates: Candidates<'a>,
    /// Rejected candidates, each with its reason.
    pub(super) passed: Vec<Passed<'a>>,
    /// Milliseconds of log time until the first cooling in these pools ends.
    pub(crate) next_free_ms: Option<u64>,
}

impl<'a> Course<'a> {
    pub(super) fn of(
        family: Family,
        rule: Rule,
        candidates: Candidates<'a>,
        misnamed: Vec<Candidate<'a>>,
    ) -> Self {
        let passed = misnamed.into_iter().map(|candidate| (candidate, RejectReason::OtherFamily)).collect();
        Self { family, rule, ahead: VecDeque::new(), candidates, passed, next_free_ms: None }
    }

    pub(crate) fn next(&mut self) -> Option<Candidate<'a>> {
        self.ahead.pop_front().or_else(|| self.candidates.next())
    }

    /// Returns the rejected candidates with their evaluation.
    pub(crate) fn evaluated_before(&self) -> impl Iterator<Item = Evaluated<'a>> {
        self.passed.iter().map(|(candidate, why)| match why {
            RejectReason::Exhausted => (*candidate, Evaluation::Exhausted { next_free_ms: None }),
            why => (*candidate, Evaluation::Rejected(*why)),
        })
    }

    /// Returns up to `count` of the next candidates without consuming them.
    pub(crate) fn peek(&mut self, count: usize) -> impl Iterator<Item = Candidate<'a>> + use<'_, 'a> {
        let missing = count.saturating_sub(self.ahead.len());
        self.ahead.extend(self.candidates.by_ref().take(missing));
        self.ahead.iter().take(count).copied()
    }

    /// Takes all remaining candidates.
    pub(crate) fn rest(&mut self) -> Candidates<'a> {
        let candidates = std::mem::replace(&mut self.candidates, Box::new(std::iter::empty()));
        Box::new(std::mem::take(&mut self.ahead).into_iter().chain(candidates))
    }
}

/// Courses of the interfaces of one request. A candidate that is rejected for one interface is rejected for
/// all equal ones, so each is evaluated once.
#[derive(Default)]
pub(crate) struct Courses<'a>(Vec<(Requester<'a>, Vec<Course<'a>>)>);

impl<'a> Courses<'a> {
    /// Keeps the courses of an interface for the next equal one. A search for a requested address consumes
    /// the whole course, so such a course isn't kept.
    pub(crate) fn keep(&mut self, requester: Requester<'a>, courses: Vec<Course<'a>>) {
        if requester.interface.addresses.is_empty() {
            self.0.push((requester, courses));
        }
    }

    /// Removes and returns the courses of an equal interface, if any.
    fn take(&mut self, requester: &Requester<'_>) -> Option<Vec<Course<'a>>> {
        let place = self.0.iter().position(|(other, _)| other.is_like(requester))?;
        Some(self.0.swap_remove(place).1)
    }
}

impl<'a> Choosing<'a> {
    /// Remaining candidates of each family for an interface, after those of an equal one.
    pub(crate) fn courses_for(
        self,
        requester: &Requester<'a>,
        portable: &[AllocationId],
        courses: &mut Courses<'a>,
    ) -> Result<Vec<Course<'a>>, Refusal> {
        // Only a search for any address of any pool continues where another one stopped.
        let is_plain =
            portable.is_empty() && requester.interface.addresses.is_empty() && !requester.has_own_pools();
        match is_plain.then(|| courses.take(requester)).flatten() {
            Some(courses) => Ok(courses),
            None => self.candidates(requester),
        }
    }

    /// Refusal when all candidates are rejected.
    pub(super) fn unserved_by(self, interface: &InterfaceName, course: &Course<'_>) -> Refusal {
        let is_exhausted = |(_, why): &Passed<'_>| *why == RejectReason::Exhausted;
        let (mut passed, rejected): (Vec<_>, Vec<_>) = course.passed.iter().copied().partition(is_exhausted);
        let Some((first, _)) = passed.first().copied() else {
            return self.nothing_fits(interface, course.family, &rejected);
        };
        if let Some(refusal) = self.stunted(first, course.family) {
            return refusal;
        }
        passed.extend(rejected);
        let next_free_ms = course.next_free_ms;
        let unserved = Unserved { next_free_ms, ..self.unserved(interface, course.family, &passed) };
        Cause::Exhausted { unserved, is_automatic: first.pool.automatic.is_some() }.into()
    }
}
