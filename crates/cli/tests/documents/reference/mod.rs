//! The pages of `docs/reference` are generated from the program. An outdated page fails; `REFERENCE=write
//! cargo test -p pinfold --test documents reference` writes it.

mod config;
mod events;
mod verbs;

use crate::page::root;

/// Compares a page with what it should be, or writes it.
fn check(name: &str, made: &str) {
    let path = root().join("docs/reference").join(name);
    if std::env::var_os("REFERENCE").is_some_and(|value| value == "write") {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, made).unwrap();
    }
    let stands = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = made.lines().zip(stands.lines()).find(|(new, old)| new != old);
    assert!(
        made == stands,
        "docs/reference/{name} is not what the program says now (first difference: {differs:?}); \
         `REFERENCE=write cargo test -p pinfold --test documents reference` writes it: look at the diff"
    );
}

/// What every generated page says about itself.
fn made_from(what: &str) -> String {
    format!(
        "<!-- Made from {what} by crates/cli/tests/documents/reference. Do not edit: CONTRIBUTING.md says how it is written. -->\n\n"
    )
}
