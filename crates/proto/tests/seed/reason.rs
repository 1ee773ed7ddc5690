//! Why a message is where it is, any of the reasons.

use turno_proto::model::WorkerId;
use turno_proto::model::view::{Because, Explanation, Reason};

use super::Seed;

impl Seed {
    pub(super) fn explanation(&self) -> Explanation {
        let (worker, workers, ahead) = (WorkerId(self.long), self.number.into(), self.word.into());
        let (probing, dropped) = (self.small.into(), self.choice.into());
        let reason = match self.small % 25 {
            0 => Reason::NoWorker,
            1 => Reason::WorkersGreeting { workers },
            2 => Reason::WorkersDraining { workers },
            3 => Reason::AllBusy {
                workers,
                used: self.long,
                ahead,
                probing,
                dropped,
                not_reading: ahead,
                brokers: ahead,
            },
            4 => Reason::Behind { ahead },
            5 => Reason::TooCostly { cost: self.small, largest: self.number },
            6 => Reason::Reserved { worker, cost: self.small, free: self.number },
            7 => Reason::AtWorker { worker, name: self.text(), since_seconds: self.seconds() },
            8 => Reason::Stopping { worker },
            9 => Reason::Dead { failure: self.text() },
            10 => Reason::WorkersDropped { workers },
            11 => Reason::ExclusiveBusy { worker, name: self.text(), used: self.long, ahead },
            12 => Reason::NotFree { in_flight: self.long, waiters: workers },
            13 => Reason::KeptFor { worker, name: self.text(), left_seconds: self.seconds() },
            14 => Reason::Maintenance,
            15 => Reason::LinksDown { down: self.long, wanted: workers },
            16 => Reason::FarBusy { brokers: workers, used: self.long, ahead },
            17 => Reason::AtLink { broker: self.text(), name: self.text(), since_seconds: self.seconds() },
            18 => Reason::StoppingAtLink { broker: self.text(), name: self.text() },
            19 => Reason::AtConsumers { consumers: workers, open: ahead, brokers: self.small.into() },
            20 => Reason::TooLong { bytes: self.long, largest: workers },
            21 => Reason::WaitsForMemory { ahead },
            22 => Reason::Answered { worker },
            23 => Reason::Delayed { until: self.moment(), left_seconds: self.seconds(), failed: workers },
            _ => Reason::Draining,
        };
        Explanation { message: self.message(), because: Because(reason) }
    }
}
