//! An agent that can write its worktree, or all of its repository, plants commands where git looks for them:
//! none runs when a person uses pinfold there.

use crate::worktrees::{Repository, git};
use crate::world::{Answer, World};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Settings that make git run a command, each with a git command that shows it, run in the worktree. In both,
/// `RUN` becomes a program that writes down the name of its setting.
const SETTINGS: &[(&str, &str, &str)] = &[
    ("fsmonitor", "[core]\nfsmonitor = RUN", "git status"),
    ("hooks", "[core]\nhooksPath = HOOKS", "git checkout -q HEAD"),
    ("clean", "[filter \"planted\"]\nclean = RUN", "touch file; git status"),
    ("smudge", "[filter \"planted\"]\nsmudge = RUN", "rm file; git checkout -q file"),
    ("process", "[filter \"planted\"]\nprocess = RUN", "touch file; git status"),
    ("alias", "[alias]\nplanted = !RUN", "git planted"),
    ("pager", "[core]\npager = RUN", "script -qec 'git log' /dev/null"),
    ("editor", "[core]\neditor = RUN", "git commit --allow-empty"),
    ("external", "[diff]\nexternal = RUN", "echo x >file; git diff"),
    ("textconv", "[diff \"planted\"]\ntextconv = RUN", "echo x >file; git diff"),
    ("command", "[diff \"planted\"]\ncommand = RUN", "echo x >file; git diff"),
    ("gpg", "[gpg]\nprogram = RUN", "git commit -S --allow-empty -m x"),
    ("ssh", "[core]\nsshCommand = RUN", "git fetch ssh://localhost/x"),
    ("driver", "[merge \"planted\"]\ndriver = RUN", "git merge other"),
    ("askpass", "[core]\naskPass = RUN", "echo url=https://localhost | git credential fill"),
    ("helper", "[credential]\nhelper = !RUN", "echo url=https://localhost | git credential fill"),
    (
        "remote",
        "[core]\nrepositoryFormatVersion = 1\n[extensions]\npartialClone = planted\n[protocol \"ext\"]\n\
         allow = always\n[remote \"planted\"]\npromisor = true\nurl = ext::RUN",
        "git cat-file -p 1111111111111111111111111111111111111111",
    ),
];

/// Hooks that could run here.
const HOOKS: [&str; 5] =
    ["post-checkout", "reference-transaction", "post-index-change", "pre-auto-gc", "fsmonitor-watchman"];

/// A repository with a session in a worktree of it, and a folder of programs that say that they ran.
struct Ground<'a> {
    world: &'a World,
    name: String,
    repository: PathBuf,
}

impl<'a> Ground<'a> {
    fn new(world: &'a World, name: &str) -> Ground<'a> {
        let repository = Repository::new(&world.path(name)).path;
        std::fs::write(repository.join("file"), "text\n").unwrap();
        git(&repository, &["add", "file"]);
        git(&repository, &["commit", "-q", "-m", "second"]);
        git(&repository, &["checkout", "-q", "-b", "other"]);
        std::fs::write(repository.join("file"), "other\n").unwrap();
        git(&repository, &["commit", "-q", "-a", "-m", "third"]);
        git(&repository, &["checkout", "-q", "main"]);
        Ground { world, name: name.to_owned(), repository }
    }

    /// Creates a session in a new worktree; returns the worktree.
    fn session(&self, session: &str) -> PathBuf {
        let dir = self.repository.display().to_string();
        let words =
            ["new", session, "--mode", "on-demand", "--dir", &dir, "--worktree", session, "--", "cat"];
        self.world.ok(&words);
        self.tree(session)
    }

    fn tree(&self, session: &str) -> PathBuf {
        self.world.path(&format!("{}.worktrees", self.name)).join(session)
    }

    fn ran_folder(&self) -> PathBuf {
        let folder = self.world.path(&format!("ran-{}", self.name));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// What has run since the last look.
    fn ran(&self) -> BTreeSet<String> {
        let entries = std::fs::read_dir(self.ran_folder()).unwrap();
        let names: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        names.iter().for_each(|name| std::fs::remove_file(name).unwrap());
        names.iter().map(|name| name.file_name().unwrap().to_string_lossy().into_owned()).collect()
    }

    /// A program that writes down that it ran.
    fn program(&self, file: &Path, name: &str) {
        let text = format!("#!/bin/sh\n: >'{}/{name}'\n", self.ran_folder().display());
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
        std::fs::set_permissions(file, PermissionsExt::from_mode(0o755)).unwrap();
    }

    /// The text of settings, all of them or one; the programs are made too.
    fn settings(&self, only: Option<&str>) -> String {
        let hooks = self.world.path(&format!("hooks-{}", self.name));
        HOOKS.iter().for_each(|hook| self.program(&hooks.join(hook), "hooks"));
        let mut text = String::new();
        for (name, setting, _) in SETTINGS.iter().filter(|row| only.is_none_or(|only| row.0 == only)) {
            let program = self.world.path(&format!("programs-{}/{name}", self.name));
            self.program(&program, name);
            let setting = setting.replace("RUN", &program.display().to_string());
            text.push_str(&setting.replace("HOOKS", &hooks.display().to_string()));
            text.push('\n');
        }
        text
    }

    fn common(&self) -> PathBuf {
        self.repository.join(".git")
    }

    fn plant(&self, way: Way, settings: &str) {
        let config = self.common().join("config");
        let append = |file: &Path, text: &str| {
            let before = std::fs::read_to_string(file).unwrap_or_default();
            std::fs::write(file, format!("{before}\n{text}")).unwrap();
        };
        std::fs::write(
            self.common().join("info/attributes"),
            "* filter=planted diff=planted merge=planted\n",
        )
        .unwrap();
        match way {
            Way::Config => append(&config, settings),
            Way::Include => {
                append(&config, "[include]\npath = planted\n");
                append(&self.common().join("planted"), settings);
            }
            Way::ConfigOfWorktree => {
                append(&config, "[core]\nrepositoryFormatVersion = 1\n[extensions]\nworktreeConfig = true\n");
                append(&self.common().join("config.worktree"), settings);
                for gitdir in std::fs::read_dir(self.common().join("worktrees")).unwrap() {
                    append(&gitdir.unwrap().path().join("config.worktree"), settings);
                }
            }
        }
        for hook in HOOKS {
            self.program(&self.common().join("hooks").join(hook), "hooks");
        }
    }

    /// Plants settings in whatever repository git finds around a worktree.
    fn plant_around(&self, tree: &Path) {
        git(tree, &["add", "."]);
        git(tree, &["commit", "-q", "-m", "fake"]);
        std::fs::write(tree.join(".gitattributes"), "* filter=planted\n").unwrap();
        let config =
            Command::new("git").args(["rev-parse", "--git-path", "config"]).current_dir(tree).output();
        let config = tree.join(String::from_utf8(config.unwrap().stdout).unwrap().trim());
        let before = std::fs::read_to_string(&config).unwrap();
        std::fs::write(&config, before + &self.settings(None)).unwrap();
    }

    /// A file whose facts have changed makes git read it, and so clean it.
    fn touch(tree: &Path) {
        std::fs::write(tree.join("file"), "text\n").unwrap();
    }

    /// Runs a command as the agent's user would, without any care.
    fn carelessly(&self, tree: &Path, command: &str) {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).current_dir(tree).stdin(Stdio::null());
        shell
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.world.path("careless"));
        let author = ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"];
        shell.envs(author.map(|name| (name, "t"))).env("TERM", "dumb").output().unwrap();
    }

    fn remove(&self, session: &str, options: &[&str]) -> Answer {
        self.world.run(&[&["rm", session, "--yes", "--worktree"], options].concat())
    }
}

/// Where settings are planted.
#[derive(Debug, Clone, Copy)]
enum Way {
    Config,
    Include,
    ConfigOfWorktree,
}

#[test]
fn nothing_that_is_planted_in_a_repository_runs() {
    let world = World::new();
    for way in [Way::Config, Way::Include, Way::ConfigOfWorktree] {
        let ground = Ground::new(&world, &format!("{way:?}"));
        let (before, after) = (format!("before-{way:?}"), format!("after-{way:?}"));
        let tree = ground.session(&before);
        ground.plant(way, &ground.settings(None));
        Ground::touch(&tree);
        world.ok(&["show", &before]);
        let answer = ground.remove(&before, &[]);
        assert_eq!(ground.ran(), BTreeSet::new(), "{way:?}: {answer:?}");
        assert_eq!((answer.code, tree.exists()), (0, false), "{way:?}: {answer:?}");
        let tree = ground.session(&after);
        assert_eq!(std::fs::read_to_string(tree.join("file")).unwrap(), "text\n");
        Ground::touch(&tree);
        world.ok(&["show", &after]);
        let answer = ground.remove(&after, &["--force"]);
        assert_eq!((answer.code, tree.exists()), (0, false), "{way:?}: {answer:?}");
        assert_eq!(ground.ran(), BTreeSet::new(), "{way:?}");
    }
}

#[test]
fn everything_that_is_planted_would_run_without_care() {
    let world = World::new();
    let ground = Ground::new(&world, "repo");
    let config = ground.common().join("config");
    let plain = std::fs::read_to_string(&config).unwrap();
    for (name, _, command) in SETTINGS {
        let tree = world.path(&format!("tree-{name}"));
        git(&ground.repository, &["worktree", "add", "-q", "--detach", &tree.display().to_string()]);
        ground.plant(Way::Config, &ground.settings(Some(name)));
        Ground::touch(&tree);
        if *name == "driver" {
            std::fs::write(tree.join("file"), "mine\n").unwrap();
            ground.carelessly(&tree, "git commit -q -a -m mine");
        }
        ground.ran();
        ground.carelessly(&tree, command);
        assert!(ground.ran().contains(*name), "{name}: the test would not see it");
        std::fs::write(&config, &plain).unwrap();
    }
}

#[test]
fn a_git_directory_that_was_replaced_is_refused_and_runs_nothing() {
    let world = World::new();
    let ground = Ground::new(&world, "repo");
    type Replace = fn(&Ground<'_>, &Path);
    let rows: [(&str, Replace); 4] = [
        ("worktree", |ground, tree| {
            let (fake, spare) = (ground.world.path("owner"), ground.world.path("spare"));
            Repository::new(&fake);
            git(&fake, &["worktree", "add", "-q", "-b", "spare", &spare.display().to_string()]);
            std::fs::rename(spare.join(".git"), tree.join(".git")).unwrap();
            let back = fake.join(".git/worktrees/spare/gitdir");
            std::fs::write(back, format!("{}/.git\n", tree.display())).unwrap();
        }),
        ("directory", |_, tree| git(tree, &["init", "-q"])),
        ("file", |ground, tree| {
            let fake = ground.world.path("fake");
            git(tree, &["init", "-q", "--separate-git-dir", &fake.display().to_string()]);
        }),
        ("link", |ground, tree| {
            let fake = ground.world.path("linked");
            std::fs::create_dir(&fake).unwrap();
            git(&fake, &["init", "-q"]);
            std::os::unix::fs::symlink(fake.join(".git"), tree.join(".git")).unwrap();
        }),
    ];
    for (name, replace) in rows {
        let tree = ground.session(name);
        std::fs::remove_file(tree.join(".git")).unwrap();
        replace(&ground, &tree);
        ground.plant_around(&tree);
        ground.carelessly(&tree, "git status");
        assert!(ground.ran().contains("fsmonitor"), "{name}: the test would not see it");
        world.ok(&["show", name]);
        for options in [&[][..], &["--force"]] {
            let answer = ground.remove(name, options);
            assert_eq!(ground.ran(), BTreeSet::new(), "{name}: {answer:?}");
            assert_eq!(answer.code, 1, "{name}: {answer:?}");
            assert!(answer.stderr.contains("is not as pinfold made it: "), "{name}: {answer:?}");
            assert!(answer.stderr.contains("git -C ") && tree.exists(), "{name}: {answer:?}");
        }
        assert_eq!(world.show(name)["state"], "idle", "{name}: the session stays as it was");
        // A new session in there uses the planted repository, and does not run it either.
        let dir = tree.display().to_string();
        let other = format!("other-{name}");
        world.run(&["new", &other, "--mode", "on-demand", "--dir", &dir, "--worktree", &other, "--", "cat"]);
        assert_eq!(ground.ran(), BTreeSet::new(), "{name}");
    }
}

#[test]
fn a_submodule_is_not_entered_and_not_removed_without_force() {
    let world = World::new();
    let ground = Ground::new(&world, "repo");
    let tree = ground.session("a");
    let inner = Repository::new(&tree.join("inner")).path;
    git(&tree, &["add", "inner"]);
    git(&tree, &["commit", "-q", "-m", "inner"]);
    git(&ground.repository, &["merge", "-q", "a"]);
    let config = inner.join(".git/config");
    let before = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, before + &ground.settings(None)).unwrap();
    ground.carelessly(&tree, "git status");
    assert!(ground.ran().contains("fsmonitor"), "the test would not see it");
    let answer = ground.remove("a", &[]);
    assert_eq!(answer.code, 1, "{answer:?}");
    assert!(
        answer.stderr.contains("submodules") && answer.stderr.contains("1 submodule: inner"),
        "{answer:?}"
    );
    assert!(inner.exists());
    let answer = ground.remove("a", &["--force"]);
    assert_eq!((answer.code, tree.exists()), (0, false), "{answer:?}");
    assert_eq!(ground.ran(), BTreeSet::new());
}

#[test]
fn the_users_own_filters_run() {
    let world = World::new();
    let ground = Ground::new(&world, "repo");
    let filter = "#!/bin/sh\ntr a-z A-Z\n";
    std::fs::write(world.path("upper"), filter).unwrap();
    std::fs::set_permissions(world.path("upper"), PermissionsExt::from_mode(0o755)).unwrap();
    let home = world.path("careless");
    std::fs::create_dir(&home).unwrap();
    let upper = world.path("upper").display().to_string();
    std::fs::write(
        home.join(".gitconfig"),
        format!("[filter \"planted\"]\nsmudge = {upper}\nclean = tr A-Z a-z\n"),
    )
    .unwrap();
    let planted = ["clean", "smudge"].map(|name| ground.settings(Some(name))).concat();
    ground.plant(Way::Config, &planted);
    let dir = ground.repository.display().to_string();
    let mut new =
        world.command(&["new", "a", "--mode", "on-demand", "--dir", &dir, "--worktree", "a", "--", "cat"]);
    let answer = crate::world::finish(new.env("HOME", &home));
    assert_eq!(answer.code, 0, "{answer:?}");
    assert!(!answer.stderr.contains("filters"), "{answer:?}");
    let file = ground.tree("a").join("file");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "TEXT\n");
    std::fs::write(&file, "TEXT\n").unwrap();
    let mut remove = world.command(&["rm", "a", "--yes", "--worktree"]);
    let answer = crate::world::finish(remove.env("HOME", &home));
    assert_eq!(answer.code, 0, "{answer:?}");
    assert_eq!(ground.ran(), BTreeSet::new());
    // Without the user's, the planted one is left out, and that is shown.
    let dir = ["--dir", &dir, "--worktree", "b", "--", "cat"];
    let answer = world.ok(&[&["new", "b", "--mode", "on-demand"], &dir[..]].concat());
    assert!(answer.stderr.contains("filters that only this repository configures"), "{answer:?}");
    assert_eq!(std::fs::read_to_string(ground.tree("b").join("file")).unwrap(), "text\n");
}
