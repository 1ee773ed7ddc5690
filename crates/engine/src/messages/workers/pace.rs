//! Flow control towards workers: limits on unread output.
//!
//! A delivery's bytes are held twice, by the message and by the out-buffer, and slots alone do not limit the second. So the
//! bytes handed to a worker are counted. When they are more than its window the shell is asked ([`Effect::Pace`]), and the
//! worker shows no room, in its place in the rota, until the answer comes ([`crate::Input::HasRead`]). The window is
//! `Limits::out_bytes_pause`, above which nothing is read from a peer either. While memory is short it is
//! [`limits::OUT_TIGHT_BYTES`], and beyond the limit of memory one delivery. A link has none: the other end says how much
//! room there is.

use turno_proto::model::{ConnId, limits};

use crate::messages::Messages;

/// The memory to share, and its users.
#[derive(Debug)]
pub(in crate::messages) struct Pace {
    /// Bytes that a worker may leave unread.
    window: u64,
    /// The same while memory is short.
    window_tight: u64,
    /// Bytes that out-buffers may take until memory is short, as far as is known.
    spare: u64,
}

impl Pace {
    pub(in crate::messages) const fn new(window: u64) -> Self {
        Self { window, window_tight: limits::OUT_TIGHT_BYTES as u64, spare: u64::MAX }
    }

    /// A delivery of so many bytes goes out: how many a worker may have unread.
    #[inline]
    pub(in crate::messages) const fn spend(&mut self, bytes: u64) -> u64 {
        self.spare = self.spare.saturating_sub(bytes);
        if self.spare == 0 { self.window_tight } else { self.window }
    }
}

impl Messages {
    /// Bytes that all hold now, of that kept free for frames on their way in. Said before each input, or once in a while.
    pub(crate) fn set_pace(&mut self, held: u64, kept_free: u64) {
        let max = self.settings.limits.memory_bytes_max;
        self.pace.spare = max.saturating_sub(held.saturating_add(kept_free));
        self.pace.window_tight = if held > max { 0 } else { limits::OUT_TIGHT_BYTES as u64 };
    }

    /// The worker has read what waited for it.
    pub(crate) fn has_read(&mut self, conn: ConnId) {
        let Some(worker) = self.peers.get_mut(conn).and_then(|peer| peer.worker.as_deref_mut()) else { return };
        (worker.unread_bytes, worker.read_stamp) = (0, self.stamps);
        if std::mem::take(&mut worker.must_read) {
            self.offer(conn);
        }
    }
}
