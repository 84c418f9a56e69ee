//! The id under which Claude Code knows a delivery.
//!
//! It follows only from the message and the delivery's number, so a fold finds it again whichever daemon said
//! it. It must never change: an agent that an older daemon spoke to still names the old ids.

use crate::turn::Delivery;

/// Returns the id of a delivery: a UUID of version 8, whose bits the maker chooses.
pub(crate) fn of(delivery: Delivery) -> String {
    let (high, low) = halves(delivery.message.0);
    let first = mixed(high ^ mixed(low ^ mixed(delivery.delivery)));
    let second = mixed(low ^ mixed(high ^ mixed(first)));
    let first = first & !0xF000 | 0x8000;
    let second = second & !(3 << 62) | 1 << 63;
    let tail = second & 0xFFFF_FFFF_FFFF;
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{tail:012x}",
        first >> 32,
        first >> 16 & 0xFFFF,
        first & 0xFFFF,
        second >> 48
    )
}

fn halves(id: u128) -> (u64, u64) {
    let low = u128::from(u64::MAX);
    (u64::try_from(id >> 64 & low).unwrap_or_default(), u64::try_from(id & low).unwrap_or_default())
}

/// One step of splitmix64: a bijection that maps nearby numbers far apart.
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let number = (number ^ number >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ number >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ number >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinfold_core::MessageId;
    use std::collections::BTreeSet;

    fn id(message: u128, delivery: u64) -> String {
        of(Delivery { message: MessageId(message), delivery })
    }

    #[test]
    fn the_id_of_a_delivery_is_the_same_for_ever() {
        let rows = [
            (1, 1, "5775264a-9a7e-8b09-8359-f24f3b94d42c"),
            (2, 2, "f88ed945-105f-8739-980b-fb928438beef"),
            (u128::MAX, u64::MAX, "595b17f4-87c0-871b-b167-4b12cd39ab89"),
        ];
        for (message, delivery, expected) in rows {
            assert_eq!(id(message, delivery), expected);
        }
    }

    #[test]
    fn no_two_deliveries_have_the_same_id() {
        let near = (0..100).flat_map(|message| (0..100).map(move |delivery| (message, delivery)));
        let ids: BTreeSet<String> = near.map(|(message, delivery)| id(message << 64, delivery)).collect();
        assert_eq!(ids.len(), 10_000);
        assert!(ids.iter().all(|id| id.len() == 36 && id.as_bytes()[14] == b'8'));
    }
}
