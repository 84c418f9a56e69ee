//! The presets that pinfold ships. A new agent is a file and a line here.

use super::PresetChanges;

const FILES: [(&str, &str); 2] = [
    ("command", include_str!("../../presets/command.toml")),
    ("scripted", include_str!("../../presets/scripted.toml")),
];

/// The preset of a name, if pinfold ships one.
#[must_use]
pub fn shipped(name: &str) -> Option<PresetChanges> {
    let (_, text) = FILES.iter().find(|(known, _)| *known == name)?;
    // Each file is read by a test, so that none is left out here.
    PresetChanges::from_toml(text).ok()
}

/// The names of the presets that pinfold ships.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::super::Protocol;
    use super::*;

    #[test]
    fn every_preset_that_is_shipped_can_be_read() {
        for (name, text) in FILES {
            assert_eq!(PresetChanges::from_toml(text).err(), None, "{name}");
            assert!(shipped(name).is_some());
        }
        assert_eq!(names().count(), FILES.len());
        assert_eq!(shipped("nobody"), None);
    }

    #[test]
    fn a_command_reads_lines_and_is_named_by_each_session() {
        let command = shipped("command").unwrap().preset();
        assert_eq!((command.protocol, command.command), (Protocol::Line, None));
    }
}
