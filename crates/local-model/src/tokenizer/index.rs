//! Owns finding a string among many that lie in the mapped file, without copying them.
//! Knows no tokens. Invariant: of equal strings the first is found.

use std::ops::Range;

/// A hash table from strings to their numbers; the strings stay where they are.
pub(super) struct Index {
    /// Number plus one, or zero for an empty place. The length is a power of two, at most half full.
    slots: Vec<u32>,
}

impl Index {
    pub(super) fn new(file: &[u8], strings: &[Range<usize>]) -> Index {
        let mut index = Index { slots: vec![0; (strings.len() * 2).next_power_of_two()] };
        for (number, range) in strings.iter().enumerate() {
            let string = &file[range.clone()];
            let mut slot = index.slot(hash(&[string]));
            loop {
                match index.slots[slot] {
                    0 => break index.slots[slot] = number as u32 + 1,
                    taken if &file[strings[taken as usize - 1].clone()] == string => break,
                    _ => slot = (slot + 1) & (index.slots.len() - 1),
                }
            }
        }
        index
    }

    /// The number of the string that is the `parts` in a row.
    pub(super) fn find(&self, file: &[u8], strings: &[Range<usize>], parts: &[&[u8]]) -> Option<u32> {
        let mut slot = self.slot(hash(parts));
        loop {
            let number = self.slots[slot].checked_sub(1)?;
            if equal(&file[strings[number as usize].clone()], parts) {
                return Some(number);
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    fn slot(&self, hash: u64) -> usize {
        (hash >> 32) as usize & (self.slots.len() - 1)
    }
}

fn hash(parts: &[&[u8]]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for byte in parts.iter().copied().flatten() {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    }
    hash.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn equal(string: &[u8], parts: &[&[u8]]) -> bool {
    let mut rest = string;
    for part in parts {
        match rest.strip_prefix(*part) {
            Some(after) => rest = after,
            None => return false,
        }
    }
    rest.is_empty()
}
