//! Places that differ between users: homes, working directories, the PATH, the umask.

use crate::processes;
use crate::world::{Answer, World, finish, number};
use std::path::Path;
use std::process::Command;

/// Runs a shell script in the world's root; `$PINFOLD` is the program.
fn shell(world: &World, text: &str) -> Answer {
    let mut command = Command::new("sh");
    command.args(["-c", text]).current_dir(&world.root).env("PINFOLD", &world.binary);
    for (name, value) in world.command(&[]).get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    finish(&mut command)
}

#[test]
fn a_program_that_moved_is_found_again_once_the_session_has_the_new_path() {
    let world = World::new();
    let agent = "#!/bin/sh\\nexec sleep 100000\\n";
    shell(&world, &format!("mkdir old new; printf '{agent}' >old/agent; chmod +x old/agent"));
    let with = |path: &str, words: &[&str]| {
        let path = format!("{}:/usr/bin:/bin", world.path(path).display());
        finish(world.command(words).env("PATH", path))
    };
    assert_eq!(with("old", &["new", "a", "--", "agent"]).code, 0);
    std::fs::rename(world.path("old/agent"), world.path("new/agent")).unwrap();
    let restarted = with("new", &["restart", "a"]);
    assert!(restarted.stderr.contains("`pinfold set S --env PATH`"), "{restarted:?}");
    assert!(world.ok(&["why", "a"]).stdout.contains("`pinfold set S --env PATH`"));
    assert_ne!(with("new", &["start", "a"]).code, 0, "a start alone does not change the PATH");
    assert_eq!(with("new", &["set", "a", "--env", "PATH"]).code, 0);
    world.ok(&["start", "a"]);
    assert!(processes::lives(number(&world.show("a")["pid"])));
}

#[test]
fn a_deleted_working_directory_is_named_and_not_needed_with_a_directory() {
    let world = World::new();
    let answer = shell(
        &world,
        "mkdir gone; cd gone; rmdir ../gone
         \"$PINFOLD\" new a -- true; echo $?
         \"$PINFOLD\" run b -- true; echo $?
         \"$PINFOLD\" new c --dir ../gone -- true; echo $?
         \"$PINFOLD\" --quiet new d --no-dir-lock --dir \"$ROOT\" -- sleep 100000 >/dev/null; echo $?
         \"$PINFOLD\" run e --dir \"$ROOT\" -- pwd; echo $?",
    );
    let expected = format!("78\n78\n78\n0\n{}\n0\n", world.root.display());
    assert_eq!(answer.stdout, expected, "{answer:?}");
    let named = format!("the working directory {} cannot be used", world.path("gone").display());
    assert_eq!(answer.stderr.matches(&named).count(), 3, "{answer:?}");
    assert_eq!(answer.stderr.matches("use `--dir` with an absolute path").count(), 3, "{answer:?}");
}

#[test]
fn a_umask_that_closes_files_to_their_owner_is_named() {
    let world = World::new();
    // Root without capabilities needs its own permission to write, as any other user does.
    let answer = shell(
        &world,
        "test $(id -u) = 0 && drop='setpriv --bounding-set -all --inh-caps -all'
         umask 0277; $drop \"$PINFOLD\" lock key:k -- true",
    );
    assert!(answer.code == 77 && answer.stderr.contains("the umask 0277"), "{answer:?}");
}

/// Runs the line of a crontab as cron does, for a user with another home directory.
fn as_cron(world: &World, line: &str) -> Answer {
    let line = line.trim_end().strip_prefix("@reboot ").unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", line]).env_clear().env("PATH", "/usr/bin:/bin").env("ROOT", &world.root);
    finish(command.env("HOME", world.path("cron")).current_dir("/"))
}

#[test]
fn what_is_installed_serves_the_home_that_the_environment_named() {
    for variables in [&["HOME"][..], &["XDG_STATE_HOME"], &["HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"]] {
        let world = World::new();
        std::fs::create_dir(world.path("cron")).unwrap();
        let run = |words: &[&str]| {
            let mut command = world.command(words);
            command.env_remove("PINFOLD_HOME").env_remove("XDG_STATE_HOME").env_remove("XDG_RUNTIME_DIR");
            command.env_remove("XDG_CONFIG_HOME").env("HOME", world.path("cron"));
            for name in variables {
                command.env(name, world.path(name));
            }
            finish(&mut command)
        };
        let line = run(&["service", "install", "--print", "--manager", "cron"]).stdout;
        assert_eq!(run(&["--no-start", "ls"]).code, 69, "{variables:?}");
        let booted = as_cron(&world, &line);
        let status = run(&["--json", "--no-start", "status"]);
        _ = run(&["down"]);
        assert!(booted.code == 0 && status.code == 0, "{variables:?}: {line}: {booted:?} {status:?}");
        let home = status.json()["home"].as_str().unwrap().to_owned();
        assert!(Path::new(&home).starts_with(world.path(variables[variables.len().min(2) - 1])), "{home}");
        assert_eq!(std::fs::read_dir(world.path("cron")).unwrap().count(), 0, "{variables:?}");
    }
}

#[test]
fn a_crontab_gets_no_line_of_its_own_from_a_path() {
    let world = World::new();
    let kept = "0 * * * * true\n";
    std::fs::write(world.path("table"), kept).unwrap();
    shell(
        &world,
        "mkdir bin; cat >bin/crontab <<'END'
#!/bin/sh
case $1 in
    -l) cat \"$ROOT/table\" ;;
    -) cat >\"$ROOT/new\" && mv \"$ROOT/new\" \"$ROOT/table\" ;;
esac
END
chmod +x bin/crontab",
    );
    let path = format!("{}:/usr/bin:/bin", world.path("bin").display());
    let run = |home: &Path, verb: &str| {
        let mut command = world.command(&["service", verb, "--manager", "cron"]);
        finish(command.env("PATH", &path).env("PINFOLD_HOME", home))
    };
    let table = || std::fs::read_to_string(world.path("table")).unwrap();
    let plain = world.path("it's 100%");
    assert_eq!(run(&plain, "install").code, 0);
    assert!(table().lines().count() == 2 && table().contains(" # pinfold-"), "{}", table());
    assert_eq!(run(&plain, "uninstall").code, 0);
    assert_eq!(table(), kept);
    let odd = world.path("a\n@reboot touch evil #");
    let refused = run(&odd, "install");
    assert!(refused.code == 78 && refused.stderr.contains("cannot be written for cron"), "{refused:?}");
    assert_eq!(table(), kept);
}
