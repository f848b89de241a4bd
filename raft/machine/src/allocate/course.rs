//! Courses: the candidates of interfaces on their way, judged once for all interfaces of a request that are alike.

use crate::allocate::candidates::{Candidate, Candidates, Choice, Fallen};
use crate::allocate::pick::{Judged, Judgement};
use crate::allocate::selectors::Taker;
use crate::apply::work::Search;
use crate::command::{Cause, InterfaceWish, Refusal};
use crate::state::State;
use crate::state::id::AllocationId;
use crate::value::cause::{Rule, Unserved, WhyNot};
use ipam_api::Family;
use ipam_api::name::InterfaceName;
use std::collections::VecDeque;

/// The candidates of one family on their way: those that were judged, and those that are left.
pub(crate) struct Course<'a> {
    pub(crate) family: Family,
    pub(crate) rule: Rule,
    /// Those that were looked at ahead of their turn; the first may be the one that gave last, since it may have more.
    pub(crate) ahead: VecDeque<Candidate<'a>>,
    pub(crate) candidates: Candidates<'a>,
    /// Those before them, and why they gave nothing; without a reason, since nothing was left.
    pub(crate) passed: Vec<(Candidate<'a>, Option<WhyNot>)>,
    /// In how many milliseconds of log time the first address of these has rested.
    pub(crate) next_free_ms: Option<u64>,
}

impl<'a> Course<'a> {
    fn of(choice: Choice<'a>) -> Self {
        let Choice { family, rule, candidates, misnamed } = choice;
        let passed = misnamed.into_iter().map(|candidate| (candidate, Some(WhyNot::OtherFamily))).collect();
        Self { family, rule, ahead: VecDeque::new(), candidates, passed, next_free_ms: None }
    }

    pub(crate) fn next(&mut self) -> Option<Candidate<'a>> {
        self.ahead.pop_front().or_else(|| self.candidates.next())
    }

    /// The candidates that gave nothing, with the reason.
    pub(crate) fn judged_before(&self) -> impl Iterator<Item = Judged<'a>> {
        self.passed.iter().map(|(candidate, why)| Judged {
            candidate: *candidate,
            judgement: why.map_or(Judgement::Exhausted { next_free_ms: None }, Judgement::Falls),
        })
    }

    /// The next candidates, as many as are asked for or as there are. They stay where they are.
    pub(crate) fn peek(&mut self, count: usize) -> impl Iterator<Item = Candidate<'a>> + use<'_, 'a> {
        let missing = count.saturating_sub(self.ahead.len());
        self.ahead.extend(self.candidates.by_ref().take(missing));
        self.ahead.iter().take(count).copied()
    }

    /// All candidates that are left.
    pub(crate) fn rest(&mut self) -> Candidates<'a> {
        let candidates = std::mem::replace(&mut self.candidates, Box::new(std::iter::empty()));
        Box::new(std::mem::take(&mut self.ahead).into_iter().chain(candidates))
    }
}

/// Courses of the interfaces of one request. What gave nothing to one interface gives nothing to the next one that is
/// like it, so each candidate is judged once for all of them.
#[derive(Default)]
pub(crate) struct Courses<'a>(Vec<(&'a InterfaceWish, Taker<'a>, Vec<Course<'a>>)>);

impl<'a> Courses<'a> {
    /// Keeps the courses of an interface for the next one that is like it. A requested address is looked up among all
    /// candidates, which leaves nothing of a course.
    pub(crate) fn keep(&mut self, wish: &'a InterfaceWish, taker: Taker<'a>, courses: Vec<Course<'a>>) {
        if wish.addresses.is_empty() {
            self.0.push((wish, taker, courses));
        }
    }

    /// Takes the courses of an interface that is like this one, if there was one.
    fn take(&mut self, wish: &InterfaceWish, taker: &Taker<'_>) -> Option<Vec<Course<'a>>> {
        let is_like = |(other, of, _): &(&InterfaceWish, Taker<'_>, _)| {
            of.is_like(taker)
                && (&other.subnets, &other.pools, &other.default_pools, &other.families)
                    == (&wish.subnets, &wish.pools, &wish.default_pools, &wish.families)
        };
        let place = self.0.iter().position(is_like)?;
        Some(self.0.swap_remove(place).2)
    }
}

impl State {
    /// The candidates of each family of an interface: those that one like it has left, else all of them.
    pub(crate) fn courses_for<'a>(
        &'a self,
        wish: &InterfaceWish,
        taker: &Taker<'a>,
        portable: &[AllocationId],
        search: Search<'a>,
        courses: &mut Courses<'a>,
    ) -> Result<Vec<Course<'a>>, Refusal> {
        // Only what looks for any address of any pool goes on where another one has stopped.
        let is_plain = portable.is_empty() && wish.addresses.is_empty() && !taker.has_own_pools();
        match is_plain.then(|| courses.take(wish, taker)).flatten() {
            Some(courses) => Ok(courses),
            None => Ok(self.candidates(wish, taker, search.work)?.into_iter().map(Course::of).collect()),
        }
    }

    /// The refusal when no candidate gives.
    pub(crate) fn unserved_by(&self, interface: &InterfaceName, course: &Course<'_>) -> Refusal {
        let (mut exhausted, mut fallen) = (Vec::new(), Vec::new());
        for (candidate, why) in &course.passed {
            match why {
                None => exhausted.push(*candidate),
                Some(why) => {
                    fallen.push(Fallen {
                        id: candidate.id,
                        pool: candidate.pool.intention.name.clone(),
                        why: *why,
                    });
                }
            }
        }
        match exhausted.is_empty() {
            true => self.nothing_fits(interface, course.family, &fallen),
            false => self.exhausted(interface, course, &exhausted, &fallen),
        }
    }

    fn exhausted(
        &self,
        interface: &InterfaceName,
        course: &Course<'_>,
        fit: &[Candidate<'_>],
        fallen: &[Fallen],
    ) -> Refusal {
        if let Some(refusal) = self.stunted(fit, course.family) {
            return refusal;
        }
        let unserved = Unserved {
            next_free_ms: course.next_free_ms,
            ..self.unserved(interface, course.family, fit, fallen)
        };
        let is_automatic = fit.first().is_some_and(|candidate| candidate.pool.automatic.is_some());
        Cause::Exhausted { unserved, is_automatic }.into()
    }
}
