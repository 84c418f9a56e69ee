//! Files of a home that are damaged, removed, replaced or too many for the disk: nothing acknowledged is lost in silence.

mod end;
mod flips;
