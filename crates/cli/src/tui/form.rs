//! The form for a new session: agent, directory, mode, name, and a command if the agent has no preset.

use super::editor::Editor;
use pinfold_api::request::NewSession;

/// The agent that runs any program.
pub(crate) const COMMAND: &str = "command";

/// The modes to choose from; the first leaves it to the agent's preset.
pub(crate) const MODES: [&str; 4] = ["usual", "on-demand", "always", "once"];

/// A field of the form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Field {
    Agent,
    Command,
    Directory,
    Mode,
    Name,
}

/// The state of the form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewSessionForm {
    pub(crate) agents: Vec<String>,
    pub(crate) agent: usize,
    pub(crate) command: Editor,
    pub(crate) dir: Editor,
    pub(crate) mode: usize,
    pub(crate) name: Editor,
    /// The index of the current field.
    pub(crate) at: usize,
    /// Completions of the directory.
    pub(crate) candidates: Vec<String>,
    /// What is wrong with the input.
    pub(crate) problem: Option<String>,
    /// The request was sent and has no answer yet.
    pub(crate) waiting: bool,
}

impl NewSessionForm {
    pub(crate) fn new(agents: &[String], dir: &str) -> NewSessionForm {
        let mut agents = agents.to_vec();
        if !agents.iter().any(|agent| agent == COMMAND) {
            agents.push(COMMAND.to_owned());
        }
        NewSessionForm {
            agents,
            agent: 0,
            command: Editor::default(),
            dir: Editor::of(dir),
            mode: 0,
            name: Editor::default(),
            at: 0,
            candidates: Vec::new(),
            problem: None,
            waiting: false,
        }
    }

    pub(crate) fn agent(&self) -> &str {
        self.agents.get(self.agent).map_or(COMMAND, String::as_str)
    }

    /// The fields for this agent, in order.
    pub(crate) fn fields(&self) -> Vec<Field> {
        let mut fields = vec![Field::Agent, Field::Command, Field::Directory, Field::Mode, Field::Name];
        fields.retain(|field| *field != Field::Command || self.agent() == COMMAND);
        fields
    }

    /// The current field.
    pub(crate) fn field(&self) -> Field {
        let fields = self.fields();
        fields.get(self.at).or(fields.last()).cloned().unwrap_or(Field::Name)
    }

    /// Moves to another field.
    pub(crate) fn go(&mut self, by: isize) {
        let count = self.fields().len();
        self.at = self.at.checked_add_signed(by).map_or(count - 1, |at| at % count);
        self.candidates.clear();
    }

    /// The editor of the current field, if it takes text.
    pub(crate) fn editor(&mut self) -> Option<&mut Editor> {
        match self.field() {
            Field::Command => Some(&mut self.command),
            Field::Directory => Some(&mut self.dir),
            Field::Name => Some(&mut self.name),
            Field::Agent | Field::Mode => None,
        }
    }

    /// Chooses the next or previous agent or mode.
    pub(crate) fn choose(&mut self, by: isize) {
        let turn = |at: usize, count: usize| at.checked_add_signed(by).map_or(count - 1, |at| at % count);
        match self.field() {
            Field::Agent => self.agent = turn(self.agent, self.agents.len()),
            Field::Mode => self.mode = turn(self.mode, MODES.len()),
            Field::Command | Field::Directory | Field::Name => {}
        }
    }

    /// The request for the session, or what is wrong with the input. The command is split into words, with
    /// quotes but without any other shell syntax.
    pub(crate) fn request(&self) -> Result<NewSession, String> {
        let command: Vec<String> = words(self.command.text())?;
        if self.agent() == COMMAND && command.is_empty() {
            return Err("what shall it run? type a command".to_owned());
        }
        let dir = Some(self.dir.text().trim().to_owned()).filter(|dir| !dir.is_empty());
        Ok(NewSession {
            name: self.name.text().trim().to_owned(),
            agent: Some(self.agent().to_owned()).filter(|agent| agent != COMMAND),
            dir,
            mode: Some(MODES[self.mode].to_owned()).filter(|_| self.mode > 0),
            command: Some(command).filter(|command| self.agent() == COMMAND && !command.is_empty()),
            ..NewSession::default()
        })
    }
}

/// Splits a line into words; quotes keep blanks together.
fn words(line: &str) -> Result<Vec<String>, String> {
    let (mut all, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for character in line.chars() {
        match (quote, character) {
            (Some(open), character) if character == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, blank) if blank.is_whitespace() => all.extend(word.take()),
            (_, character) => word.get_or_insert_default().push(character),
        }
    }
    all.extend(word);
    if quote.is_some() { Err("a quote is not closed".to_owned()) } else { Ok(all) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_words_and_quotes_keep_blanks() {
        assert_eq!(
            words("sh -c 'sleep 1; echo \"x\"' \"\"").unwrap(),
            ["sh", "-c", "sleep 1; echo \"x\"", ""]
        );
        assert!(words("echo 'x").is_err());
        assert!(words("  ").unwrap().is_empty());
    }

    #[test]
    fn fields_are_those_of_the_agent() {
        let mut form = NewSessionForm::new(&["claude".to_owned()], "/srv");
        assert_eq!(form.fields().len(), 4);
        assert!(form.request().is_ok_and(|request| request.agent.as_deref() == Some("claude")));
        form.choose(1);
        assert_eq!((form.agent(), form.fields().len()), (COMMAND, 5));
        assert!(form.request().is_err());
        form.go(-1);
        assert_eq!(form.field(), Field::Name);
        form.go(1);
        assert_eq!(form.field(), Field::Agent);
    }
}
