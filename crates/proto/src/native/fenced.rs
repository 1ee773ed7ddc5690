//! Frames that can carry the token of an exclusive queue. Nothing in them needs to be freed, so that frames without a
//! token do not pay for those with one.

use super::frame::Raw;
use super::{Frame, Kind};
use crate::model::{Again, Delivery};

/// OK, or a worker's frame about a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of the frame of the same name")]
pub enum FencedFrame<'a> {
    Ok { seq: u32 },
    Reply { seq: u32, word: u32, more: bool, raw: Raw<'a> },
    Ack { delivery: Delivery },
    Fail { delivery: Delivery, again: Again, raw: Raw<'a> },
    Progress { seq: u32, word: u32, raw: Raw<'a> },
    Extend { delivery: Delivery, lease_ms: u32 },
}

impl FencedFrame<'_> {
    /// The type of the frame it is.
    #[inline(never)]
    pub(super) const fn kind(&self) -> Kind {
        match self {
            Self::Ok { .. } => Kind::Ok,
            Self::Reply { .. } => Kind::Reply,
            Self::Ack { .. } => Kind::Ack,
            Self::Fail { .. } => Kind::Fail,
            Self::Progress { .. } => Kind::Progress,
            Self::Extend { .. } => Kind::Extend,
        }
    }
}

impl<'a> From<FencedFrame<'a>> for Frame<'a> {
    fn from(frame: FencedFrame<'a>) -> Self {
        match frame {
            FencedFrame::Ok { seq } => Self::Ok { seq },
            FencedFrame::Reply { seq, word, more, raw } => Self::Reply { seq, word, more, raw },
            FencedFrame::Ack { delivery } => Self::Ack { delivery },
            FencedFrame::Fail { delivery, again, raw } => Self::Fail { delivery, again, raw },
            FencedFrame::Progress { seq, word, raw } => Self::Progress { seq, word, raw },
            FencedFrame::Extend { delivery, lease_ms } => Self::Extend { delivery, lease_ms },
        }
    }
}

impl<'a> Frame<'a> {
    /// The frame with a token; one that cannot carry a token stays as it is.
    pub fn fenced(token: u64, frame: Self) -> Self {
        let frame = match frame {
            Self::Ok { seq } => FencedFrame::Ok { seq },
            Self::Reply { seq, word, more, raw } => FencedFrame::Reply { seq, word, more, raw },
            Self::Ack { delivery } => FencedFrame::Ack { delivery },
            Self::Fail { delivery, again, raw } => FencedFrame::Fail { delivery, again, raw },
            Self::Progress { seq, word, raw } => FencedFrame::Progress { seq, word, raw },
            Self::Extend { delivery, lease_ms } => FencedFrame::Extend { delivery, lease_ms },
            other => return other,
        };
        Self::Fenced { token, frame }
    }
}
