//! Where locks are kept, and folders that cannot have them.

use crate::rights::needs;
use crate::support::{Answer, Home, finish, mode};
use std::process::Command;

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

#[test]
fn every_command_gives_the_same_code_and_hint_for_an_unusable_lock_folder() {
    let home = Home::new();
    let notes = home.dir("notes");
    std::fs::write(notes.join("x"), "").unwrap();
    let tell = |words: &[&str]| {
        let answer = finish(home.command(words).env("PINFOLD_LOCKS", &notes));
        (answer.code, answer.stderr)
    };
    let (code, said) = tell(&["lock", "key:k", "--", "true"]);
    let hint = said.lines().find(|line| line.starts_with("hint: ")).unwrap();
    assert!(code == 78 && hint.contains("PINFOLD_LOCKS"), "{said}");
    for words in [&["up"][..], &["new", "a", "--", "true"], &["run", "a", "--", "true"], &["ls"], &["locks"]]
    {
        let (other, said) = tell(words);
        assert!(other == code && said.contains(hint), "{words:?}: {other}: {said}");
    }
}

/// Runs a script with mounts that only it sees, in a user namespace, so that this needs no rights.
fn among_mounts(home: &Home, script: &str) -> Answer {
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "--propagation", "private", "sh", "-c", script]);
    home.settle(&mut command);
    finish(&mut command)
}

/// Runs a script as a user without a line in the password file, with a `/var/tmp` that only it sees.
fn unlisted(home: &Home, script: &str) -> Answer {
    let ground = "mount -t tmpfs -o mode=1777 tmpfs /var/tmp && : >passwd && mount --bind passwd /etc/passwd";
    among_mounts(home, &format!("unset PINFOLD_LOCKS; {ground} || exit 99\n{script}"))
}

#[test]
fn a_hidden_proc_is_named_and_not_the_lock_folder() {
    needs!(Mount);
    let home = Home::new();
    let hide = ": >empty && mount --bind empty /proc/sys/kernel/random/boot_id || exit 99";
    let answer = among_mounts(&home, &format!("{hide}; \"$PINFOLD\" lock key:k -- true"));
    let named = answer.stderr.contains("locks need /proc/sys/kernel/random/boot_id");
    assert!(answer.code == 78 && named && !answer.stderr.contains("PINFOLD_LOCKS"), "{}", answer.stderr);
}

#[test]
fn a_user_without_a_line_in_the_password_file_has_one_lock_folder_whatever_home_says() {
    needs!(Mount);
    let home = Home::new();
    ["a", "b", "dir"].iter().for_each(|name| drop(home.dir(name)));
    let answer = unlisted(
        &home,
        "HOME=$PWD/a \"$PINFOLD\" lock dir -- sh -c '
            HOME=$PWD/b \"$PINFOLD\" lock dir -- echo double; echo $?
            HOME=$PWD/b \"$PINFOLD\" --json locks | grep -c dir
            stat -c %a /var/tmp/pinfold-locks-*
            echo me:x:$(id -u):0::$PWD/b:/bin/sh >/etc/passwd
            HOME=$PWD/b \"$PINFOLD\" lock dir -- echo double; echo $?'",
    );
    assert_eq!((answer.code, answer.stdout.as_str()), (0, "75\n1\n700\n75\n"), "{}", answer.stderr);
}

#[test]
fn a_user_without_a_line_in_the_password_file_is_told_to_set_the_variable() {
    needs!(Mount);
    let home = Home::new();
    let answer = unlisted(
        &home,
        "mount -o remount,bind,ro /var/tmp || exit 99
         for verb in 'lock key:k --' 'run s --' 'new s --'; do \"$PINFOLD\" $verb true; echo $?; done
         PINFOLD_LOCKS=locks \"$PINFOLD\" lock key:k -- true; echo $?",
    );
    assert_eq!(answer.stdout, "78\n78\n78\n0\n", "{}", answer.stderr);
    assert_eq!(answer.stderr.matches("hint: set PINFOLD_LOCKS").count(), 3, "{}", answer.stderr);
    assert!(answer.stderr.contains("Read-only file system"), "{}", answer.stderr);
}
