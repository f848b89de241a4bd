//! Reproducible random choices.

/// Numbers by SplitMix64.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Number less than `end`; 0 if `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap_or(u64::MAX);
        usize::try_from(self.number().checked_rem(end).unwrap_or_default()).unwrap_or_default()
    }

    /// Up to `count` different numbers below `end`, in random order.
    pub fn some_of(&mut self, end: usize, count: usize) -> Vec<usize> {
        let mut left: Vec<usize> = (0..end).collect();
        (0..count.min(end)).map(|_| left.swap_remove(self.below(left.len()))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_chooses_the_same() {
        let choose = |seed| {
            let mut random = Random::new(seed);
            (random.number(), random.below(1000), random.some_of(5, 3))
        };
        assert_eq!(choose(7), choose(7));
        assert_ne!(choose(7), choose(8));
    }

    #[test]
    fn some_of_them_are_different_ones() {
        let mut random = Random::new(1);
        for _ in 0..100 {
            let mut some = random.some_of(5, 3);
            some.sort_unstable();
            some.dedup();
            assert_eq!(some.len(), 3);
            assert!(some.iter().all(|one| *one < 5));
        }
        assert_eq!(random.some_of(2, 9).len(), 2);
    }
}
