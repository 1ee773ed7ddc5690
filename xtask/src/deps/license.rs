//! SPDX expressions, as far as crates use them: names, `OR`, `AND`, `WITH`, brackets, and the old `/` for `OR`.

/// Whether the expression can be met by the allowed licences alone; `None` if it is no expression.
pub(super) fn is_allowed(expression: &str, allowed: &[String]) -> Option<bool> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut words = Words { words: spaced.split_whitespace().collect(), allowed };
    words.words.reverse();
    let met = words.any()?;
    words.words.is_empty().then_some(met)
}

struct Words<'a> {
    /// The next one is the last.
    words: Vec<&'a str>,
    allowed: &'a [String],
}

impl Words<'_> {
    fn any(&mut self) -> Option<bool> {
        let mut met = self.all()?;
        while self.takes("OR") {
            met |= self.all()?;
        }
        Some(met)
    }

    fn all(&mut self) -> Option<bool> {
        let mut met = self.one()?;
        while self.takes("AND") {
            met &= self.one()?;
        }
        Some(met)
    }

    fn one(&mut self) -> Option<bool> {
        if self.takes("(") {
            let met = self.any()?;
            return self.takes(")").then_some(met);
        }
        let mut name = self.name()?;
        if self.takes("WITH") {
            name = format!("{name} WITH {}", self.name()?);
        }
        Some(self.allowed.contains(&name))
    }

    fn name(&mut self) -> Option<String> {
        let word = self.words.pop()?;
        (!matches!(word, "OR" | "AND" | "WITH" | "(" | ")")).then(|| word.to_owned())
    }

    fn takes(&mut self, word: &str) -> bool {
        let is_next = self.words.last() == Some(&word);
        if is_next {
            self.words.pop();
        }
        is_next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_met_or_not() {
        let allowed = ["MIT", "Apache-2.0", "Unicode-3.0"].map(str::to_owned);
        let table = [
            ("MIT", Some(true)),
            ("GPL-3.0", Some(false)),
            ("MIT OR GPL-3.0", Some(true)),
            ("GPL-3.0/MIT", Some(true)),
            ("MIT AND GPL-3.0", Some(false)),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", Some(true)),
            ("GPL-3.0 OR MIT AND Unicode-3.0", Some(true)),
            ("Apache-2.0 WITH LLVM-exception", Some(false)),
            ("Apache-2.0 WITH LLVM-exception OR MIT", Some(true)),
            ("", None),
            ("MIT OR", None),
            ("(MIT", None),
            ("MIT MIT", None),
            ("OR MIT", None),
        ];
        for (expression, expected) in table {
            assert_eq!(is_allowed(expression, &allowed), expected, "{expression:?}");
        }
    }
}
