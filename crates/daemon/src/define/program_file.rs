//! Reads the beginning of a session's program, to explain why the kernel refused to execute it.

use super::definition::{Definition, places};
use pinfold_kernel::program::{BEGINNING, elf_machine, is_executable};
use std::io::Read;

impl Definition {
    /// The interpreter that the first line of a program names, if it is a script.
    pub(crate) fn interpreter_of(&self, program: &str) -> Option<String> {
        let beginning = self.beginning_of(program)?;
        let line = beginning.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
        let line = String::from_utf8_lossy(line);
        // Only these two separate words for the kernel: a carriage return is part of the name.
        line.split([' ', '\t']).find(|word| !word.is_empty()).map(str::to_owned)
    }

    /// Why the kernel cannot execute a file that is not a script for a shell.
    pub(crate) fn cannot_be_executed(&self, program: &str) -> String {
        let machine = self.beginning_of(program).and_then(|beginning| elf_machine(&beginning));
        match machine {
            Some(machine) if std::env::consts::ARCH.starts_with(&machine) => {
                format!("`{program}` is damaged, or built for another kernel")
            }
            Some(machine) => {
                let own = std::env::consts::ARCH;
                format!("`{program}` is built for another machine: {machine}, and this is {own}")
            }
            None => format!("`{program}` is neither a program for this machine nor a script"),
        }
    }

    /// The first bytes of a program.
    fn beginning_of(&self, program: &str) -> Option<Vec<u8>> {
        let file = places(program, self.path(), &self.dir).find(|file| is_executable(file))?;
        let mut beginning = Vec::new();
        std::fs::File::open(file).ok()?.take(BEGINNING).read_to_end(&mut beginning).ok()?;
        Some(beginning)
    }
}
