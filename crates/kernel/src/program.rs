//! Finds a program as a shell would.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Returns the files that a program name may mean: itself if it contains a slash, otherwise one in each
/// folder of `path`. An empty folder is the working directory.
pub fn places<'a>(program: &'a OsStr, path: &'a OsStr) -> impl Iterator<Item = PathBuf> + 'a {
    let named = program.as_bytes().contains(&b'/');
    let searched = !named && !program.is_empty();
    let folders = searched.then(|| std::env::split_paths(path)).into_iter().flatten();
    let here = |folder: PathBuf| if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder };
    let in_folders = folders.map(move |folder| here(folder).join(program));
    named.then(|| PathBuf::from(program)).into_iter().chain(in_folders)
}

/// Returns the path of a program, if it is found.
#[must_use]
pub fn find(program: &OsStr, path: &OsStr) -> Option<PathBuf> {
    places(program, path).find(|file| is_executable(file))
}

/// Whether this process may execute a file.
#[must_use]
pub fn is_executable(file: &Path) -> bool {
    file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}

/// As much of a file as the kernel and shells read to know what it is.
pub const BEGINNING: u64 = 256;

/// Whether a file that the kernel cannot execute is a script for a shell, by its first bytes: it is no ELF program
/// and has no zero in its first line. Shells use the same rule.
#[must_use]
pub fn is_for_a_shell(beginning: &[u8]) -> bool {
    let line = beginning.split(|byte| *byte == b'\n').next().unwrap_or_default();
    !beginning.starts_with(ELF) && !line.contains(&0)
}

/// Returns the machine that an ELF program is built for, by its first bytes: its usual name, or its number.
#[must_use]
pub fn elf_machine(beginning: &[u8]) -> Option<String> {
    const BIG_ENDIAN: u8 = 2;
    let order = *beginning.strip_prefix(ELF)?.get(1)?;
    let number = beginning.get(18..20)?.first_chunk()?;
    let number = if order == BIG_ENDIAN { u16::from_be_bytes(*number) } else { u16::from_le_bytes(*number) };
    let name = match number {
        3 => "x86",
        8 => "mips",
        20 => "powerpc",
        21 => "powerpc64",
        22 => "s390x",
        40 => "arm",
        62 => "x86_64",
        183 => "aarch64",
        243 => "riscv",
        258 => "loongarch64",
        number => return Some(format!("machine {number}")),
    };
    Some(name.to_owned())
}

const ELF: &[u8] = b"\x7fELF";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_is_for_text_and_not_for_programs() {
        for (beginning, is) in [
            (&b"echo hello\n"[..], true),
            (b"", true),
            // A script may have a payload after its first line, and some programs are scripts on purpose.
            (b"exec tail -n +2 $0\n\0\0", true),
            (b"MZqFpD='\n\0\0", true),
            (b"MZ\x90\0\x03", false),
            (b"\0asm\x01", false),
            (b"\xcf\xfa\xed\xfe\x07\0\0\x01", false),
            (b"\x7fELF\x02\x01\x01", false),
        ] {
            assert_eq!(is_for_a_shell(beginning), is, "{}", beginning.escape_ascii());
        }
    }

    #[test]
    fn a_program_names_the_machine_that_it_is_built_for() {
        let elf = |order: u8, number: [u8; 2]| {
            let mut bytes = [b"\x7fELF\x02", &[order][..], &[0; 12]].concat();
            bytes.extend(number);
            elf_machine(&bytes)
        };
        assert_eq!(elf(1, [183, 0]).as_deref(), Some("aarch64"));
        assert_eq!(elf(2, [0, 22]).as_deref(), Some("s390x"));
        assert_eq!(elf(1, [1, 2]).as_deref(), Some("machine 513"));
        assert_eq!((elf_machine(b"\x7fELF\x02\x01"), elf_machine(b"#!/bin/sh\n")), (None, None));
        let own = std::fs::read("/proc/self/exe").unwrap();
        assert!(elf_machine(&own).is_some_and(|name| std::env::consts::ARCH.starts_with(&name)));
    }

    #[test]
    fn a_name_is_searched_and_a_path_is_not() {
        let all = |program: &str, path: &str| {
            places(program.as_ref(), path.as_ref())
                .map(|place| place.display().to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(all("sh", "/a:/b"), ["/a/sh", "/b/sh"]);
        assert_eq!(all("sh", ":/b"), ["./sh", "/b/sh"]);
        assert_eq!(all("./sh", "/a:/b"), ["./sh"]);
        assert_eq!(all("", "/a:/b"), Vec::<String>::new());
    }

    #[test]
    fn a_program_is_found_and_what_may_not_be_executed_is_not_one() {
        assert!(find("sh".as_ref(), "/nowhere:/usr/bin:/bin".as_ref()).is_some());
        assert_eq!(find("sh".as_ref(), "/nowhere".as_ref()), None);
        let temp = tempfile::tempdir().unwrap();
        std::fs::write(temp.path().join("plain"), "").unwrap();
        assert_eq!(find("plain".as_ref(), temp.path().as_os_str()), None);
        assert_eq!(find(temp.path().as_os_str(), "".as_ref()), None, "a folder is not a program");
    }
}
