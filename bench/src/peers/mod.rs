//! pinfold beside other supervisors: one child program, all in one run, taking turns.

mod crowd;
mod field;
mod floor;
mod idle;
mod killed;
mod pinfold;
mod pm2;
mod respawn;
mod scanned;
mod setup;
mod site;
mod starts;
mod status;
mod supervisor;
mod supervisord;
mod tried;

pub(crate) use floor::keep as keep_floor;
pub(crate) use site::beside;

use crate::table::Table;
use field::Peers;
use std::path::PathBuf;

/// What can be measured, in the order of the table.
const MEASURES: [&str; 6] = ["respawn", "start", "idle", "status", "killed", "crowd"];

/// Measures everything, or what is named, beside other supervisors, and prints one table.
pub(crate) fn run(wanted: &[&str]) {
    measure(wanted, || Peers::Others(setup::everything()));
}

/// The same beside another version of pinfold, whose binaries are in `folder`; the two take turns.
pub(crate) fn beside_version(folder: &str, wanted: &[&str]) {
    measure(wanted, || Peers::Version(setup::version(&PathBuf::from(folder))));
}

fn measure(wanted: &[&str], prepare: impl FnOnce() -> Peers) {
    if let Some(unknown) = wanted.iter().find(|word| !MEASURES.contains(word)) {
        eprintln!("error: there is no measure `{unknown}`; there are {}", MEASURES.join(", "));
        return;
    }
    let peers = prepare();
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path().canonicalize().unwrap();
    let heads = std::iter::once("").chain(columns(&peers)).chain(["pinfold must"]);
    let mut table = Table::new(heads);
    let wants = |name: &str| wanted.is_empty() || wanted.contains(&name);
    if wants("respawn") {
        respawn::run(&mut table, &root.join("respawn"), &peers);
    }
    if wants("start") {
        starts::run(&mut table, &root.join("start"), &peers);
    }
    if wants("idle") {
        idle::run(&mut table, &root.join("idle"), &peers);
    }
    if wants("status") {
        status::run(&mut table, &root.join("status"), &peers);
    }
    if wants("killed") {
        killed::run(&mut table, &root.join("killed"), &peers);
    }
    if let (Peers::Version(folder), true) = (&peers, wants("crowd")) {
        crowd::run(&mut table, &root.join("crowd"), folder);
    }
    println!();
    table.print();
}

fn columns(peers: &Peers) -> Vec<&'static str> {
    field::all(peers).into_iter().map(|(name, _)| name).collect()
}

/// Adds a row with a cell for each supervisor.
fn row(table: &mut Table, what: &str, cells: impl IntoIterator<Item = String>, must: &str) {
    let cells: Vec<String> = std::iter::once(what.to_owned()).chain(cells).chain([must.to_owned()]).collect();
    say(&cells.join("  "));
    table.row(cells);
}

/// Prints what is being measured, because a run takes minutes.
fn say(what: &str) {
    eprintln!("{what}");
}
