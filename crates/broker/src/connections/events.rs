//! Events on their way to subscribers: encoded once, then copied to each connection. Who takes them slowly has them
//! wait apart from the rest, so that answers are not held up behind them; when too many wait, the oldest go, and the
//! peer is told where.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use turno_engine::{EventRef, Listener};
use turno_proto::model::ConnId;
use turno_proto::model::limits::{EVENT_ROOM_BYTES, EVENTS_WAITING_BYTES_MAX, MESSAGE_OVERHEAD_BYTES};
use turno_proto::native::{Frame, Raw, RawEvent as EventFrame, encode};

use super::table::{Connection, ConnectionTable, PeerProtocol};
use crate::memory::MemoryMeter;

/// How much of events a connection may leave unread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventLimits {
    /// Bytes that wait to be written before events wait apart.
    pub room: usize,
    /// Bytes of those that wait apart before the oldest go.
    pub waiting: usize,
}

impl Default for EventLimits {
    fn default() -> Self {
        Self { room: EVENT_ROOM_BYTES, waiting: EVENTS_WAITING_BYTES_MAX }
    }
}

/// Events that wait for one connection.
#[derive(Debug, Default)]
pub(super) struct WaitingEvents {
    /// Whole frames.
    frames: VecDeque<Bytes>,
    bytes: usize,
    /// Those that went, before the first that waits.
    missed: u32,
    /// Those that went since the engine was told.
    untold: u64,
}

/// Bytes that a frame of that size takes while it waits.
const fn bytes_of(frame: usize) -> usize {
    frame + MESSAGE_OVERHEAD_BYTES
}

impl WaitingEvents {
    /// Whether one more of that size would make the oldest go.
    fn is_full(&self, size: usize, limits: EventLimits) -> bool {
        !self.frames.is_empty() && self.bytes + bytes_of(size) > limits.waiting
    }

    /// Bytes of the table that they are in.
    pub(super) fn table_bytes(&self) -> usize {
        self.frames.capacity() * size_of::<Bytes>()
    }

    /// The oldest goes. False: none waits.
    fn drop_oldest(&mut self) -> bool {
        let Some(oldest) = self.frames.pop_front() else { return false };
        self.bytes -= bytes_of(oldest.len());
        self.miss();
        true
    }

    fn miss(&mut self) {
        self.missed = self.missed.saturating_add(1);
        self.untold += 1;
    }

    /// One more. The oldest go until there is room for it; one that is larger than all that may wait waits alone.
    fn push(&mut self, frame: Bytes, limits: EventLimits) {
        while self.is_full(frame.len(), limits) && self.drop_oldest() {}
        self.bytes += bytes_of(frame.len());
        self.frames.push_back(frame);
    }

    /// Takes what fits into so many bytes of room, at least one. `tells`: where some are missing the peer is told so. The
    /// bytes of the longest.
    fn pour(&mut self, room: usize, tells: bool, protocol: &mut PeerProtocol, out: &mut Vec<u8>) -> usize {
        let (start, mut longest) = (out.len(), 0);
        if self.missed > 0 && tells {
            encode(&Frame::EventsDropped { count: std::mem::take(&mut self.missed) }, out);
        }
        while let Some(next) = self.frames.front()
            && (out.len() == start || out.len() - start + next.len() <= room)
        {
            let before = out.len();
            protocol.add_event(next, out);
            longest = longest.max(out.len() - before);
            self.bytes -= bytes_of(next.len());
            self.frames.pop_front();
        }
        longest
    }
}

/// An event as a frame. Where it has to wait, it waits once for all.
pub(super) struct EventBytes<'a> {
    bytes: &'a [u8],
    shared: Option<Bytes>,
}

impl<'a> EventBytes<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, shared: None }
    }

    fn share(&mut self, meter: &Arc<MemoryMeter>) -> Bytes {
        self.shared.get_or_insert_with(|| MemoryMeter::share(meter, self.bytes)).clone()
    }
}

impl Connection {
    /// The peer is told of events that it missed, though none waits: there was no memory for them.
    fn tell_missed(&mut self) {
        let tells = self.tells_missed();
        if let Some(waiting) = self.events.as_mut()
            && waiting.missed > 0
            && tells
        {
            encode(&Frame::EventsDropped { count: std::mem::take(&mut waiting.missed) }, &mut self.out);
        }
    }

    /// Another broker has subscribers of its own, and cannot know which of them would have got what is missing; a ZeroMQ peer has no
    /// place for it.
    const fn tells_missed(&self) -> bool {
        !matches!(self.protocol, PeerProtocol::Link(_) | PeerProtocol::Zmtp(_))
    }

    /// Puts events that wait among what is to be written, once there is room for a good part of them. True if it did.
    pub(super) fn refill(&mut self, limits: EventLimits) -> bool {
        let room = limits.room.saturating_sub(self.waiting());
        let tells = self.tells_missed();
        let Some(waiting) = self.events.as_mut().filter(|waiting| !waiting.frames.is_empty()) else { return false };
        if room < limits.room / 2 {
            return false;
        }
        let longest = waiting.pour(room, tells, &mut self.protocol, &mut self.out);
        self.longest = self.longest.max(longest);
        if waiting.frames.is_empty() && waiting.untold == 0 && waiting.missed == 0 {
            self.events = None;
        }
        true
    }
}

impl ConnectionTable {
    /// An event for all of these connections, as far as they are here.
    pub(super) fn spread(&mut self, event: EventRef<'_>, listeners: &[Listener]) {
        let mut bytes = std::mem::take(&mut self.event);
        let EventRef { topic, headers, bytes: payload, .. } = event;
        let raw = Raw { headers, bytes: payload };
        encode(&Frame::Event(EventFrame { topic: topic.as_str().as_bytes(), payload: raw }), &mut bytes);
        let mut frame = EventBytes::new(&bytes);
        self.copies = self.copies.saturating_add(u32::try_from(listeners.len()).unwrap_or(u32::MAX));
        for listener in listeners {
            if self.zmq.count > 0 && self.zmq_place(listener.conn).is_some() {
                continue;
            }
            self.add_event(*listener, &mut frame);
        }
        self.spread_to_zmq(event, listeners);
        bytes.clear();
        if bytes.capacity() <= EVENT_ROOM_BYTES {
            self.event = bytes;
        }
    }

    /// The same for ZeroMQ peers: encoded once for each endpoint.
    fn spread_to_zmq(&mut self, event: EventRef<'_>, listeners: &[Listener]) {
        if self.zmq.count == 0 {
            return;
        }
        let mut listeners: Vec<(u16, Listener)> =
            listeners.iter().filter_map(|one| Some((self.zmq_place(one.conn)?, *one))).collect();
        listeners.sort_by_key(|(place, _)| *place);
        for group in listeners.chunk_by(|one, other| one.0 == other.0) {
            let Some(bytes) = group.first().and_then(|(_, first)| self.zmq_event(first.conn, event)) else { continue };
            let mut frame = EventBytes::new(&bytes);
            for (_, listener) in group {
                self.add_event(*listener, &mut frame);
                self.zmq_sent(listener.conn);
            }
        }
    }

    pub(super) fn add_event(&mut self, Listener { conn, or_close }: Listener, frame: &mut EventBytes<'_>) {
        let limits = self.event_limits;
        // Events are what goes first when there is no memory; who would rather be closed is.
        let lacks = |meter: &MemoryMeter| !meter.has_spare_room(frame.bytes.len() as u64);
        let has_room = !lacks(self.account.meter());
        let Some(connection) = self.with_room(conn) else { return };
        let waits = connection.events.as_ref().is_some_and(|waiting| !waiting.frames.is_empty());
        if !waits && connection.waiting() < limits.room && has_room {
            connection.tell_missed();
            let before = connection.out.len();
            connection.protocol.add_event(frame.bytes, &mut connection.out);
            connection.stretch(before);
            return self.count_out(conn);
        }
        let meter = Arc::clone(self.account.meter());
        let Some(connection) = self.get_mut(conn) else { return };
        let waiting = connection.events.get_or_insert_default();
        if or_close && (waiting.is_full(frame.bytes.len(), limits) || lacks(&meter)) {
            // Once is enough, however many more come before it is closed.
            if self.overrun.last() != Some(&conn) {
                self.overrun.push(conn);
            }
            return;
        }
        let told = waiting.untold > 0;
        while lacks(&meter) && waiting.drop_oldest() {}
        if lacks(&meter) {
            waiting.miss();
        } else {
            waiting.push(frame.share(&meter), limits);
        }
        if !told && waiting.untold > 0 {
            self.missed.push(conn);
        }
        self.count_out(conn);
    }

    /// Connections that missed events since the last call, and how many.
    pub(super) fn take_dropped(&mut self) -> Vec<(ConnId, u64)> {
        let missed = std::mem::take(&mut self.missed);
        let taken = missed.into_iter().filter_map(|conn| {
            let waiting = self.get_mut(conn)?.events.as_mut()?;
            Some((conn, std::mem::take(&mut waiting.untold)))
        });
        taken.collect()
    }
}

#[cfg(test)]
mod tests {
    use turno_proto::model::{Limits, Mono, Topic};
    use turno_proto::native::{decode, split};

    use super::super::numbers::NumberAllocation;
    use super::super::table::ListenerKind;
    use super::*;

    fn table() -> (ConnectionTable, ConnId) {
        let mut table = ConnectionTable::new(&Limits::default(), NumberAllocation::default());
        let conn = table.insert(Mono::ZERO, "peer".to_owned(), ListenerKind::Native);
        (table, conn)
    }

    fn publish(table: &mut ConnectionTable, conn: ConnId, or_close: bool, number: u32, bytes: usize) {
        let mut body = vec![0; bytes];
        body[..4].copy_from_slice(&number.to_le_bytes());
        let topic = "a.b".parse::<Topic>().unwrap();
        table.spread(EventRef::passing(&topic, false, &body), &[Listener { conn, or_close }]);
    }

    /// The frames that the peer reads: numbers of events, and how many are missing where.
    fn read(table: &mut ConnectionTable, conn: ConnId) -> Vec<Result<u32, u32>> {
        let mut told = Vec::new();
        loop {
            let connection = table.get_mut(conn).unwrap();
            let mut bytes = connection.unwritten().to_vec();
            if bytes.is_empty() {
                return told;
            }
            connection.wrote(bytes.len());
            connection.refill(EventLimits::default());
            while let Some(piece) = split(&bytes, usize::MAX).unwrap() {
                told.push(match decode(&piece.header, piece.rest).unwrap() {
                    Frame::Event(event) => Ok(u32::from_le_bytes(event.payload.bytes[..4].try_into().unwrap())),
                    Frame::EventsDropped { count } => Err(count),
                    other => panic!("{other:?}"),
                });
                let used = piece.used;
                bytes.drain(..used);
            }
        }
    }

    #[test]
    fn who_reads_gets_every_event_in_order() {
        let (mut table, conn) = table();
        for round in 0..3 {
            for number in 0..10 {
                publish(&mut table, conn, false, round * 10 + number, 100_000);
            }
            let expected: Vec<_> = (0..10).map(|number| Ok(round * 10 + number)).collect();
            assert_eq!(read(&mut table, conn), expected);
        }
        assert!(table.get(conn).unwrap().events.is_none(), "nothing is kept");
        assert_eq!(table.take_dropped(), []);
    }

    /// The oldest of what waits goes; where it stood the peer is told how many are missing, and the engine hears of it
    /// once.
    #[test]
    fn who_reads_too_slowly_misses_the_oldest_and_is_told() {
        let (mut table, conn) = table();
        let size = 100_000;
        for number in 0..200 {
            publish(&mut table, conn, false, number, size);
        }
        let told = read(&mut table, conn);
        let missed = told.iter().find_map(|told| told.err()).expect("some are missing");
        let numbers: Vec<u32> = told.iter().filter_map(|told| told.ok()).collect();
        assert_eq!(numbers.len() as u32 + missed, 200);
        assert!(numbers.is_sorted() && numbers.last() == Some(&199));
        let gap = told.iter().position(|told| told.is_err()).unwrap();
        assert_eq!(
            (told[gap - 1].unwrap() + missed + 1, told.iter().filter(|told| told.is_err()).count()),
            (told[gap + 1].unwrap(), 1)
        );
        assert_eq!(table.take_dropped(), [(conn, u64::from(missed))]);
        assert_eq!(table.take_dropped(), []);
        // The next time only of those since.
        (0..200).for_each(|number| publish(&mut table, conn, false, number, size));
        assert_eq!(table.take_dropped(), [(conn, u64::from(missed))]);
    }

    /// Events that wait come among what is to be written only as far as there is room: an answer does not wait behind all of them.
    #[test]
    fn what_waits_is_poured_as_far_as_there_is_room() {
        let (mut table, conn) = table();
        for number in 0..60 {
            publish(&mut table, conn, false, number, 100_000);
        }
        let connection = table.get_mut(conn).unwrap();
        let mut poured = 0;
        while connection.waiting() > 0 {
            connection.wrote(connection.waiting());
            poured += usize::from(connection.refill(EventLimits::default()));
            assert!(connection.waiting() <= EVENT_ROOM_BYTES, "{}", connection.waiting());
        }
        assert!(poured > 1, "there was more than fits at once");
    }

    /// However long an event is, answers may wait beside it: a reader that is slow with it is not given up for them.
    #[test]
    fn a_long_event_takes_no_room_from_others() {
        for behind in [false, true] {
            let (mut table, conn) = table();
            if behind {
                publish(&mut table, conn, false, 0, EVENT_ROOM_BYTES);
            }
            publish(&mut table, conn, false, 1, 2 * EVENTS_WAITING_BYTES_MAX);
            let connection = table.get_mut(conn).unwrap();
            if behind {
                connection.wrote(EVENT_ROOM_BYTES);
                assert!(connection.refill(EventLimits::default()));
            }
            connection.stalled = Some(Mono::ZERO);
            table.now = Mono::from_millis(5_000);
            table.write(conn, |out| encode(&Frame::Pong { seq: 1 }, out));
            assert_eq!(table.take_overrun(), None);
        }
    }

    /// One event larger than all that may wait is no reason to close anybody, nor to leave it out.
    #[test]
    fn one_large_event_waits_alone() {
        for or_close in [false, true] {
            let (mut table, conn) = table();
            publish(&mut table, conn, or_close, 0, EVENT_ROOM_BYTES);
            publish(&mut table, conn, or_close, 1, EVENTS_WAITING_BYTES_MAX + 1);
            assert_eq!((table.take_overrun(), table.take_dropped()), (None, vec![]));
            assert_eq!(read(&mut table, conn), [Ok(0), Ok(1)]);
        }
    }

    /// Small events take more memory than their bytes.
    #[test]
    fn many_small_events_are_limited_too() {
        let (mut table, conn) = table();
        let bytes = bytes_of(24);
        let many = u32::try_from((EVENT_ROOM_BYTES + 2 * EVENTS_WAITING_BYTES_MAX) / 24).unwrap();
        for number in 0..many {
            publish(&mut table, conn, false, number, 4);
        }
        let waiting = table.get(conn).unwrap().events.as_ref().unwrap();
        assert!(waiting.frames.len() <= EVENTS_WAITING_BYTES_MAX / bytes);
        assert!(waiting.missed > 0);
    }

    #[test]
    fn who_would_rather_be_closed_is() {
        let (mut table, conn) = table();
        for number in 0..200 {
            publish(&mut table, conn, true, number, 100_000);
        }
        assert_eq!(table.take_overrun(), Some(conn));
        assert_eq!(table.take_dropped(), []);
    }
}
