//! pinfold beside other supervisors: one child program, all in one run, taking turns.

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

pub(crate) use floor::keep as keep_floor;
pub(crate) use site::beside;

use crate::table::Table;
use std::path::Path;

/// What may be measured, in the order of the table.
const MEASURES: [&str; 5] = ["respawn", "start", "idle", "status", "killed"];

/// Measures everything, or what is named, and prints one table.
pub(crate) fn run(wanted: &[&str]) {
    if let Some(unknown) = wanted.iter().find(|word| !MEASURES.contains(word)) {
        eprintln!("error: there is no measure `{unknown}`; there are {}", MEASURES.join(", "));
        return;
    }
    let cache = setup::everything();
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path().canonicalize().unwrap();
    let heads = std::iter::once("").chain(columns(&cache)).chain(["pinfold must"]);
    let mut table = Table::new(heads);
    let measure = |name: &str| wanted.is_empty() || wanted.contains(&name);
    if measure("respawn") {
        respawn::run(&mut table, &root.join("respawn"), &cache);
    }
    if measure("start") {
        starts::run(&mut table, &root.join("start"), &cache);
    }
    if measure("idle") {
        idle::run(&mut table, &root.join("idle"), &cache);
    }
    if measure("status") {
        status::run(&mut table, &root.join("status"), &cache);
    }
    if measure("killed") {
        killed::run(&mut table, &root.join("killed"), &cache);
    }
    println!();
    table.print();
}

fn columns(cache: &Path) -> Vec<&'static str> {
    supervisor::all(cache).into_iter().map(|(name, _)| name).collect()
}

/// A row with a cell for each supervisor.
fn row(table: &mut Table, what: &str, cells: impl IntoIterator<Item = String>, must: &str) {
    let cells: Vec<String> = std::iter::once(what.to_owned()).chain(cells).chain([must.to_owned()]).collect();
    say(&cells.join("  "));
    table.row(cells);
}

/// Says what is being measured: a run takes minutes.
fn say(what: &str) {
    eprintln!("{what}");
}
