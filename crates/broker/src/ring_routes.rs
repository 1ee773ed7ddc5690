//! The routers of ring connections, if routers have threads of their own. What crossed on its way to or from a router
//! is put right here, so that the node hears exactly what it would hear with one router.

use std::collections::BTreeSet;

use turno_engine::ring::{RingInput, RingPeerEffect};
use turno_engine::{Input, PeerEffect};
use turno_proto::model::{Code, ConnId};

use super::dispatcher::CommandBatch;
use super::router::RouterCommand;

/// Connections of the ring, wherever they are.
#[derive(Debug, Default)]
pub(super) struct RingRoutes {
    /// Targets that a router was told to dial, and nobody has heard of what came of it.
    dialling: BTreeSet<u32>,
    /// Connections that the node knows.
    conns: BTreeSet<ConnId>,
    slowed: bool,
}

/// The router that dials for a target: which one does not matter, as long as it is always the same.
pub(super) const fn dials_for(target: u32, routers: usize) -> usize {
    target as usize % routers
}

fn command(effect: RingPeerEffect) -> RouterCommand {
    RouterCommand::Effect(PeerEffect::Ring(effect))
}

impl RingRoutes {
    /// Sends an effect of the node to the router of its connection, or to all routers.
    pub(super) fn send(&mut self, effect: RingPeerEffect, mask: u32, batches: &mut [CommandBatch]) {
        let router = match &effect {
            RingPeerEffect::Dial { target, .. } => {
                self.dialling.insert(*target);
                dials_for(*target, batches.len())
            }
            RingPeerEffect::Forget { target } => {
                self.dialling.remove(target);
                dials_for(*target, batches.len())
            }
            RingPeerEffect::Say { conn, .. } => (conn.index & mask) as usize,
            RingPeerEffect::Close { conn, .. } => {
                self.conns.remove(conn);
                (conn.index & mask) as usize
            }
            RingPeerEffect::Slow(slow) => {
                self.slowed = *slow;
                return batches.iter_mut().for_each(|batch| batch.commands.push(command(effect.clone())));
            }
        };
        if let Some(batch) = batches.get_mut(router) {
            let effect = PeerEffect::Ring(effect);
            batch.bytes += effect.payload_bytes();
            batch.commands.push(RouterCommand::Effect(effect));
        }
    }

    /// Whether the node is to hear of an input. Not of a connection that it closed, nor of a target that it forgot, while word
    /// of that was on its way to the router.
    pub(super) fn lets_in(&mut self, input: &Input, mask: u32, batches: &mut [CommandBatch]) -> bool {
        let Input::Ring { input } = input else { return true };
        match *input {
            RingInput::Dialled { target, conn, .. } => {
                let wanted = self.dialling.remove(&target);
                if wanted {
                    self.conns.insert(conn);
                } else {
                    self.send(RingPeerEffect::Close { conn, code: None }, mask, batches);
                }
                wanted
            }
            RingInput::DialFailed { target, .. } => self.dialling.remove(&target),
            RingInput::Accepted { conn, .. } => self.conns.insert(conn),
            RingInput::Message { conn, .. } => self.conns.contains(&conn),
            RingInput::Closed { conn } => self.conns.remove(&conn),
            RingInput::Publish { .. }
            | RingInput::Join { .. }
            | RingInput::Leave
            | RingInput::Shutdown
            | RingInput::Tick => true,
        }
    }

    /// The inputs for the connections of a router that failed.
    pub(super) fn lost_with(&self, router: u32, mask: u32, routers: usize) -> Vec<Input> {
        let closed = self.conns.iter().filter(|conn| conn.index & mask == router);
        let closed = closed.map(|conn| RingInput::Closed { conn: *conn });
        let dialled = self.dialling.iter().filter(|target| dials_for(**target, routers) == router as usize);
        let failed = dialled.map(|target| RingInput::DialFailed { target: *target, code: Code::RingDown });
        closed.chain(failed).map(|input| Input::Ring { input }).collect()
    }

    /// The first commands to a router that replaces another.
    pub(super) fn first_letters(&self) -> Vec<RouterCommand> {
        if self.slowed { vec![command(RingPeerEffect::Slow(true))] } else { Vec::new() }
    }
}
