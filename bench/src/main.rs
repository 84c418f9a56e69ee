//! Measures pinfold beside its peers, all in one run: compare within a table, not between tables.
//!
//! `cargo build --release --workspace && cargo run --release -p pinfold-bench -- locks`
#![expect(clippy::unwrap_used, reason = "a measurement that cannot be made should stop at once")]

mod locks;
mod table;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["locks"] => locks::run(),
        ["contend", who, folder, seconds] => locks::contend(who, folder.as_ref(), seconds.parse().unwrap()),
        _ => eprintln!("error: name what to measure: locks"),
    }
}
