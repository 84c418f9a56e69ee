//! The daemon: the loop around the core, and nothing clever beside it.
//!
//! [`run`] takes the home's kernel lock, opens the store, looks at what is there, and serves the API socket
//! until it is told to go down. Everything that it knows it would know again after kill -9.
//!
//! - [`run`] is `pinfold up`, [`run_alone`] is `pinfold run`: the same loop, with one session and no socket;
//! - [`config`], [`preset`] and [`values`] are what sessions are told to be; [`objects`] shows locks;
//! - [`memory`] measures runs; [`offline_audit`] is what verbs write down where no daemon listens.
//!
//! # Theory of operation
//!
//! **One thread decides.** The loop (`engine/`) owns every session and takes one `Input` after the other from one
//! queue: what people ask, what shims say, what became durable, a deadline that has passed. The same thread serves
//! HTTP, in tasks beside the loop. Nothing on it waits: what may block is behind a port (`ports/`) on a thread of a
//! small pool, and its outcome comes back as an input. Threads of their own have the store (it writes), the memory
//! of runs (it measures), a look at the whole database after the start, and each wait for a lock that another
//! process holds. Agents run below shims, one small process for each live session, which a third process forks, the
//! nursery. So a daemon has no agent among its children.
//!
//! **From event to effect.** `take` turns an input into an event of one session; `happened` asks the core, which
//! answers with changes, actions and a reason. If a change has to last, it goes to the store as one batch with its
//! events (`effect.rs`), and the decision waits in line, session by session. When the store says that the batch is
//! durable, the line moves on: clients that wait are told, the shim hears that its record may be forgotten, and the
//! actions are performed (`act/`): locks are taken, a shim is started, a message is sent to one. What comes of them
//! is the next input. So nothing follows from a decision that a crash could take back. One effect is given by the
//! store's own thread the moment the batch is durable: the order to run again under a shim that stands, because a
//! restart is what people wait for. While the store cannot be written, a stop acts first and is noted in a file
//! (`health.rs`, `stops.rs`): an agent that has to end does not wait for a full disk.
//!
//! **An agent with a protocol** has a tape, which its shim writes and the loop reads through a port, a stretch at a time
//! (`fold.rs`). What a stretch means is decided event by event and stored in one batch, with the cursor of the fold. What
//! nothing came of is stored with the next batch, or by a sweep once a second. Words to the agent carry a number, and only
//! the one that follows the last is written, so nothing is said twice, whoever dies (`speak.rs`).
//!
//! **A request** comes through `http/`: the gate knows who asks, the handler reads through a `View`, which changes
//! nothing, or tells a session an event, or sends a command that has a name. Then it waits, for the reply to that
//! input or for the session's `Snapshot`. A client that goes takes its waits along: a consumer, a hold and a wait
//! for a lock end when they are dropped.
//!
//! **What survives which death.**
//!
//! | who dies | what goes on | what the next one does |
//! |---|---|---|
//! | a client | its message, its session: both were durable before it heard of them | counts a consumer less |
//! | the daemon | agents, shims, locks, output, exit records, the ends of turns | loads the store, finds each shim by its socket and its lock, and adopts its run |
//! | a shim | the record of an end, if it came so far, and the log | ends what is left of the tree, proves it by the lock, then judges the end |
//! | the nursery | its shims | starts another |
//! | the machine | the store, to the last commit | starts what is to run always, delivers again what has no answer |
//!
//! **Recovery is a start.** There is no other way back (`recover.rs`): load every session, look for each one's
//! shim, exit records and lock, eight at a time, and send the core `DaemonStarted` with what was seen. What comes
//! for a session before that waits; so does every request, because what is stored is not shown as what is. Only
//! `ping` answers. Every daemon has a generation, durable before any shim hears of it: a shim refuses an older one
//! than it has seen.
//!
//! **Gaps.** The queue of the loop is not bounded; connections and bodies are. Reads of the loop are synchronous,
//! each of a few rows by their key. An agent that left its run's control group, or had none, and cleared its
//! environment is not found after its shim was killed.
//!
//! **Where to begin reading.** `engine/mod.rs` (`take`, `happened`), then `engine/effect.rs`, then `engine/act/`.
//! From the outside: `life/mod.rs` for a daemon's life, `http/routes.rs` for an address. `engine/simulation` runs
//! the loop in virtual time: what it does there when things die is told in a few lines. ARCHITECTURE.md has the
//! rooms and who may call whom.
#![deny(unsafe_code)]

mod caller;
mod clock;
pub mod crash;
mod define;
mod engine;
mod error_chain;
mod foreground;
mod http;
mod indexing;
mod life;
mod log;
pub mod memory;
mod metrics;
pub mod objects;
pub mod offline_audit;
mod output;
mod ports;
mod show;

pub use define::home::Home;
pub use define::variables::is_harmless;
pub use define::{config, declared, preset, values};
pub use foreground::{Options as AloneOptions, RunError, run as run_alone};
pub use life::{Options, StartError, run};
pub use ports::locks::BY_DAEMON;
