//! Reproducible random choices: every test that makes some prints its seed first.

/// Sets the seed, to see again what was seen with it.
const SEED_ENV: &str = "IPAMD_TEST_SEED";

/// Numbers by SplitMix64.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    /// With a seed of its own, or the one in the environment.
    pub(crate) fn new() -> Self {
        let given = std::env::var(SEED_ENV).ok().map(|text| text.parse().expect(SEED_ENV));
        let seed = given.unwrap_or_else(|| uuid::Uuid::new_v4().as_u64_pair().0);
        println!("{SEED_ENV}={seed}");
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From `from` to `to`, the latter excluded.
    pub(crate) fn between(&mut self, from: usize, to: usize) -> usize {
        let width = u64::try_from(to - from).unwrap();
        from + usize::try_from(self.next() % width).unwrap()
    }
}
