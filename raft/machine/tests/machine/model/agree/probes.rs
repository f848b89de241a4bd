//! Comparison of checks, quarantines and neighbors.

use ipam_machine::State;
use ipam_machine::command::Kind;

use super::id;
use crate::model::naive::Model;

pub(super) fn agree(state: &State, model: &Model) {
    let place =
        |network, pool| (id(state, Kind::Network, network).into(), id(state, Kind::Pool, pool).into());
    let rows = state.checks.iter().map(|(_, row)| ((row.network, row.pool), row.address, row.until_ms));
    let checks = model.checks.iter().map(|one| (place(&one.network, &one.pool), one.address, one.until_ms));
    assert_eq!(rows.collect::<Vec<_>>(), checks.collect::<Vec<_>>(), "checks");
    for (_, row) in state.checks.iter() {
        let space = state.space(row.pool).unwrap();
        assert!(space.free.is_free(ipam_api::address::number(row.address)), "a check of {}", row.address);
    }
    let rows = state.quarantines.iter().map(|(_, row)| {
        let agents = (row.reported_by.clone(), row.confirmed_by.clone());
        ((row.network, row.pool), row.address, row.mac, agents, row.heard_ms)
    });
    let quarantines = model.quarantines.iter().map(|one| {
        let agents = (one.reported_by.clone(), one.confirmed_by.clone());
        (place(&one.network, &one.pool), one.address, one.mac, agents, one.heard_ms)
    });
    assert_eq!(rows.collect::<Vec<_>>(), quarantines.collect::<Vec<_>>(), "quarantines");
    for ((own, row), held) in state.allocations.iter().zip(&model.held) {
        assert_eq!((row.checked, &row.mac), (held.checked, &held.mac), "{}", row.address);
        let neighbor = state.neighbors.get(own);
        assert_eq!(neighbor.is_some(), held.neighbor.is_some(), "neighbor of {}", row.address);
        let Some((neighbor, seen)) = neighbor.zip(held.neighbor.as_ref()) else { continue };
        assert_eq!(neighbor.pool, row.pool);
        let noted = neighbor.other.map(|other| (other, neighbor.other_ms));
        assert_eq!((neighbor.mac, noted), (seen.mac, seen.other), "stations of {}", row.address);
        assert_eq!(neighbor.heard_by, seen.heard_by, "witnesses of {}", row.address);
        let silence = neighbor.silence.iter().map(|one| (one.node.clone(), one.rounds, one.last_ms));
        assert_eq!(silence.collect::<Vec<_>>(), seen.silence, "silence of {}", row.address);
        let is_of_this = model.tie_of(held) == seen.tie;
        assert_eq!(neighbor.attachment == row.attachment, is_of_this, "neighbor of {}", row.address);
        assert_eq!(state.collisions_of(row.pool).any(|one| one == own), seen.other.is_some());
    }
    assert_eq!(state.neighbors.len(), model.held.iter().filter(|one| one.neighbor.is_some()).count());
}
