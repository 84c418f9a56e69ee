//! Directories: all spellings are one lock, and what is not a directory is named as what it is.

use crate::rights::needs;
use crate::support::{Home, is_root};

fn busy(home: &Home, path: &str) -> bool {
    let answer = home.run(&["lock", path, "--", "true"]);
    assert!([0, 75].contains(&answer.code), "{path}: {}", answer.stderr);
    answer.code == 75
}

#[test]
fn every_spelling_and_every_relative_of_a_directory_is_one_conflict_domain() {
    let home = Home::new();
    home.dir("x/sub");
    home.dir("sibling");
    std::os::unix::fs::symlink(home.path("x"), home.path("link")).unwrap();
    let _held = home.hold("x");
    for spelling in ["x", "x/", "./x", "x/../x", "link", "link/", "x/sub", "link/sub", ".", "/"] {
        assert!(busy(&home, spelling), "{spelling}");
    }
    assert!(!busy(&home, "sibling"));
}

#[test]
fn the_busy_text_names_the_directory_that_is_really_held() {
    let home = Home::new();
    home.dir("x/sub");
    let _held = home.hold("x/sub");
    let answer = home.run(&["lock", "x", "--", "true"]);
    let expected = format!(" as `{}`", home.path("x/sub").display());
    assert!(answer.stderr.lines().next().unwrap().ends_with(&expected), "{}", answer.stderr);
}

#[test]
fn a_moved_directory_is_still_held_under_both_its_names() {
    let home = Home::new();
    home.dir("x");
    let _held = home.hold("x");
    std::fs::rename(home.path("x"), home.path("y")).unwrap();
    assert!(busy(&home, "y"), "the inode is held");
    home.dir("x");
    assert!(busy(&home, "x"), "the path is held");
}

#[test]
fn a_directory_removed_and_made_again_is_still_held() {
    let home = Home::new();
    home.dir("x");
    let mut held = home.hold("x");
    std::fs::remove_dir(home.path("x")).unwrap();
    let gone = home.run(&["lock", "x", "--", "true"]);
    assert_eq!(gone.code, 78, "{}", gone.stderr);
    home.dir("x/sub");
    assert!(busy(&home, "x") && busy(&home, "x/sub"));
    held.end();
    assert!(!busy(&home, "x"));
}

#[test]
fn a_path_that_is_no_directory_is_a_clear_error() {
    let home = Home::new();
    std::fs::write(home.path("file"), "").unwrap();
    let missing = home.run(&["lock", "missing", "--", "true"]);
    let said = "error: missing does not exist\nhint: `key:missing` locks a name, without a directory\n";
    assert_eq!((missing.code, missing.stderr.as_str()), (78, said));
    let deep = home.run(&["lock", "./missing", "--", "true"]);
    assert_eq!((deep.code, deep.stderr.as_str()), (78, "error: ./missing does not exist\n"));
    let asked = home.run(&["who", "missing"]);
    assert_eq!((asked.code, asked.stderr.as_str()), (78, "error: missing does not exist\n"));
    assert_eq!(home.json(&["lock", "missing", "--", "true"])["error"]["kind"], "bad_config");
    let file = home.run(&["lock", "file", "--", "true"]);
    assert_eq!(file.code, 1);
    assert!(file.stderr.starts_with("error: file is not a directory\n"), "{}", file.stderr);
}

#[test]
fn a_directory_behind_a_closed_one_is_not_permitted() {
    let home = Home::new();
    home.dir("closed/inner");
    let script = "chmod 0 closed; chmod 711 .; \"$PINFOLD\" lock closed/inner -- true";
    // Root may enter everywhere, so another user has to look.
    let answer = if is_root() {
        home.script(
            &format!(
                "mkdir theirs && chown 65534 theirs && export PINFOLD_LOCKS=$PWD/theirs; \
             install -m 755 \"$PINFOLD\" ./copy && export PINFOLD=$PWD/copy; \
             exec setpriv --reuid 65534 --clear-groups sh -c '{}'",
                script.replace("chmod 0 closed; chmod 711 .; ", "")
            )
            .replacen("mkdir", "chmod 0 closed; chmod 711 .; mkdir", 1),
        )
    } else {
        home.script(script)
    };
    home.script("chmod 700 closed");
    assert_eq!(answer.code, 77, "{}", answer.stderr);
}

#[test]
fn a_bind_mounted_twin_and_its_parents_are_one_conflict_domain() {
    needs!(Mount);
    let home = Home::new();
    home.dir("data/x/sub");
    home.dir("twin");
    // In its own mount namespace, so that nothing stays mounted.
    let script = "unshare -m sh -c '
        mount --make-rprivate / && mount --bind data/x twin || exit 99
        \"$PINFOLD\" lock twin/sub -- sh -c \"
            for d in data/x/sub data/x data twin twin/sub; do
                \\\"$PINFOLD\\\" lock \\$d -- true 2> /dev/null; echo \\$d \\$?
            done\"'";
    let answer = home.script(script);
    let expected = "data/x/sub 75\ndata/x 75\ndata 75\ntwin 75\ntwin/sub 75\n";
    assert_eq!(answer.stdout, expected, "{}", answer.stderr);
}
