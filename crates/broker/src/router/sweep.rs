//! The sweep: a check of every connection a few times a second.

use std::rc::Rc;
use std::time::Duration;

use turno_proto::model::limits;

use super::{Router, Upstream};
use crate::log_limit;

const PERIOD: Duration = Duration::from_millis(100);

pub(super) async fn sweep_for_ever<U: Upstream>(router: Rc<Router<U>>) {
    let mut turns = tokio::time::interval(PERIOD);
    turns.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut late = false;
    loop {
        let due = turns.tick().await;
        // If this thread was held up, what peers said meanwhile is not read yet: none of them was silent. Not twice in a row.
        late = !late && due.elapsed() >= PERIOD;
        if late {
            continue;
        }
        log_limit::tell_left_out();
        let mut state = router.state();
        if state.connections.engine_handle().mailbox().is_some_and(|mailbox| !mailbox.has_room(limits::MAIL_BYTES_MAX))
        {
            // Nobody is read from until the engine has caught up: silence means nothing now.
            continue;
        }
        let now = state.clock.now();
        state.connections.sweep(now);
        router.settle(state);
    }
}
