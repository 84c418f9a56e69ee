//! Where locks are kept, and folders that cannot have them.

use crate::rights::needs;
use crate::support::{Home, mode};

#[test]
fn everything_made_is_closed_to_others_whatever_the_umask() {
    let home = Home::new();
    let answer =
        home.script("umask 000; \"$PINFOLD\" lock key:k -- true && \"$PINFOLD\" lock session:s -- true");
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    for folder in ["locks", "home", "home/locks"] {
        assert_eq!(mode(&home.path(folder)), 0o700, "{folder}");
    }
    for folder in ["locks", "home/locks"] {
        for entry in std::fs::read_dir(home.path(folder)).unwrap() {
            let path = entry.unwrap().path();
            assert_eq!(mode(&path), 0o600, "{}", path.display());
        }
    }
}

#[test]
fn an_open_home_is_tightened_and_said_so() {
    let home = Home::new();
    home.dir("home");
    home.dir("locks");
    home.script("chmod 755 home locks");
    let answer = home.run(&["lock", "session:s", "--", "true"]);
    assert_eq!(answer.code, 0);
    assert!(answer.stderr.contains("was open to others (mode 0755); it is 0700 now"), "{}", answer.stderr);
    assert_eq!(mode(&home.path("home")), 0o700);
    assert!(home.run(&["lock", "key:k", "--", "true"]).stderr.contains("0700 now"));
    assert_eq!(home.run(&["lock", "key:k", "--", "true"]).stderr, "");
}

#[test]
fn the_folder_of_another_user_is_refused() {
    needs!(OtherUser);
    let home = Home::new();
    home.dir("home");
    home.dir("locks");
    home.script("chown 65534 home locks");
    for resource in ["key:k", "session:s"] {
        let answer = home.run(&["lock", resource, "--", "true"]);
        assert_eq!(answer.code, 77, "{resource}: {}", answer.stderr);
        assert!(answer.stderr.contains("belongs to user 65534"), "{}", answer.stderr);
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_not_permitted() {
    needs!(Mount);
    let home = Home::new();
    home.dir("locks");
    let script = "unshare -m sh -c 'mount -t tmpfs -o ro tmpfs locks && \"$PINFOLD\" lock key:k -- true'";
    let answer = home.script(script);
    assert_eq!(answer.code, 77, "{}", answer.stderr);
    assert!(answer.stderr.contains("Read-only file system"), "{}", answer.stderr);
}

#[test]
fn a_full_disk_is_a_clear_error_for_new_locks_and_none_for_old_ones() {
    needs!(Mount);
    let home = Home::new();
    home.dir("locks");
    let script = "unshare -m sh -c '
        mount -t tmpfs -o size=128k,mode=700 tmpfs locks || exit 99
        \"$PINFOLD\" lock key:old -- true; echo before $?
        cat /dev/zero > locks/filler 2> /dev/null
        \"$PINFOLD\" lock key:old -- true; echo old $?
        \"$PINFOLD\" lock key:new -- true; echo new $?
        rm locks/filler
        \"$PINFOLD\" lock key:new -- true; echo after $?'";
    let answer = home.script(script);
    assert_eq!(answer.stdout, "before 0\nold 0\nnew 1\nafter 0\n", "{}", answer.stderr);
    assert!(answer.stderr.contains("No space left on device"), "{}", answer.stderr);
}

#[test]
fn a_lock_file_that_is_no_file_is_damage_and_stays() {
    let home = Home::new();
    assert_eq!(home.run(&["lock", "key:k", "--", "true"]).code, 0);
    home.script("n=$(ls locks | grep ^k-); rm locks/$n; mkdir locks/$n");
    let answer = home.run(&["lock", "key:k", "--", "true"]);
    assert_eq!(answer.code, 65, "{}", answer.stderr);
    assert!(answer.stderr.contains("is not a lock file"), "{}", answer.stderr);
    assert_eq!(home.script("ls -d locks/k-*/ | wc -l").stdout.trim(), "1");
}
