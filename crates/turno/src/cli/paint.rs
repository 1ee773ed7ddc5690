//! Colour on stderr.

use std::io::IsTerminal as _;

use clap::ValueEnum;

/// When to use colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorWhen {
    /// On a terminal, unless NO_COLOR or TERM=dumb is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Puts colour around words, or does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    /// For text on stderr.
    pub(crate) fn for_stderr(when: ColorWhen) -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let on = match when {
            ColorWhen::Always => true,
            ColorWhen::Never => false,
            ColorWhen::Auto if set("NO_COLOR") => false,
            ColorWhen::Auto if set("CLICOLOR_FORCE") => true,
            ColorWhen::Auto => std::io::stderr().is_terminal() && !dumb,
        };
        Self { on }
    }

    /// Whether there is colour.
    pub(crate) const fn is_on(self) -> bool {
        self.on
    }

    /// No colour.
    #[cfg(test)]
    pub(crate) const fn plain() -> Self {
        Self { on: false }
    }

    /// Colour, whatever stderr is.
    #[cfg(test)]
    pub(crate) const fn coloured() -> Self {
        Self { on: true }
    }

    pub(crate) fn bad(self, text: &str) -> String {
        self.wrap(text, "1;31")
    }

    pub(crate) fn good(self, text: &str) -> String {
        self.wrap(text, "32")
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.wrap(text, "2")
    }

    fn wrap(self, text: &str, style: &str) -> String {
        if self.on { format!("\x1b[{style}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
