//! The database and the files around it, damaged, removed and replaced: nothing is lost in silence.

mod end;
