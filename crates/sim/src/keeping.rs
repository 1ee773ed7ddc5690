//! The life of a broker with its store: it starts with what is there, writes while the world goes on, and dies at the
//! worst moment.

use turno_broker::archive::ArchiveHandle;
use turno_broker::connections::{Connections, EventLimits, LocalEngine};
use turno_broker::storage::{DiskStorage, Storage as _};
use turno_engine::{Engine, Input, Settings as EngineSettings};
use turno_proto::model::{Limits, Mono};
use turno_proto::native::Config;
use turno_store::Turn;

use crate::disk::BrokerDisks;
use crate::drops::drop_after;
use crate::world::{Happening, World};

impl World {
    pub(crate) fn start_broker(&mut self, index: usize) {
        let broker = &mut self.brokers[index];
        if broker.connections.is_some() {
            return;
        }
        broker.run += 1;
        let (now, run) = (self.now, broker.run);
        let limits = Limits { out_bytes_max: 64 * 1024, out_bytes_pause: 512, ..Limits::default() };
        // Odd brokers have shared rotas from two queues on, even ones only beyond eight.
        let own_rotas_max = if index % 2 == 1 { 1 } else { EngineSettings::default().own_rotas_max };
        let settings = EngineSettings {
            run: run_of(index, run),
            limits: limits.clone(),
            own_rotas_max,
            drop_after: drop_after(index, run),
            ..EngineSettings::default()
        };
        let settings = self.engine_settings(index, settings);
        let config = Config { broker: format!("broker-{index}"), heartbeat_ms: 1_000, ..Config::of(&limits) };
        let frame_bytes_max = config.frame_bytes_max;
        let Some(engine_handle) = self.open_store(index, settings) else { return self.restart_later(index) };
        let mut connections = Connections::with_engine(engine_handle, limits, config);
        let room = usize::try_from(128 + run % 4 * 256).expect("small");
        connections.set_event_limits(EventLimits { room, waiting: 4 * room });
        self.open_endpoints(index, &mut connections);
        let broker = &mut self.brokers[index];
        broker.connections = Some(connections);
        broker.wakes = None;
        broker.drains_until = None;
        let (run, clock) = (broker.run, broker.clock);
        self.oracle.clocks.starts(index, run, clock);
        self.trace.note(now, "clock", index as u64, clock.shows(now).as_millis());
        self.set_foreman(index);
        self.greet_links(index, frame_bytes_max);
        self.oracle.fences.broker_starts(index);
        self.oracle.topics.broker_starts(index);
        self.oracle.zmq.broker_starts(index);
        self.oracle.crossings.broker_starts(now, index);
        self.trace.note(now, "broker starts", index as u64, run);
        self.at(now.plus_millis(100), Happening::Sweep { broker: index, run });
        self.pump_broker(index);
    }

    /// The engine with what it had before; `None` if the broker did not get that far.
    fn open_store(&mut self, index: usize, mut settings: EngineSettings) -> Option<LocalEngine> {
        let (now, stormy) = (self.now, self.stormy);
        self.oracle.clocks.run_of(index, settings.run);
        let broker = &mut self.brokers[index];
        let Some(disks) = &mut broker.disks else {
            let shown = self.set_clock(index).shows(now);
            settings.term = shown.as_millis();
            return Some(LocalEngine::new(Engine::new(settings, shown), None, ArchiveHandle::in_memory()));
        };
        disks.heal();
        if stormy && self.rng.once_in(10) {
            disks.fail_soon(&mut self.rng);
        }
        let shown = self.set_clock(index).shows(now);
        settings.term = shown.as_millis();
        let broker = &mut self.brokers[index];
        let Some(disks) = &mut broker.disks else { return None };
        match disks.open(shown, settings) {
            Err(why) => {
                assert!(disks.is_faulty, "I1: the store cannot be opened after a crash: {why}");
                self.trace.note(now, "no start", index as u64, broker.run);
                disks.crash_while_opening(&mut self.rng);
                None
            }
            Ok(_) if stormy && self.rng.once_in(8) => {
                self.trace.note(now, "dies while it starts", index as u64, broker.run);
                disks.crash_while_opening(&mut self.rng);
                None
            }
            Ok((engine, storage, truth)) => {
                self.oracle.found(&truth);
                self.oracle.letters.reopened(&self.oracle.clocks, broker.run, &truth);
                self.oracle.judge_owner(&truth);
                let run = broker.run;
                if stormy && self.rng.once_in(6) {
                    let at = Mono::from_micros(now.as_micros() + self.rng.range(0, 60_000));
                    self.at(at, Happening::BrokerDies { broker: index, run });
                }
                let Some(disks) = &mut self.brokers[index].disks else { return None };
                let (archive, harm) = disks.archive.open(&engine, shown, stormy);
                if self.is_foreman(index) {
                    self.oracle.tasks.outputs.reopened(harm);
                }
                Some(LocalEngine::new(engine, Some(storage), archive))
            }
        }
    }

    fn restart_later(&mut self, index: usize) {
        let back = self.now.plus_millis(self.rng.range(1, 2_500));
        self.at(back, Happening::BrokerStarts { broker: index });
    }

    /// Passes changes to the committer, which takes them when it is done with the last batch.
    pub(crate) fn keep(&mut self, index: usize) {
        let broker = &mut self.brokers[index];
        let (Some(connections), Some(disks)) = (&mut broker.connections, &broker.disks) else { return };
        if connections.storage_mut().has_unsent() {
            connections.storage_mut().post();
            if !disks.busy {
                self.commit(index);
            }
        }
    }

    /// A turn of the committer. The disk has it at once, but until it is told, the power may go as if it had not.
    fn commit(&mut self, index: usize) {
        let broker = &mut self.brokers[index];
        let (run, Some(disks)) = (broker.run, &mut broker.disks) else { return };
        let slow = if self.rng.once_in(30) { self.rng.range(0, 500_000) } else { 0 };
        let micros = match disks.turn() {
            Turn::Idle => return,
            Turn::Kept => self.rng.range(10, 1_000),
            Turn::Said { waited_ms } => self.rng.range(50, 8_000) + slow + waited_ms * 1_000,
        };
        self.at(Mono::from_micros(self.now.as_micros() + micros), Happening::Kept { broker: index, run });
    }

    /// A turn of the committer is over: the engine hears what became of it. The broker ends if the store does.
    pub(crate) fn kept(&mut self, index: usize, run: u64) {
        let now = self.now;
        let broker = &mut self.brokers[index];
        let (Some(connections), Some(disks)) = (&mut broker.connections, &mut broker.disks) else { return };
        if broker.run != run {
            return;
        }
        disks.busy = false;
        match connections.storage_mut().as_mut().map_or(Ok(Vec::new()), DiskStorage::take) {
            Ok(inputs) => {
                for input in inputs {
                    self.tell(index, input);
                }
                self.commit(index);
                self.pump_broker(index);
            }
            Err(_) => {
                self.trace.note(now, "store fails", index as u64, run);
                self.kill_broker(index);
            }
        }
    }

    /// The engine hears what became of a group. A full disk refuses new messages, whose senders are told so, and
    /// failures, which are written down later.
    fn tell(&mut self, index: usize, input: Input) {
        let (now, shown) = (self.now, self.clock_of(index));
        let Some(connections) = &mut self.brokers[index].connections else { return };
        let (what, group) = match input {
            Input::Refused { group, .. } => ("refused", group),
            Input::Persisted { group } => ("kept", group),
            _ => ("the store answers", 0),
        };
        self.trace.note(now, what, index as u64, group);
        connections.handle(shown, input);
    }

    pub(crate) fn broker_dies(&mut self, index: usize, run: u64) {
        if self.stormy && self.brokers[index].run == run {
            self.kill_broker(index);
        }
    }

    /// A broker dies: its process alone, or its machine.
    pub(crate) fn kill_broker(&mut self, index: usize) {
        let broker = &mut self.brokers[index];
        if let (Some(_), Some(disks)) = (&broker.connections, &mut broker.disks) {
            disks.crash(&mut self.rng);
        }
        self.stop_broker(index);
    }

    /// A broker ends in order: what it has to write down is written down.
    pub(crate) fn end_broker(&mut self, index: usize) {
        let broker = &mut self.brokers[index];
        if let (Some(connections), Some(disks)) = (&mut broker.connections, &mut broker.disks) {
            write_the_rest(connections, disks);
            disks.close();
        }
        self.stop_broker(index);
    }

    fn stop_broker(&mut self, index: usize) {
        let broker = &mut self.brokers[index];
        if broker.connections.take().is_none() {
            return;
        }
        self.trace.note(self.now, "broker dies", index as u64, broker.run);
        self.oracle.clocks.ends(index);
        for (conn, wire) in std::mem::take(&mut broker.wires) {
            self.close(wire, self.way_out(index, conn, wire));
        }
        self.restart_later(index);
    }
}

/// The run number in message ids of that life.
const fn run_of(broker: usize, life: u64) -> u64 {
    (broker as u64) << 32 | life
}

/// The broker whose messages have ids with that run.
pub(crate) fn broker_of_run(run: u64) -> usize {
    usize::try_from(run >> 32).expect("few brokers")
}

fn write_the_rest(connections: &mut Connections, disks: &mut BrokerDisks) {
    let Some(storage) = connections.storage_mut() else { return };
    storage.post();
    while disks.turn() != Turn::Idle && storage.take().is_ok() {}
}
