//! Quoting in shell commands: the places where a quoted word can be inserted. Not a shell's grammar: where it is not
//! sure, it says so, and the place is refused.

/// The state after the part of a line that was read.
#[derive(Debug, Default)]
pub(super) struct Quotes {
    state: QuoteState,
    /// The last two letters, the latest second.
    before: [char; 2],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum QuoteState {
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

    fn after(&self, letter: char) -> QuoteState {
        let last = self.before[1];
        match (self.state, letter) {
            (QuoteState::Plain, '\\') => QuoteState::Escaped { in_double: false },
            // $'…' is one thing for one shell and another for the next.
            (QuoteState::Plain, '\'') if last == '$' => QuoteState::Unsure,
            (QuoteState::Plain, '\'') => QuoteState::Single,
            (QuoteState::Plain, '"') => QuoteState::Double,
            (QuoteState::Plain, '`') => QuoteState::Back,
            (QuoteState::Plain, '#') if is_border(last) => QuoteState::Comment,
            // A text up to a word of its own follows.
            (QuoteState::Plain, '<') if last == '<' => QuoteState::Unsure,
            (QuoteState::Single, '\'') | (QuoteState::Double, '"') => QuoteState::Plain,
            (QuoteState::Double, '\\') => QuoteState::Escaped { in_double: true },
            // A command inside of quotes has quotes of its own.
            (QuoteState::Double, '`') => QuoteState::Unsure,
            (QuoteState::Double, '(') if last == '$' => QuoteState::Unsure,
            (QuoteState::Double, '{') if last == '$' => QuoteState::Variable,
            (QuoteState::Variable, '}') => QuoteState::Double,
            (QuoteState::Variable, '\'' | '"' | '`' | '\\' | '$' | '{') => QuoteState::Unsure,
            (QuoteState::Back, '\\') => QuoteState::Unsure,
            (QuoteState::Back, '`') | (QuoteState::Comment, '\n') => QuoteState::Plain,
            (QuoteState::Escaped { in_double: true }, _) => QuoteState::Double,
            (QuoteState::Escaped { in_double: false }, _) => QuoteState::Plain,
            (state, _) => state,
        }
    }

    /// Why a word in quotes cannot follow.
    pub(super) fn odd(&self) -> Option<&'static str> {
        match self.state {
            QuoteState::Plain if self.before[1] == '$' => Some("after a $"),
            QuoteState::Plain => None,
            // A value with a second line would be a command there.
            QuoteState::Comment => Some("inside a comment"),
            QuoteState::Single | QuoteState::Double | QuoteState::Variable => Some("inside quotes"),
            QuoteState::Back => Some("inside backquotes"),
            QuoteState::Escaped { .. } => Some("after a backslash"),
            QuoteState::Unsure => Some("after << or inside nested quotes"),
        }
    }
}

/// Whether a word, and so a comment, can begin after this character. A line begins after nothing.
fn is_border(before: char) -> bool {
    before == '\0' || before.is_whitespace() || matches!(before, ';' | '&' | '|' | '(' | ')')
}
