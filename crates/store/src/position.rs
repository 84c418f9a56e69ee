//! How far a store is, which is compared to see whether something was lost.

/// How far a store is. A later position is greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct StorePosition {
    /// The generation of the daemon that wrote last.
    pub generation: u64,
    /// The number of its newest event.
    pub seq: u64,
    /// How many groups without an event were written.
    pub steps: u64,
    /// The checksum of its newest event, which says nothing about earlier or later. 0 if rows have none.
    pub sum: i64,
}

impl StorePosition {
    /// Whether something that `noted` saw is missing.
    #[must_use]
    pub fn is_behind(&self, noted: &StorePosition) -> bool {
        self.generation < noted.generation || self.seq < noted.seq || self.steps < noted.steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_behind_when_any_part_of_it_is() {
        let at = |seq| StorePosition { generation: 2, seq, steps: 3, sum: -7 };
        let now = at(5);
        assert!(!now.is_behind(&at(5)) && !at(6).is_behind(&now));
        assert!(at(4).is_behind(&now));
        assert!(StorePosition { generation: 1, ..now }.is_behind(&now));
        assert!(StorePosition { steps: 2, ..at(5) }.is_behind(&now));
    }
}
