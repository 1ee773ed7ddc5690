//! Lets the switchboard look at every connection a few times a second.

use std::rc::Rc;
use std::time::Duration;

use super::dispatcher::Dispatcher;

const PERIOD: Duration = Duration::from_millis(100);

pub(super) async fn sweep_for_ever(dispatcher: Rc<Dispatcher>) {
    let mut turns = tokio::time::interval(PERIOD);
    turns.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        turns.tick().await;
        let mut state = dispatcher.state();
        let now = state.clock.now();
        state.switchboard.sweep(now);
        dispatcher.settle(state);
    }
}
