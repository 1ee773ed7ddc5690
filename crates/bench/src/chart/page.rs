//! The page of figures: what stands between two markers is written by the program, the rest by people.

use anyhow::{Result, bail};

/// Puts `text` between `<!-- generated:begin NAME -->` and `<!-- generated:end NAME -->`.
pub(super) fn fill(page: &str, name: &str, text: &str) -> Result<String> {
    let begin = format!("<!-- generated:begin {name} -->");
    let end = format!("<!-- generated:end {name} -->");
    let (Some(from), Some(to)) = (page.find(&begin), page.find(&end)) else {
        bail!("the page has no markers {begin} and {end}");
    };
    let from = from + begin.len();
    if from > to {
        bail!("{end} stands before {begin}");
    }
    Ok(format!("{}\n\n{}\n\n{}", &page[..from], text.trim(), &page[to..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "before\n<!-- generated:begin a -->\nold\n<!-- generated:end a -->\nafter\n";

    #[test]
    fn only_what_stands_between_is_replaced() {
        let once = fill(PAGE, "a", "new\n").unwrap();
        assert_eq!(once, "before\n<!-- generated:begin a -->\n\nnew\n\n<!-- generated:end a -->\nafter\n");
        assert_eq!(fill(&once, "a", "new").unwrap(), once, "twice is once");
    }

    #[test]
    fn missing_markers_are_an_error() {
        assert!(fill(PAGE, "b", "new").is_err());
        assert!(fill("<!-- generated:end a --><!-- generated:begin a -->", "a", "new").is_err());
    }
}
