//! Whole words in text: `todo` is a word of `a todo b`, not of `todoist`.

/// Where `word` first stands with no identifier character touching either of its ends.
pub(crate) fn find_word(text: &str, word: &str) -> Option<usize> {
    find_words(text, word).next()
}

/// Every place where `word` stands so.
pub(crate) fn find_words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    positions(text, word).filter(move |&at| {
        let after = text[at + word.len()..].chars().next();
        !after.is_some_and(|next| is_ident(next) && word.ends_with(is_ident))
    })
}

/// Where `path` begins, with no identifier character before it; anything may follow, so that
/// `std::net::Tcp` finds `std::net::TcpStream`.
pub(crate) fn find_path(text: &str, path: &str) -> Option<usize> {
    positions(text, path).next()
}

pub(crate) fn is_ident(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn positions<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.match_indices(word).filter_map(move |(at, _)| {
        let before = text[..at].chars().next_back();
        let touches = before.is_some_and(is_ident) && word.starts_with(is_ident);
        (!touches).then_some(at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_words_only() {
        assert_eq!(find_word("a fn b", "fn"), Some(2));
        assert_eq!(find_word("fnord, fn", "fn"), Some(7));
        assert_eq!(find_word("my_fn fn_x", "fn"), None);
        assert_eq!(find_word("x.sleep(1)", "sleep("), Some(2));
    }

    #[test]
    fn paths_may_go_on() {
        assert_eq!(find_path("use std::net::TcpStream", "std::net::Tcp"), Some(4));
        assert_eq!(find_path("mystd::net::Tcp", "std::net::Tcp"), None);
    }
}
