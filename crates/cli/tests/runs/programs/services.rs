//! The unit under a real user systemd, in a namespace with nothing else in it: install, start, a killed
//! daemon, a restart of the unit. A boot and `loginctl` are not tested: there is no machine to boot here.

use crate::rights::needs;
use crate::world::{World, finish_within};
use std::process::Command;

/// A user's systemd runs only on a machine that systemd has booted, or that looks like one; this namespace
/// does, but only from inside.
const ROOM: &str = r#"
set -eu
mount -t tmpfs none /run
mkdir -p /run/systemd/system
/lib/systemd/systemd --user --log-target=console >"$ROOT/systemd.log" 2>&1 &
systemd=$!
trap 'kill $systemd; wait $systemd' EXIT
until [ -S "$XDG_RUNTIME_DIR/systemd/private" ]; do kill -0 $systemd; sleep 0.05; done
pid() { "$PINFOLD" --json show "$1" | grep -o '"pid":[0-9]*' | head -1; }
main() { systemctl --user show "$unit" --property MainPID --value; }
"$PINFOLD" new before -- sleep 100000 >/dev/null
was=$(pid before)
"$PINFOLD" service install
unit=$(basename "$XDG_CONFIG_HOME"/systemd/user/pinfold-*.service)
systemctl --user is-enabled "$unit"
[ "$(pid before)" = "$was" ] || { echo "the agent of before did not stay"; exit 1; }
"$PINFOLD" new after -- sleep 100000 >/dev/null
other=$(pid after)
first=$(main)
kill -9 "$first"
# The next one has a pid a moment before it answers.
until [ "$(main)" != "$first" ] && "$PINFOLD" status >/dev/null 2>&1; do sleep 0.05; done
[ "$(pid before)$(pid after)" = "$was$other" ] || { echo "an agent ended with the daemon"; exit 1; }
systemctl --user restart "$unit"
[ "$(pid before)$(pid after)" = "$was$other" ] || { echo "an agent ended with the unit"; exit 1; }
systemctl --user stop "$unit"
[ "$(pid before)$(pid after)" = "$was$other" ] || { echo "an agent ended with the stop of the unit"; exit 1; }
"$PINFOLD" service uninstall
[ ! -e "$XDG_CONFIG_HOME/systemd/user/$unit" ]
"$PINFOLD" down
echo all is well
"#;

fn in_room(world: &World) -> Command {
    let mut command = Command::new("unshare");
    // A user that is not root becomes root in the namespace only.
    let of_root = rustix::process::geteuid().is_root();
    command.arg(if of_root { "-m" } else { "-Urm" }).args(["sh", "-c", ROOM]);
    for (folder, variable) in [("run", "XDG_RUNTIME_DIR"), ("config", "XDG_CONFIG_HOME"), ("user", "HOME")] {
        let path = world.path(folder);
        std::fs::create_dir_all(&path).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        command.env(variable, path);
    }
    command.env("PINFOLD", &world.binary).env("PINFOLD_HOME", &world.home).env("ROOT", &world.root);
    command.env("PINFOLD_LOCKS", world.path("locks")).env("XDG_STATE_HOME", world.path("state"));
    command
}

#[test]
fn a_restart_of_the_unit_never_ends_an_agent() {
    // A systemd puts each unit into a group.
    needs!(Groups);
    let world = World::new();
    let answer = finish_within(&mut in_room(&world), crate::processes::PATIENCE);
    let log = std::fs::read_to_string(world.path("systemd.log")).unwrap_or_default();
    assert_eq!(answer.code, 0, "{answer:?}\n{log}");
    assert!(answer.stdout.ends_with("all is well\n"), "{answer:?}\n{log}");
}

#[test]
fn systemd_finds_nothing_wrong_with_the_unit() {
    let world = World::new();
    let unit = world.ok(&["service", "install", "--print", "--manager", "systemd"]).stdout;
    let file = world.path("pinfold.service");
    std::fs::write(&file, unit).unwrap();
    let mut verify = Command::new("systemd-analyze");
    let verified =
        verify.args(["verify", "--user"]).arg(&file).env("XDG_RUNTIME_DIR", &world.root).output().unwrap();
    assert!(verified.status.success() && verified.stderr.is_empty(), "{verified:?}");
}
