//! Looks at every connection a few times a second: who is silent, who reads nothing, who has had its farewell.

use std::rc::Rc;
use std::time::Duration;

use turno_proto::model::{Code, ConnId};

use super::dispatcher::{Dispatcher, State};
use super::lines::{Line, Phase};

const PERIOD: Duration = Duration::from_millis(100);

pub(super) async fn sweep_for_ever(dispatcher: Rc<Dispatcher>) {
    let mut turns = tokio::time::interval(PERIOD);
    turns.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        turns.tick().await;
        let mut state = dispatcher.state();
        state.sweep();
        dispatcher.settle(state);
    }
}

enum Verdict {
    GiveUp(Code),
    Forget,
}

impl State {
    fn sweep(&mut self) {
        let now = self.clock.now();
        let stall_ms_max = self.limits.write_stall_ms_max;
        let judge = |line: &Line| match line.phase {
            Phase::Doomed { until } => (now >= until).then_some(Verdict::Forget),
            Phase::Greeting | Phase::Open => {
                let stalled = line.stalled.is_some_and(|since| now.millis_since(since) >= stall_ms_max);
                let code = if stalled { Some(Code::SlowReader) } else { line.session.handle_timeout(now) };
                code.map(Verdict::GiveUp)
            }
        };
        let verdicts: Vec<(ConnId, Verdict)> =
            self.lines.iter().filter_map(|line| judge(line).map(|verdict| (line.id, verdict))).collect();
        for (id, verdict) in verdicts {
            match verdict {
                Verdict::GiveUp(code) => self.give_up(id, code),
                Verdict::Forget => self.forget(id),
            }
        }
    }
}
