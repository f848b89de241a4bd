//! What becomes of automatic pools when their application is scaled, and when it ends.

use crate::apply::step::Step;
use crate::command::{Answer, EndController, Grant, Refusal, ScaleController};
use crate::state::State;
use crate::state::id::PoolId;
use crate::state::key::{Application, ControllerKey};
use crate::state::row::{Automatic, AutomaticStanding};
use ipam_api::RangeSet;

impl Step<'_> {
    /// A controller says how many endpoints it wants: its pools that follow that number do.
    pub(crate) fn scale_pools(&mut self, scale: &ScaleController) {
        for id in self.state.pools_touched_by(scale) {
            let Some(pool) = self.state.pools.get(id) else { continue };
            let Some(old) = pool.automatic.as_deref() else { continue };
            if pool.intention.terminating || old.standing != AutomaticStanding::Present {
                continue;
            }
            let automatic = Automatic { replicas: scale.replicas, ..old.clone() };
            let Some(space) = self.state.space(id) else { continue };
            let planned = RangeSet::empty(space.family);
            let room = self.state.room_for_pools(&old.application(), space.family);
            let more =
                self.state.growth(pool, (space.usable(), automatic.wanted()), &planned, room, self.work);
            let reclaim = pool.intention.reclaim.unwrap_or(true);
            // A pool that gets more has none too many.
            let less = self.state.too_many(id, automatic.wanted(), self.work);
            self.use_pool(id, automatic, reclaim, (&more, &less));
        }
    }

    /// A controller is gone: what its endpoints keep is free, and its pools go once they are empty, or are kept for
    /// one that comes after it.
    pub(crate) fn end_controller(&mut self, end: &EndController) -> Answer {
        let scale = end.to_none();
        let addresses = self.release_unwanted(&scale);
        for id in self.state.pools_touched_by(&scale) {
            let Some(pool) = self.state.pools.get(id).cloned() else { continue };
            let Some(automatic) = pool.automatic.as_deref() else { continue };
            if pool.intention.terminating {
                continue;
            }
            if pool.intention.reclaim.unwrap_or(true) {
                self.leave_pool(id, AutomaticStanding::Ended);
                continue;
            }
            let mut kept = Automatic { standing: AutomaticStanding::Ended, ..automatic.clone() };
            kept.controller.uid = None;
            self.rewrite(id, &pool, pool.intention.clone(), kept, false);
        }
        Answer::released(addresses)
    }
}

impl State {
    /// The pools of a controller, in the incarnation that is spoken of.
    pub(crate) fn pools_touched_by(&self, scale: &ScaleController) -> Vec<PoolId> {
        let ScaleController { realm, namespace, controller, .. } = scale;
        let key: ControllerKey = Application { realm, namespace, controller }.key();
        let same = self.pools_of_application(&key);
        let same = same.filter(|(_, _, automatic)| automatic.controller.may_be(controller));
        same.map(|(id, ..)| id).collect()
    }

    /// Refuses to scale or end what has pools without the labels that the rights demand.
    pub(crate) fn permit_pools_of(&self, grant: &Grant, scale: &ScaleController) -> Result<(), Refusal> {
        self.pools_touched_by(scale).into_iter().try_for_each(|id| self.permit_pool(grant, id))
    }
}
