//! Random numbers: from the seed of a simulation, or from the system.

use uuid::Uuid;

/// The next random number of this thread's simulation (SplitMix64).
#[cfg(any(test, feature = "testing"))]
pub(super) fn random() -> Option<u64> {
    let mut simulation = super::present()?;
    simulation.seed = simulation.seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    super::enter(simulation);
    let mut number = simulation.seed;
    number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    Some(number ^ (number >> 31))
}

#[cfg(not(any(test, feature = "testing")))]
const fn random() -> Option<u64> {
    None
}

/// A new id that begins with the time (UUIDv7); in a simulation, one of its random numbers.
pub fn new_id() -> Uuid {
    if super::present().is_some() { random_id() } else { Uuid::now_v7() }
}

/// A random id, and the source of randomness of members.
pub(crate) fn random_id() -> Uuid {
    match (random(), random()) {
        (Some(high), Some(low)) => Uuid::from_u64_pair(high, low),
        _ => Uuid::new_v4(),
    }
}
