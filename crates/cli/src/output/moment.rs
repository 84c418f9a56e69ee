//! Moments in tables.

/// A moment of an object for people: to the second, without what every one of them has.
pub(crate) fn moment(text: &str) -> String {
    text.get(..19).unwrap_or(text).replace('T', " ")
}
