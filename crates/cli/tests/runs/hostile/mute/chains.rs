//! Chains of processes that live for less than a millisecond, each the child of the last one, without a group.

use super::plain::Plain;
use super::{LIMIT, session};
use crate::rights::needs;

/// Each process of a chain leaves its session, forks the next one and ends. The chains end by themselves
/// after a while.
const CHAINS: &str = "#define _GNU_SOURCE\n#include <signal.h>\n#include <time.h>\n#include <unistd.h>\n\
    int main(void) {\n\
      time_t end = time(0) + 30;\n\
      signal(SIGTERM, SIG_IGN);\n\
      for (int i = 0; i < 20; i++)\n\
        if (fork() == 0)\n\
          while (time(0) < end) {\n\
            pid_t next = fork();\n\
            if (next > 0) _exit(0);\n\
            setsid();\n\
            usleep(next < 0 ? 10000 : 200);\n\
          }\n\
      if (write(1, \"chained\\n\", 8) != 8) return 1;\n\
      for (;;) pause();\n\
    }\n";

#[test]
fn chains_of_processes_that_hardly_live_are_ended_without_a_group() {
    needs!(OtherUser);
    let plain = Plain::new();
    let program = plain.world.path("chains");
    plain.build(CHAINS, &program);
    session(&plain.world, "a", &[], &format!("exec '{}'", program.display()));
    plain.world.printed("a", "chained");
    let answer = plain.world.within(LIMIT, &["stop", "a"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    plain.world.assert_no_members();
}
