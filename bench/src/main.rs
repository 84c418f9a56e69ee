//! Measures pinfold beside its peers, all in one run: compare within a table, not between tables.
//!
//! `cargo run --release -p pinfold-bench -- peers` (or some of its measures: `peers respawn status`), `decisions`,
//! `locks`, `messages`, `feed`, `terminals`, `tui`, `retention` (or `retention EVENTS`), `search`, `verbs`, `tape` (or `tape SESSIONS SECONDS`),
//! `agents` (or `agents SECONDS MOST`), or `all`. `versions FOLDER` measures the same beside the `pinfold` and `pinfold-shim` in
//! FOLDER, and what verbs cost among two thousand sessions (`crowd`).
#![expect(clippy::unwrap_used, reason = "a measurement that cannot be made should stop at once")]

mod agents;
mod decisions;
mod feed;
mod locks;
mod messages;
mod peers;
mod retention;
mod search;
mod table;
mod tape;
mod terminals;
mod tui;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["decisions"] => decisions::run(),
        ["locks"] => locks::run(),
        ["terminals"] => terminals::run(),
        ["tui"] => tui::run(),
        ["messages"] => messages::run(),
        ["feed"] => feed::run(),
        ["retention"] => retention::run(None),
        ["retention", events] => retention::run(Some(events.parse().unwrap())),
        ["search"] => search::run(),
        ["verbs"] => retention::verbs(),
        ["tape"] => tape::run(1000, 60),
        ["tape", sessions, seconds] => tape::run(sessions.parse().unwrap(), seconds.parse().unwrap()),
        ["agents"] => agents::run(20, 50),
        ["agents", seconds, most] => agents::run(seconds.parse().unwrap(), most.parse().unwrap()),
        ["peers", ref measures @ ..] => peers::run(measures),
        ["versions", folder, ref measures @ ..] => peers::beside_version(folder, measures),
        ["all"] => {
            peers::run(&[]);
            terminals::run();
            tui::run();
            locks::run();
            messages::run();
            feed::run();
            retention::run(None);
            retention::verbs();
            search::run();
            tape::run(1000, 60);
            decisions::run();
        }
        ["contend", who, folder, seconds] => locks::contend(who, folder.as_ref(), seconds.parse().unwrap()),
        ["floor", program, records, count] => peers::keep_floor(program, records, count.parse().unwrap()),
        _ => eprintln!(
            "error: name what to measure: peers, versions FOLDER, terminals, tui, locks, messages, feed, retention, search, verbs, tape, agents, decisions, all"
        ),
    }
}
