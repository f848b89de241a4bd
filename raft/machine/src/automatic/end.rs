//! Automatic pools of an application that is scaled or ends.

use crate::apply::step::Step;
use crate::command::ScaleController;
use crate::state::row::{Automatic, AutomaticStanding};
use ipam_api::RangeSet;

impl Step<'_> {
    /// Adapts a controller's flexible pools to its number of replicas.
    pub(crate) fn scale_pools(&mut self, scale: &ScaleController) {
        for id in self.state.pools_touched_by(scale) {
            let pool = self.state.pools.named(id);
            let Some(old) = pool.automatic.as_deref() else { continue };
            if pool.spec.terminating || old.standing != AutomaticStanding::Present {
                continue;
            }
            let automatic = Automatic { replicas: scale.replicas, ..old.clone() };
            let space = self.state.space_of(id);
            let planned = RangeSet::empty(space.family);
            let room = self.state.room_for_pools(&old.application(), space.family);
            let more =
                self.state.growth(pool, (space.usable(), automatic.wanted()), &planned, room, self.work);
            let reclaim = pool.spec.reclaim.unwrap_or(true);
            // A pool that grows has no surplus addresses.
            let less = self.state.too_many(id, automatic.wanted(), self.work);
            self.use_pool(id, automatic, reclaim, (&more, &less));
        }
    }

    /// Ends the pools of an ended controller, or keeps them for a successor.
    pub(crate) fn end_pools(&mut self, scale: &ScaleController) {
        for id in self.state.pools_touched_by(scale) {
            let mut pool = self.state.pools.named(id).clone();
            let Some(automatic) = pool.automatic.as_deref_mut() else { continue };
            if pool.spec.terminating {
                continue;
            }
            if pool.spec.reclaim.unwrap_or(true) {
                self.leave_pool(id, AutomaticStanding::Ended);
                continue;
            }
            (automatic.standing, automatic.controller.uid) = (AutomaticStanding::Ended, None);
            self.rewrite_if_otherwise(id, pool, false);
        }
    }
}
