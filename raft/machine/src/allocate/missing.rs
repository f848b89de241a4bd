//! Missing resources of a refused request: pools and quotas that could serve it later.

use crate::allocate::candidates::Passed;
use crate::allocate::choosing::Choosing;
use crate::allocate::course::{Course, Courses};
use crate::allocate::pick::{Claimed, Pick};
use crate::state::id::PoolId;
use crate::state::row::WaitTarget;
use ipam_api::Code;
use ipam_api::limits::WAITING_POOLS_MAX;

impl<'a> Choosing<'a> {
    /// Resources that a refused request waits for. They are the exhausted pools of the first family with the
    /// number of addresses needed in each, or what a quota lacks; none if nothing could ever help.
    pub(super) fn missing(self) -> Vec<(WaitTarget, u32)> {
        let missing = self.missing_of_pools();
        // A search cut short by the work budget gives no complete list.
        if self.work.is_exceeded() { Vec::new() } else { missing }
    }

    fn missing_of_pools(self) -> Vec<(WaitTarget, u32)> {
        let mut picks: Vec<Pick> = Vec::new();
        let mut courses = Courses::default();
        for interface in &self.request.interfaces {
            let requester = self.requester(interface);
            let Ok(mut all) = self.courses_for(&requester, &[], &mut courses) else { return Vec::new() };
            for course in &mut all {
                // No address is requested by value.
                let claimed = Claimed { picked: &picks, asked: &[], place: 0 };
                match self.pick_any(course, &requester, claimed) {
                    Some(pick) => picks.push(pick),
                    None => return lacking(course, &picks),
                }
            }
            courses.keep(requester, all);
        }
        self.missing_of_quota(&picks)
    }

    /// Returns true if the endpoint already holds addresses on one of the requested interfaces.
    pub(super) fn holds_some(self) -> bool {
        self.request.interfaces.iter().any(|interface| !self.portable(interface).is_empty())
    }
}

/// Exhausted pools of a course that may have addresses later. Each comes with the number of addresses that a
/// request with these picks needs.
fn lacking(course: &Course<'_>, picks: &[Pick]) -> Vec<(WaitTarget, u32)> {
    let may_come = |(_, why): &&Passed<'_>| {
        matches!(
            why.code(),
            Code::PoolExhausted | Code::PoolDisabled | Code::Terminating | Code::EpochUnconfirmed
        )
    };
    let waits = course.passed.iter().filter(may_come).take(WAITING_POOLS_MAX);
    let need = |pool: PoolId| {
        let taken = picks.iter().filter(|pick| pick.pool == pool).count();
        u32::try_from(taken + 1).unwrap_or(u32::MAX)
    };
    waits.map(|(candidate, _)| (WaitTarget::Pool(candidate.id), need(candidate.id))).collect()
}
