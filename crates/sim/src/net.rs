//! The network: connections as two byte streams with delay, jitter, a window, and every way to break.

use std::collections::VecDeque;

use turno_proto::model::{ConnId, Mono};

use crate::rng::Rng;

/// Bytes one direction holds, on the way and unread: at most so many, on some wires far fewer. A writer beyond that
/// must wait, so an end that does not read soon stops the other from writing.
const WINDOW_MAX: u64 = 8 * 1024;
const WINDOW_MIN: u64 = 64;
/// Links are so many times as wide.
const LINK_WIDTH: usize = 16;
/// Most bytes that travel in one piece, so that frames arrive cut anywhere.
const PIECE_MAX: u64 = 600;

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Direction {
    ToBroker,
    ToPeer,
}

impl Direction {
    /// The other one.
    pub(crate) const fn back(self) -> Self {
        match self {
            Self::ToBroker => Self::ToPeer,
            Self::ToPeer => Self::ToBroker,
        }
    }
}

/// A broker's end of a connection that it made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) broker: usize,
    pub(crate) conn: ConnId,
}

/// One direction of a connection.
#[derive(Debug, Default)]
struct Lane {
    /// Bytes that arrived and are not read.
    unread: VecDeque<u8>,
    on_the_way: usize,
    /// Nothing arrives before this: a stream keeps its order.
    not_before: Mono,
    /// Written bytes vanish unnoticed.
    hole: bool,
}

/// One connection between a peer and a broker, or between two brokers.
#[derive(Debug)]
pub(crate) struct Wire {
    /// Nobody, if it is a link.
    pub(crate) peer: usize,
    /// The broker that made it, if it is a link.
    pub(crate) dialler: Option<End>,
    pub(crate) broker: usize,
    /// Which of the broker's lives it belongs to.
    pub(crate) life: u64,
    /// The broker's name for it, once accepted.
    pub(crate) conn: Option<ConnId>,
    to_broker: Lane,
    to_peer: Lane,
    window: usize,
    /// Somebody had to wait on it last then.
    held_up: Mono,
    /// Cut: what is on the way is lost, both ends learn of it.
    pub(crate) cut: bool,
}

impl Wire {
    pub(crate) fn new(peer: usize, broker: usize, life: u64, rng: &mut Rng) -> Self {
        let window = usize::try_from(rng.range(WINDOW_MIN, WINDOW_MAX)).expect("small");
        let (to_broker, to_peer) = (Lane::default(), Lane::default());
        let (dialler, conn, held_up) = (None, None, Mono::ZERO);
        Self { peer, dialler, broker, life, conn, to_broker, to_peer, window, held_up, cut: false }
    }

    /// A connection between two brokers. It is wide: what brokers tell each other is long.
    pub(crate) fn link(dialler: End, broker: usize, life: u64, rng: &mut Rng) -> Self {
        let wire = Self::new(usize::MAX, broker, life, rng);
        Self { window: wire.window * LINK_WIDTH, dialler: Some(dialler), ..wire }
    }

    const fn lane(&mut self, way: Direction) -> &mut Lane {
        match way {
            Direction::ToBroker => &mut self.to_broker,
            Direction::ToPeer => &mut self.to_peer,
        }
    }

    /// Takes as many bytes as the window has room for, in pieces; returns how many, and when each piece arrives.
    pub(crate) fn write(
        &mut self,
        now: Mono,
        way: Direction,
        bytes: &[u8],
        rng: &mut Rng,
    ) -> (usize, Vec<(Mono, Vec<u8>)>) {
        if self.cut {
            return (bytes.len(), Vec::new());
        }
        let window = self.window;
        let lane = self.lane(way);
        if lane.hole {
            return (bytes.len(), Vec::new());
        }
        let room = window.saturating_sub(lane.unread.len() + lane.on_the_way);
        let taken = room.min(bytes.len());
        let mut pieces = Vec::new();
        let mut rest = &bytes[..taken];
        while !rest.is_empty() {
            let length = usize::try_from(rng.range(1, PIECE_MAX)).expect("small").min(rest.len());
            let (piece, after) = rest.split_at(length);
            let delay = rng.range(50, 3_000) + if rng.once_in(40) { rng.range(0, 80_000) } else { 0 };
            let at = Mono::from_micros(now.as_micros() + delay).max(lane.not_before);
            lane.not_before = at;
            lane.on_the_way += length;
            pieces.push((at, piece.to_vec()));
            rest = after;
        }
        if taken < bytes.len() {
            self.held_up = now;
        }
        (taken, pieces)
    }

    /// A piece arrived; it may be read now.
    pub(crate) fn arrive(&mut self, way: Direction, piece: &[u8]) {
        if self.cut {
            return;
        }
        let lane = self.lane(way);
        lane.on_the_way -= piece.len();
        if !lane.hole {
            lane.unread.extend(piece);
        }
    }

    /// Reads everything that arrived.
    pub(crate) fn read(&mut self, way: Direction) -> Vec<u8> {
        self.lane(way).unread.drain(..).collect()
    }

    pub(crate) fn has_unread(&self, way: Direction) -> bool {
        let lane = match way {
            Direction::ToBroker => &self.to_broker,
            Direction::ToPeer => &self.to_peer,
        };
        !lane.unread.is_empty()
    }

    /// Its reader does not want to read now.
    pub(crate) const fn hold_up(&mut self, now: Mono) {
        self.held_up = now;
    }

    /// Whether written bytes arrive.
    pub(crate) const fn is_sound(&self) -> bool {
        !self.cut && !self.to_broker.hole && !self.to_peer.hole
    }

    /// Nobody had to wait on it since then, nothing was lost, and nothing is on the way.
    pub(crate) fn is_flawless_since(&self, then: Mono) -> bool {
        let lanes = [&self.to_broker, &self.to_peer];
        let empty = lanes.into_iter().all(|lane| lane.unread.is_empty() && lane.on_the_way == 0);
        self.is_sound() && self.held_up < then && empty
    }

    /// Nobody ever had to wait on it, and nothing was lost.
    pub(crate) fn was_never_held_up(&self) -> bool {
        self.is_sound() && self.held_up == Mono::ZERO
    }

    /// From now on bytes of this direction vanish; nobody is told.
    pub(crate) const fn open_hole(&mut self, way: Direction) {
        self.lane(way).hole = true;
    }
}
