//! Where in a line for a shell a word in quotes of its own can stand. Not a shell's grammar: where it is not sure, it says
//! so, and the place is refused.

/// What was read of a line.
#[derive(Debug, Default)]
pub(super) struct Quotes {
    state: State,
    /// The last two letters, the latest second.
    before: [char; 2],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Plain,
    Single,
    Double,
    Back,
    /// After a backslash, in one of the others.
    Escaped {
        in_double: bool,
    },
    Comment,
    /// In `${…}` inside of double quotes.
    Variable,
    /// After something that this reader cannot follow.
    Unsure,
}

impl Quotes {
    pub(super) fn read(&mut self, text: &str) {
        for letter in text.chars() {
            self.state = self.after(letter);
            self.before = [self.before[1], letter];
        }
    }

    fn after(&self, letter: char) -> State {
        let last = self.before[1];
        match (self.state, letter) {
            (State::Plain, '\\') => State::Escaped { in_double: false },
            // $'…' is one thing for one shell and another for the next.
            (State::Plain, '\'') if last == '$' => State::Unsure,
            (State::Plain, '\'') => State::Single,
            (State::Plain, '"') => State::Double,
            (State::Plain, '`') => State::Back,
            (State::Plain, '#') if is_border(last) => State::Comment,
            // A text up to a word of its own follows.
            (State::Plain, '<') if last == '<' => State::Unsure,
            (State::Single, '\'') | (State::Double, '"') => State::Plain,
            (State::Double, '\\') => State::Escaped { in_double: true },
            // A command inside of quotes has quotes of its own.
            (State::Double, '`') => State::Unsure,
            (State::Double, '(') if last == '$' => State::Unsure,
            (State::Double, '{') if last == '$' => State::Variable,
            (State::Variable, '}') => State::Double,
            (State::Variable, '\'' | '"' | '`' | '\\' | '$' | '{') => State::Unsure,
            (State::Back, '\\') => State::Unsure,
            (State::Back, '`') | (State::Comment, '\n') => State::Plain,
            (State::Escaped { in_double: true }, _) => State::Double,
            (State::Escaped { in_double: false }, _) => State::Plain,
            (state, _) => state,
        }
    }

    /// Why a word in quotes cannot follow.
    pub(super) fn odd(&self) -> Option<&'static str> {
        match self.state {
            State::Plain if self.before[1] == '$' => Some("after a $"),
            State::Plain => None,
            // A value with a second line would be a command there.
            State::Comment => Some("inside of a comment"),
            State::Single | State::Double | State::Variable => Some("inside of quotes"),
            State::Back => Some("inside of backquotes"),
            State::Escaped { .. } => Some("after a backslash"),
            State::Unsure => Some("after << or inside of nested quotes"),
        }
    }
}

/// What a word, and so a comment, can begin after. A line begins after nothing.
fn is_border(before: char) -> bool {
    before == '\0' || before.is_whitespace() || matches!(before, ';' | '&' | '|' | '(' | ')')
}
