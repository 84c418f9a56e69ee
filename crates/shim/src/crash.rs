//! Crash points: named steps at which a test makes the shim abort. Without the feature they are nothing.

/// The variable that names the point at which to abort.
pub const VARIABLE: &str = "PINFOLD_CRASH_AT";

/// Every point, in the order in which a run passes them.
pub const POINTS: &[&str] = &[
    "keep.received",
    "keep.adopted",
    "keep.listening",
    "start.unforked",
    "start.forked",
    "start.fenced",
    "start.released",
    "start.confirmed",
    "end.empty",
    "record.unwritten",
    "record.written",
    "end.reported",
    "spare.waits",
    "leave.unmarked",
    "leave.marked",
    "leave.closed",
];

/// Aborts when the environment says so.
#[cfg(feature = "crash-points")]
pub fn point(name: &str) {
    debug_assert!(POINTS.contains(&name), "{name} is not listed");
    if std::env::var_os(VARIABLE).is_some_and(|at| at == name) {
        std::process::abort();
    }
}

/// Does nothing.
#[cfg(not(feature = "crash-points"))]
#[inline(always)]
pub fn point(_: &str) {}

#[cfg(test)]
mod tests {
    use super::POINTS;
    use std::path::Path;

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

    #[test]
    fn every_point_in_the_source_is_listed_and_every_listed_one_is_in_the_source() {
        let mut text = String::new();
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut text);
        let parts = text.split("crash::point(\"").skip(1);
        let mut found: Vec<&str> = parts.map(|part| &part[..part.find('"').unwrap()]).collect();
        found.sort_unstable();
        let mut listed = POINTS.to_vec();
        listed.sort_unstable();
        assert_eq!(found, listed);
    }
}
