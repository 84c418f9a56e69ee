//! The daemon: the loop around the core, and nothing clever besides.
//!
//! [`run`] takes the home's kernel lock, opens the store, looks at what exists, and serves the API socket
//! until it is told to go down. It would know everything it knows again after kill -9.
//!
//! - [`run`] is `pinfold up`, [`run_alone`] is `pinfold run`: the same loop, with one session and no socket;
//! - [`config`], [`preset`] and [`values`] define sessions; [`objects`] shows locks;
//! - [`memory`] measures runs; [`offline_audit`] is what verbs record when no daemon listens.
//!
//! # Theory of operation
//!
//! **One thread decides.** The loop (`engine/`) owns every session and takes one `Input` after another from one
//! queue: requests, reports of shims, commits that became durable, deadlines that have passed. The same thread serves
//! HTTP, in tasks beside the loop. Nothing on it waits: what may block is behind a port (`ports/`) on a thread of a
//! small pool, and its outcome comes back as an input. There are separate threads for writing the store, measuring the
//! memory of runs, checking the whole database after the start, and for each wait for a lock that another
//! process holds. Agents run below shims, one small process for each live session, forked by a third process, the
//! nursery. So no agent is a child of the daemon.
//!
//! **From event to effect.** `take` turns an input into an event of one session; `happened` asks the core, which
//! answers with changes, actions and a reason. If a change has to last, it goes to the store as one batch with its
//! events (`effect.rs`), and the decision waits in line, session by session. When the store says that the batch is
//! durable, the line moves on: waiting clients are told, the shim hears that its record may be forgotten, and the
//! actions are performed (`act/`): locks are taken, a shim is started, a message is sent to one. Their results
//! are the next inputs. So nothing follows from a decision that a crash could undo. One effect is carried out by
//! the store's own thread as soon as the batch is durable: the order to run again under an existing shim, because
//! people wait for restarts. While the store cannot be written, a stop acts first and is noted in a file
//! (`health.rs`, `stops.rs`): an agent that must end does not wait for a full disk.
//!
//! **An agent with a protocol** has a tape, which its shim writes and the loop reads through a port, a stretch at a time
//! (`fold.rs`). What a stretch means is decided event by event and stored in one batch, with the cursor of the fold. A
//! cursor without consequences is stored with the next batch, or by a sweep once a second. What is said to the agent
//! carries a number, and only the one after the last is written, so nothing is said twice, whichever process dies
//! (`speak.rs`).
//!
//! **A request** comes through `http/`: the gate identifies the caller; the handler reads through a `View`, which
//! changes nothing, or sends a session an event, or sends a named command. Then it waits for the reply to that
//! input or for the session's `Snapshot`. When a client leaves, its waits end too: a consumer, a hold and a wait
//! for a lock end when they are dropped.
//!
//! **What survives the death of what.**
//!
//! | what dies | what goes on | what the next one does |
//! |---|---|---|
//! | a client | its message, its session: both were durable before it heard of them | counts one consumer less |
//! | the daemon | agents, shims, locks, output, exit records, the ends of turns | loads the store, finds each shim by its socket and its lock, and adopts its run |
//! | a shim | the record of the end, if it got that far, and the log | ends what is left of the tree, proves it by the lock, then judges the end |
//! | the nursery | its shims | starts another |
//! | the machine | the store, to the last commit | starts `always` sessions, delivers unanswered messages again |
//!
//! **Recovery is a start.** There is no other way back (`recover.rs`): load every session, look for each one's
//! shim, exit records and lock, eight at a time, and send the core `DaemonStarted` with what was seen. Inputs for a
//! session before that wait; so does every request, because what is stored may no longer be true. Only `ping`
//! answers. Every daemon has a generation, durable before any shim hears of it: a shim refuses one older than it
//! has seen.
//!
//! **Gaps.** The queue of the loop is not bounded; connections and bodies are. Reads of the loop are synchronous,
//! each of a few rows by their key. An agent that left its run's control group, or had none, and cleared its
//! environment is not found after its shim was killed.
//!
//! **Where to begin reading.** `engine/mod.rs` (`take`, `happened`), then `engine/effect.rs`, then `engine/act/`.
//! From the outside: `life/mod.rs` for a daemon's life, `http/routes.rs` for an address. `engine/simulation` runs
//! the loop in virtual time: a few lines there show what it does when things die. ARCHITECTURE.md has the modules
//! and which may call which.
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
pub use foreground::{ForegroundOptions, RunError, run as run_alone};
pub use life::{DaemonOptions, StartError, run};
pub use ports::locks::BY_DAEMON;
