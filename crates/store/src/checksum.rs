//! The checksum that facts and index rows carry: XXH64, chained over the parts of a row.
//!
//! It finds damage of the disk and of copies, not a person who changes the file on purpose. Invariant: a released build
//! never computes another value for the same parts.

const PRIMES: [u64; 5] = [
    0x9e37_79b1_85eb_ca87,
    0xc2b2_ae3d_27d4_eb4f,
    0x1656_67b1_9e37_79f9,
    0x85eb_ca77_c2b2_ae63,
    0x27d4_eb2f_1656_67c5,
];

/// The checksum of a fact. `place` names its chat and its number, so that a fact in the wrong place is found out.
pub fn of_fact(place: &[u8], at: u64, kind: &str, body: &str) -> i64 {
    of_parts([place, &at.to_le_bytes(), kind.as_bytes(), body.as_bytes()])
}

/// The checksum of each part begins with that of the part before, so text that moves between parts changes it.
pub(crate) fn of_parts<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> i64 {
    let sum = parts.into_iter().fold(0, |seed, part| xxh64(part, seed));
    i64::from_le_bytes(sum.to_le_bytes())
}

/// By its published specification.
fn xxh64(bytes: &[u8], seed: u64) -> u64 {
    let [first, second, third, fourth, fifth] = PRIMES;
    let (blocks, rest) = bytes.as_chunks::<32>();
    let mut hash = if blocks.is_empty() {
        seed.wrapping_add(fifth)
    } else {
        let mut lanes = [
            seed.wrapping_add(first).wrapping_add(second),
            seed.wrapping_add(second),
            seed,
            seed.wrapping_sub(first),
        ];
        for block in blocks {
            for (lane, word) in lanes.iter_mut().zip(block.as_chunks::<8>().0) {
                *lane = round(*lane, u64::from_le_bytes(*word));
            }
        }
        let turns = [1, 7, 12, 18];
        let joined =
            lanes.iter().zip(turns).fold(0_u64, |sum, (lane, turn)| sum.wrapping_add(lane.rotate_left(turn)));
        lanes
            .iter()
            .fold(joined, |hash, lane| (hash ^ round(0, *lane)).wrapping_mul(first).wrapping_add(fourth))
    };
    hash = hash.wrapping_add(bytes.len() as u64);
    let (words, rest) = rest.as_chunks::<8>();
    for word in words {
        hash ^= round(0, u64::from_le_bytes(*word));
        hash = hash.rotate_left(27).wrapping_mul(first).wrapping_add(fourth);
    }
    let (halves, rest) = rest.as_chunks::<4>();
    for half in halves {
        hash ^= u64::from(u32::from_le_bytes(*half)).wrapping_mul(first);
        hash = hash.rotate_left(23).wrapping_mul(second).wrapping_add(third);
    }
    for byte in rest {
        hash ^= u64::from(*byte).wrapping_mul(fifth);
        hash = hash.rotate_left(11).wrapping_mul(first);
    }
    hash = (hash ^ hash >> 33).wrapping_mul(second);
    hash = (hash ^ hash >> 29).wrapping_mul(third);
    hash ^ hash >> 32
}

fn round(lane: u64, word: u64) -> u64 {
    lane.wrapping_add(word.wrapping_mul(PRIMES[1])).rotate_left(31).wrapping_mul(PRIMES[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_published_algorithm() {
        for (text, expected) in [
            ("", 0xef46_db37_51d8_e999),
            ("a", 0xd24e_c4f1_a98c_6e5b),
            ("abc", 0x44bc_2cf5_ad77_0999),
            ("Call me Ishmael. Some years ago--never mind how long precisely-", 0x02a2_e854_70d6_fd96),
        ] {
            assert_eq!(xxh64(text.as_bytes(), 0), expected, "{text}");
        }
    }

    #[test]
    fn text_that_moves_between_parts_changes_it() {
        assert_ne!(of_fact(b"1", 2, "ab", "c"), of_fact(b"1", 2, "a", "bc"));
        assert_ne!(of_fact(b"1", 2, "a", "b"), of_fact(b"2", 2, "a", "b"));
        assert_ne!(of_fact(b"1", 2, "a", "b"), of_fact(b"1", 3, "a", "b"));
    }
}
