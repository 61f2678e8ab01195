//! The place of a fact: its primary key, made of the key of its chat and its number.

use domain::Failure;

use crate::error::StoreError;

pub(crate) const MOST_FACTS: u64 = u32::MAX as u64;

/// A fact's primary key: the chat's key and the fact's number in one integer.
pub(crate) fn fact_key(key: i64, number: u64) -> Result<i64, StoreError> {
    match i64::try_from(number) {
        Ok(low) if number <= MOST_FACTS => Ok(key << 32 | low),
        _ => Err(Failure::user("This chat is full.").hint("Fork it or start a new one.").into()),
    }
}

/// The chat and the number in it that a place names.
pub(crate) fn split(place: i64) -> (i64, u64) {
    (place >> 32, place.cast_unsigned() & MOST_FACTS)
}
