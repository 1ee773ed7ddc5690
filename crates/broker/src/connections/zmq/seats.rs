//! Seats: numbers of connections that have no socket, for workers that are behind a connection.

use std::collections::{BTreeMap, BTreeSet};

use turno_engine::Input;
use turno_proto::model::{ConnId, Mono};

use super::super::table::ConnectionTable;
use super::super::{Connections, EngineHandle};

/// The seats of a router.
#[derive(Debug, Default)]
pub(super) struct Seats {
    /// One that nobody has.
    pub(super) spare: Option<ConnId>,
    /// The connection that each is behind.
    homes: BTreeMap<ConnId, ConnId>,
    behind: BTreeMap<ConnId, BTreeSet<ConnId>>,
}

impl Seats {
    /// The connection that is written to: the one that a seat is behind, or the connection itself.
    pub(super) fn home(&self, conn: ConnId) -> ConnId {
        if self.homes.is_empty() { conn } else { self.homes.get(&conn).copied().unwrap_or(conn) }
    }

    /// The spare seat is behind that connection from now on.
    pub(super) fn give(&mut self, seat: ConnId, home: ConnId) {
        self.homes.insert(seat, home);
        self.behind.entry(home).or_default().insert(seat);
    }

    fn of(&self, home: ConnId) -> Vec<ConnId> {
        self.behind.get(&home).into_iter().flatten().copied().collect()
    }

    /// Nobody has the seat any more. False if it is none.
    fn remove(&mut self, seat: ConnId) -> bool {
        let Some(home) = self.homes.remove(&seat) else { return false };
        if let Some(seats) = self.behind.get_mut(&home) {
            seats.remove(&seat);
            if seats.is_empty() {
                self.behind.remove(&home);
            }
        }
        true
    }
}

impl ConnectionTable {
    /// The engine was told that a connection is over: if it was a seat, another may have its number.
    pub(super) fn leave_seat(&mut self, conn: ConnId) {
        if self.zmq.seats.remove(conn) {
            self.vacate(conn);
        }
    }
}

impl<D: EngineHandle> Connections<D> {
    /// The engine hears the same of all seats behind a connection.
    pub(in super::super) fn tell_of_seats(&mut self, now: Mono, home: ConnId, input: impl Fn(ConnId) -> Input) {
        for conn in self.table.zmq.seats.of(home) {
            let input = input(conn);
            let ends = matches!(input, Input::Disconnected { .. });
            self.engine_handle.put(now, input, &mut self.table);
            if ends {
                self.table.leave_seat(conn);
            }
        }
    }
}
