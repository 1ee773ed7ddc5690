//! ZeroMQ programs at Turno's gateway, beside the same programs at a broker of one libzmq ROUTER socket.

use std::net::SocketAddr;
use std::thread;

use anyhow::{Context, Result, anyhow};
use fastrand::Rng;

use super::figures::RuleSample;
use crate::gateway::Gateway;
use crate::load::{self, LoadShape};
use crate::memory;
use crate::peers::zmq::{self, Letters};
use crate::process;
use crate::protocol::{ConnectionEnd, SystemProtocol};
use crate::report::{Bound, Figures, Pick};
use crate::server::{Keeps, Server, routers};
use crate::system::System;
use crate::works::Work;
use crate::zmtp::{BROKER_SECRET, Mechanism, ZmtpProtocol};

const IDLE_CONNECTIONS: u32 = 5_000;
const KIB: f64 = 1024.0;

/// A part with a figure of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ZmqPart {
    /// W2's requests.
    Relay,
    /// The same hundred in flight, of one client.
    RelayOne,
    /// The same hundred in flight, of one client at one worker.
    RelayPair,
    /// W1's requests.
    Single,
    /// [`Self::Relay`] with CURVE.
    Curve,
    /// [`Self::RelayOne`] with CURVE.
    CurveOne,
    /// Memory of idle connections.
    Connections,
}

impl ZmqPart {
    pub(super) const ALL: [Self; 7] =
        [Self::Relay, Self::RelayOne, Self::RelayPair, Self::Single, Self::Curve, Self::CurveOne, Self::Connections];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Relay => "relay",
            Self::RelayOne => "relay-one",
            Self::RelayPair => "relay-pair",
            Self::Single => "single",
            Self::Curve => "curve",
            Self::CurveOne => "curve-one",
            Self::Connections => "connections",
        }
    }

    pub(super) fn bounds(self) -> Vec<Bound> {
        match self {
            Self::Relay | Self::RelayOne | Self::RelayPair => vec![Bound::AtLeast(1.5), Bound::AtMost(0.35)],
            Self::Single => vec![Bound::AtMost(1.0)],
            Self::Curve | Self::CurveOne => vec![Bound::AtLeast(0.9)],
            Self::Connections => vec![Bound::AtMost(6.0)],
        }
    }

    const fn mechanism(self) -> Mechanism {
        match self {
            Self::Curve | Self::CurveOne => Mechanism::Curve,
            Self::Relay | Self::RelayOne | Self::RelayPair | Self::Single | Self::Connections => Mechanism::Null,
        }
    }

    fn shape(self) -> Option<LoadShape> {
        match self {
            Self::Relay | Self::Curve => Work::W2.shape(),
            Self::RelayOne | Self::CurveOne => Work::W2.shape().map(|shape| LoadShape {
                clients: 1,
                in_flight: shape.clients * shape.in_flight,
                ..shape
            }),
            Self::RelayPair => Self::RelayOne.shape().map(|shape| LoadShape {
                workers: 1,
                slots: shape.workers * shape.slots,
                ..shape
            }),
            Self::Single => Work::W1.shape(),
            Self::Connections => None,
        }
    }

    /// Both brokers one after the other, in any order.
    pub(super) fn measure(self, router_count: usize, dice: &mut Rng) -> Result<RuleSample> {
        let measure = |broker: Broker| self.measure_at(broker, router_count).with_context(|| broker.name());
        let (turno, libzmq) = if dice.bool() {
            let turno = measure(Broker::Gateway)?;
            (turno, measure(Broker::Libzmq)?)
        } else {
            let libzmq = measure(Broker::Libzmq)?;
            (measure(Broker::Gateway)?, libzmq)
        };
        let both =
            |pick: Pick, what: &'static str| anyhow::Ok((pick(&turno).context(what)?, pick(&libzmq).context(what)?));
        if self == Self::Connections {
            let (bytes, theirs) = both(|one| one.connection_bytes, "memory")?;
            return Ok(RuleSample(vec![("KiB of a connection", bytes / KIB), ("KiB at libzmq", theirs / KIB)]));
        }
        let (rate, their_rate) = both(|one| one.rate_per_s, "a rate")?;
        let (cpu, their_cpu) = both(|one| one.cpu_us, "CPU time")?;
        let (p50, their_p50) = both(|one| one.p50_us, "a median")?;
        let (p99, their_p99) = both(|one| one.p99_us, "a percentile")?;
        let mut figures = vec![
            ("rate / libzmq's", rate / their_rate),
            ("CPU / libzmq's", cpu / their_cpu),
            ("p50 / libzmq's", p50 / their_p50),
            ("p99 / libzmq's", p99 / their_p99),
        ];
        if self == Self::Single {
            figures.swap(0, 2);
        }
        figures.extend([("requests/s", rate), ("CPU us", cpu), ("CPU us of libzmq", their_cpu)]);
        Ok(RuleSample(figures))
    }

    fn measure_at(self, broker: Broker, router_count: usize) -> Result<Figures> {
        let (shape, mechanism) = (self.shape(), self.mechanism());
        let pinned = self == Self::Single;
        let slots = shape.map_or(1, |shape| shape.slots);
        let server = match broker {
            Broker::Gateway => Server::configured(pinned, &endpoints(mechanism, slots), &[routers(router_count)])?,
            Broker::Libzmq => {
                let settings = [zmq::curve()];
                let settings = if mechanism == Mechanism::Curve { &settings[..] } else { &[] };
                Server::start(System::Zmq, pinned, Keeps::ByDefault, settings)?
            }
        };
        let (asks_at, works_at) = broker.addresses(&server)?;
        let pids = server.pids();
        let talks = move |seat: ConnectionEnd| broker.talk(seat, mechanism);
        let Some(shape) = shape else { return memory::idle(&talks, asks_at, &pids, IDLE_CONNECTIONS) };
        if !pinned {
            return load::run_apart(&talks, (asks_at, works_at), &pids, shape);
        }
        let pinned = thread::spawn(move || {
            process::stay_on_first_core()?;
            load::run_apart(&talks, (asks_at, works_at), &pids, shape)
        });
        pinned.join().map_err(|_| anyhow!("the load panicked"))?
    }
}

/// The broker in the middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Broker {
    Gateway,
    Libzmq,
}

impl Broker {
    const fn name(self) -> &'static str {
        match self {
            Self::Gateway => "turno",
            Self::Libzmq => System::Zmq.name(),
        }
    }

    /// For clients and for workers.
    fn addresses(self, server: &Server) -> Result<(SocketAddr, SocketAddr)> {
        match (self, &server.zmq[..]) {
            (Self::Gateway, [clients, workers]) => Ok((*clients, *workers)),
            (Self::Gateway, all) => Err(anyhow!("the broker has {} endpoints, not two", all.len())),
            (Self::Libzmq, _) => Ok((server.address, server.address)),
        }
    }

    fn talk(self, seat: ConnectionEnd, mechanism: Mechanism) -> Box<dyn SystemProtocol> {
        match self {
            Self::Gateway => Box::new(ZmtpProtocol::new(seat, Gateway::default(), mechanism)),
            Self::Libzmq => Box::new(ZmtpProtocol::new(seat, Letters, mechanism)),
        }
    }
}

/// The configuration of a broker with an endpoint for clients and one for workers.
fn endpoints(mechanism: Mechanism, slots: u32) -> String {
    let security = match mechanism {
        Mechanism::Null => String::new(),
        Mechanism::Curve => {
            format!("mechanism = \"curve\"\nsecret-key = \"{BROKER_SECRET}\"\nclient-keys = \"any\"\n")
        }
    };
    let endpoint = |role: &str| {
        let listen = "listen = \"tcp://127.0.0.1:0\"";
        format!("[[zmq.endpoint]]\nname = \"{role}\"\n{listen}\nrole = \"{role}\"\nslots = {slots}\n{security}\n")
    };
    format!("listen.zmq = []\n\n{}{}", endpoint("client"), endpoint("worker"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_client_has_as_much_in_flight_as_ten() {
        let shape = |part: ZmqPart| part.shape().unwrap();
        let in_flight = |part| shape(part).clients * shape(part).in_flight;
        let relays = [ZmqPart::Relay, ZmqPart::RelayOne, ZmqPart::RelayPair, ZmqPart::CurveOne];
        assert_eq!(relays.map(in_flight), [100; 4]);
        assert_eq!(relays.map(|part| shape(part).workers * shape(part).slots), [100; 4]);
        assert_eq!((shape(ZmqPart::RelayOne).clients, shape(ZmqPart::Single).in_flight), (1, 1));
        assert_eq!(ZmqPart::ALL.map(|part| part.shape().is_some_and(|shape| shape.body != 256)), [false; 7]);
    }

    #[test]
    fn keys_are_in_the_configuration_of_curve_alone() {
        assert!(!endpoints(Mechanism::Null, 10).contains("key"));
        let text = endpoints(Mechanism::Curve, 10);
        assert_eq!(text.matches(BROKER_SECRET).count(), 2);
        assert_eq!(text.matches("slots = 10").count(), 2);
    }
}
