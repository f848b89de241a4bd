//! Courses: the candidates of interfaces on their way, judged once for all interfaces of a request that are alike.

use std::collections::VecDeque;

use ipam_api::Family;
use ipam_api::name::InterfaceName;

use super::candidates::{Candidate, Candidates, Choice, Fallen, Rule};
use super::command::cause::{Unserved, WhyNot};
use super::command::{Cause, InterfaceWish, Refusal};
use super::pick::{Judged, Judgement};
use super::state::State;
use super::takers::Taker;
use super::work::Search;

/// The candidates of one family on their way: those that were judged, and those that are left.
pub(super) struct Course<'a> {
    pub(super) family: Family,
    pub(super) rule: Rule,
    /// Those that were looked at ahead of their turn; the first may be the one that gave last, since it may have more.
    pub(super) ahead: VecDeque<Candidate<'a>>,
    pub(super) candidates: Candidates<'a>,
    /// Those before them, and why they gave nothing; without a reason, since nothing was left.
    pub(super) passed: Vec<(Candidate<'a>, Option<WhyNot>)>,
    /// In how many milliseconds of log time the first address of these has rested.
    pub(super) next_free_ms: Option<u64>,
}

impl<'a> Course<'a> {
    fn of(choice: Choice<'a>) -> Self {
        let Choice { family, rule, candidates } = choice;
        Self { family, rule, ahead: VecDeque::new(), candidates, passed: Vec::new(), next_free_ms: None }
    }

    pub(super) fn next(&mut self) -> Option<Candidate<'a>> {
        self.ahead.pop_front().or_else(|| self.candidates.next())
    }

    /// The candidates that gave nothing, with the reason.
    pub(super) fn judged_before(&self) -> impl Iterator<Item = Judged<'a>> {
        self.passed.iter().map(|(candidate, why)| Judged {
            candidate: *candidate,
            judgement: why.map_or(Judgement::Exhausted { next_free_ms: None }, Judgement::Falls),
        })
    }

    /// The next candidates, as many as are asked for or as there are. They stay where they are.
    pub(super) fn peek(&mut self, count: usize) -> impl Iterator<Item = Candidate<'a>> + use<'_, 'a> {
        let missing = count.saturating_sub(self.ahead.len());
        self.ahead.extend(self.candidates.by_ref().take(missing));
        self.ahead.iter().take(count).copied()
    }

    /// All candidates that are left.
    pub(super) fn rest(&mut self) -> Candidates<'a> {
        let candidates = std::mem::replace(&mut self.candidates, Box::new(std::iter::empty()));
        Box::new(std::mem::take(&mut self.ahead).into_iter().chain(candidates))
    }
}

/// Courses of the interfaces of one request. What gave nothing to one interface gives nothing to the next one that is
/// like it, so each candidate is judged once for all of them.
#[derive(Default)]
pub(super) struct Courses<'a>(Vec<(&'a InterfaceWish, Taker<'a>, Vec<Course<'a>>)>);

impl<'a> Courses<'a> {
    /// Keeps the courses of an interface for the next one that is like it.
    pub(super) fn keep(&mut self, wish: &'a InterfaceWish, taker: Taker<'a>, courses: Vec<Course<'a>>) {
        self.0.push((wish, taker, courses));
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
    pub(super) fn courses_for<'a>(
        &'a self,
        wish: &InterfaceWish,
        taker: &Taker<'a>,
        portable: &[u64],
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
    pub(super) fn unserved_by(&self, interface: &InterfaceName, course: &Course<'_>) -> Refusal {
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
