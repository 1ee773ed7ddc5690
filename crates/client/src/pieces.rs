//! A reply put together from its pieces: their bodies, headers and parts.

use bytes::{Bytes, BytesMut};
use turno_proto::headers::Headers;
use turno_proto::model::{Code, limits, parts};

use crate::{Error, Message};

/// Bytes of a reply put together from pieces. More: ended with `output_too_large`.
const REPLY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The pieces that came so far.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    body: BytesMut,
    headers: Headers,
    /// Lengths of the parts, of all that there may be and some more.
    lengths: Vec<usize>,
    /// A piece had several parts.
    has_parts: bool,
}

impl Pieces {
    pub(crate) fn add(&mut self, piece: Message) -> Result<(), Error> {
        if self.body.len() + piece.body.len() > REPLY_BYTES_MAX {
            return Err(Error::from_code(Code::OutputTooLarge, ""));
        }
        let parts = piece.parts();
        self.has_parts |= parts.len() > 1;
        if self.lengths.len() <= limits::MESSAGE_PARTS_MAX {
            self.lengths.extend(parts.iter().map(Bytes::len));
        }
        self.body.extend_from_slice(&piece.body);
        self.headers.extend(piece.headers);
        Ok(())
    }

    /// With the last piece, which only marks the end if it is empty. The whole has the parts of all pieces; if they are too
    /// many it is one part.
    pub(crate) fn finish(mut self, last: Message) -> Result<Message, Error> {
        if last != Message::default() {
            self.add(last)?;
        }
        self.headers.remove(parts::HEADER);
        if self.has_parts
            && let Ok(Some(list)) = parts::lengths(self.lengths.into_iter())
        {
            self.headers.insert(parts::HEADER.to_owned(), list);
        }
        Ok(Message::new(self.body.freeze()).headers(self.headers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(pieces: Vec<Message>, last: Message) -> Message {
        let mut gathered = Pieces::default();
        for piece in pieces {
            gathered.add(piece).expect("it is short");
        }
        gathered.finish(last).expect("it is short")
    }

    fn parts(parts: &[&str]) -> Message {
        Message::from_parts(parts).expect("few")
    }

    #[test]
    fn pieces_of_one_part_are_one_part() {
        assert_eq!(whole(vec!["a".into(), "".into()], "b".into()), Message::new("ab"));
        assert_eq!(whole(vec!["a".into()], Message::default()), Message::new("a"));
        let headers = whole(vec![Message::new("a").header("k", "1")], Message::new("b").header("k", "2"));
        assert_eq!(headers, Message::new("ab").header("k", "2"), "the last one counts");
    }

    #[test]
    fn the_whole_has_the_parts_of_all_pieces() {
        let table = [
            (vec![parts(&["a", ""])], "bc".into(), vec!["a", "", "bc"]),
            (vec!["a".into(), parts(&["b", "c"])], parts(&["", "d"]), vec!["a", "b", "c", "", "d"]),
            (vec![parts(&["a", "b"])], Message::default(), vec!["a", "b"]),
            (vec![parts(&["a", "b"])], Message::default().header("k", "v"), vec!["a", "b", ""]),
        ];
        for (pieces, last, expected) in table {
            assert_eq!(whole(pieces, last).parts(), expected);
        }
    }

    /// A list that does not fit its piece must not fit the whole by chance.
    #[test]
    fn a_list_that_does_not_fit_is_none() {
        let bad = Message::new("ab").header("parts", "1 2");
        assert_eq!(whole(vec![bad], "c".into()), Message::new("abc"));
    }

    #[test]
    fn too_many_parts_are_one() {
        let most = vec!["x"; limits::MESSAGE_PARTS_MAX];
        assert_eq!(whole(vec![parts(&most[1..])], "x".into()).parts(), most);
        let too_many = whole(vec![parts(&most); 3], "x".into());
        assert_eq!((too_many.parts().len(), too_many.headers.len()), (1, 0));
    }

    #[test]
    fn a_whole_that_is_too_long_is_refused() {
        let mut gathered = Pieces::default();
        let half = Message::new(vec![0; REPLY_BYTES_MAX / 2]);
        gathered.add(half.clone()).expect("it fits");
        gathered.add(half).expect("it fits");
        assert_eq!(gathered.finish("x".into()).map_err(|error| error.code()), Err(Code::OutputTooLarge));
    }
}
