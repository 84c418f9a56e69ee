//! The crash points that daemon and shim list are those in their sources: none is listed in vain, none is left out.

use std::path::Path;

/// All sources in a folder, except for the file that lists the points.
fn sources(folder: &Path, out: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.file_name().is_some_and(|name| name != "crash.rs") {
            out.push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }
}

/// The points in a crate's sources, sorted by name.
fn passed_in(name: &str) -> Vec<String> {
    let mut text = String::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src"), &mut text);
    let calls = ["crash::point(\"", "crash::parent_dies_at(\"", "steps.pass(\""];
    let parts = calls.iter().flat_map(|call| text.split(call).skip(1));
    let mut found: Vec<String> = parts.map(|part| part[..part.find('"').unwrap()].to_owned()).collect();
    found.sort_unstable();
    found
}

#[test]
fn every_point_of_the_daemon_is_listed_once_and_every_listed_one_is_in_its_source() {
    use pinfold_daemon::crash::{OF_DECLARATIONS, OF_GUESTS, OF_TAPES, POINTS};
    let mut listed = [POINTS, OF_TAPES, OF_GUESTS, OF_DECLARATIONS].concat();
    listed.sort_unstable();
    assert_eq!(passed_in("daemon"), listed);
}

#[test]
fn every_point_of_the_store_is_listed_once_and_every_listed_one_is_in_its_source() {
    let mut listed = pinfold_daemon::crash::OF_ANSWERS.to_vec();
    listed.sort_unstable();
    assert_eq!(passed_in("store"), listed);
}

#[test]
fn every_point_of_the_shim_is_listed_once_and_every_listed_one_is_in_its_source() {
    let mut listed = [pinfold_shim::crash::POINTS, pinfold_shim::crash::SOMETIMES].concat();
    listed.sort_unstable();
    assert_eq!(passed_in("shim"), listed);
}
