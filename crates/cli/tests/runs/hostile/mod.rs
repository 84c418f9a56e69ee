//! The program as an enemy of reliability would try it: peers that do not answer, directories that vanish,
//! processes that cannot be ended, records of runs that are long gone. `./test hostile` runs these.

mod bounds;
mod edges;
mod holders;
mod messages;
mod mute;
mod old_shims;
mod peers;
mod reach;
mod reasons;
mod several;
mod store;
mod tapes;
mod text;
mod versions;
