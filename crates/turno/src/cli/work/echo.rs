//! The worker without a program.

use turno_client::{Delivery, Outcome, Reply};

/// Headers and body as they came.
pub(super) fn reply(delivery: Delivery) -> Outcome {
    Outcome::Reply(Reply { headers: delivery.headers, body: delivery.body })
}
